//! The body of the engine for SQLite: one file in the home, which all connections share.
//!
//! Statements are written as SQLite reads them, so nothing is translated here. Lists are bound as JSON and read by
//! `json_each`. Invariant: nothing is written to a file that a newer version made, or that is damaged.

use super::{Access, Connection, Row, Value, migrate};
use crate::Error;
use rusqlite::{
    ErrorCode, OpenFlags, ToSql,
    config::DbConfig,
    types::{ToSqlOutput, ValueRef},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The database's name in the home.
const FILE: &str = "peregrine.db";

/// A database larger than this is not read whole at each start.
const CHECKED_WHOLE_BYTES: u64 = 8 << 20;

/// A connection to the file.
pub(super) struct Sqlite {
    on: rusqlite::Connection,
    path: Arc<Path>,
    begin: &'static str,
}

/// Where the database of a home lies.
pub(super) fn file(home: &Path) -> PathBuf {
    home.join(FILE)
}

/// Opens (or makes) the database and brings its schema up to date.
pub(super) fn open(path: &Path) -> Result<Sqlite, Error> {
    if path.exists() {
        // Before the first statement that would write to it.
        Sqlite::connect(path, Access::Read)?.refuse_newer()?;
    }
    let writer = Sqlite::connect(path, Access::Write)?;
    writer.migrate()?;
    Ok(writer)
}

/// Copies the database, consistent as of now, into a file that must not exist.
pub(super) fn back_up(path: &Path, to: &Path) -> Result<(), Error> {
    Sqlite::connect(path, Access::Read)?.copy_to(to)
}

/// Folds the write-ahead log of a store nobody writes to any more into its database, so that the file is whole by itself.
pub fn fold_log(home: &Path) -> Result<(), Error> {
    let path = file(home);
    let on = rusqlite::Connection::open(&path).map_err(|error| sort(error, &path))?;
    on.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).map_err(|error| sort(error, &path))
}

impl Connection for Sqlite {
    fn begin(&mut self) -> Result<(), Error> {
        self.run(self.begin)
    }

    fn run(&mut self, words: &str) -> Result<(), Error> {
        self.on.execute_batch(words).map_err(|error| sort(error, &self.path))
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.run("commit")
    }

    fn rollback(&mut self) -> Result<(), Error> {
        self.run("rollback")
    }

    fn exec(&mut self, sql: &str, values: &[Value]) -> Result<usize, Error> {
        let done = self.on.prepare_cached(sql).and_then(|mut statement| statement.execute(bound(values)));
        done.map_err(|error| sort(error, &self.path))
    }

    fn fetch(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        self.rows(sql, values).map_err(|error| sort(error, &self.path))
    }

    fn give_back(&mut self, pages: i64) -> Result<u64, Error> {
        let before = self.number("page_count")?;
        // One row a page: the statement goes on only for as long as it is asked for more.
        self.fetch(&format!("pragma incremental_vacuum({pages})"), &[])?;
        let given = before - self.number("page_count")?;
        Ok(u64::try_from(given * self.number("page_size")?).unwrap_or(0))
    }
}

impl Sqlite {
    pub(super) fn connect(path: &Path, access: Access) -> Result<Sqlite, Error> {
        let (flags, begin) = match access {
            Access::Write => (OpenFlags::default(), "begin immediate"),
            Access::Read => (OpenFlags::SQLITE_OPEN_READ_ONLY, "begin"),
        };
        let open = || -> rusqlite::Result<rusqlite::Connection> {
            let on = rusqlite::Connection::open_with_flags(path, flags)?;
            on.set_prepared_statement_cache_capacity(128);
            // Else statements are compiled anew for every value they are given, which costs more than most of them do.
            on.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            on.busy_timeout(std::time::Duration::from_secs(10))?;
            if access == Access::Write {
                on.pragma_update(None, "synchronous", "full")?;
                on.pragma_update(None, "foreign_keys", "on")?;
            }
            on.pragma_update(None, "temp_store", "memory")?;
            on.pragma_update(None, "cache_size", -4096)?;
            on.pragma_update(None, "case_sensitive_like", "on")?;
            Ok(on)
        };
        match open() {
            Ok(on) => Ok(Sqlite { on, path: path.into(), begin }),
            Err(error) => Err(match sort(error, path) {
                Error::Sql(source) => Error::Open { database: path.display().to_string(), source },
                sorted => sorted,
            }),
        }
    }

