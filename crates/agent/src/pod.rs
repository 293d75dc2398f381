//! The agent as the entry point of a pod, or sent to a machine for one purpose: one attempt, or one part of it, and then
//! the end.
//!
//! The same agent as on a node, with three differences: the server is elsewhere and may be away for hours, the files it
//! writes are gone with the pod, and the container is already the job's own. Invariants: it leaves only when the end of
//! its attempt is on the server's record, when the server knows nothing of the attempt, or when the server was away for
//! longer than anyone would wait; nothing of the user's runs on after it has left.

use crate::{
    attempt::Stop,
    context::{Context, Settings},
    outpost::Outpost,
    run::{Working, held, leave, start, take},
    server::CallError,
    supervisor::{Holds, Message},
};
use domain::{
    AttemptId, Outcome,
    report::{Joining, NodeFacts, Poll, PollAnswer, What},
};
use std::{collections::BTreeMap, fs, io, path::Path, time::Duration};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    time::{Instant, timeout},
};

/// A token that is refused for this long will not become good again.
const REFUSED_FOR: Duration = Duration::from_secs(60);
/// How long an agent that has nothing to lose waits for its last word to be recorded.
const LAST_WORD: Duration = Duration::from_secs(10);
const ASKED_TO_LEAVE: &str = "the pod was asked to leave (drain, eviction or preemption)";

/// What the pod was made for, and where it is.
#[derive(Debug, Clone)]
pub struct Pod {
    pub attempt: AttemptId,
    pub part: u32,
    pub outpost: Outpost,
}

/// `HOME` and `TMPDIR` below the agent's home where the image's own cannot be written to.
pub(crate) fn writable_places(home: &Path) -> BTreeMap<String, String> {
    let usual = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let places = [("HOME", usual("HOME", "/"), "user"), ("TMPDIR", usual("TMPDIR", "/tmp"), "tmp")];
    let instead = |(name, usual, folder): (&str, String, &str)| {
        if rustix::fs::access(&usual, rustix::fs::Access::WRITE_OK).is_ok() && Path::new(&usual).is_dir() {
            return None;
        }
        let path = home.join(folder);
        fs::create_dir_all(&path).ok()?;
        Some((name.to_owned(), path.display().to_string()))
    };
    places.into_iter().filter_map(instead).collect()
}

/// How an agent left its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The attempt is on record as completed.
    Completed,
    /// It came to another end, or to none that anybody wants to know of.
    Otherwise,
    /// The keeper is gone, and what runs with it.
    Orphaned,
}

/// Runs the attempt the pod was made for to its end.
pub async fn run(settings: Settings, pod: Pod) -> io::Result<Left> {
    let mut terminate = signal(SignalKind::terminate())?;
    let Working { cx, facts, messages, mut recorded } =
        start(settings, Some(pod.outpost.clone()), Some(pod.part)).await?;
    let stay = Stay { cx: &cx, pod: &pod, messages: &messages };
    let left = tokio::select! {
        left = stay.until_over(&facts, &mut recorded, &mut terminate) => left,
        () = cx.link.gone() => return Ok(Left::Orphaned),
    };
    leave(&cx.link).await;
    Ok(left)
}

/// The time an agent spends in its pod.
struct Stay<'a> {
    cx: &'a Context,
    pod: &'a Pod,
    messages: &'a mpsc::UnboundedSender<Message>,
}

/// How long the server has not answered, or not as it should.
#[derive(Default)]
pub(crate) struct Silence {
    since: Option<Instant>,
    refused_since: Option<Instant>,
    pub(crate) tries: u32,
}

/// What a poll may mean for the whole stay.
enum News {
    Nothing,
    StoppedBeforeItBegan,
    Unwanted(String),
}

