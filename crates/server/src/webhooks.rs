//! Webhooks: the registry tells whoever asked what happened in it.
//!
//! What is to be told is written by [`announce`] in the transaction of the change; a loop sends it and tries again until
//! the receiver has it. Invariants: a change that is on record is told at least once, to
//! every webhook that was active and asked for it; nothing is sent before the change is on disk.

mod address;
mod deliver;
mod send;

pub(crate) use address::Reach;
pub(crate) use deliver::run;
pub(crate) use send::{Message, Sender};

use crate::http::workspaces::guid;
use domain::{Timestamp, tracking::WebhookEvent};
use serde_json::{Value, json};
use store::{DeliveryRow, Error, RecordFilter, RecordKey, RecordRow, Tx};

const KIND: &str = "webhooks";
/// Under which name a webhook's secret is sealed.
const SECRET: &str = "secret";

/// A webhook. Its record's name is its id.
pub(crate) struct Webhook {
    pub(crate) row: RecordRow,
    pub(crate) body: Value,
}

impl Webhook {
    pub(crate) fn key(workspace: &str, id: &str) -> RecordKey {
        RecordKey { workspace: workspace.into(), kind: KIND.into(), parent: String::new(), name: id.into() }
    }

    pub(crate) fn find(tx: &mut Tx<'_>, workspace: &str, id: &str) -> Result<Option<Webhook>, Error> {
        Ok(tx.record(&Webhook::key(workspace, id))?.map(Webhook::of))
    }

    /// All of a workspace, newest first.
    pub(crate) fn all(tx: &mut Tx<'_>, workspace: &str) -> Result<Vec<Webhook>, Error> {
        let filter = RecordFilter {
            workspace: workspace.into(),
            kind: KIND.into(),
            parent: String::new(),
            archived: None,
            after: String::new(),
            limit: i64::MAX,
        };
        let mut all: Vec<Webhook> = tx.records(&filter)?.into_iter().map(Webhook::of).collect();
        all.sort_by_key(|hook| std::cmp::Reverse(hook.row.created_at));
        Ok(all)
    }

    fn of(row: RecordRow) -> Webhook {
        let body = serde_json::from_str(&row.body).unwrap_or_default();
        Webhook { row, body }
    }

    pub(crate) fn id(&self) -> &str {
        &self.row.key.name
    }

    pub(crate) fn url(&self) -> &str {
        self.body["url"].as_str().unwrap_or_default()
    }

    pub(crate) fn is_active(&self) -> bool {
        self.body["status"] == "ACTIVE"
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = WebhookEvent> {
        self.body["events"].as_array().into_iter().flatten().filter_map(|event| WebhookEvent::of_json(event).ok())
    }

    /// What its messages are signed with, if with anything.
    pub(crate) fn secret(&self, tx: &mut Tx<'_>) -> Result<Option<String>, Error> {
        Ok(tx.record_secret(&self.row.key)?.remove(SECRET).filter(|secret| !secret.is_empty()))
    }

    /// Seals what its messages are signed with from now on; nothing for nothing.
    pub(crate) fn put_secret(&self, tx: &mut Tx<'_>, secret: String) -> Result<(), Error> {
        tx.put_record_secret(&self.row.key, &[(SECRET.to_owned(), secret)].into())
    }
}

/// What a receiver is sent.
pub(crate) fn message(event: WebhookEvent, data: Value, now: Timestamp) -> String {
    json!({"entity": event.entity(), "action": event.action(), "timestamp": now.iso(), "data": data}).to_string()
}

/// Writes down that every active webhook of the workspace that asked for the event is to be told.
pub(crate) fn announce(
    tx: &mut Tx<'_>,
    workspace: &str,
    event: WebhookEvent,
    data: Value,
    now: Timestamp,
) -> Result<(), Error> {
    let asked = |hook: &Webhook| hook.is_active() && hook.events().any(|asked| asked == event);
    let hooks = Webhook::all(tx, workspace)?.into_iter().filter(asked);
    let body = message(event, data, now);
    for hook in hooks {
        tx.insert_delivery(&DeliveryRow {
            seq: 0,
            id: guid(tx.random()),
            workspace: workspace.to_owned(),
            webhook: hook.row.key.name,
            body: body.clone(),
            tries: 0,
            created_at: now,
        })?;
    }
    Ok(())
}
