//! The loop that sends what is due: several receivers at once, one message at a time to each.
//!
//! Invariant: a delivery is claimed before it is sent and removed after it arrived, so that a server that dies in between
//! leaves it to the next one.

use super::{
    Webhook,
    send::{Message, PATIENCE, Sent},
};
use crate::app::App;
use domain::Timestamp;
use std::{collections::HashMap, time::Duration};
use store::{Bell, DeliveryRow, Error, Tx};
use tokio::task::{Id, JoinSet};

/// A sender that has not said how it went by then has gone away.
const CLAIM: Duration = Duration::from_secs(PATIENCE.as_secs() + 5);
/// The first pause before another try; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// A receiver that could not be told for this long is not told any more.
const GIVEN_UP: Duration = Duration::from_secs(24 * 3600);
/// Receivers that are called at once.
const AT_ONCE: usize = 16;
/// How often to look when there is nothing to hear.
const LOOK: Duration = Duration::from_secs(60);

/// Sends for as long as it is polled.
pub(crate) async fn run(app: App) {
    let mut bell = app.store.changed(Bell::Deliveries);
    let mut sending: JoinSet<()> = JoinSet::new();
    let mut busy: HashMap<Id, (String, String)> = HashMap::new();
    loop {
        let pause = match pass(&app, &mut sending, &mut busy).await {
            Ok(next) => next.map_or(LOOK, |at| at.since(app.now())).clamp(Duration::from_millis(20), LOOK),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot look for what webhooks are to be told"
                );
                LOOK
            }
        };
        tokio::select! {
            _ = bell.changed() => {}
            Some(done) = sending.join_next_with_id(), if !sending.is_empty() => {
                let id = done.map_or_else(|error| error.id(), |(id, ())| id);
                busy.remove(&id);
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Begins to send what is due to receivers that are free; when to look again.
async fn pass(
    app: &App,
    sending: &mut JoinSet<()>,
    busy: &mut HashMap<Id, (String, String)>,
) -> Result<Option<Timestamp>, Error> {
    let now = app.now();
    let (due, next) = app.store.read(move |tx| Ok((tx.due_deliveries(now)?, tx.next_delivery(now)?))).await?;
    for row in due {
        let receiver = (row.workspace.clone(), row.webhook.clone());
        if busy.values().any(|taken| *taken == receiver) || sending.len() >= AT_ONCE {
            continue;
        }
        let claimed = row.clone();
        let until = Timestamp(now.0 + millis(CLAIM));
        if let Some(order) = app.store.write(move |tx| claim(tx, &claimed, until)).await? {
            busy.insert(sending.spawn(carry(app.clone(), row, order)).id(), receiver);
        }
    }
    Ok(next)
}

/// Where to, and signed with what.
struct Order {
    url: String,
    secret: Option<String>,
}

/// Takes a delivery on, unless someone else has or nobody wants it any more.
fn claim(tx: &mut Tx<'_>, row: &DeliveryRow, until: Timestamp) -> Result<Option<Order>, Error> {
    match Webhook::find(tx, &row.workspace, &row.webhook)?.filter(Webhook::is_active) {
        None => tx.delete_delivery(row.seq).map(|()| None),
        Some(hook) if tx.claim_delivery(row, until)? => {
            Ok(Some(Order { url: hook.url().to_owned(), secret: hook.secret(tx)? }))
        }
        Some(_) => Ok(None),
    }
}

/// Sends a delivery and writes down how it went.
async fn carry(app: App, row: DeliveryRow, order: Order) {
    let secret = order.secret.as_deref();
    let message = Message { url: &order.url, id: &row.id, body: &row.body, secret, now: app.now() };
    let sent = app.webhooks.send(&message).await;
    let said = sent.as_ref().map_or_else(ToString::to_string, |sent| format!("status {}", sent.status));
    let again = again_in(sent.as_ref().ok(), row.tries, app.now().since(row.created_at));
    let arrived = sent.is_ok_and(|sent| (200..300).contains(&sent.status));
    match again {
        _ if arrived => tracing::debug!(webhook = row.webhook, delivery = row.id, "told a webhook"),
        Some(pause) => {
            tracing::info!(webhook = row.webhook, delivery = row.id, said, ?pause, "a webhook is to be told again");
        }
        None => tracing::warn!(webhook = row.webhook, delivery = row.id, said, "a webhook could not be told"),
    }
    let until = again.map(|pause| Timestamp(app.now().0 + millis(pause)));
    let written = app.store.write(move |tx| match until {
        Some(until) => tx.put_off_delivery(row.seq, until),
        None => tx.delete_delivery(row.seq),
    });
    if let Err(error) = written.await {
        tracing::warn!(error = &error as &dyn std::error::Error, "cannot write down what a webhook was told");
    }
}

/// How long to wait before another try; never where the receiver has answered for good, or for too long has not.
fn again_in(sent: Option<&Sent>, tries: i64, age: Duration) -> Option<Duration> {
    let for_good = |sent: &Sent| !(matches!(sent.status, 408 | 429) || sent.status >= 500);
    if sent.is_some_and(for_good) || age > GIVEN_UP {
        return None;
    }
    let doubled = FIRST_PAUSE * 2u32.pow(u32::try_from(tries).unwrap_or(12).min(12));
    let asked = sent.and_then(|sent| sent.retry_after).unwrap_or_default();
    Some(doubled.max(asked).min(LONGEST_PAUSE))
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_tried_again_until_it_has_answered_for_good() {
        let sent =
            |status, wait: u64| Sent { status, retry_after: Some(Duration::from_secs(wait)), body: String::new() };
        let day = GIVEN_UP.as_secs();
        for (answer, tries, age, pause) in [
            (Some(sent(200, 0)), 0, 0, None),
            (Some(sent(404, 0)), 0, 0, None),
            (Some(sent(302, 0)), 0, 0, None),
            (None, 0, 0, Some(1)),
            (None, 3, 0, Some(8)),
            (None, 90, 0, Some(3600)),
            (None, 5, day + 1, None),
            (Some(sent(503, 0)), 1, 0, Some(2)),
            (Some(sent(429, 30)), 1, 0, Some(30)),
            (Some(sent(429, 99_999)), 1, 0, Some(3600)),
        ] {
            let status = answer.as_ref().map(|sent| sent.status);
            let again = again_in(answer.as_ref(), tries, Duration::from_secs(age));
            assert_eq!(again, pause.map(Duration::from_secs), "{status:?} after {tries} tries");
        }
    }
}
