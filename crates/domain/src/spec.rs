//! The files users write, as types: the same names and shapes as their YAML.
//!
//! A file is read raw ([`yaml`]), compared with the table of keys for its noun ([`shape`]), checked for
//! sense ([`check`]) and only then becomes one of these types. Mistakes are collected, never thrown at the first.
//! Serialised, a spec is what `show` prints.

pub mod check;
pub mod expression;
pub mod nouns;
pub mod routes;
pub mod shape;
pub mod sweep;
pub mod yaml;

pub use check::cannot_run;
pub use nouns::*;
pub use routes::Routes;
pub use sweep::Sweep;

use serde::{Deserialize, Serialize};

/// Something wrong in a file: where, what, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mistake {
    /// The file as the user named it; empty when the spec came over the wire.
    pub file: String,
    /// From 1; 0 when unknown.
    pub line: usize,
    pub column: usize,
    /// The key's path, such as `inputs.data.mode`.
    pub key: String,
    pub message: String,
    /// The next step; may be empty.
    pub fix: String,
}

impl Mistake {
    pub fn new(key: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Mistake {
        Mistake { file: String::new(), line: 0, column: 0, key: key.into(), message: message.into(), fix: fix.into() }
    }
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
        }
        if self.line > 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        } else if !self.file.is_empty() {
            write!(f, " ")?;
        }
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        write!(f, "{}", self.message)?;
        if !self.fix.is_empty() {
            write!(f, " ({})", self.fix)?;
        }
        Ok(())
    }
}
