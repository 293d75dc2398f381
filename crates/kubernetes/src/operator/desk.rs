//! The one task that knows and decides: it takes in what the cluster and the server say, and has done what is missing.
//!
//! It never waits for the cluster or for the server: acts run beside it and come back as messages. All it remembers beyond the
//! world is how far it got, and a new operator finds that out again. Invariants: nothing is told or asked before everything on
//! the cluster was listed; of one attempt at most one act runs at a time; an attempt is held until the server says otherwise.

mod done;
mod hear;
mod memo;
mod note;
mod pass;
mod wait;

use super::{
    act,
    facts::About,
    link::{Answered, Holding, Outbox},
    metrics::Metrics,
    pods::{Gang as Kind, Options},
    watch::Seen,
    world::World,
};
use crate::settings::Settings;
use domain::{
    AttemptId, Timestamp,
    cluster::{AttemptNews, ClusterAnswer, ClusterWhat, Launch},
};
use done::Done;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use hear::Lists;
use kube::{Client, runtime::events::Recorder};
use memo::{Memo, Pending, Rest};
use note::Notes;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval},
};

/// Changes are gathered for this long before the next decision.
const GATHER: Duration = Duration::from_millis(50);
/// And for as many times as long as the last decision took: where there is much to look at, looking takes a small share.
const SHARE: u32 = 100;
/// Time passes even where nothing changes.
const ROUND: Duration = Duration::from_secs(1);

/// What the desk works with.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) options: Arc<Options>,
    pub(crate) about: About,
    /// The operator's own namespace.
    pub(crate) namespace: String,
    /// Volcano is there, and may have gangs from before the settings said otherwise.
    pub(crate) volcano: bool,
    pub(crate) kueue: bool,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) skew_ms: Arc<AtomicI64>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) recorder: Recorder,
}

impl Context {
    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Now, by the cluster's clock.
    fn cluster_now(&self) -> Timestamp {
        Timestamp(self.now().0 + self.skew_ms.load(Ordering::Relaxed))
    }

    /// New gangs are Volcano's.
    fn gives_to_volcano(&self) -> bool {
        self.volcano && super::uses_volcano(&self.settings)
    }

    /// Who sees to a gang of this target.
    fn kind(&self, launch: &Launch) -> Kind {
        if self.kueue && launch.target.settings.get("queue").is_some_and(|queue| !queue.is_empty()) {
            return Kind::Kueue;
        }
        if self.gives_to_volcano() { Kind::Volcano } else { Kind::Gates }
    }
}

pub(crate) struct Desk {
    cx: Context,
    world: World,
    lists: Lists,
    memos: HashMap<AttemptId, Memo>,
    /// Taken from the server and not made yet.
    launches: BTreeMap<AttemptId, Pending>,
    /// Made a moment ago and not seen by the watches yet.
    made: HashMap<AttemptId, Instant>,
    /// Gone, told so, and not yet let go by the server.
    departed: BTreeSet<AttemptId>,
    /// Gangs that were taken back lately.
    rests: HashMap<AttemptId, Rest>,
    /// Gangs whose gates are being taken away.
    freeing: HashSet<AttemptId>,
    checking: HashSet<String>,
    /// When it may next be asked in a namespace why a gang has no pods.
    rehearse_after: HashMap<String, Instant>,
    reserving: HashMap<String, Instant>,
    acts: FuturesUnordered<BoxFuture<'static, Done>>,
    holding: watch::Sender<Option<Holding>>,
    facts: FactsSent,
    notes: Notes,
    waits_at: Instant,
    reserve_at: Instant,
}

/// What the server was told of the cluster.
struct FactsSent {
    digest: String,
    at: Option<Instant>,
    /// The cluster has changed since.
    dirty: bool,
    /// The server asks for them.
    wanted: bool,
}

impl Desk {
    pub(crate) fn new(cx: Context, holding: watch::Sender<Option<Holding>>) -> Desk {
        let lists = Lists::new(cx.volcano);
        Desk {
            cx,
            world: World::default(),
            lists,
            memos: HashMap::new(),
            launches: BTreeMap::new(),
            made: HashMap::new(),
            departed: BTreeSet::new(),
            rests: HashMap::new(),
            freeing: HashSet::new(),
            checking: HashSet::new(),
            rehearse_after: HashMap::new(),
            reserving: HashMap::new(),
            acts: FuturesUnordered::new(),
            holding,
            facts: FactsSent { digest: String::new(), at: None, dirty: true, wanted: false },
            notes: Notes::default(),
            waits_at: Instant::now(),
            reserve_at: Instant::now(),
        }
    }

