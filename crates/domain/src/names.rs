//! Ids and names. Each is a type of its own, so that one cannot stand where another is meant.
//!
//! Invariant: a value exists only if its text passed the noun's rule.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A text that breaks a noun's naming rule, with the rule in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {noun} name: {rule}")]
pub struct BadName {
    pub noun: &'static str,
    pub text: String,
    pub rule: &'static str,
}

/// Declares a text newtype with a check; the check is the only way in.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $noun:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, BadName> {
                let check: fn(&str) -> bool = $check;
                match check(text) {
                    true => Ok(Self(text.to_owned())),
                    false => Err(BadName { noun: $noun, text: clip(text), rule: $rule }),
                }
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl TryFrom<String> for $name {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                Self::parse(&text)
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

id!(
    /// A job's name: unique in its workspace, chosen by the user or generated.
    JobName, "job", "1 to 255 letters, digits, `-` and `_`, starting with a letter or digit",
    |t| t.len() <= 255 && starts_alphanumeric(t) && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
);
id!(
    /// The name of a data, model, environment, component or code asset.
    AssetName, "asset", "1 to 255 letters, digits, `-`, `_` and `.`, starting with a letter or digit",
    |t| t.len() <= 255 && starts_alphanumeric(t) && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
);
id!(
    /// An asset version: chosen by the user or counted up from 1.
    Version, "version", "1 to 100 letters, digits, `-`, `_`, `.` and `:`",
    |t| !t.is_empty() && t.len() <= 100 && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
        && t != "." && t != ".."
);
id!(
    /// A datastore's name.
    DatastoreName, "datastore", "1 to 255 letters, digits, `-` and `_`, starting with a letter or digit",
    |t| t.len() <= 255 && starts_alphanumeric(t) && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
);
id!(
    /// A compute target's name.
    ComputeName, "compute", "2 to 32 letters, digits and `-`, starting with a letter",
    |t| (2..=32).contains(&t.len()) && t.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
);
id!(
    /// A workspace's name: the unit of sharing, permission and quota.
    WorkspaceName, "workspace", "2 to 33 letters, digits, `-` and `_`, starting with a letter or digit",
    |t| (2..=33).contains(&t.len()) && starts_alphanumeric(t)
        && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
);
id!(
    /// A team's name in its workspace.
    TeamName, "team", "1 to 64 letters, digits, `-`, `_` and `.`, starting with a letter or digit",
    |t| t.len() <= 64 && starts_alphanumeric(t) && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
);
id!(
    /// An online or batch endpoint's name; part of its address.
    EndpointName, "endpoint", "3 to 32 letters, digits and `-`, starting with a letter",
    |t| (3..=32).contains(&t.len()) && t.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
);
id!(
    /// The name of a deployment under an endpoint.
    DeploymentName, "deployment", "3 to 32 letters, digits and `-`, starting with a letter",
    |t| (3..=32).contains(&t.len()) && t.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
);
id!(
    /// A schedule's name.
    ScheduleName, "schedule", "1 to 255 letters, digits, `-`, `_` and `.`, starting with a letter or digit",
    |t| t.len() <= 255 && starts_alphanumeric(t) && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
);
id!(
    /// A registry's name: where workspaces share assets.
    RegistryName, "registry", "2 to 33 letters, digits, `-` and `_`, starting with a letter or digit",
    |t| (2..=33).contains(&t.len()) && starts_alphanumeric(t)
        && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
);
id!(
    /// A Kubernetes cluster that is known to this server.
    ClusterName, "cluster", "1 to 63 letters, digits, `-`, `_` and `.`, starting with a letter or digit",
    |t| t.len() <= 63 && starts_alphanumeric(t) && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
);
id!(
    /// One try at a job, unique on a server: `att_<job sequence>_<number>`.
    AttemptId, "attempt", "`att_<sequence>_<number>`",
    |t| t.strip_prefix("att_").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'_'))
);
id!(
    /// One machine that runs work.
    NodeId, "node", "1 to 253 letters, digits, `-`, `_` and `.`",
    |t| !t.is_empty() && t.len() <= 253 && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
);

