//! The log of a deployment: its last lines, or what comes as it comes.

use super::{super::record::Place, ONLINE};
use crate::{
    args::record::GetLogs,
    commands::{Context, Session, record, settle},
    failure::{Doing, Done},
};
use api::arm::tree::word;
use serde_json::json;
use std::{collections::HashMap, time::Duration};

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

/// A log that is read on from where the last reading ended: of one replica, or of the one that answers, whichever that is.
pub(super) struct Tail {
    log: Log,
    lines: u32,
    /// The replica that is meant, where one is.
    named: Option<String>,
    /// Where reading begins in a log of which nothing was read; with its last lines where this is absent.
    first: Option<u64>,
    /// How far the logs of replicas were read: which one answers may change, and change back.
    read: HashMap<String, u64>,
    replica: Option<String>,
}

impl Tail {
    /// Begins with the last lines.
    pub(super) fn last(log: Log, lines: u32) -> Tail {
        Tail { log, lines, named: None, first: None, read: HashMap::new(), replica: None }
    }

    /// Begins with the first line.
    pub(super) fn whole(log: Log) -> Tail {
        Tail { first: Some(0), ..Tail::last(log, 0) }
    }

    /// Only the log of this replica.
    fn of(self, named: Option<String>) -> Tail {
        Tail { replica: named.clone(), named, ..self }
    }

    /// Where the next reading begins.
    fn from(&self) -> Option<u64> {
        self.replica.as_ref().and_then(|replica| self.read.get(replica)).copied().or(self.first)
    }

    /// Takes what was read at `from`: of which replica it is, its text, and where the log goes on. `None` where that is not what
    /// was to be read: of another replica, or of a log that began anew.
    fn take(
        &mut self,
        from: Option<u64>,
        (replica, next, text): (Option<String>, u64, &str),
        rest: bool,
    ) -> Option<usize> {
        let other = self.replica.is_some() && self.replica != replica;
        self.replica.clone_from(&replica);
        if other {
            return None;
        }
        let begun_anew = from.is_some_and(|from| next < from);
        let whole = if rest { text.len() } else { text.rfind('\n').map_or(0, |at| at + 1) };
        let read = if begun_anew { 0 } else { next.saturating_sub((text.len() - whole) as u64) };
        self.read.extend(replica.map(|replica| (replica, read)));
        (!begun_anew).then_some(whole)
    }

    /// What has come since the last reading. Without `rest`, a line that is not whole yet is left for the next.
    pub(super) async fn read(&mut self, session: &Session<'_>, at: &Place, rest: bool) -> Done<String> {
        let kind = match self.log {
            Log::Server => "InferenceServer",
            Log::Staging => "StorageInitializer",
        };
        let mut body = json!({"containerType": kind, "tail": self.lines});
        let from = self.from();
        if let Some(from) = from {
            body["from"] = json!(from);
        }
        if let Some(named) = &self.named {
            body["replica"] = json!(named);
        }
        let answer = settle::post(session, &format!("{}/getLogs", at.path), &body, true).await;
        let answer = answer.doing(|| format!("cannot get the log of online deployment `{}`", at.name))?;
        let replica = word(&answer, "replica").map(str::to_owned);
        let text = word(&answer, "content").unwrap_or_default();
        let whole = self.take(from, (replica, answer["next"].as_u64().unwrap_or(0), text), rest);
        Ok(text[..whole.unwrap_or(0)].to_owned())
    }
}

pub(super) async fn print(context: &Context, at: &Place, args: &GetLogs) -> Done {
    let session = context.session().await?;
    record::fetch(ONLINE, &session, at).await?;
    let log = if args.container.as_deref() == Some("storage-initializer") { Log::Staging } else { Log::Server };
    let mut tail = Tail::last(log, args.lines).of(args.replica.clone());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_once_whichever_replica_answers() {
        let mut tail = Tail::last(Log::Server, 5);
        let mut read = |replica: &str, next, text: &str| {
            let from = tail.from();
            let whole = tail.take(from, (Some(replica.to_owned()), next, text), false);
            (from, whole.map(|whole| text[..whole].to_owned()))
        };
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(read("a", 8, "one\ntwo\n"), (None, said("one\ntwo\n")));
        assert_eq!(read("b", 40, "of the other"), (Some(8), None), "from a place in another log");
        assert_eq!(read("b", 40, "last\nhalf"), (None, said("last\n")), "it begins with its last lines");
        assert_eq!(read("a", 99, "whatever"), (Some(36), None));
        assert_eq!(read("a", 14, "three\n"), (Some(8), said("three\n")), "and goes on where it was left");
        assert_eq!(read("a", 4, "new\n"), (Some(14), None), "a log that began anew");
        assert_eq!(read("a", 4, "new\n"), (Some(0), said("new\n")));
    }
}
