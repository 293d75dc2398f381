//! The supervisor: owns which attempts are here, which run and which wait for room.
//!
//! Attempts start by priority, then by the turn that the server gave them, then by age, all or nothing: the first in
//! line is passed only by one whose time limit is over before there could be room for it, so it cannot starve. Invariant: what
//! runs together fits into the node.

use crate::{
    attempt::{self, Stop},
    context::{self, Context},
};
use domain::{
    Assignment, AttemptId, Resources,
    report::{NodeFacts, What},
    sharing::backfill::{self, Promise, Running},
    tunnel::Tunnel,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tokio::sync::{mpsc, oneshot, watch};

/// How many of those behind the first in line are looked at, each time.
const BEHIND: usize = 100;
/// How long an attempt stands in line on a node that another one has.
const IN_LINE: Duration = Duration::from_secs(1);

pub(crate) enum Message {
    Assign(Arc<Assignment>),
    Stop(AttemptId, Stop),
    /// Somebody waits for a way to a service.
    Open(Tunnel),
    /// An attempt's task has ended and its resources are free.
    Done(AttemptId),
    /// The server has recorded the end: the attempt's folder may go.
    Recorded(AttemptId),
    Holds(oneshot::Sender<Holds>),
}

/// What the agent has: every attempt, and those it is stopping.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    pub(crate) all: Vec<AttemptId>,
    pub(crate) stopping: Vec<AttemptId>,
    /// Whether the command of any of them runs. What became of the others is on disk, and only to be told.
    pub(crate) runs: bool,
}

/// Highest priority first, then whose turn it is, then the oldest job.
type Turn = (Reverse<i64>, i64, i64, u32);

struct Active {
    stop: watch::Sender<Option<Stop>>,
    job: String,
    needs: Resources,
    gpus: Vec<u32>,
    over: bool,
}

struct Waiting {
    assignment: Arc<Assignment>,
    since: domain::Timestamp,
    note: String,
    /// The job that went ahead of it last.
    passed_by: Option<String>,
}

pub(crate) struct Supervisor {
    cx: Arc<Context>,
    capacity: Resources,
    /// The sum of what active attempts need. It may be more than there is after an agent came back to a smaller node.
    used: Resources,
    free_gpus: Vec<u32>,
    waiting: BTreeMap<Turn, Waiting>,
    /// What the first of those that wait can count on.
    promise: Promise,
    active: HashMap<AttemptId, Active>,
    /// Attempts that were given back, until the server has heard of it.
    returned: HashSet<AttemptId>,
    /// Folders of forgotten attempts, to be given back as soon as nothing is copied into them any more.
    leaving: Vec<PathBuf>,
    done: mpsc::UnboundedSender<Message>,
}

impl Supervisor {
    pub(crate) fn new(cx: Arc<Context>, facts: &NodeFacts, done: mpsc::UnboundedSender<Message>) -> Supervisor {
        let free_gpus = context::devices(cx.outpost.as_ref(), facts.capacity.gpus);
        Supervisor {
            cx,
            capacity: facts.capacity,
            used: Resources::default(),
            free_gpus,
            waiting: BTreeMap::new(),
            promise: Promise::default(),
            active: HashMap::new(),
            returned: HashSet::new(),
            leaving: Vec::new(),
            done,
        }
    }

    /// Takes back what an earlier agent of this node left: running work first, so that it keeps its place.
    pub(crate) fn recover(&mut self) {
        let mut waiting = Vec::new();
        for life in self.cx.journal.lives() {
            match (life.run, life.over) {
                // What is over has only its last word to say again.
                (_, Some(_)) => self.start(life.assignment, Resources::default(), Vec::new()),
                (Some(run), None) => {
                    let needs = self.needs(&life.assignment);
                    self.start(life.assignment, needs, run.gpus.clone());
                }
                (None, None) => waiting.push(life.assignment),
            }
        }
        self.drop_strange_folders();
        let working: Vec<&str> = self.active.keys().map(AttemptId::as_str).collect();
        self.cx.data.keep_only(&working);
        for assignment in waiting {
            self.wait(assignment);
        }
        self.admit();
    }

    /// Removes folders of attempts the journal knows nothing of.
    fn drop_strange_folders(&self) {
        for entry in fs::read_dir(self.cx.attempts()).into_iter().flatten().flatten() {
            let id = entry.file_name().to_str().and_then(|name| AttemptId::parse(name).ok());
            if id.is_none_or(|id| self.cx.journal.life(&id).is_none()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    pub(crate) async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) {
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => self.take(message),
                    None => return,
                },
                _ = tick.tick() => {
                    self.give_back();
                    self.explain_waits();
                    self.give_back_folders();
                }
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Assign(assignment) => self.accept(assignment),
            Message::Stop(attempt, stop) => self.stop(&attempt, stop),
            Message::Open(tunnel) => attempt::tunnel::open(Arc::clone(&self.cx), tunnel),
            Message::Done(attempt) => self.free_up(&attempt),
            Message::Recorded(attempt) => self.forget(&attempt),
            Message::Holds(answer) => drop(answer.send(self.holds())),
        }
        self.admit();
        self.cx.reporter.is_crowded(self.cx.outpost.is_some() && !self.waiting.is_empty());
    }