impl AttemptId {
    /// The id of try `number` (from 0) at the job with this sequence number.
    pub fn of(job_seq: i64, number: u32) -> AttemptId {
        AttemptId(format!("att_{job_seq}_{number}"))
    }

    /// The job's sequence number and the try's number.
    pub fn parts(&self) -> Option<(i64, u32)> {
        let (seq, number) = self.0.strip_prefix("att_")?.split_once('_')?;
        Some((seq.parse().ok()?, number.parse().ok()?))
    }
}

fn starts_alphanumeric(text: &str) -> bool {
    text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
}

/// Long or odd text, made fit to stand in a message.
fn clip(text: &str) -> String {
    let clean: String = text.chars().filter(|c| !c.is_control()).collect();
    match clean.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &clean[..at]),
        None => clean,
    }
}

const ADJECTIVES: [&str; 48] = [
    "amber", "ample", "azure", "bold", "brave", "bright", "brisk", "calm", "clever", "coral", "crisp", "dapper",
    "eager", "fair", "fleet", "gentle", "golden", "good", "grand", "happy", "hardy", "honest", "jolly", "keen", "kind",
    "lively", "loyal", "lucid", "mellow", "merry", "mighty", "neat", "nimble", "noble", "patient", "placid", "plucky",
    "polite", "proud", "quiet", "quick", "serene", "sharp", "steady", "sunny", "swift", "tidy", "witty",
];
const NOUNS: [&str; 48] = [
    "acorn", "apple", "arrow", "basin", "beach", "bell", "birch", "brook", "cable", "cedar", "cliff", "cloud", "comet",
    "crane", "delta", "eagle", "falcon", "fern", "field", "finch", "garden", "glade", "harbor", "heron", "island",
    "kettle", "lake", "lantern", "leaf", "lemon", "maple", "meadow", "moon", "nest", "oak", "orbit", "peach", "pebble",
    "pine", "plume", "river", "sail", "shore", "spruce", "stone", "tower", "valley", "willow",
];

/// A friendly name, `adjective_noun_` and ten letters or digits, from ten random bytes of the caller's.
pub fn friendly(random: [u8; 12]) -> JobName {
    const TAIL: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let tail: String = random[2..].iter().map(|b| char::from(TAIL[usize::from(b % 32)])).collect();
    let adjective = ADJECTIVES[usize::from(random[0]) % ADJECTIVES.len()];
    let noun = NOUNS[usize::from(random[1]) % NOUNS.len()];
    JobName(format!("{adjective}_{noun}_{tail}"))
}

/// A friendly name for a run that was given none: `adjective-noun-` and a number up to 999.
pub fn run_name(random: [u8; 4]) -> String {
    let adjective = ADJECTIVES[usize::from(random[0]) % ADJECTIVES.len()];
    let noun = NOUNS[usize::from(random[1]) % NOUNS.len()];
    format!("{adjective}-{noun}-{}", u16::from_be_bytes([random[2], random[3]]) % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_nouns_rule() {
        for good in ["a", "train_1", "0x", "honest_rhubarb_6n9prwc3hn"] {
            assert!(JobName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "_a", "a/b", "a b", "../x", "ü", &"a".repeat(256)] {
            assert!(JobName::parse(bad).is_err(), "{bad}");
        }
        assert!(Version::parse("..").is_err());
        assert!(ComputeName::parse("local").is_ok());
    }

    #[test]
    fn an_attempt_id_tells_its_job_and_number() {
        assert_eq!(AttemptId::of(17, 2).parts(), Some((17, 2)));
        assert!(AttemptId::parse("att_../x").is_err());
    }

    #[test]
    fn friendly_names_are_valid_job_names() {
        let name = friendly([255; 12]);
        assert!(JobName::parse(name.as_str()).is_ok(), "{name}");
    }
}
