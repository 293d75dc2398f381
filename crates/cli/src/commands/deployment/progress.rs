//! A deployment that comes up, as whoever waits for it sees it: its state in a line, and the logs of its staging and of
//! its `init()` as they grow. All of it goes to stderr.

use super::{
    super::record::Place,
    ONLINE,
    logs::{Log, PERIOD, Tail},
};
use crate::{
    commands::{Session, record, settle::Operation},
    failure::{Done, Exit, Failure},
};
use api::arm::tree::word;
use std::time::Duration;
use tokio::time::Instant;

/// How long a server may be away before waiting for it is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Where a record says in words how it is.
const STATE: &str = "peregrine.state";

/// Waits until a deployment is up. One that did not come up is a failure that says why.
pub(super) async fn follow(session: &Session<'_>, at: &Place, operation: Operation) -> Done {
    let mut follower = Follower {
        session,
        at,
        logs: [Tail::whole(Log::Staging), Tail::whole(Log::Server)],
        told: String::new(),
        drawn: false,
    };
    let followed = tokio::select! {
        followed = follower.run(operation) => followed,
        _ = tokio::signal::ctrl_c() => Err(left(at)),
    };
    follower.clear();
    followed
}

struct Follower<'a> {
    session: &'a Session<'a>,
    at: &'a Place,
    logs: [Tail; 2],
    told: String,
    drawn: bool,
}

impl Follower<'_> {
    async fn run(&mut self, mut operation: Operation) -> Done {
        let mut away_since = None;
        loop {
            match operation.is_over(self.session).await {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    away_since = None;
                    self.look().await;
                }
                Err(failure) if failure.exit == Exit::Unreachable => {
                    if away_since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                        return Err(failure);
                    }
                }
                Err(mut failure) => {
                    self.look().await;
                    if failure.exit == Exit::Input {
                        failure.exit = Exit::JobFailed;
                    }
                    return Err(failure);
                }
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Tells what is new. What cannot be had now can be had the next time.
    async fn look(&mut self) {
        for at in 0..self.logs.len() {
            let text = self.logs[at].read(self.session, self.at, false).await.unwrap_or_default();
            if !text.is_empty() {
                self.clear();
                self.session.output().note(text.trim_end_matches('\n'));
            }
        }
        let Ok(found) = record::fetch(ONLINE, self.session, self.at).await else { return };
        let state = word(&found["properties"]["properties"], STATE).unwrap_or_default();
        self.tell(state);
    }

    /// Where it is: drawn over itself on a terminal, printed once a change elsewhere.
    fn tell(&mut self, state: &str) {
        let output = self.session.output();
        let text = format!("deployment `{}`: {state}", self.at.name);
        if state.is_empty() || (!output.shows_progress() && self.told == text) {
            return;
        }
        if output.shows_progress() {
            let width = output.progress_width().saturating_sub(1);
            output.draw(&format!("\r\x1b[2K{}", text.chars().take(width).collect::<String>()));
            self.drawn = true;
        } else {
            output.note(&text);
        }
        self.told = text;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.session.output().draw("\r\x1b[2K");
        }
    }
}

fn left(at: &Place) -> Failure {
    Failure::new(Exit::Interrupted, format!("online deployment `{}` is still being made ready", at.name))
        .hint("`peregrine online-deployment show` tells how it ended, `delete` ends it")
}
