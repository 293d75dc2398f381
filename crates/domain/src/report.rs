//! What an agent tells the server: what it is, what became of its attempts, how its node is doing.
//!
//! Invariant: reports about one attempt are in the order things happened, and each may arrive twice.
//! The server answers with the attempts it has fully recorded; the agent forgets only those.

use crate::{
    Assignment, AttemptId, Outcome, Resources, Timestamp,
    kept::{Kept, Moved},
    tunnel::Tunnel,
};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Who the agent is; sent with every poll.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    pub node: String,
    /// Changes when the machine restarts: processes of an older boot are gone for certain.
    pub boot_id: String,
    pub version: String,
    pub capacity: Resources,
    pub gpu_models: Vec<String>,
}

/// One thing that happened to an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub attempt: AttemptId,
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// Why it has not started yet, or what it is busy with.
    Note {
        text: String,
    },
    /// Something its user should know, kept in the job's story.
    Notice {
        text: String,
    },
    Preparing,
    /// Everything it reads is there: how much of it came from where, and what its node keeps now.
    Staged {
        moved: Moved,
        #[serde(default)]
        keeps: Vec<Kept>,
    },
    Started {
        pid: u32,
    },
    /// How a replica is: whether it takes requests, where, and otherwise why not. Told when it changes, and again by an
    /// agent that came back.
    Serving {
        address: Option<SocketAddr>,
        ready: bool,
        text: String,
    },
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// It was not begun here and never will be: another node may have it.
    Returned,
    /// The last word on an attempt: everything it left is where the plan wanted it.
    Over {
        outcome: Outcome,
        isolation: String,
    },
}

/// A reading of the node's load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at: Timestamp,
    pub cpu_percent: f64,
    pub memory_used_bytes: u64,
    pub memory_total_bytes: u64,
    #[serde(default)]
    pub gpus: Vec<GpuSample>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuSample {
    pub index: u32,
    pub utilization_percent: u32,
    pub memory_used_bytes: u64,
    pub memory_total_bytes: u64,
}

/// What the agent sends: `POST /agent/v1/report`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportBatch {
    pub facts: NodeFacts,
    #[serde(default)]
    pub reports: Vec<Report>,
    #[serde(default)]
    pub samples: Vec<Sample>,
    /// Which part of its attempt the agent runs, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// What the agent's clock says at the moment of sending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
}

/// A clock that differs by less than this is right: the rest may be the way.
const RIGHT_MS: i64 = 30_000;

impl ReportBatch {
    /// The same with times as the receiver's clock would have told them, where the sender's is wrong.
    #[must_use]
    pub fn heard_at(mut self, now: Timestamp) -> ReportBatch {
        let behind = self.sent_at.map_or(0, |sent| now.0.saturating_sub(sent.0));
        if behind.abs() >= RIGHT_MS {
            let reports = self.reports.iter_mut().map(|report| &mut report.at);
            for at in reports.chain(self.samples.iter_mut().map(|sample| &mut sample.at)) {
                at.0 = at.0.saturating_add(behind);
            }
            self.sent_at = Some(now);
        }
        self
    }
}

/// The server's answer: attempts whose end it has recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportAnswer {
    pub recorded: Vec<AttemptId>,
}

/// What the agent asks: `POST /agent/v1/poll`. The answer waits until there is something new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Poll {
    pub facts: NodeFacts,
    /// Attempts the agent holds, so that the server offers only the others.
    pub holds: Vec<AttemptId>,
    /// Attempts the agent is already stopping.
    pub stopping: Vec<AttemptId>,
    /// An agent that was started for one attempt says which part of it it is, and where the other parts reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joining: Option<Joining>,
}

/// Part of [`Poll`]: an agent whose token is good for one attempt only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joining {
    pub part: u32,
    pub address: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PollAnswer {
    pub assignments: Vec<Assignment>,
    pub stop: Vec<AttemptId>,
    /// Attempts the agent holds that the server knows nothing of: to be stopped and dropped.
    #[serde(default)]
    pub unknown: Vec<AttemptId>,
    /// Ways to services that somebody waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnels: Vec<Tunnel>,
    /// The node is about to go: end what runs, and leave once idle.
    #[serde(default)]
    pub leave: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_wrong_clock_tells_is_put_right_and_what_the_way_took_is_not() {
        let now = Timestamp(10_000_000);
        let told = |sent: i64, at: i64| {
            let attempt = AttemptId::parse("att_1_0").unwrap();
            let report = Report { attempt, at: Timestamp(at), what: What::Returned };
            let sample = Sample {
                at: Timestamp(at),
                cpu_percent: 0.0,
                memory_used_bytes: 0,
                memory_total_bytes: 0,
                gpus: Vec::new(),
            };
            let (node, boot_id, version) = ("n".to_owned(), "b".to_owned(), "1".to_owned());
            let facts = NodeFacts { node, boot_id, version, capacity: Resources::default(), gpu_models: Vec::new() };
            let (reports, samples) = (vec![report], vec![sample]);
            let batch =
                ReportBatch { facts, reports, samples, part: None, sent_at: Some(Timestamp(sent)) }.heard_at(now);
            assert_eq!(batch.reports[0].at, batch.samples[0].at);
            batch.reports[0].at.0
        };
        // An hour behind, an hour ahead, ten seconds on the way, and as far off as can be written.
        assert_eq!(told(6_400_000, 6_390_000), 9_990_000);
        assert_eq!(told(13_600_000, 13_599_000), 9_999_000);
        assert_eq!(told(9_990_000, 9_980_000), 9_980_000);
        assert_eq!(told(i64::MIN, i64::MIN), -1);
    }
}
