//! The log of a deployment: its last lines, or what comes as it comes.

use super::{super::record::Place, ONLINE};
use crate::{
    args::record::GetLogs,
    commands::{Context, Session, record, settle},
    failure::{Doing, Done},
};
use api::arm::tree::word;
use serde_json::json;
use std::time::Duration;

/// How often a log is looked at.
pub(super) const PERIOD: Duration = Duration::from_millis(500);

/// One of the logs that a replica has.
#[derive(Clone, Copy)]
pub(super) enum Log {
    /// What the model's process writes.
    Server,
    /// What happens before it starts: environment, model, code.
    Staging,
}

/// A log that is read on from where the last reading ended; of the newest replica, whichever that is.
pub(super) struct Tail {
    log: Log,
    lines: u32,
    from: Option<u64>,
    replica: Option<String>,
}

impl Tail {
    /// Begins with the last lines.
    pub(super) fn last(log: Log, lines: u32) -> Tail {
        Tail { log, lines, from: None, replica: None }
    }

    /// Begins with the first line.
    pub(super) fn whole(log: Log) -> Tail {
        Tail { from: Some(0), ..Tail::last(log, 0) }
    }

    /// What has come since the last reading. Without `rest`, a line that is not whole yet is left for the next.
    pub(super) async fn read(&mut self, session: &Session<'_>, at: &Place, rest: bool) -> Done<String> {
        let kind = match self.log {
            Log::Server => "InferenceServer",
            Log::Staging => "StorageInitializer",
        };
        let mut body = json!({"containerType": kind, "tail": self.lines});
        if let Some(from) = self.from {
            body["from"] = json!(from);
        }
        let answer = settle::post(session, &format!("{}/getLogs", at.path), &body, true).await;
        let answer = answer.doing(|| format!("cannot get the log of online deployment `{}`", at.name))?;
        let replica = word(&answer, "replica").map(str::to_owned);
        let shorter = self.from.zip(answer["next"].as_u64()).is_some_and(|(from, next)| next < from);
        if shorter || (self.replica.is_some() && self.replica != replica) {
            // Another replica, or a log that began anew: the next reading begins with its first line.
            (self.replica, self.from) = (replica, Some(0));
            return Ok(String::new());
        }
        let mut text = word(&answer, "content").unwrap_or_default().to_owned();
        let next = answer["next"].as_u64();
        let whole = if rest { text.len() } else { text.rfind('\n').map_or(0, |at| at + 1) };
        (self.replica, self.from) = (replica, next.map(|next| next.saturating_sub((text.len() - whole) as u64)));
        text.truncate(whole);
        Ok(text)
    }
}

pub(super) async fn print(context: &Context, at: &Place, args: &GetLogs) -> Done {
    let session = context.session().await?;
    record::fetch(ONLINE, &session, at).await?;
    let log = if args.container.as_deref() == Some("storage-initializer") { Log::Staging } else { Log::Server };
    let mut tail = Tail::last(log, args.lines);
    if !args.follow {
        let text = tail.read(&session, at, true).await?;
        return context.output.text(&format!("{}\n", text.trim_end()));
    }
    tokio::select! {
        ended = follow(context, &session, at, tail) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

async fn follow(context: &Context, session: &Session<'_>, at: &Place, mut tail: Tail) -> Done {
    loop {
        let text = tail.read(session, at, true).await?;
        context.output.text(&text)?;
        tokio::time::sleep(PERIOD).await;
    }
}
