//! Server-sent events, read as they come. A stream that breaks off is taken up again where it was.

use crate::{commands::Session, failure::Done};
use api::ClientError;
use reqwest::Method;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// How long a server may be away before following it is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// One event.
#[derive(Debug, PartialEq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) data: Value,
}

/// The events of one address.
pub(super) struct Events<'s> {
    session: &'s Session<'s>,
    path: String,
    answer: Option<reqwest::Response>,
    /// What came and is no whole event yet.
    rest: Vec<u8>,
    last_id: Option<String>,
    away_since: Option<Instant>,
}

impl<'s> Events<'s> {
    pub(super) fn new(session: &'s Session<'s>, path: &str) -> Events<'s> {
        Events { session, path: path.to_owned(), answer: None, rest: Vec::new(), last_id: None, away_since: None }
    }

    /// The next event; `None` when the server ends the stream.
    pub(super) async fn next(&mut self) -> Done<Option<Event>> {
        loop {
            if let Some((event, id)) = take(&mut self.rest) {
                self.last_id = id.or(self.last_id.take());
                if let Some(event) = event {
                    return Ok(Some(event));
                }
                continue;
            }
            let Some(answer) = &mut self.answer else {
                self.connect().await?;
                continue;
            };
            match answer.chunk().await {
                Ok(Some(chunk)) => {
                    self.away_since = None;
                    self.rest.extend_from_slice(&chunk);
                }
                Ok(None) => return Ok(None),
                Err(_) => self.answer = None,
            }
        }
    }

    async fn connect(&mut self) -> Done {
        self.rest.clear();
        let mut request = self.session.client.request(Method::GET, &self.path);
        if let Some(id) = &self.last_id {
            request = request.header("last-event-id", id);
        }
        match self.session.client.send(request).await {
            Ok(answer) => self.answer = Some(answer),
            Err(ClientError::Unreachable { .. }) if self.waits() => {
                tokio::time::sleep(Duration::from_millis(500)).await
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Whether a server that was there before may still come back.
    fn waits(&mut self) -> bool {
        if self.last_id.is_none() {
            return false;
        }
        let since = *self.away_since.get_or_insert_with(Instant::now);
        since.elapsed() < PATIENCE
    }
}

/// Takes the first whole event off the bytes that came, and its id; comments are events of nothing.
fn take(rest: &mut Vec<u8>) -> Option<(Option<Event>, Option<String>)> {
    let end = rest.windows(2).position(|pair| pair == b"\n\n")?;
    let text = String::from_utf8_lossy(&rest[..end]).into_owned();
    rest.drain(..end + 2);
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(|value| value.trim_start().to_owned())
    };
    let event = field("event").map(|name| {
        let data = field("data").and_then(|data| serde_json::from_str(&data).ok()).unwrap_or_default();
        Event { name, data }
    });
    Some((event, field("id")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_taken_whole_whatever_the_pieces_they_come_in() {
        let text = ": alive\n\nevent: points\nid: 7\ndata: {\"a\":1}\n\nevent: end\nid: 8\ndata: {}\n\n";
        for size in 1..text.len() {
            let (mut rest, mut seen, mut ids) = (Vec::new(), Vec::new(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                rest.extend_from_slice(piece);
                while let Some((event, id)) = take(&mut rest) {
                    seen.extend(event.map(|event| (event.name, event.data)));
                    ids.extend(id);
                }
            }
            assert_eq!(seen, [("points".to_owned(), json!({"a": 1})), ("end".to_owned(), json!({}))], "{size}");
            assert_eq!(ids, ["7", "8"]);
        }
    }
}
