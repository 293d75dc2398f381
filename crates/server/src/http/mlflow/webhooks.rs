//! Webhooks of the registry: make, show, change, remove, try out. What they are told is in `crate::webhooks`.
//!
//! Invariant: a secret goes in and never comes out.

use super::{
    Answer, brief,
    call::Call,
    done,
    fault::{Fault, read, write},
    search::{offset, token},
};
use crate::{
    app::App,
    http::workspaces::guid,
    webhooks::{Message, Webhook, message},
};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::tracking::{
    WebhookEvent,
    limits::{self, Search},
};
use serde::Deserialize;
use serde_json::{Value, json};
use store::{RecordRow, Tx};

/// The webhook an address names.
#[derive(Deserialize)]
pub(super) struct At {
    webhook: String,
}

/// What a call says of a webhook; nothing where it says nothing.
struct Said {
    name: Option<String>,
    url: Option<String>,
    events: Option<Vec<Value>>,
    description: Option<String>,
    status: Option<String>,
    secret: Option<String>,
}

impl Said {
    /// Reads and checks it; the address is looked up, which is why this comes before the transaction.
    async fn of(app: &App, call: &Call) -> Result<Said, Fault> {
        call.by.is_no_job("see or change webhooks")?;
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let said = Said {
            name: given(call.text("name")?),
            url: given(call.text("url")?),
            events: events(call)?,
            description: call.text("description")?,
            status: given(call.text("status")?),
            secret: call.text("secret")?,
        };
        if let Some(name) = &said.name {
            limits::webhook_name(name)?;
        }
        if let Some(status) = said.status.as_deref().filter(|word| !["ACTIVE", "DISABLED"].contains(word)) {
            return Err(Fault::invalid(format!("Invalid status '{status}': it must be ACTIVE or DISABLED")));
        }
        if let Some(url) = &said.url {
            app.webhooks.reach.check(url).await.map_err(|error| Fault::invalid(error.to_string()))?;
        }
        Ok(said)
    }

    /// Lays it over what is kept of the webhook.
    fn over(&self, body: &mut Value) {
        let texts =
            [("name", &self.name), ("url", &self.url), ("description", &self.description), ("status", &self.status)];
        for (key, text) in texts.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))) {
            body[key] = json!(text);
        }
        if let Some(events) = &self.events {
            body["events"] = json!(events);
        }
    }
}

/// The events a call names, as they are kept; none where it names none.
fn events(call: &Call) -> Result<Option<Vec<Value>>, Fault> {
    let named = call.list("events")?;
    let read =
        named.iter().map(|event| Ok(WebhookEvent::of_json(event)?.to_json())).collect::<Result<Vec<_>, Fault>>()?;
    Ok(Some(read).filter(|events| !events.is_empty()))
}

pub(super) async fn create(State(app): State<App>, call: Call) -> Answer {
    let said = Said::of(&app, &call).await?;
    for (key, there) in
        [("name", said.name.is_some()), ("url", said.url.is_some()), ("events", call.args.contains_key("events"))]
    {
        if !there {
            return Err(Fault::required(key));
        }
    }
    if said.events.is_none() {
        return Err(Fault::invalid("Webhook events must be a list that is not empty"));
    }
    let mut body = json!({"status": "ACTIVE"});
    said.over(&mut body);
    let now = app.now();
    let row = RecordRow {
        key: Webhook::key(call.by.workspace(), &guid(app.store.keyring().random())),
        body: body.to_string(),
        archived: false,
        created_by: call.by.caller.name,
        created_at: now,
        changed_at: now,
        version: 1,
    };
    let hook = Webhook { row, body };
    let shown = write(&app, move |tx| {
        tx.insert_record(&hook.row)?;
        hook.put_secret(tx, said.secret.unwrap_or_default())?;
        Ok(view(&hook))
    })
    .await?;
    Ok(Json(json!({"webhook": shown})))
}