    fn holds(&self) -> Holds {
        let waiting = self.waiting.values().map(|waiting| waiting.assignment.attempt.clone());
        let stopping = |(id, active): (&AttemptId, &Active)| active.stop.borrow().is_some().then(|| id.clone());
        Holds {
            all: self.active.keys().chain(&self.returned).cloned().chain(waiting).collect(),
            stopping: self.active.iter().filter_map(stopping).collect(),
            runs: self.active.keys().any(|attempt| self.runs(attempt)),
        }
    }

    fn runs(&self, attempt: &AttemptId) -> bool {
        let life = self.cx.journal.life(attempt);
        life.is_some_and(|life| life.run.is_some() && life.exit.is_none() && life.over.is_none())
    }

    fn accept(&mut self, assignment: Arc<Assignment>) {
        let known = |waiting: &Waiting| waiting.assignment.attempt == assignment.attempt;
        let attempt = &assignment.attempt;
        if self.active.contains_key(attempt) || self.returned.contains(attempt) || self.waiting.values().any(known) {
            return;
        }
        if let Err(error) = self.cx.journal.accept(Arc::clone(&assignment)) {
            // Not kept, not accepted: the server offers it again.
            tracing::error!(attempt.id = %assignment.attempt, error = &error as &dyn std::error::Error, "cannot keep an assignment");
            let text = format!("the node cannot write to its disk: {error}");
            self.cx.reporter.say(&assignment.attempt, self.cx.now(), What::Note { text });
            return;
        }
        self.wait(assignment);
    }

    fn wait(&mut self, assignment: Arc<Assignment>) {
        let (seq, number) = assignment.attempt.parts().unwrap_or((0, 0));
        let turn = (Reverse(assignment.priority), assignment.turn, seq, number);
        self.waiting.insert(turn, Waiting { assignment, since: self.cx.now(), note: String::new(), passed_by: None });
    }

    fn admit(&mut self) {
        while let Some((turn, first)) = self.waiting.first_key_value() {
            if !self.fits(&self.needs(&first.assignment)) {
                return self.backfill();
            }
            let turn = *turn;
            self.admit_one(turn);
        }
    }

    fn fits(&self, needs: &Resources) -> bool {
        needs.fits_in(&self.free()) && self.free_gpus.len() >= needs.gpus as usize
    }

    fn admit_one(&mut self, turn: Turn) {
        let Some(waiting) = self.waiting.remove(&turn) else { return };
        let needs = self.needs(&waiting.assignment);
        let gpus = self.free_gpus.drain(..needs.gpus as usize).collect();
        self.start(waiting.assignment, needs, gpus);
    }

    /// Starts those that are gone again before there could be room for the first in line.
    fn backfill(&mut self) {
        while let Some(turn) = self.passing() {
            let name = self.waiting.get(&turn).map(|waiting| waiting.assignment.job.to_string());
            if let Some(mut first) = self.waiting.first_entry() {
                first.get_mut().passed_by = name;
            }
            self.admit_one(turn);
        }
    }

    /// The next that may pass the first in line.
    fn passing(&mut self) -> Option<Turn> {
        let limited = |waiting: &Waiting| waiting.assignment.plan.timeout_seconds.is_some();
        let fits = |waiting: &Waiting| limited(waiting) && self.fits(&self.needs(&waiting.assignment));
        let behind = self.waiting.iter().skip(1).take(BEHIND).filter(|(_, waiting)| fits(waiting));
        let behind: Vec<(Turn, Option<u64>)> =
            behind.map(|(turn, waiting)| (*turn, waiting.assignment.plan.timeout_seconds)).collect();
        let (false, Some((_, first))) = (behind.is_empty(), self.waiting.first_key_value()) else { return None };
        let (attempt, needs) = (first.assignment.attempt.clone(), self.needs(&first.assignment));
        let begins_by = backfill::begins_by(&needs, &self.free(), &self.running());
        let promised = self.promise.keep(&attempt, begins_by);
        let now = self.cx.now();
        behind.into_iter().find(|(_, limit)| backfill::may_pass(*limit, promised, now)).map(|(turn, _)| turn)
    }

    /// What holds the node, and until when at most.
    fn running(&self) -> Vec<Running> {
        let one = |(attempt, active): (&AttemptId, &Active)| {
            let life = self.cx.journal.life(attempt);
            let limit = life.as_ref().and_then(|life| life.assignment.plan.timeout_seconds);
            let began = life.and_then(|life| life.run).map(|run| run.started_at);
            Running::of(active.needs, began, limit)
        };
        self.active.iter().filter(|(_, active)| !active.over).map(one).collect()
    }

    /// What an attempt takes from this node: elsewhere, all of it.
    fn needs(&self, assignment: &Assignment) -> Resources {
        if self.cx.outpost.is_some() { self.capacity } else { assignment.plan.needs() }
    }

    fn free(&self) -> Resources {
        self.capacity.minus(&self.used)
    }

