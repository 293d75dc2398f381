//! The schema and its history: forward only, a backup before each step.
//!
//! Invariant: a database written by a newer version is never touched.

use crate::{Error, engine::sort};
use rusqlite::Connection;
use std::path::Path;

/// The schema this binary writes.
pub const SCHEMA_VERSION: i64 = STEPS.len() as i64;

/// Step `i` leads from schema `i` to `i + 1`.
const STEPS: &[&str] = &[
    include_str!("schema-1.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
];

/// A database larger than this is not read whole at each start.
const CHECKED_WHOLE_BYTES: u64 = 8 << 20;

pub(crate) fn check_and_migrate(on: &Connection, home: &Path, path: &Path) -> Result<(), Error> {
    let found = refuse_newer(on, path)?;
    check(on, home, path)?;
    let first = usize::try_from(found).map_err(|_| Error::Decode(format!("schema version {found}")))?;
    if found > 0 && found < SCHEMA_VERSION {
        keep_copy(on, home, found)?;
    }
    super::shrink::prepare(on).map_err(|error| sort(error.into(), path))?;
    // The mode is written into the file, so it waits until the file is known to be ours and sound.
    on.pragma_update(None, "journal_mode", "wal").map_err(|error| sort(error.into(), path))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A database of schema 2 with a workspace and jobs in several states.
    const BEFORE: &str = r#"
        insert into workspaces (name, id, subscription, resource_group, body, created_at, changed_at)
            values ('w', 'i', 's', 'g', '{}', 5, 5);
        insert into jobs (workspace, name, body, plan, state, phase, status, kind, experiment, target, cpu_milli,
            memory_bytes, gpus, archived, priority, max_retries, created_by, created_at, changed_at) values
            ('w', 'waits', '{}', '{}', '{"is":"queued","since":10}', 'queued', 'Queued', 'Command', 'Default', 'local', 1, 1, 0, 0, 2, 0, 'me', 10, 10),
            ('w', 'runs', '{}', '{}', '{"is":"running","attempt":"a","since":30}', 'running', 'Running', 'Command', 'x', 'local', 1, 1, 0, 0, 2, 0, 'me', 20, 30),
            ('w', 'ended', '{}', '{}', '{"is":"ended","outcome":{"how":"completed"},"at":50,"started_at":40}', 'ended', 'Completed', 'Command', 'x', 'local', 1, 1, 0, 1, 2, 0, 'me', 35, 50);
    "#;

    #[test]
    fn jobs_that_were_there_become_runs() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("peregrine.db");
        let on = Connection::open(&path).unwrap();
        STEPS[..2].iter().for_each(|step| on.execute_batch(step).unwrap());
        on.execute_batch(&format!("{BEFORE} pragma user_version = 2;")).unwrap();
        check_and_migrate(&on, home.path(), &path).unwrap();
        let mode: i64 = on.query_row("pragma auto_vacuum", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, 2, "a file from before can give pages back too");
        let sql = "select r.run_id || ' ' || e.number || ' ' || r.status || ' ' || r.started_at || ' ' || \
                   coalesce(r.ended_at, '-') || ' ' || coalesce(r.deleted_at, '-') \
                   from runs r join experiments e on e.seq = r.experiment order by r.seq";
        let mut statement = on.prepare(sql).unwrap();
        let rows: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows, ["waits 0 SCHEDULED 10 - -", "runs 1 RUNNING 30 - -", "ended 1 FINISHED 40 50 50"]);
    }
}
