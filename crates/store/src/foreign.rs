//! Databases that other programs wrote, opened to be read and never to be changed.
//!
//! Invariant: nothing here writes, not even a journal: a database is opened read-only and left as it was.

pub mod mlflow;

use std::path::PathBuf;

/// Why a foreign database cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    #[error("there is no file `{}`", .path.display())]
    Missing { path: PathBuf },
    #[error("`{}` is not a SQLite database", .path.display())]
    NotSqlite { path: PathBuf },
    #[error("`{}` is not a database of MLflow: it has no table `{table}`", .path.display())]
    NotMlflow { path: PathBuf, table: &'static str },
    #[error("the schema of `{}` (revision `{revision}`) is not known here: it has no `{lacks}`", .path.display())]
    Schema { path: PathBuf, revision: String, lacks: String },
    #[error("cannot read {what} of `{}`", .path.display())]
    Read {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
}
