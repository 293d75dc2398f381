//! A job and the one machine its state moves through.
//!
//! Invariant: a state owns exactly the data that is true in it, and [`JobState::after`] is the only
//! way from one to the next. An attempt is named in a state until its end is known, so no state can
//! forget a process that may still run.

use crate::{AttemptId, JobName, Timestamp, tracking::RunStatus};
use serde::{Deserialize, Serialize};

/// A job as the server keeps it. The resource body is kept beside it, as the client sent it.
#[derive(Debug, Clone)]
pub struct Job {
    /// Order of acceptance on this server; unique.
    pub seq: i64,
    pub workspace: String,
    pub name: JobName,
    pub state: JobState,
    /// The number the next attempt will carry; 0 before the first.
    pub attempts: u32,
    pub max_retries: u32,
    pub priority: i64,
    /// Guards every write: an update names the version it read.
    pub version: i64,
    pub created_at: Timestamp,
    /// The job it is a part of: a pipeline or a sweep.
    pub parent: Option<i64>,
}

/// Where a job is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum JobState {
    /// Waits to be given to a node.
    Queued {
        since: Timestamp,
    },
    /// Given to a node's agent, which starts it when its turn comes and the resources are free.
    Placed {
        attempt: AttemptId,
        since: Timestamp,
    },
    /// The agent stages code, data and environment.
    Preparing {
        attempt: AttemptId,
        since: Timestamp,
    },
    /// The user's command runs.
    Running {
        attempt: AttemptId,
        since: Timestamp,
    },
    /// The command has ended; outputs and logs are being collected.
    Finalizing {
        attempt: AttemptId,
        since: Timestamp,
        started_at: Option<Timestamp>,
    },
    /// Someone asked to stop it; the agent has not yet said that everything is gone.
    Stopping {
        attempt: AttemptId,
        since: Timestamp,
        started_at: Option<Timestamp>,
        /// Why, in the words of whoever asked.
        #[serde(default)]
        reason: String,
        /// It made way for another and waits again when it is gone.
        #[serde(default)]
        again: bool,
    },
    /// No node runs it: it consists of other jobs, and the controller leads them.
    Conducting {
        since: Timestamp,
    },
    /// Someone asked to stop it, and not all of its children are gone yet.
    Halting {
        since: Timestamp,
        started_at: Timestamp,
        reason: String,
    },
    Ended {
        outcome: Outcome,
        at: Timestamp,
        started_at: Option<Timestamp>,
    },
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Failed(Failure),
    Canceled { reason: String },
}

/// Why a job failed, for people and for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A stable word: `UserError.ExitCode`, `UserError.OutOfMemory`, `EnvironmentBuildFailed`, ...
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The end of the log, where the cause usually stands.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_lines: String,
    /// A new attempt may help: the node was lost, not the command at fault.
    #[serde(default)]
    pub retryable: bool,
}

/// What can happen to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEvent {
    Placed(AttemptId),
    /// The controller begins to lead its children.
    Conducted,
    /// An earlier job stands for it.
    Reused,
    Preparing,
    Started,
    Exited,
    /// The attempt is over and everything it left is in the store.
    Over(Outcome),
    StopRequested {
        reason: String,
    },
    /// It has to make way for another.
    Preempted {
        reason: String,
    },
}

/// An event that cannot happen in a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a job that is {state} cannot be {event}")]
pub struct Illegal {
    pub state: &'static str,
    pub event: &'static str,
}