    fn start(&mut self, assignment: Arc<Assignment>, needs: Resources, gpus: Vec<u32>) {
        self.used = self.used.plus(&needs);
        self.free_gpus.retain(|gpu| !gpus.contains(gpu));
        let (stop, stopped) = watch::channel(None);
        let id = assignment.attempt.clone();
        let job = assignment.job.to_string();
        self.active.insert(id.clone(), Active { stop, job, needs, gpus: gpus.clone(), over: false });
        let (cx, done) = (Arc::clone(&self.cx), self.done.clone());
        crate::tasks::detach("attempt", async move {
            attempt::live(&cx, &assignment, &gpus, stopped).await;
            let _ = done.send(Message::Done(id));
        });
    }

    fn stop(&mut self, attempt: &AttemptId, stop: Stop) {
        if let Some(active) = self.active.get(attempt) {
            active.stop.send_if_modified(|before| before.is_none() && before.replace(stop).is_none());
            return;
        }
        let turn = self.waiting.iter().find(|(_, w)| w.assignment.attempt == *attempt).map(|(turn, _)| *turn);
        if let (Some(turn), Stop::Leave(_)) = (turn, &stop) {
            return self.give_back_one(turn);
        }
        if let Some(waiting) = turn.and_then(|turn| self.waiting.remove(&turn)) {
            attempt::finish(&self.cx, &waiting.assignment, stop.clone().into(), "none");
            let (stop, _) = watch::channel(Some(stop));
            let job = waiting.assignment.job.to_string();
            let active = Active { stop, job, needs: Resources::default(), gpus: Vec::new(), over: true };
            self.active.insert(attempt.clone(), active);
        }
    }

    fn free_up(&mut self, attempt: &AttemptId) {
        if let Some(active) = self.active.get_mut(attempt) {
            self.used = self.used.minus(&std::mem::take(&mut active.needs));
            self.free_gpus.append(&mut active.gpus);
            self.free_gpus.sort_unstable();
            active.over = true;
        }
    }

    fn forget(&mut self, attempt: &AttemptId) {
        self.returned.remove(attempt);
        if self.active.get(attempt).is_some_and(|active| active.over) {
            self.active.remove(attempt);
            if let Err(error) = self.cx.journal.forget(attempt) {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot write to the journal");
            }
            self.leaving.push(self.cx.folder(attempt));
            self.give_back_folders();
        }
    }

    /// A copy that was cancelled may have a file to go, and would make its folder again behind our back.
    fn give_back_folders(&mut self) {
        let cx = &self.cx;
        self.leaving.retain(|folder| {
            let busy = cx.data.writes_below(folder);
            // One that never began has none.
            if !busy && folder.exists() {
                cx.folders.give_back(folder);
            }
            busy
        });
    }

    /// Where one attempt has the whole node, those behind one that takes long are better off on another. Each is out of the
    /// journal before anyone hears of it, so that whatever happens it is begun here no more.
    fn give_back(&mut self) {
        if self.cx.outpost.is_none() {
            return;
        }
        let now = self.cx.now();
        let old = |(_, waiting): &(&Turn, &Waiting)| now.since(waiting.since) >= IN_LINE;
        let old: Vec<Turn> = self.waiting.iter().filter(old).map(|(turn, _)| *turn).collect();
        old.into_iter().for_each(|turn| self.give_back_one(turn));
    }

    fn give_back_one(&mut self, turn: Turn) {
        let Some(attempt) = self.waiting.get(&turn).map(|waiting| waiting.assignment.attempt.clone()) else { return };
        if let Err(error) = self.cx.journal.forget(&attempt) {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot write to the journal");
            return;
        }
        self.waiting.remove(&turn);
        self.cx.reporter.say(&attempt, self.cx.now(), What::Returned);
        self.returned.insert(attempt);
    }

    /// Says of each attempt that waits here what it waits for.
    fn explain_waits(&mut self) {
        let now = self.cx.now();
        let mut users: Vec<&str> = self.active.values().filter(|a| !a.over).map(|a| a.job.as_str()).collect();
        users.sort_unstable();
        let shown = users.iter().take(5).map(|job| format!("`{job}`")).collect::<Vec<_>>().join(", ");
        let more = if users.len() > 5 { format!(" and {} more", users.len() - 5) } else { String::new() };
        let free = self.free();
        for (at, waiting) in self.waiting.values_mut().enumerate() {
            if now.since(waiting.since) < Duration::from_secs(1) {
                continue;
            }
            let passed =
                waiting.passed_by.iter().map(|by| format!("; {}", backfill::passed_by(by))).collect::<String>();
            let note = match at {
                0 => format!(
                    "needs {}; {} free on `{}`; in use by {shown}{more}{passed}",
                    waiting.assignment.plan.needs().humane(),
                    free.humane(),
                    self.cx.settings.node,
                ),
                n => format!("{n} before it on `{}`, which is busy with {shown}{more}", self.cx.settings.node),
            };
            if note != waiting.note {
                self.cx.reporter.say(&waiting.assignment.attempt, now, What::Note { text: note.clone() });
                waiting.note = note;
            }
        }
    }
}

#[cfg(test)]
mod tests;
