//! Scaling: how many replicas a deployment gets, which are started and which go.
//!
//! More are started at once, fewer are kept only after the demand was low for twenty polls. A new generation takes over by
//! surge: its replicas are started beside the old ones, and an old one goes when a new one stands in for it. Invariants: what
//! is on its way counts, so a herd starts one wave; replicas that are taken away are drained before they are stopped; while a
//! generation is rolled out, as many stay ready as are wanted or as there were.

use domain::serving::Scale;
use std::collections::VecDeque;

/// Fewer replicas are enough only after this many polls said so.
const CALM_POLLS: i64 = 20;

/// One deployment, as a pass sees it.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    /// Its replicas are to be of this one.
    pub generation: i64,
    pub wanted: u32,
    /// Why none is started now, although more are wanted.
    pub held_back: bool,
    pub replicas: Vec<Replica>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replica {
    pub seq: i64,
    pub generation: i64,
    pub state: ReplicaState,
}

/// Where a replica is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaState {
    /// Its node has not begun with it; `stuck` when it has waited for long, so that room may have to be made.
    Waiting {
        stuck: bool,
    },
    Starting,
    Ready,
    /// No router is to use it; `free` when none does.
    Draining {
        free: bool,
    },
    /// Asked to stop.
    Stopping,
}

/// What to do about a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Start { because: String },
    Drain { seq: i64, because: String },
    Stop { seq: i64 },
}

/// One pass over a deployment.
pub fn scale(fleet: &Fleet) -> Vec<Step> {
    let mut steps: Vec<Step> = fleet
        .replicas
        .iter()
        .filter(|replica| replica.state == ReplicaState::Draining { free: true })
        .map(|replica| Step::Stop { seq: replica.seq })
        .collect();
    let (new, old): (Vec<&Replica>, Vec<&Replica>) =
        fleet.replicas.iter().filter(|replica| replica.is_live()).partition(|r| r.generation == fleet.generation);
    let wanted = fleet.wanted as usize;
    if !fleet.held_back {
        let because = format!("{} of {wanted} replicas are there", new.len());
        steps.extend((new.len()..wanted).map(|_| Step::Start { because: because.clone() }));
    }
    let drain = |replica: &&Replica, because: &str| Step::Drain { seq: replica.seq, because: because.to_owned() };
    steps.extend(replaced(fleet, &new, &old).iter().map(|replica| drain(replica, "a newer version takes its place")));
    steps.extend(surplus(new, wanted).iter().map(|replica| drain(replica, "fewer replicas are enough")));
    steps
}

/// Replicas of older generations that can be spared.
fn replaced<'f>(fleet: &Fleet, new: &[&'f Replica], old: &[&'f Replica]) -> Vec<&'f Replica> {
    let (ready, unready): (Vec<&Replica>, Vec<&Replica>) = old.iter().copied().partition(|r| r.is_ready());
    let in_place = new.iter().filter(|replica| replica.is_ready()).count();
    let mut spare = (in_place + ready.len()).saturating_sub(fleet.wanted as usize);
    let drains =
        fleet.replicas.iter().any(|r| matches!(r.state, ReplicaState::Draining { .. } | ReplicaState::Stopping));
    let stuck = new.iter().any(|replica| replica.state == ReplicaState::Waiting { stuck: true });
    if spare == 0 && stuck && !drains && in_place + ready.len() > 1 {
        // There is no room for both; one at a time makes way, and never the last that answers.
        spare = 1;
    }
    unready.into_iter().chain(ready.into_iter().take(spare)).collect()
}

/// Those beyond what is wanted: the youngest, and of these first the ones that do not answer yet.
fn surplus(mut new: Vec<&Replica>, wanted: usize) -> Vec<&Replica> {
    new.sort_by_key(|replica| (!replica.is_ready(), replica.seq));
    new.split_off(wanted.min(new.len()))
}

impl Fleet {
    /// How many replicas it has, taken as one generation: while one replaces the other, both are about as many.
    pub fn current(&self) -> u32 {
        let live = self.replicas.iter().filter(|replica| replica.is_live());
        let (new, old): (Vec<&Replica>, Vec<&Replica>) = live.partition(|r| r.generation == self.generation);
        u32::try_from(new.len().max(old.len())).unwrap_or(u32::MAX)
    }
}

impl Replica {
    fn is_live(&self) -> bool {
        !matches!(self.state, ReplicaState::Draining { .. } | ReplicaState::Stopping)
    }

    fn is_ready(&self) -> bool {
        self.state == ReplicaState::Ready
    }
}

/// How many replicas so many requests, running and waiting, need.
pub fn desired(scale: &Scale, concurrency: u32, requests: u64) -> u32 {
    let taken = u64::from(scale.target_percent.clamp(1, 100)) * u64::from(concurrency.max(1));
    let needed = requests.saturating_mul(100).div_ceil(taken);
    u32::try_from(needed).unwrap_or(u32::MAX).clamp(scale.least, scale.most.max(scale.least))
}

/// What was desired lately. It begins anew when the server does, and then nothing goes before a whole while is known.
#[derive(Debug, Clone, Default)]
pub struct History {
    begun_at: Option<i64>,
    /// Time and number; a later one that is as great makes earlier ones needless, so the numbers fall.
    desired: VecDeque<(i64, u32)>,
}

impl History {
    /// How many replicas are wanted, given how many there are and how many are desired at this moment.
    pub fn wanted(&mut self, scale: &Scale, now_ms: i64, current: u32, desired: u32) -> u32 {
        let begun_at = *self.begun_at.get_or_insert(now_ms);
        let calm = CALM_POLLS * i64::try_from(scale.polling_ms).unwrap_or(i64::MAX / CALM_POLLS);
        let idle = i64::try_from(scale.idle_ms).unwrap_or(i64::MAX).max(calm);
        while self.desired.back().is_some_and(|(_, earlier)| *earlier <= desired) {
            self.desired.pop_back();
        }
        self.desired.push_back((now_ms, desired));
        while self.desired.front().is_some_and(|(at, _)| now_ms.saturating_sub(*at) > idle) {
            self.desired.pop_front();
        }
        let most = |within: i64| match now_ms.saturating_sub(begun_at) < within {
            true => current,
            false => {
                let recent = self.desired.iter().filter(|(at, _)| now_ms.saturating_sub(*at) <= within);
                recent.map(|(_, desired)| *desired).max().unwrap_or(desired).min(current)
            }
        };
        let wanted = desired.max(most(calm));
        let wanted = if wanted == 0 && most(idle) > 0 { 1 } else { wanted };
        wanted.clamp(scale.least, scale.most.max(scale.least))
    }
}

#[cfg(test)]
mod tests;