impl JobState {
    /// The one door through which a job changes state. A failure that a new attempt may cure goes back
    /// to the queue while `retries_left` is not zero.
    pub fn after(self, event: JobEvent, retries_left: u32, now: Timestamp) -> Result<Self, Illegal> {
        use {JobEvent as E, JobState as S};
        Ok(match (self, event) {
            (S::Queued { .. }, E::Placed(attempt)) => S::Placed { attempt, since: now },
            (S::Queued { .. }, E::Conducted) => S::Conducting { since: now },
            (S::Queued { .. }, E::Reused) => S::Ended { outcome: Outcome::Completed, at: now, started_at: None },
            (S::Conducting { since }, E::StopRequested { reason }) => {
                S::Halting { since: now, started_at: since, reason }
            }
            (S::Conducting { since }, E::Over(outcome)) => S::Ended { outcome, at: now, started_at: Some(since) },
            (state @ S::Halting { .. }, E::StopRequested { .. }) => state,
            // Its children may all have completed before the stop reached them.
            (S::Halting { started_at, .. }, E::Over(Outcome::Completed)) => {
                S::Ended { outcome: Outcome::Completed, at: now, started_at: Some(started_at) }
            }
            (S::Halting { started_at, reason, .. }, E::Over(_)) => {
                S::Ended { outcome: Outcome::Canceled { reason }, at: now, started_at: Some(started_at) }
            }
            (S::Placed { attempt, .. }, E::Preparing) => S::Preparing { attempt, since: now },
            (S::Placed { attempt, .. } | S::Preparing { attempt, .. }, E::Started) => {
                S::Running { attempt, since: now }
            }
            (S::Preparing { attempt, .. }, E::Exited) => S::Finalizing { attempt, since: now, started_at: None },
            (S::Running { attempt, since }, E::Exited) => {
                S::Finalizing { attempt, since: now, started_at: Some(since) }
            }
            // What a stopping attempt still does changes nothing but when it started.
            (S::Stopping { attempt, since, reason, again, .. }, E::Started) => {
                S::Stopping { attempt, since, started_at: Some(now), reason, again }
            }
            (S::Stopping { attempt, since, started_at, again: true, .. }, E::StopRequested { reason }) => {
                S::Stopping { attempt, since, started_at, reason, again: false }
            }
            (state @ S::Stopping { .. }, E::Preparing | E::Exited | E::StopRequested { .. } | E::Preempted { .. }) => {
                state
            }
            (S::Stopping { again: true, .. }, E::Over(Outcome::Failed(_) | Outcome::Canceled { .. })) => {
                S::Queued { since: now }
            }
            (state @ (S::Placed { .. } | S::Preparing { .. } | S::Running { .. }), E::Preempted { reason }) => {
                let started_at = state.started_at();
                let attempt = state.attempt().cloned().expect("each of these has one");
                S::Stopping { attempt, since: now, started_at, reason, again: true }
            }
            (S::Stopping { started_at, reason, .. }, E::Over(outcome)) => {
                // Work that completed before the stop reached it has still completed.
                let outcome = match outcome {
                    Outcome::Completed => Outcome::Completed,
                    Outcome::Canceled { reason: told } if reason.is_empty() => Outcome::Canceled { reason: told },
                    Outcome::Canceled { .. } => Outcome::Canceled { reason },
                    Outcome::Failed(failure) => {
                        let asked = if reason.is_empty() { "canceled" } else { &reason };
                        let reason = format!("{asked}; the attempt ended with: {}", failure.message);
                        Outcome::Canceled { reason }
                    }
                };
                S::Ended { outcome, at: now, started_at }
            }
            (
                S::Placed { .. } | S::Preparing { .. } | S::Running { .. } | S::Finalizing { .. },
                E::Over(Outcome::Failed(f)),
            ) if f.retryable && retries_left > 0 => S::Queued { since: now },
            (
                state @ (S::Placed { .. } | S::Preparing { .. } | S::Running { .. } | S::Finalizing { .. }),
                E::Over(outcome),
            ) => S::Ended { outcome, at: now, started_at: state.started_at() },
            (S::Queued { .. }, E::StopRequested { reason }) => {
                S::Ended { outcome: Outcome::Canceled { reason }, at: now, started_at: None }
            }
            (state, E::StopRequested { reason }) if state.attempt().is_some() => {
                let started_at = state.started_at();
                let attempt = state.attempt().cloned().expect("the guard has seen one");
                S::Stopping { attempt, since: now, started_at, reason, again: false }
            }
            (state, event) => return Err(Illegal { state: state.name(), event: event.name() }),
        })
    }

