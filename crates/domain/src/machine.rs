//! What a node of a managed cluster and the server tell each other, and what the server keeps of such a node.
//!
//! A node dials out: it joins once with a token for its name (`POST /node/v1/join`) and gets a
//! certificate, which it renews in the same way, then asks for work and tells what became
//! of it in one call (`POST /node/v1/poll`, long). Invariants: a name is joined by one machine only; what a node holds is
//! told in every poll, so nothing depends on what either side remembers.

use crate::{
    AttemptId, Resources,
    cluster::Launch,
    kept::{Door, Kept},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a node stands. `running` is a ready one with work on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Ordered from its provider, and not heard of yet.
    Preparing,
    /// Takes work.
    Ready,
    /// Something is wrong with it; it goes and is replaced.
    Unusable,
    /// To go, as soon as nothing runs on it.
    Leaving,
    /// Taken back by whoever owns it: its work is to end at once.
    Preempted,
    /// It was unusable and was taken away; kept for a while, to be seen.
    Gone,
}

impl Standing {
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Preparing => "preparing",
            Standing::Ready => "ready",
            Standing::Unusable => "unusable",
            Standing::Leaving => "leaving",
            Standing::Preempted => "preempted",
            Standing::Gone => "gone",
        }
    }

    pub fn parse(text: &str) -> Option<Standing> {
        use Standing::{Gone, Leaving, Preempted, Preparing, Ready, Unusable};
        [Preparing, Ready, Unusable, Leaving, Preempted, Gone].into_iter().find(|standing| standing.as_str() == text)
    }
}

/// What a machine says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineFacts {
    /// As the machine calls itself.
    pub host: String,
    pub address: String,
    pub capacity: Resources,
    pub version: String,
    /// Where others of its cluster fetch data from it; absent where they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub door: Option<Door>,
}

/// How long a node may be out of reach, where its cluster says nothing of it.
pub const LEASE_SECONDS: u64 = 600;

/// A shorter one could be over while the server merely has nothing to say.
const LEAST_SECONDS: u64 = 30;

/// The same for the nodes of a cluster with these properties.
pub fn lease_seconds(properties: &Value) -> u64 {
    properties["nodeProvider"]["leaseSeconds"].as_u64().unwrap_or(LEASE_SECONDS).max(LEAST_SECONDS)
}

/// A machine that has the token for a name, and from now on a key of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeJoin {
    /// Made by the machine; whoever joins again has to have the same.
    pub key: String,
    pub facts: MachineFacts,
    /// A request for a certificate (PKCS #10 in PEM). Without one a node gets a token, as it must where TLS ends before the
    /// server and nobody would see its certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeJoined {
    /// Speaks for this node until it is gone; empty where a certificate does.
    pub token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<NodeCertificate>,
    /// What tokens are signed with by which others fetch data from this node.
    #[serde(default)]
    pub lending: String,
    /// Nodes of this cluster fetch data from each other.
    #[serde(default)]
    pub peers: bool,
    /// A node without work that has not reached the server for so long leaves.
    #[serde(default = "usual_lease")]
    pub lease_seconds: u64,
}

/// Speaks for a node on connections where the node shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCertificate {
    pub pem: String,
    /// What the node says of itself where others have a token. It is no secret.
    pub claim: String,
    /// How long it is good.
    pub seconds: u64,
}

fn usual_lease() -> u64 {
    LEASE_SECONDS
}

/// What became of a part of an attempt on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PartFate {
    /// The node's own agent has it, or is about to, and tells of it itself.
    Own,
    Runs,
    /// Its agent has left by itself, after it had told the server everything.
    Left,
    Gone {
        code: String,
        why: String,
        retryable: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePart {
    pub attempt: AttemptId,
    pub part: u32,
    pub fate: PartFate,
}

/// What a node asks. The answer waits until there is something new.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePoll {
    pub facts: MachineFacts,
    pub holds: Vec<NodePart>,
    /// What it keeps of fetched data, where that has changed since it was last told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps: Option<Vec<Kept>>,
    /// Its machine was told to stop, and is there for a little while yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeAnswer {
    /// Attempts to begin, and which of their parts belong here.
    #[serde(default)]
    pub launch: Vec<(Launch, Vec<u32>)>,
    /// Everything of these is to go.
    #[serde(default)]
    pub remove: Vec<AttemptId>,
    /// What runs is to be ended politely; the node leaves when nothing does.
    #[serde(default)]
    pub leave: bool,
}
