//! What serving needs beyond running: how a replica is reached and judged, and what routers and the server tell each other.
//!
//! A replica is an attempt whose plan has a [`Serving`]. Its agent says when it is ready; the server turns that into
//! [`Routes`] and hands them to every router, which answers with the [`Demand`] it sees. Invariants: versions of routes only
//! grow, also over restarts of the server; whoever stops a replica waits until no router uses it.

use crate::{
    job::Failure,
    spec::routes::{RequestSettings, Routes},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::SocketAddr};

/// What the public inference server listens on where nobody says otherwise.
pub const USUAL_PORT: u16 = 5001;

/// How one replica of a deployment is started, reached and judged. The model is the input `model` of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Serving {
    pub endpoint: String,
    pub deployment: String,
    /// What the command listens on; the agent picks a free one where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    #[serde(default = "default_scoring_path")]
    pub scoring_path: String,
    #[serde(default)]
    pub liveness: Probe,
    #[serde(default)]
    pub readiness: Probe,
    /// How long from its start until it must be ready.
    #[serde(default = "default_start_seconds")]
    pub start_seconds: u64,
    pub kind: ServingKind,
    /// The folder in which a container sees the model; by itself it ends in the model's name and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_mount: Option<String>,
}

/// Who answers the requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ServingKind {
    /// A Python file of the plan's code with `init()` and `run()`, behind the public inference server.
    ScoringScript { entry: String },
    /// An MLflow model without code, behind a script of ours.
    MlflowModel,
    /// The plan's command, or what the image starts by itself.
    Container,
}

/// How a replica is asked whether it is well. Times are counted as Kubernetes counts them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probe {
    /// A `GET` that must be answered with 200 to 399; where it is absent, a TCP connection is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub initial_delay_ms: u64,
    pub period_ms: u64,
    pub timeout_ms: u64,
    pub success_threshold: u32,
    pub failure_threshold: u32,
}

/// What a deployment asks for beside its plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServingSettings {
    pub scale: Scale,
    pub requests: RequestSettings,
    /// The replicas' path behind `/score`.
    pub scoring_path: String,
    /// How long from being asked for until it must answer.
    pub start_seconds: u64,
    /// How long a replica that has to go may finish what routers still get from it.
    #[serde(default = "default_drain_seconds")]
    pub drain_seconds: u64,
}

/// Whether a replica is in use, as far as routers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// No router sends requests there, and none waits for an answer.
    No,
    /// Nobody says so, and nobody says otherwise: its routers were not heard of lately, or hold routes from before.
    Unknown,
    /// A router that was heard of lately does.
    Yes,
}

/// How many replicas a deployment has, and by what they become more or fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scale {
    pub least: u32,
    pub most: u32,
    /// How much of what its replicas can take at once is to be in use, in percent.
    pub target_percent: u32,
    pub polling_ms: u64,
    /// How long nothing is asked for before the last replica goes, where there may be none.
    pub idle_ms: u64,
}

/// How far a deployment has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Provisioning {
    Creating,
    Updating,
    Succeeded,
    Failed(Failure),
    Deleting,
}

/// How much is asked of a deployment at this moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    pub endpoint: String,
    pub deployment: String,
    pub in_flight: u32,
    /// Requests that wait for a slot, or for a first replica.
    pub queued: u32,
    pub replicas: u32,
}

/// Upper bounds of how long requests took, in microseconds, by which routers count them.
pub const LATENCY_BOUNDS_US: [u64; 13] =
    [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000, 30_000_000];

/// What a router has answered for a deployment since it began; without a deployment, what an endpoint refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub endpoint: String,
    #[serde(default)]
    pub deployment: String,
    /// Copies of requests that another deployment has answered: nobody was told what came of these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mirrored: bool,
    /// By status.
    pub codes: BTreeMap<u16, u64>,
    /// By how long they took: one for each of [`LATENCY_BOUNDS_US`], and the rest.
    pub buckets: Vec<u64>,
}

/// What a router tells: `POST /router/v1/exchange`. The answer waits until there are routes other than those it holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RouterNews {
    /// A name that no other router has.
    pub router: String,
    #[serde(default)]
    pub demand: Vec<Demand>,
    /// Replicas that are in its routes no more and still work on requests of its.
    #[serde(default)]
    pub leaving: Vec<SocketAddr>,
    /// The version of the routes it uses; 0 before the first.
    #[serde(default)]
    pub held: u64,
    /// Only of those that were asked at all.
    #[serde(default)]
    pub answered: Vec<Answered>,
    /// Which loopback is its own: the same for all processes that reach each other there. Empty where it cannot tell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub loopback: String,
}

/// What a router is told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RouterAnswer {
    pub version: u64,
    /// Absent when the router has them already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<Routes>,
    /// Which part of the replicas' slots is this router's.
    #[serde(default)]
    pub share: SlotShare,
    /// Replicas that are not in these routes because they listen on the loopback of another machine.
    #[serde(default)]
    pub left_out: usize,
}

