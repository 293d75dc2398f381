//! A steward does for a place without an operator of ours what an operator does inside its cluster: it asks the server for
//! work, has it begun there, and tells what became of it.
//!
//! The place itself is the memory: what is held is what is found there. Invariants: a launch that comes twice is carried out
//! once; nothing is asked while the place cannot be seen, so that the server knows that it is away; what was found is told
//! again until the server has heard it.

use domain::{
    AttemptId, Timestamp,
    cluster::{
        AttemptNews, Check, CheckResult, ClusterAnswer, ClusterFacts, ClusterPoll, ClusterReport, ClusterWhat, Finding,
        Launch,
    },
};
use std::{collections::BTreeMap, future::Future, time::Duration};
use tokio::time::{sleep, timeout};

/// How often a place with work on it is looked at; one without, less often.
const LOOK: Duration = Duration::from_secs(3);
const LOOK_IDLE: Duration = Duration::from_secs(15);
/// How long to wait after a failure, and how long at most after many.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// Why something could not be done at a place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Trouble {
    /// What of it failed, as a check is called: `connect`, `host key`, `login`, …
    pub check: &'static str,
    pub why: String,
}

impl Trouble {
    pub fn new(check: &'static str, why: impl Into<String>) -> Trouble {
        Trouble { check, why: why.into() }
    }
}

/// What is at a place now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    pub facts: ClusterFacts,
    /// The place's own clock.
    pub now: Option<Timestamp>,
    pub held: Vec<Held>,
}

/// An attempt that a place holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub attempt: AttemptId,
    pub parts: Vec<Part>,
}

/// One part of an attempt, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub index: u32,
    pub state: PartState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartState {
    /// Not begun yet, and why.
    Waits(String),
    /// At work on a node.
    Runs(String),
    /// Its agent has left by itself: as a rule after it had told the server everything.
    Left,
    /// The node's own agent has it, and tells the server itself.
    Own,
    /// It ended without a word.
    Gone { code: String, why: String, retryable: bool },
}

/// What became of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// It is there.
    Yes,
    /// There is no room for it yet; to be tried again.
    Later(String),
    /// It is refused, and would be again.
    Never(String),
}

/// A place where attempts run and that is reached from here.
pub trait Site: Send + 'static {
    /// What is there now.
    fn look(&mut self) -> impl Future<Output = Result<Look, Trouble>> + Send;
    /// Has attempts begun, unless they were already; what became of each, in their order.
    fn launch(
        &mut self,
        launches: &[Launch],
        look: &Look,
    ) -> impl Future<Output = Result<Vec<Started>, Trouble>> + Send;
    /// Ends what has not begun to work; agents that run hear of it from the server.
    fn stop(&mut self, attempts: &[AttemptId]) -> impl Future<Output = Result<(), Trouble>> + Send;
    /// Removes everything of attempts, and ends them if they still run.
    fn remove(&mut self, attempts: &[AttemptId]) -> impl Future<Output = Result<(), Trouble>> + Send;
    /// Something happened there that is worth a look before the next one is due.
    fn changed(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
    /// Everything that waits was tried: the place may make more room for it.
    fn settle(&mut self) -> impl Future<Output = Result<(), Trouble>> + Send {
        std::future::ready(Ok(()))
    }
    /// Whether work could be done there, item by item.
    fn check(&mut self) -> impl Future<Output = Vec<Finding>> + Send;
}

/// The way to the server.
pub trait Desk: Send + Sync + 'static {
    fn poll(&self, poll: ClusterPoll) -> impl Future<Output = Result<ClusterAnswer, String>> + Send;
    fn report(&self, report: ClusterReport) -> impl Future<Output = Result<(), String>> + Send;
    fn now(&self) -> Timestamp;
}

/// Looks after one place, for as long as it is polled. Makes `checks` first, which can be made of a place that cannot be
/// reached as well.
pub async fn keep(name: &str, mut site: impl Site, desk: impl Desk, checks: Vec<Check>) {
    let mut steward = Steward { checks, ..Steward::default() };
    let mut failures = 0_u32;
    loop {
        match steward.round(&mut site, &desk).await {
            Ok(()) => failures = 0,
            Err(trouble) => {
                if failures == 0 {
                    tracing::warn!(site = name, check = trouble.check, "{trouble}");
                }
                sleep(FIRST.saturating_mul(1 << failures.min(5)).min(LONGEST)).await;
                failures = failures.saturating_add(1);
            }
        }
    }
}

