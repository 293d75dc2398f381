//! The schema and its history: forward only, a backup before each step.
//!
//! Invariant: a database written by a newer version is never touched.

use crate::{Error, engine::sort};
use rusqlite::Connection;
use std::path::Path;

/// The schema this binary writes.
pub const SCHEMA_VERSION: i64 = STEPS.len() as i64;

/// Step `i` leads from schema `i` to `i + 1`.
const STEPS: &[&str] = &[include_str!("schema-1.sql"), include_str!("schema-2.sql"), include_str!("schema-3.sql")];

/// A database larger than this is not read whole at each start.
const CHECKED_WHOLE_BYTES: u64 = 8 << 20;

pub(crate) fn check_and_migrate(on: &Connection, home: &Path, path: &Path) -> Result<(), Error> {
    let found = refuse_newer(on, path)?;
    check(on, home, path)?;
    // The mode is written into the file, so it waits until the file is known to be ours and sound.
    on.pragma_update(None, "journal_mode", "wal").map_err(|error| sort(error.into(), path))?;
    let first = usize::try_from(found).map_err(|_| Error::Decode(format!("schema version {found}")))?;
    if found > 0 && found < SCHEMA_VERSION {
        keep_copy(on, home, found)?;
    }
    for (at, step) in STEPS.iter().enumerate().skip(first) {
        let sql = format!("begin immediate; {step}; pragma user_version = {}; commit", at + 1);
        on.execute_batch(&sql).map_err(|error| sort(error.into(), path))?;
    }
    Ok(())
}

/// The schema of the database, if this binary may write to it.
pub(crate) fn refuse_newer(on: &Connection, path: &Path) -> Result<i64, Error> {
    let found = version(on).map_err(|error| sort(error.into(), path))?;
    match found > SCHEMA_VERSION {
        true => Err(Error::Newer { path: path.to_owned(), found, known: SCHEMA_VERSION }),
        false => Ok(found),
    }
}

fn version(on: &Connection) -> rusqlite::Result<i64> {
    on.query_row("select user_version from pragma_user_version", [], |row| row.get(0))
}

fn check(on: &Connection, home: &Path, path: &Path) -> Result<(), Error> {
    let small = std::fs::metadata(path).is_ok_and(|m| m.len() < CHECKED_WHOLE_BYTES);
    if !small {
        return Ok(());
    }
    let verdict: String =
        on.query_row("pragma quick_check(1)", [], |row| row.get(0)).map_err(|error| sort(error.into(), path))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        _ => Err(Error::Corrupt { path: path.to_owned(), backups: home.join("backups") }),
    }
}

fn keep_copy(on: &Connection, home: &Path, found: i64) -> Result<(), Error> {
    let folder = home.join("backups");
    std::fs::create_dir_all(&folder).map_err(|source| Error::Io {
        what: "make the folder",
        path: folder.clone(),
        source,
    })?;
    let to = folder.join(format!("before-schema-{}.db", found + 1));
    if to.exists() {
        return Ok(());
    }
    on.execute("vacuum into ?1", [to.to_string_lossy()])?;
    Ok(())
}