pub(super) async fn show(State(app): State<App>, Path(at): Path<At>, call: Call) -> Answer {
    call.by.is_no_job("see or change webhooks")?;
    let shown = read(&app, move |tx| Ok(view(&find(tx, &call, &at)?))).await?;
    Ok(Json(json!({"webhook": shown})))
}

pub(super) async fn list(State(app): State<App>, call: Call) -> Answer {
    call.by.is_no_job("see or change webhooks")?;
    let (from, most) = (offset(&call)?, call.most(Search::Webhooks)?.unwrap_or(usize::MAX));
    let found = read(&app, move |tx| Ok(Webhook::all(tx, call.by.workspace())?)).await?;
    let page: Vec<Value> = found.iter().skip(from).take(most).map(view).collect();
    let next = (from.saturating_add(most) < found.len()).then(|| token(from + most));
    Ok(Json(brief([("webhooks", json!(page)), ("next_page_token", json!(next))])))
}

pub(super) async fn update(State(app): State<App>, Path(at): Path<At>, call: Call) -> Answer {
    let said = Said::of(&app, &call).await?;
    let now = app.now();
    let shown = write(&app, move |tx| {
        let mut hook = find(tx, &call, &at)?;
        said.over(&mut hook.body);
        hook.row.body = hook.body.to_string();
        hook.row.changed_at = now;
        tx.put_record(&mut hook.row)?;
        if let Some(secret) = said.secret {
            hook.put_secret(tx, secret)?;
        }
        Ok(view(&hook))
    })
    .await?;
    Ok(Json(json!({"webhook": shown})))
}

/// Removes a webhook; what it was still to be told goes when its turn comes.
pub(super) async fn delete(State(app): State<App>, Path(at): Path<At>, call: Call) -> Answer {
    call.by.is_no_job("see or change webhooks")?;
    write(&app, move |tx| {
        let hook = find(tx, &call, &at)?;
        tx.delete_record(&hook.row.key)?;
        Ok(())
    })
    .await?;
    Ok(done())
}

/// Sends an example now, once, and shows what came back.
pub(super) async fn test(State(app): State<App>, Path(at): Path<At>, call: Call) -> Answer {
    call.by.is_no_job("see or change webhooks")?;
    let asked = match call.args.get("event") {
        None | Some(Value::Null) => None,
        Some(event) => Some(WebhookEvent::of_json(event)?),
    };
    let (hook, secret) = read(&app, move |tx| {
        let hook = find(tx, &call, &at)?;
        let secret = hook.secret(tx)?;
        Ok((hook, secret))
    })
    .await?;
    let first = || Fault::invalid("Webhook events must be a list that is not empty");
    let event = asked.or_else(|| hook.events().next()).ok_or_else(first)?;
    let (id, now) = (guid(app.store.keyring().random()), app.now());
    let body = message(event, event.example(), now);
    let sent = Message { url: hook.url(), id: &id, body: &body, secret: secret.as_deref(), now };
    let result = match app.webhooks.send(&sent).await {
        Ok(sent) => brief([
            ("success", json!(sent.status < 400)),
            ("response_status", json!(sent.status)),
            ("response_body", json!(sent.body)),
        ]),
        Err(error) => json!({"success": false, "error_message": format!("Failed to test webhook: {error}")}),
    };
    Ok(Json(json!({"result": result})))
}

fn find(tx: &mut Tx<'_>, call: &Call, at: &At) -> Result<Webhook, Fault> {
    let missing = || Fault::missing(format!("Webhook with ID {} not found.", at.webhook));
    Webhook::find(tx, call.by.workspace(), &at.webhook)?.ok_or_else(missing)
}

fn view(hook: &Webhook) -> Value {
    let text = |key: &str| json!(hook.body[key].as_str().filter(|text| !text.is_empty()));
    brief([
        ("webhook_id", json!(hook.id())),
        ("name", text("name")),
        ("description", text("description")),
        ("url", text("url")),
        ("events", hook.body["events"].clone()),
        ("status", text("status")),
        ("creation_timestamp", json!(hook.row.created_at.0)),
        ("last_updated_timestamp", json!(hook.row.changed_at.0)),
    ])
}