/// What a steward knows between two rounds; without it, it would only have to be told again.
#[derive(Default)]
struct Steward {
    /// Asked for and not begun, because there was no room.
    queue: BTreeMap<AttemptId, (Launch, String)>,
    /// Asked for and refused there, until the server has heard it.
    refused: BTreeMap<AttemptId, (u32, String)>,
    /// Why each waits, as the server was told last.
    waits: BTreeMap<AttemptId, String>,
    /// Checks that were asked for.
    checks: Vec<Check>,
    send_facts: bool,
}

impl Steward {
    async fn round(&mut self, site: &mut impl Site, desk: &impl Desk) -> Result<(), Trouble> {
        if !self.checks.is_empty() {
            self.check(site, desk).await?;
        }
        let look = site.look().await?;
        self.begin(site, &look).await?;
        site.settle().await?;
        self.tell(&look, desk).await?;
        let busy = !look.held.is_empty() || !self.queue.is_empty();
        let poll = self.poll(&look, desk.now());
        let answer = tokio::select! {
            answer = timeout(if busy { LOOK } else { LOOK_IDLE }, desk.poll(poll)) => answer,
            () = site.changed() => return Ok(()),
        };
        let Ok(answer) = answer else { return Ok(()) };
        self.act(answer.map_err(|why| Trouble::new("server", why))?, site).await
    }

    /// What is told to the server when it is asked for work.
    fn poll(&self, look: &Look, now: Timestamp) -> ClusterPoll {
        let held = look.held.iter().map(|held| held.attempt.clone());
        let holds = held.chain(self.queue.keys().cloned()).collect();
        let (now, uid) = (look.now.unwrap_or(now), look.facts.uid.clone());
        ClusterPoll { now, uid, facts: look.facts.digest(), holds, leaving: Vec::new() }
    }

    /// Begins what waits, the most important first and then whose turn it is, until there is no more room.
    async fn begin(&mut self, site: &mut impl Site, look: &Look) -> Result<(), Trouble> {
        let held = |attempt: &AttemptId| look.held.iter().any(|held| &held.attempt == attempt);
        self.queue.retain(|attempt, _| !held(attempt));
        let mut order: Vec<Launch> = self.queue.values().map(|(launch, _)| launch.clone()).collect();
        order.sort_by_key(|launch| (std::cmp::Reverse(launch.priority), launch.turn, launch.attempt.parts()));
        if order.is_empty() {
            return Ok(());
        }
        for (started, launch) in site.launch(&order, look).await?.into_iter().zip(order) {
            match started {
                Started::Yes => drop(self.queue.remove(&launch.attempt)),
                Started::Later(why) => drop(self.queue.insert(launch.attempt.clone(), (launch, why))),
                Started::Never(why) => {
                    self.queue.remove(&launch.attempt);
                    self.refused.insert(launch.attempt, (launch.parts, why));
                }
            }
        }
        Ok(())
    }

    async fn act(&mut self, answer: ClusterAnswer, site: &mut impl Site) -> Result<(), Trouble> {
        self.send_facts |= answer.send_facts;
        self.checks.extend(answer.checks);
        for launch in answer.launch {
            let why = "it has just been sent".to_owned();
            self.queue.entry(launch.attempt.clone()).or_insert((launch, why));
        }
        if !answer.stop.is_empty() {
            site.stop(&answer.stop).await?;
        }
        self.queue.retain(|attempt, _| !answer.remove.contains(attempt));
        if answer.remove.is_empty() { Ok(()) } else { site.remove(&answer.remove).await }
    }

