//! What someone may do in a workspace.
//!
//! Invariant: roles are ordered, and a higher one may do all that a lower one may.

use serde::{Deserialize, Serialize};

/// A role in a workspace, or in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks at everything but secrets.
    Reader,
    /// Submits work and changes what the workspace holds.
    Contributor,
    /// Changes the workspace itself, who is in it, and reads its audit.
    Owner,
}

/// The workspace name that stands for every workspace and for the server itself.
pub const EVERYWHERE: &str = "*";

/// How a principal's own token begins; its id, a dot and its secret follow.
pub const OWN_TOKEN: &str = "pgn.";

/// Whom tokens are made for that open endpoints: the name that clients derive from this cloud's, and the one that they
/// write whatever the cloud.
pub const SCORING: [&str; 2] = ["https://ml.azure.local", "https://ml.azure.com"];

impl Role {
    pub const ALL: [Role; 3] = [Role::Reader, Role::Contributor, Role::Owner];

    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str().eq_ignore_ascii_case(text))
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Reader => "reader",
            Role::Contributor => "contributor",
            Role::Owner => "owner",
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_role_is_greater_and_words_go_both_ways() {
        assert!(Role::Owner > Role::Contributor && Role::Contributor > Role::Reader);
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!(Role::parse("OWNER"), Some(Role::Owner));
        assert_eq!(Role::parse("admin"), None);
    }
}
