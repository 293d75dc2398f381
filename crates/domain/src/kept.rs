//! Data near compute: what nodes keep of what they have fetched, and how they get it from each other.
//!
//! Invariant: an entry is named by a digest of its address and of every object's version, so equal names are equal bytes.

use serde::{Deserialize, Serialize};

/// As many entries as a node tells of, those used last.
pub const MOST_TOLD: usize = 256;

/// One entry of a node's cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub key: String,
    /// The address it was fetched from, without secrets.
    pub source: String,
    pub bytes: u64,
    /// SHA-256 of all its files one after the other, by name; empty until it was taken.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sum: String,
}

/// Bytes that an attempt was given, by where they came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Moved {
    pub store: u64,
    pub peers: u64,
    /// They were on the node already.
    pub cache: u64,
}

impl Moved {
    pub fn is_nothing(&self) -> bool {
        *self == Moved::default()
    }

    pub fn add(&mut self, more: &Moved) {
        self.store += more.store;
        self.peers += more.peers;
        self.cache += more.cache;
    }
}

/// Where other nodes of its cluster fetch from a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door {
    /// Address and port.
    pub address: String,
    /// The authority that signed its certificate, in PEM.
    pub authority: String,
    /// Tokens for it are signed with a secret for this alone; those of older nodes with the node's own token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

/// What an agent asks that lacks an entry: `POST /agent/v1/attempts/{attempt}/peers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub key: String,
}

/// Nodes that have it, in the order in which they are to be tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peers {
    pub peers: Vec<Peer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    pub node: String,
    pub door: Door,
    /// Opens this one entry there, for a while.
    pub token: String,
    pub sum: String,
}