    async fn tell(&mut self, look: &Look, desk: &impl Desk) -> Result<(), Trouble> {
        let now = desk.now();
        let news = |attempt: &AttemptId, what| AttemptNews { attempt: attempt.clone(), at: now, what };
        let found = look.held.iter().flat_map(|held| {
            let told = held.parts.iter().filter_map(|part| told(part).map(|what| news(&held.attempt, what)));
            // A launch that was cut off may leave a place that nothing ever begins in.
            let nothing = held.parts.is_empty().then(|| news(&held.attempt, lost(0, "nothing of it was begun there")));
            told.chain(nothing).collect::<Vec<_>>()
        });
        let queue: BTreeMap<AttemptId, String> =
            self.queue.iter().map(|(attempt, (_, why))| (attempt.clone(), why.clone())).collect();
        let waits = queue.iter().filter(|(attempt, why)| self.waits.get(attempt) != Some(why));
        let waits = waits.map(|(attempt, why)| news(attempt, ClusterWhat::Waiting { text: why.clone() }));
        let refused = self.refused.iter().flat_map(|(attempt, (parts, why))| {
            let gone =
                |part| ClusterWhat::Gone { part, code: "LaunchRefused".into(), why: why.clone(), retryable: false };
            (0..*parts).map(|part| news(attempt, gone(part))).collect::<Vec<_>>()
        });
        let facts = std::mem::take(&mut self.send_facts).then(|| look.facts.clone());
        let report = ClusterReport { facts, news: found.chain(waits).chain(refused).collect(), checks: Vec::new() };
        if report != ClusterReport::default() {
            desk.report(report).await.map_err(|why| Trouble::new("server", why))?;
        }
        self.refused.clear();
        self.waits = queue;
        Ok(())
    }

    async fn check(&mut self, site: &mut impl Site, desk: &impl Desk) -> Result<(), Trouble> {
        let findings = site.check().await;
        // Work may be sent there as soon as the checks are passed; where they are not, a look would only wait once more.
        let facts = match findings.iter().all(|finding| finding.passed) {
            true => site.look().await.ok().map(|look| look.facts),
            false => None,
        };
        let checks = std::mem::take(&mut self.checks);
        let results =
            checks.into_iter().map(|check| CheckResult { id: check.id, done: true, findings: findings.clone() });
        let report = ClusterReport { facts, checks: results.collect(), news: Vec::new() };
        desk.report(report).await.map_err(|why| Trouble::new("server", why))
    }
}

fn lost(part: u32, why: &str) -> ClusterWhat {
    ClusterWhat::Gone { part, code: "AgentLost".to_owned(), why: why.to_owned(), retryable: true }
}

/// What the server is told of a part.
fn told(part: &Part) -> Option<ClusterWhat> {
    let index = part.index;
    match part.state.clone() {
        PartState::Waits(text) => Some(ClusterWhat::Waiting { text }),
        PartState::Runs(node) => Some(ClusterWhat::Bound { part: index, node }),
        PartState::Gone { code, why, retryable } => Some(ClusterWhat::Gone { part: index, code, why, retryable }),
        // Where its end is on record this changes nothing; where it is not, nobody else will tell of it.
        PartState::Left => Some(lost(index, "its agent has left, and its end is not on record")),
        PartState::Own => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(Vec<String>);

    impl Site for Place {
        async fn look(&mut self) -> Result<Look, Trouble> {
            Ok(Look::default())
        }

        async fn launch(&mut self, launches: &[Launch], _: &Look) -> Result<Vec<Started>, Trouble> {
            self.0.extend(launches.iter().map(|launch| launch.user.clone()));
            Ok(launches.iter().map(|_| Started::Yes).collect())
        }

        async fn stop(&mut self, _: &[AttemptId]) -> Result<(), Trouble> {
            Ok(())
        }

        async fn remove(&mut self, _: &[AttemptId]) -> Result<(), Trouble> {
            Ok(())
        }

        async fn check(&mut self) -> Vec<Finding> {
            Vec::new()
        }
    }

    fn launch(seq: i64, user: &str, priority: i64, turn: i64) -> Launch {
        Launch { user: user.to_owned(), priority, turn, ..Launch::fixture(AttemptId::of(seq, 0)) }
    }

    #[tokio::test]
    async fn what_waits_begins_by_priority_then_by_turn_and_not_by_age() {
        let mut steward = Steward::default();
        // Ann came first with three, Ben later with one, and Cem last with something urgent.
        let all = [launch(1, "ann", 0, 1), launch(2, "ann", 0, 3), launch(3, "ben", 0, 2), launch(4, "cem", 5, 9)];
        for launch in all {
            steward.queue.insert(launch.attempt.clone(), (launch, String::new()));
        }
        let mut place = Place(Vec::new());
        steward.begin(&mut place, &Look::default()).await.unwrap();
        assert_eq!(place.0, ["cem", "ann", "ben", "ann"]);
    }
}