    /// The status word of the resource API.
    pub fn status(&self) -> &'static str {
        match self {
            JobState::Queued { .. } | JobState::Placed { .. } | JobState::Stopping { again: true, .. } => "Queued",
            JobState::Preparing { .. } => "Preparing",
            JobState::Running { .. } | JobState::Conducting { .. } => "Running",
            JobState::Finalizing { .. } => "Finalizing",
            JobState::Stopping { .. } | JobState::Halting { .. } => "CancelRequested",
            JobState::Ended { outcome: Outcome::Completed, .. } => "Completed",
            JobState::Ended { outcome: Outcome::Failed(_), .. } => "Failed",
            JobState::Ended { outcome: Outcome::Canceled { .. }, .. } => "Canceled",
        }
    }

    /// The attempt that may have processes, if any.
    pub fn attempt(&self) -> Option<&AttemptId> {
        match self {
            JobState::Placed { attempt, .. }
            | JobState::Preparing { attempt, .. }
            | JobState::Running { attempt, .. }
            | JobState::Finalizing { attempt, .. }
            | JobState::Stopping { attempt, .. } => Some(attempt),
            JobState::Queued { .. }
            | JobState::Conducting { .. }
            | JobState::Halting { .. }
            | JobState::Ended { .. } => None,
        }
    }

    /// When the command began, if it has.
    pub fn started_at(&self) -> Option<Timestamp> {
        match self {
            JobState::Running { since, .. } | JobState::Conducting { since } => Some(*since),
            JobState::Halting { started_at, .. } => Some(*started_at),
            JobState::Finalizing { started_at, .. } | JobState::Stopping { started_at, .. } => *started_at,
            JobState::Ended { started_at, .. } => *started_at,
            JobState::Queued { .. } | JobState::Placed { .. } | JobState::Preparing { .. } => None,
        }
    }

    pub fn is_ended(&self) -> bool {
        matches!(self, JobState::Ended { .. })
    }

    pub fn name(&self) -> &'static str {
        match self {
            JobState::Queued { .. } => "queued",
            JobState::Placed { .. } => "placed",
            JobState::Preparing { .. } => "preparing",
            JobState::Running { .. } => "running",
            JobState::Finalizing { .. } => "finalizing",
            JobState::Stopping { .. } => "stopping",
            JobState::Conducting { .. } => "conducting",
            JobState::Halting { .. } => "halting",
            JobState::Ended { .. } => "ended",
        }
    }
}

impl JobEvent {
    pub fn name(&self) -> &'static str {
        match self {
            JobEvent::Placed(_) => "placed",
            JobEvent::Conducted => "conducted",
            JobEvent::Reused => "reused",
            JobEvent::Preparing => "prepared",
            JobEvent::Started => "started",
            JobEvent::Exited => "finalized",
            JobEvent::Over(_) => "ended",
            JobEvent::StopRequested { .. } => "stopped",
            JobEvent::Preempted { .. } => "preempted",
        }
    }
}

impl Job {
    /// Applies an event to this job's state, or says why it cannot happen.
    pub fn apply(&mut self, event: JobEvent, now: Timestamp) -> Result<(), Illegal> {
        let retries_left = (self.max_retries + 1).saturating_sub(self.attempts);
        let next = self.state.clone().after(event, retries_left, now)?;
        if let JobState::Placed { .. } = &next {
            self.attempts += 1;
        }
        // A try that was taken away is none of those that may fail.
        if let (JobState::Stopping { again: true, .. }, JobState::Queued { .. }) = (&self.state, &next) {
            self.max_retries += 1;
        }
        self.state = next;
        Ok(())
    }

    /// The job as a tracked run: its status, when it began (for one that has not, when it was accepted), when it ended.
    pub fn as_run(&self) -> (RunStatus, Timestamp, Option<Timestamp>) {
        let started = self.state.started_at().unwrap_or(self.created_at);
        match &self.state {
            JobState::Queued { .. } | JobState::Placed { .. } | JobState::Preparing { .. } => {
                (RunStatus::Scheduled, started, None)
            }
            JobState::Running { .. }
            | JobState::Finalizing { .. }
            | JobState::Stopping { .. }
            | JobState::Conducting { .. }
            | JobState::Halting { .. } => (RunStatus::Running, started, None),
            JobState::Ended { outcome, at, .. } => {
                let status = match outcome {
                    Outcome::Completed => RunStatus::Finished,
                    Outcome::Failed(_) => RunStatus::Failed,
                    Outcome::Canceled { .. } => RunStatus::Killed,
                };
                (status, started, Some(*at))
            }
        }
    }

    /// The id the next attempt will have.
    pub fn next_attempt(&self) -> AttemptId {
        AttemptId::of(self.seq, self.attempts)
    }
}