/// Routers that send requests to the same replicas share their slots: this is one of so many. The slots of a deployment are dealt
/// out to them in turn, so that together they send a replica no more than it takes at a time. Where there are fewer slots than
/// routers, each has one all the same: a request that comes to it has to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotShare {
    pub index: u32,
    pub of: u32,
}

impl Default for SlotShare {
    fn default() -> SlotShare {
        SlotShare { index: 0, of: 1 }
    }
}

impl SlotShare {
    /// How many of the `slots` of each of `replicas` are this router's at the replica that is the `at`-th.
    pub fn of_replica(self, at: usize, replicas: usize, slots: u32) -> u32 {
        let (index, of) = (u64::from(self.index), u64::from(self.of));
        if of <= 1 {
            return slots;
        }
        let (each, at) = (u64::from(slots), at as u64);
        let all = each.saturating_mul(replicas as u64);
        if all < of {
            let own = index % all.max(1) / each.max(1);
            return u32::from(own == at);
        }
        // Slots are numbered through; every `of`-th is ours.
        let below = |end: u64| (end + of - 1 - index) / of;
        u32::try_from(below((at + 1) * each) - below(at * each)).unwrap_or(slots)
    }
}

impl Provisioning {
    /// The word of the resource API.
    pub fn status(&self) -> &'static str {
        match self {
            Provisioning::Creating => "Creating",
            Provisioning::Updating => "Updating",
            Provisioning::Succeeded => "Succeeded",
            Provisioning::Failed(_) => "Failed",
            Provisioning::Deleting => "Deleting",
        }
    }

    /// Whether it is still to be seen that its replicas answer.
    pub fn is_proving(&self) -> bool {
        matches!(self, Provisioning::Creating | Provisioning::Updating)
    }
}

impl Serving {
    /// What it listens on where every replica has an address of its own.
    pub fn own_port(&self) -> u16 {
        self.port.unwrap_or(USUAL_PORT)
    }
}

impl Default for Serving {
    fn default() -> Serving {
        Serving {
            endpoint: String::new(),
            deployment: String::new(),
            port: None,
            scoring_path: default_scoring_path(),
            liveness: Probe::default(),
            readiness: Probe::default(),
            start_seconds: default_start_seconds(),
            kind: ServingKind::Container,
            model_mount: None,
        }
    }
}

impl Default for Scale {
    fn default() -> Scale {
        Scale { least: 1, most: 1, target_percent: 70, polling_ms: 1_000, idle_ms: 60_000 }
    }
}

impl Default for Probe {
    fn default() -> Probe {
        Probe {
            path: None,
            initial_delay_ms: 10_000,
            period_ms: 10_000,
            timeout_ms: 2_000,
            success_threshold: 1,
            failure_threshold: 30,
        }
    }
}

fn default_scoring_path() -> String {
    "/score".to_owned()
}

fn default_start_seconds() -> u64 {
    600
}

fn default_drain_seconds() -> u64 {
    300
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plan_leaves_out_has_the_documented_default() {
        let serving: Serving = serde_json::from_value(serde_json::json!({
            "endpoint": "iris", "deployment": "blue", "kind": {"is": "scoring_script", "entry": "score.py"},
        }))
        .unwrap();
        assert_eq!((serving.scoring_path.as_str(), serving.start_seconds, serving.port), ("/score", 600, None));
        assert_eq!((&serving.liveness, &serving.readiness), (&Probe::default(), &Probe::default()));
        assert_eq!(serving.kind, ServingKind::ScoringScript { entry: "score.py".into() });
    }

    #[test]
    fn routers_share_slots_so_that_none_is_given_twice_and_everyone_has_one() {
        for (routers, replicas, slots) in [(1, 2, 3), (2, 1, 4), (3, 3, 1), (3, 2, 4), (3, 5, 1), (7, 2, 9), (5, 1, 5)]
        {
            let share = |index, at| SlotShare { index, of: routers }.of_replica(at, replicas, slots);
            for at in 0..replicas {
                let together: u32 = (0..routers).map(|index| share(index, at)).sum();
                assert_eq!(together, slots, "{routers} routers, replica {at} of {replicas} with {slots}");
            }
            for index in 0..routers {
                assert!((0..replicas).map(|at| share(index, at)).sum::<u32>() > 0, "router {index} of {routers}");
            }
        }
        // Fewer slots than routers: each has one, and they are spread over the replicas.
        let share = |index, at| SlotShare { index, of: 5 }.of_replica(at, 2, 1);
        let all: Vec<[u32; 2]> = (0..5).map(|index| [share(index, 0), share(index, 1)]).collect();
        assert_eq!(all, [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]]);
    }

    #[test]
    fn routes_reach_a_router_as_they_were_sent() {
        let text = "endpoints:\n  iris:\n    keys: {primary: abcdefgh}\n    deployments:\n      blue:\n        replicas: ['127.0.0.1:5001']\n";
        let share = SlotShare { index: 1, of: 3 };
        let sent = RouterAnswer { version: 7, routes: Some(Routes::read("r.yml", text).unwrap()), share, left_out: 2 };
        let got: RouterAnswer = serde_json::from_str(&serde_json::to_string(&sent).unwrap()).unwrap();
        assert_eq!(got, sent);
    }
}