    fn rows(&mut self, sql: &str, values: &[Value]) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.on.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(bound(values))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(Row((0..columns).map(|i| row.get_ref(i).map(Value::of)).collect::<Result<_, _>>()?));
        }
        Ok(all)
    }

    fn migrate(&self) -> Result<(), Error> {
        let found = self.refuse_newer()?;
        self.check()?;
        if (1..migrate::SCHEMA_VERSION).contains(&found) {
            self.keep_copy(found)?;
        }
        self.let_shrink()?;
        // The mode is written into the file, so it waits until the file is known to be ours and sound.
        self.tried(self.on.pragma_update(None, "journal_mode", "wal"))?;
        for (version, step) in migrate::steps_after(found)? {
            let sql = format!("begin immediate; {step}; pragma user_version = {version}; commit");
            self.tried(self.on.execute_batch(&sql))?;
        }
        Ok(())
    }

    /// Puts the file into the mode in which it can give pages back. One that has content is written anew for it.
    fn let_shrink(&self) -> Result<(), Error> {
        const ON_DEMAND: i64 = 2;
        if self.number("auto_vacuum")? == ON_DEMAND {
            return Ok(());
        }
        self.tried(self.on.pragma_update(None, "auto_vacuum", ON_DEMAND))?;
        if self.number("page_count")? > 0 { self.tried(self.on.execute_batch("vacuum")) } else { Ok(()) }
    }

    fn number(&self, pragma: &str) -> Result<i64, Error> {
        self.tried(self.on.query_row(&format!("pragma {pragma}"), [], |row| row.get(0)))
    }

    /// The schema of the database, if this binary may write to it.
    fn refuse_newer(&self) -> Result<i64, Error> {
        let version = self.on.query_row("select user_version from pragma_user_version", [], |row| row.get(0));
        migrate::not_newer(self.tried(version)?, &self.path.display().to_string())
    }

    fn check(&self) -> Result<(), Error> {
        if !std::fs::metadata(&self.path).is_ok_and(|file| file.len() < CHECKED_WHOLE_BYTES) {
            return Ok(());
        }
        let verdict: String = self.tried(self.on.query_row("pragma quick_check(1)", [], |row| row.get(0)))?;
        if verdict == "ok" { Ok(()) } else { Err(corrupt(&self.path)) }
    }

    fn keep_copy(&self, found: i64) -> Result<(), Error> {
        let folder = backups(&self.path);
        let made = std::fs::create_dir_all(&folder);
        made.map_err(|source| Error::Io { what: "make the folder", path: folder.clone(), source })?;
        let to = folder.join(format!("before-schema-{}.db", found + 1));
        if to.exists() { Ok(()) } else { self.copy_to(&to) }
    }

    fn copy_to(&self, to: &Path) -> Result<(), Error> {
        self.tried(self.on.execute("vacuum into ?1", [to.to_string_lossy()])).map(drop)
    }

    fn tried<T>(&self, done: rusqlite::Result<T>) -> Result<T, Error> {
        done.map_err(|error| sort(error, &self.path))
    }
}

/// Turns the faults that callers act on into variants of their own.
fn sort(error: rusqlite::Error, path: &Path) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::Full { path: path.to_owned() },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => corrupt(path),
        Some(ErrorCode::ConstraintViolation) => Error::Exists,
        _ => Error::Sql(Arc::new(error)),
    }
}

fn corrupt(path: &Path) -> Error {
    Error::Corrupt { path: path.to_owned(), backups: backups(path) }
}

fn backups(path: &Path) -> PathBuf {
    path.with_file_name("backups")
}

fn bound(values: &[Value]) -> impl rusqlite::Params + '_ {
    rusqlite::params_from_iter(values)
}

impl Value {
    fn of(raw: ValueRef<'_>) -> Value {
        match raw {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(n) => Value::Int(n),
            ValueRef::Real(n) => Value::Real(n),
            ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let json = |list: serde_json::Value| rusqlite::types::Value::Text(list.to_string());
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(n) => ValueRef::Integer(*n),
            Value::Real(n) => ValueRef::Real(*n),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
            Value::Ints(list) => return Ok(ToSqlOutput::Owned(json(list.clone().into()))),
            Value::Texts(list) => return Ok(ToSqlOutput::Owned(json(list.clone().into()))),
        }))
    }
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
            ('w', 'waits', '{"displayName":"shown","tags":{"team":"a","none":null},"inputs":{"lr":{"value":"0.1"},"d":{"uri":"u"}}}', '{}', '{"is":"queued","since":10}', 'queued', 'Queued', 'Command', 'Default', 'local', 1, 1, 0, 0, 2, 0, 'me', 10, 10),
            ('w', 'runs', '{}', '{}', '{"is":"running","attempt":"a","since":30}', 'running', 'Running', 'Command', 'x', 'local', 1, 1, 0, 0, 2, 0, 'me', 20, 30),
            ('w', 'ended', '{"tags":null,"inputs":{"flag":{"value":true}}}', '{}', '{"is":"ended","outcome":{"how":"completed"},"at":50,"started_at":40}', 'ended', 'Completed', 'Command', 'x', 'local', 1, 1, 0, 1, 2, 0, 'me', 35, 50);
    "#;

    fn migrated(query: &str) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        let path = file(home.path());
        let old = Sqlite::connect(&path, Access::Write).unwrap();
        migrate::steps_after(0).unwrap().take(2).for_each(|(_, step)| old.on.execute_batch(step).unwrap());
        old.on.execute_batch(&format!("{BEFORE} pragma user_version = 2;")).unwrap();
        let on = open(&path).unwrap().on;
        let mut statement = on.prepare(query).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap);
        rows.collect()
    }

    #[test]
    fn jobs_that_were_there_become_runs() {
        let rows = migrated(
            "select r.run_id || ' ' || e.number || ' ' || r.status || ' ' || r.started_at || ' ' || \
             coalesce(r.ended_at, '-') || ' ' || coalesce(r.deleted_at, '-') \
             from runs r join experiments e on e.seq = r.experiment order by r.seq",
        );
        assert_eq!(rows, ["waits 0 SCHEDULED 10 - -", "runs 1 RUNNING 30 - -", "ended 1 FINISHED 40 50 50"]);
    }

    #[test]
    fn a_file_from_before_can_give_pages_back_too() {
        assert_eq!(migrated("select cast(auto_vacuum as text) from pragma_auto_vacuum"), ["2"]);
    }

    #[test]
    fn jobs_that_were_there_are_found_by_their_labels() {
        let rows = migrated(
            "select j.name || ' ' || l.kind || ' ' || l.key || '=' || l.value \
             from job_labels l join jobs j on j.seq = l.job_seq order by l.job_seq, l.kind, l.key",
        );
        assert_eq!(rows, ["waits name =shown", "waits param lr=0.1", "waits tag team=a", "ended param flag=True"]);
    }
}