impl Failure {
    pub fn new(code: &str, message: impl Into<String>) -> Failure {
        Failure {
            code: code.to_owned(),
            message: message.into(),
            exit_code: None,
            signal: None,
            last_lines: String::new(),
            retryable: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(5);

    fn states() -> Vec<JobState> {
        let attempt = AttemptId::of(1, 0);
        let since = Timestamp(1);
        vec![
            JobState::Queued { since },
            JobState::Placed { attempt: attempt.clone(), since },
            JobState::Preparing { attempt: attempt.clone(), since },
            JobState::Running { attempt: attempt.clone(), since },
            JobState::Finalizing { attempt: attempt.clone(), since, started_at: None },
            JobState::Stopping { attempt, since, started_at: None, reason: "asked".into(), again: false },
            JobState::Conducting { since },
            JobState::Halting { since, started_at: since, reason: "asked".into() },
            JobState::Ended { outcome: Outcome::Completed, at: since, started_at: None },
        ]
    }

    fn events() -> Vec<JobEvent> {
        vec![
            JobEvent::Placed(AttemptId::of(1, 0)),
            JobEvent::Conducted,
            JobEvent::Reused,
            JobEvent::Preparing,
            JobEvent::Started,
            JobEvent::Exited,
            JobEvent::Over(Outcome::Completed),
            JobEvent::StopRequested { reason: "asked".into() },
            JobEvent::Preempted { reason: "asked".into() },
        ]
    }

    #[test]
    fn every_legal_pair_and_no_other() {
        let mut table = String::new();
        for state in states() {
            let row: Vec<&str> = events()
                .into_iter()
                .map(|event| state.clone().after(event, 0, NOW).map_or("-", |next| next.name()))
                .collect();
            table += &format!("{:<10} {}\n", state.name(), row.join(" "));
        }
        expect_test::expect![[r#"
            queued     placed conducting ended - - - - ended -
            placed     - - - preparing running - ended stopping stopping
            preparing  - - - - running finalizing ended stopping stopping
            running    - - - - - finalizing ended stopping stopping
            finalizing - - - - - - ended stopping -
            stopping   - - - stopping stopping stopping ended stopping stopping
            conducting - - - - - - ended halting -
            halting    - - - - - - ended halting -
            ended      - - - - - - - - -
        "#]]
        .assert_eq(&table);
    }

    #[test]
    fn a_retryable_failure_queues_again_until_the_retries_are_spent() {
        let lost = || JobEvent::Over(Outcome::Failed(Failure { retryable: true, ..Failure::new("NodeLost", "gone") }));
        let running = JobState::Running { attempt: AttemptId::of(1, 0), since: NOW };
        assert_eq!(running.clone().after(lost(), 1, NOW).map(|s| s.name()), Ok("queued"));
        assert_eq!(running.after(lost(), 0, NOW).map(|s| s.status()), Ok("Failed"));
    }

    #[test]
    fn a_parent_that_was_asked_to_stop_is_canceled_unless_everything_completed() {
        let halting = JobState::Halting { since: NOW, started_at: NOW, reason: "enough".into() };
        let failed = || JobEvent::Over(Outcome::Failed(Failure::new("x", "a step failed")));
        assert_eq!(halting.clone().after(failed(), 0, NOW).map(|s| s.status()), Ok("Canceled"));
        assert_eq!(halting.after(JobEvent::Over(Outcome::Completed), 0, NOW).map(|s| s.status()), Ok("Completed"));
    }

    #[test]
    fn a_job_that_completed_before_the_stop_arrived_is_completed() {
        let stopping = stopping();
        assert_eq!(stopping.after(JobEvent::Over(Outcome::Completed), 0, NOW).map(|s| s.status()), Ok("Completed"));
    }

    fn stopping() -> JobState {
        let (attempt, reason) = (AttemptId::of(1, 0), "trial 3 is far behind".to_owned());
        JobState::Stopping { attempt, since: NOW, started_at: None, reason, again: false }
    }

    #[test]
    fn a_job_that_made_way_waits_again_and_keeps_its_retries() {
        let running = JobState::Running { attempt: AttemptId::of(1, 0), since: NOW };
        let mut job = Job {
            seq: 1,
            workspace: "w".into(),
            name: JobName::parse("j").unwrap(),
            state: running,
            attempts: 1,
            max_retries: 0,
            priority: 1,
            version: 1,
            created_at: NOW,
            parent: None,
        };
        job.apply(JobEvent::Preempted { reason: "`k` goes first".into() }, NOW).unwrap();
        assert_eq!((job.state.name(), job.state.status()), ("stopping", "Queued"));
        let mut canceled = job.clone();
        job.apply(JobEvent::Over(Outcome::Canceled { reason: String::new() }), NOW).unwrap();
        assert_eq!((job.state.name(), job.max_retries), ("queued", 1));
        canceled.apply(JobEvent::StopRequested { reason: "enough".into() }, NOW).unwrap();
        canceled.apply(JobEvent::Over(Outcome::Canceled { reason: String::new() }), NOW).unwrap();
        assert_eq!(canceled.state.status(), "Canceled");
    }

    #[test]
    fn a_job_that_was_stopped_says_why_in_the_words_of_whoever_asked() {
        let said = |outcome| match stopping().after(JobEvent::Over(outcome), 0, NOW) {
            Ok(JobState::Ended { outcome: Outcome::Canceled { reason }, .. }) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(said(Outcome::Canceled { reason: "told to stop".into() }), "trial 3 is far behind");
        let failed = said(Outcome::Failed(Failure::new("x", "it broke")));
        assert_eq!(failed, "trial 3 is far behind; the attempt ended with: it broke");
    }
}
