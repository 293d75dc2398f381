//! What became of the acts that run beside the desk.

use super::{
    Desk, REMOVE_GRACE_SECONDS,
    memo::{Rest, Taken},
};
use crate::operator::{refusal::Refusal, world::Gang};
use domain::{
    AttemptId,
    cluster::{CheckResult, ClusterWhat},
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Why pods are not made is asked of one gang of a namespace after another: to ask of a thousand at once would keep the API
/// server from making the pods that they wait for.
const REHEARSE_PAUSE: Duration = Duration::from_millis(500);
/// Where one would have been taken, pods are just slow to come.
const REHEARSE_UNHURRIED: Duration = Duration::from_secs(2);

/// The end of an act.
pub(super) enum Done {
    Made {
        attempt: AttemptId,
        result: Result<(), Refusal>,
    },
    Sure {
        attempt: AttemptId,
        exists: Option<bool>,
    },
    Rehearsed {
        attempt: AttemptId,
        namespace: String,
        refusal: Option<Refusal>,
    },
    Freed {
        attempt: AttemptId,
        result: Result<(), kube::Error>,
    },
    TakenBack {
        attempt: AttemptId,
        taken: Taken,
        result: Result<bool, kube::Error>,
    },
    Removed {
        attempts: Vec<AttemptId>,
        result: Result<(), kube::Error>,
    },
    Checked(CheckResult),
    /// Nothing depends on it.
    Other,
}

impl Desk {
    pub(super) fn done(&mut self, done: Done) {
        match done {
            Done::Made { attempt, result } => self.made(&attempt, result),
            Done::Sure { attempt, exists } => {
                let memo = self.memos.entry(attempt).or_default();
                memo.busy = false;
                memo.sure = exists.or(memo.sure);
            }
            Done::Rehearsed { attempt, namespace, refusal } => self.rehearsed(&attempt, namespace, refusal),
            Done::Freed { attempt, result } => match result {
                Ok(()) => {
                    self.cx.metrics.freed.inc();
                    self.note_on(&attempt, "Released", "all pods of the gang fit; the scheduler may place them");
                }
                Err(error) => {
                    tracing::warn!(attempt.id = %attempt, error = %error, "cannot take the gate from a gang; trying again");
                    self.freeing.remove(&attempt);
                }
            },
            Done::TakenBack { attempt, taken, result } => self.taken_back(&attempt, taken, result),
            Done::Removed { attempts, result } => match result {
                Ok(()) => drop(self.cx.metrics.removed.inc_by(attempts.len() as u64)),
                Err(error) => {
                    tracing::warn!(attempts = attempts.len(), error = %error, "cannot remove attempts; trying again");
                }
            },
            Done::Checked(result) => {
                self.checking.remove(&result.id);
                self.cx.outbox.check(result);
            }
            Done::Other => {}
        }
    }

    fn made(&mut self, attempt: &AttemptId, result: Result<(), Refusal>) {
        let Some(pending) = self.launches.get_mut(attempt) else { return };
        let namespace = pending.launch.target.namespace.clone();
        let several = pending.launch.parts > 1;
        pending.making = false;
        match result {
            Ok(()) => {
                self.launches.remove(attempt);
                self.made.insert(attempt.clone(), Instant::now());
                self.cx.metrics.made.inc();
                let memo = self.memos.entry(attempt.clone()).or_default();
                (memo.sure, memo.lacking) = (Some(true), None);
                if memo.removing.is_some() {
                    // Not wanted any more since.
                    self.remove(namespace, vec![attempt.clone()], REMOVE_GRACE_SECONDS);
                }
            }
            Err(refusal) => {
                self.cx.metrics.refused.inc();
                let wanted = self.memo(attempt).removing.is_none();
                // Pods that were made count against quotas; a part of a gang is of no use to anyone.
                if several || !wanted || matches!(refusal, Refusal::Never { .. }) {
                    self.memos.entry(attempt.clone()).or_default().taken_back = true;
                    self.remove(namespace, vec![attempt.clone()], 0);
                }
                self.refused(attempt, refusal, wanted);
            }
        }
    }

    fn refused(&mut self, attempt: &AttemptId, refusal: Refusal, wanted: bool) {
        if !wanted {
            self.launches.remove(attempt);
            return;
        }
        match refusal {
            Refusal::Never { code, why } => {
                self.launches.remove(attempt);
                self.depart(attempt, 0, code, why, false);
            }
            Refusal::Later(text) => {
                self.later(attempt);
                self.say(attempt, text);
            }
            Refusal::Busy => self.later(attempt),
        }
    }

    fn later(&mut self, attempt: &AttemptId) {
        if let Some(pending) = self.launches.get_mut(attempt) {
            pending.after = Instant::now() + pending.pace.after_failure();
        }
    }

    /// What the cluster said to a pod that Volcano would make.
    fn rehearsed(&mut self, attempt: &AttemptId, namespace: String, refusal: Option<Refusal>) {
        let pause = if refusal.is_some() { REHEARSE_PAUSE } else { REHEARSE_UNHURRIED };
        self.rehearse_after.insert(namespace, Instant::now() + pause);
        let memo = self.memos.entry(attempt.clone()).or_default();
        memo.busy = false;
        match refusal {
            Some(Refusal::Never { code, why }) => {
                memo.told_gone.insert(0);
                self.depart(attempt, 0, code, why, false);
            }
            Some(Refusal::Later(text)) => self.wait_alike(attempt, &text),
            _ => memo.refused.clear(),
        }
    }

    /// What one gang waits for, all others of its kind wait for in the same namespace.
    fn wait_alike(&mut self, attempt: &AttemptId, text: &str) {
        let Some(one) = self.world.gangs.get(attempt) else { return };
        let alike = |gang: &Gang| {
            let podless = gang.pods.is_empty() && gang.job.as_ref().is_some_and(|job| job.enqueued && !job.over);
            podless && gang.namespace == one.namespace && Arc::ptr_eq(&gang.need, &one.need)
        };
        let others = self.world.gangs.iter().filter(|(other, gang)| *other == attempt || alike(gang));
        for (other, _) in others {
            let memo = self.memos.entry(other.clone()).or_default();
            (memo.refused, memo.rehearsed) = (text.to_owned(), Some(Instant::now()));
        }
    }

    fn taken_back(&mut self, attempt: &AttemptId, taken: Taken, result: Result<bool, kube::Error>) {
        let memo = self.memos.entry(attempt.clone()).or_default();
        memo.busy = false;
        match result {
            Ok(true) => {
                self.cx.metrics.taken_back.inc();
                let rest = Rest::after(self.rests.get(attempt), taken);
                self.rests.insert(attempt.clone(), rest);
                let text =
                    "only a part of the gang found nodes in time; it was taken back and waits until all of it fits";
                self.tell(attempt, ClusterWhat::Notice { text: text.to_owned() });
            }
            Ok(false) => memo.taken_back = false,
            Err(error) => {
                memo.taken_back = false;
                tracing::warn!(attempt.id = %attempt, error = %error, "cannot take back a gang; trying again");
            }
        }
    }

    /// Says why an attempt waits, if that is new.
    pub(super) fn say(&mut self, attempt: &AttemptId, text: String) {
        let memo = self.memos.entry(attempt.clone()).or_default();
        if memo.said != text {
            memo.said.clone_from(&text);
            self.tell(attempt, ClusterWhat::Waiting { text: text.clone() });
        }
        self.note_wait(attempt, text);
    }
}