    /// Works for ever; ends when nobody brings news any more.
    pub(crate) async fn run(mut self, mut seen: mpsc::Receiver<Seen>, mut answers: mpsc::Receiver<Answered>) {
        let mut round = interval(ROUND);
        round.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut due, mut spent): (Option<Instant>, _) = (None, Duration::ZERO);
        loop {
            let at = due.unwrap_or_else(|| Instant::now() + ROUND);
            tokio::select! {
                change = seen.recv() => match change {
                    Some(change) => self.hear(change),
                    None => return,
                },
                Some(done) = self.acts.next() => self.done(done),
                answer = answers.recv() => match answer {
                    Some((answer, taken)) => {
                        self.answer(*answer);
                        // The next question must tell what was just taken on.
                        self.pass();
                        let _ = taken.send(());
                    }
                    None => return,
                },
                _ = round.tick() => { due.get_or_insert_with(Instant::now); }
                () = tokio::time::sleep_until(at), if due.is_some() => {
                    due = None;
                    let began = Instant::now();
                    self.pass();
                    spent = began.elapsed();
                    continue;
                }
            }
            due.get_or_insert_with(|| Instant::now() + (spent * SHARE).clamp(GATHER, ROUND));
        }
    }

    /// Takes in what the server wants.
    fn answer(&mut self, answer: ClusterAnswer) {
        for launch in answer.launch {
            self.take_on(launch);
        }
        for attempt in answer.stop {
            self.stop(attempt);
        }
        self.let_go(answer.remove);
        for check in answer.checks {
            if self.checking.insert(check.id.clone()) {
                let (client, options) = (self.cx.client.clone(), Arc::clone(&self.cx.options));
                let (own, volcano) = (self.cx.namespace.clone(), self.cx.gives_to_volcano());
                self.start(async move {
                    Done::Checked(super::check::run(&client, &check, &options, (&own, volcano)).await)
                });
            }
        }
        self.facts.wanted |= answer.send_facts;
    }

    /// A launch may come twice, and while what an earlier one left is still being deleted.
    fn take_on(&mut self, launch: Launch) {
        let attempt = &launch.attempt;
        let known =
            self.departed.contains(attempt) || self.launches.contains_key(attempt) || self.made.contains_key(attempt);
        let there = self.world.gangs.get(attempt);
        let held = there.is_some_and(|gang| self.memo(attempt).is_held(gang));
        let leaving = there.is_some_and(super::world::Gang::is_leaving);
        if !known && !held && !leaving {
            self.launches.insert(attempt.clone(), Pending::new(launch));
        }
    }

    /// The agent is stopped by the server; where none runs, the pods go at once.
    fn stop(&mut self, attempt: AttemptId) {
        if self.launches.get(&attempt).is_some_and(|pending| !pending.making) {
            self.launches.remove(&attempt);
            return self.depart(&attempt, 0, "Stopped", "it was stopped before its pods were made".to_owned(), false);
        }
        if self.launches.contains_key(&attempt) || self.world.gangs.contains_key(&attempt) {
            self.memos.entry(attempt).or_default().stop_since.get_or_insert_with(Instant::now);
        }
    }

    /// Deletes everything of attempts that are over.
    fn let_go(&mut self, attempts: Vec<AttemptId>) {
        let mut places: BTreeMap<String, Vec<AttemptId>> = BTreeMap::new();
        for attempt in attempts {
            self.departed.remove(&attempt);
            self.rests.remove(&attempt);
            if self.launches.get(&attempt).is_some_and(|pending| !pending.making) {
                self.launches.remove(&attempt);
            }
            if self.launches.contains_key(&attempt) || self.world.gangs.contains_key(&attempt) {
                let memo = self.memos.entry(attempt.clone()).or_default();
                memo.removing = Some(Instant::now());
            }
            if let Some(gang) = self.world.gangs.get(&attempt) {
                places.entry(gang.namespace.clone()).or_default().push(attempt);
            }
        }
        for (namespace, attempts) in places {
            self.remove(namespace, attempts, REMOVE_GRACE_SECONDS);
        }
    }

    fn remove(&mut self, namespace: String, attempts: Vec<AttemptId>, grace_seconds: u32) {
        let (client, volcano) = (self.cx.client.clone(), self.cx.volcano);
        self.start(async move {
            let result = act::remove(&client, &namespace, &attempts, volcano, grace_seconds).await;
            Done::Removed { attempts, result }
        });
    }

    fn start(&mut self, act: impl Future<Output = Done> + Send + 'static) {
        self.acts.push(act.boxed());
    }

    fn memo(&self, attempt: &AttemptId) -> &Memo {
        self.memos.get(attempt).unwrap_or(memo::nothing())
    }

    fn tell(&self, attempt: &AttemptId, what: ClusterWhat) {
        self.cx.outbox.news(AttemptNews { attempt: attempt.clone(), at: self.cx.now(), what });
    }

    /// A part is gone and nothing of its attempt may be left: it is held until the server has heard so.
    fn depart(&mut self, attempt: &AttemptId, part: u32, code: &str, why: String, retryable: bool) {
        match code {
            // The usual end of a pod, whose agent has told the server already.
            "Ended" | "AgentEnded" => tracing::debug!(attempt.id = %attempt, part, code, "a part is gone: {why}"),
            _ => tracing::info!(attempt.id = %attempt, part, code, "a part is gone: {why}"),
        }
        self.cx.metrics.gone(code);
        self.departed.insert(attempt.clone());
        self.tell(attempt, ClusterWhat::Gone { part, code: code.to_owned(), why, retryable });
    }
}

/// What is removed has ended; its pods need no time.
const REMOVE_GRACE_SECONDS: u32 = 5;

#[cfg(test)]
mod tests;