impl Stay<'_> {
    async fn until_over(
        &self,
        facts: &NodeFacts,
        recorded: &mut mpsc::UnboundedReceiver<AttemptId>,
        terminate: &mut Signal,
    ) -> Left {
        let mut silence = Silence::default();
        loop {
            let stop = tokio::select! {
                news = self.ask(facts, &mut silence) => match news {
                    News::Nothing => continue,
                    News::StoppedBeforeItBegan => Stop::Asked("asked to stop".into()),
                    News::Unwanted(why) => return self.settle(why).await,
                },
                _ = recorded.recv() => return self.settle("the end of this attempt is on record already".into()).await,
                _ = terminate.recv() => Stop::Leave(ASKED_TO_LEAVE.into()),
            };
            if held(self.messages).await.all.is_empty() {
                return self.last_word(stop, recorded).await;
            }
            let _ = self.messages.send(Message::Stop(self.pod.attempt.clone(), stop));
        }
    }

    /// Asks the server once, with a pause after an answer that did not come.
    async fn ask(&self, facts: &NodeFacts, silence: &mut Silence) -> News {
        let Holds { all: holds, stopping, .. } = held(self.messages).await;
        let joining = Some(Joining { part: self.pod.part, address: self.pod.outpost.address.clone() });
        let idle = holds.is_empty();
        let poll = Poll { facts: facts.clone(), holds, stopping, joining };
        match self.cx.server.post::<PollAnswer>("/agent/v1/poll", &poll).await {
            Ok(answer) if answer.unknown.contains(&self.pod.attempt) => {
                News::Unwanted("the server does not know this attempt".into())
            }
            Ok(answer) if idle && answer.stop.contains(&self.pod.attempt) => News::StoppedBeforeItBegan,
            Ok(answer) => {
                *silence = Silence::default();
                take(answer, self.messages);
                News::Nothing
            }
            Err(error) => match silence.goes_on(&error, self.patience()) {
                Some(why) => News::Unwanted(why),
                None => {
                    tokio::time::sleep(self.cx.server.pause(silence.tries)).await;
                    News::Nothing
                }
            },
        }
    }

    /// How long it stays without a server: a command that runs for long, one that has ended no longer than its node.
    fn patience(&self) -> Duration {
        let life = self.cx.journal.life(&self.pod.attempt);
        let ended = life.is_some_and(|life| life.exit.is_some() || life.over.is_some());
        if ended { self.pod.outpost.lease } else { self.pod.outpost.away }
    }

    /// The server wants no more of this attempt: because it has heard its end, or although it has not.
    async fn settle(&self, why: String) -> Left {
        let over = self.cx.journal.life(&self.pod.attempt).and_then(|life| life.over);
        match over.map(|over| over.outcome.clone()) {
            Some(Outcome::Completed) => Left::Completed,
            Some(_) => Left::Otherwise,
            None => self.abandon(why).await,
        }
    }

    /// Nobody waits for this attempt: its command is ended and nothing is collected.
    async fn abandon(&self, why: String) -> Left {
        tracing::warn!(attempt.id = %self.pod.attempt, "leaving: {why}");
        let _ = self.messages.send(Message::Stop(self.pod.attempt.clone(), Stop::Asked(why)));
        let runs = || {
            let life = self.cx.journal.life(&self.pod.attempt);
            life.is_some_and(|life| life.run.is_some() && life.exit.is_none() && life.over.is_none())
        };
        let ended = async {
            while runs() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let _ = timeout(self.cx.settings.grace + LAST_WORD, ended).await;
        Left::Otherwise
    }

    /// An attempt that was never handed out here has only its end to tell.
    async fn last_word(&self, stop: Stop, recorded: &mut mpsc::UnboundedReceiver<AttemptId>) -> Left {
        let what = What::Over { outcome: stop.into(), isolation: "container".into() };
        self.cx.reporter.say(&self.pod.attempt, self.cx.now(), what);
        let _ = timeout(LAST_WORD, recorded.recv()).await;
        Left::Otherwise
    }
}

impl Silence {
    /// One more call in vain; the reason to leave, if that was one too many.
    pub(crate) fn goes_on(&mut self, error: &CallError, away: Duration) -> Option<String> {
        self.tries += 1;
        let since = *self.since.get_or_insert_with(Instant::now);
        self.refused_since = match error.refused() {
            Some(401 | 403) => self.refused_since.or_else(|| Some(Instant::now())),
            _ => None,
        };
        if self.refused_since.is_some_and(|since| since.elapsed() > REFUSED_FOR) {
            return Some("the server no longer accepts the token of this attempt".into());
        }
        (since.elapsed() > away).then(|| format!("the server was away for more than {} s", away.as_secs()))
    }
}
