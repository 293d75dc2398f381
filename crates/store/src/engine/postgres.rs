//! The body of the engine for Postgres: a session for the writer and one for each reader.
//!
//! The writer's session holds an advisory lock for as long as it lives, so that a database has one server, and a
//! server that lost its session writes nothing until it has the lock again. Words that begin and end pieces of work are
//! sent together with the statement that follows them, which spares a wait each.
//! Invariants: only `begin` makes a lost session anew, so no statement ever runs outside of its transaction; a database
//! that another server has used meanwhile is given up.

mod address;
mod dialect;

pub use address::{BadAddress, PostgresAddress};

use super::{Access, Connection, Row, Value, migrate};
use crate::{Cause, Error};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    runtime::{Builder, Runtime},
    task::yield_now,
    time::{Instant, sleep},
};
use tokio_postgres::{Client, Statement, error::SqlState, types::ToSql};

/// How long a server that was just killed may take to lose its session.
const FREE_WITHIN: Duration = Duration::from_secs(5);
/// The pause after an attempt to connect that failed; it doubles up to the other.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// No database in Postgres is older. What steps up to it say of rows is said to SQLite alone.
const FIRST_SCHEMA: i64 = 4;
/// How many statements a session keeps ready.
const STATEMENTS: usize = 256;

/// What the lock of a database is known by to all versions.
const LOCK: &str = "select pg_try_advisory_lock(7809644666444607074)";

/// Says what every session needs, whatever the defaults of the database are: a commit is answered when it is on disk,
/// a client that is gone is noticed, and short statements are not compiled.
const MANNERS: &str = "set client_min_messages = warning; set jit = off; \
    set tcp_keepalives_idle = 15; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3; \
    select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'";

/// The version of the schema, and how many servers have been started on the database.
const ABOUT: &str = "create table peregrine_database (schema_version bigint not null, servers bigint not null); \
                     insert into peregrine_database values (0, 0);";

/// A connection that is made anew when it is lost.
pub(super) struct Postgres {
    runtime: Runtime,
    address: PostgresAddress,
    access: Access,
    session: Option<Session>,
    /// Which of the servers that were ever started on the database this is.
    server: Option<i64>,
    pause: Duration,
    not_before: Option<Instant>,
}

struct Session {
    client: Client,
    statements: HashMap<String, Statement>,
    /// Words that go out with the next statement.
    waiting: String,
}

impl Connection for Postgres {
    fn begin(&mut self) -> Result<(), Error> {
        self.revive()?;
        self.run(match self.access {
            Access::Write => "begin isolation level read committed read write",
            Access::Read => "begin isolation level repeatable read read only",
        })
    }

    fn run(&mut self, words: &str) -> Result<(), Error> {
        let Some(session) = &mut self.session else { return Err(self.lost()) };
        session.waiting.push_str(words);
        session.waiting.push(';');
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Error> {
        self.run("commit")?;
        self.with(async |session| session.flush().await)
    }

    fn rollback(&mut self) -> Result<(), Error> {
        self.run("rollback")?;
        let done = self.with(async |session| session.flush().await);
        // A session whose state is not known is not used again.
        done.inspect_err(|_| self.session = None)
    }

    fn exec(&mut self, sql: &str, values: &[Value]) -> Result<usize, Error> {
        let changed = self.with(async |session| {
            let statement = session.prepared(sql).await?;
            let words = session.words();
            let (said, changed) = tokio::join!(
                biased;
                session.say(&words),
                session.client.execute_raw(&statement, values)
            );
            said.and(changed)
        })?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn fetch(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error> {
        let rows: Vec<Vec<Value>> = self.with(async |session| {
            let statement = session.prepared(sql).await?;
            let words = session.words();
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
            let (said, rows) = tokio::join!(
                biased;
                session.say(&words),
                session.client.query(&statement, &values)
            );
            said.and(rows)?.iter().map(|row| (0..row.len()).map(|at| row.try_get(at)).collect()).collect()
        })?;
        Ok(rows.into_iter().map(Row).collect())
    }
}

impl Postgres {
    /// Connects. The writer waits until no other server has the database, and brings its schema up to date.
    pub(super) fn connect(address: &PostgresAddress, access: Access) -> Result<Postgres, Error> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| Error::Io { what: "start", path: "a runtime".into(), source })?;
        let address = address.clone();
        let mut this =
            Postgres { runtime, address, access, session: None, server: None, pause: FIRST_PAUSE, not_before: None };
        let deadline = Instant::now() + FREE_WITHIN;
        loop {
            match this.open() {
                Err(Error::Taken { .. }) if Instant::now() < deadline => {
                    this.runtime.block_on(async { sleep(FIRST_PAUSE).await });
                }
                done => return done.map(|()| this),
            }
        }
    }

    /// Makes a session where there is none. After a failure nothing is tried for a while, so that callers are not kept.
    fn revive(&mut self) -> Result<(), Error> {
        if let Some(session) = &self.session {
            // Sessions are looked after only while they are used: what happened since is seen now.
            self.runtime.block_on(async {
                for _ in 0..3 {
                    yield_now().await;
                }
            });
            if !session.client.is_closed() {
                return Ok(());
            }
            self.session = None;
        }
        if self.not_before.is_some_and(|at| Instant::now() < at) {
            return Err(self.lost());
        }
        match self.open() {
            Ok(()) => {
                tracing::info!(database = %self.address, "the database answers again");
                (self.pause, self.not_before) = (FIRST_PAUSE, None);
                Ok(())
            }
            Err(error) => {
                tracing::warn!(database = %self.address, error = &error as &dyn std::error::Error, "no session with the database");
                self.not_before = Some(Instant::now() + self.pause);
                self.pause = (self.pause * 2).min(LAST_PAUSE);
                Err(error)
            }
        }
    }

    fn open(&mut self) -> Result<(), Error> {
        let tls = self.address.tls()?;
        let opened = self.runtime.block_on(async {
            let (client, connection) = self.address.config().connect(tls).await?;
            // It ends with the client, and is driven whenever the client waits.
            drop(self.runtime.spawn(connection));
            client.batch_execute(MANNERS).await?;
            Ok(Session { client, statements: HashMap::new(), waiting: String::new() })
        });
        self.session = Some(opened.map_err(|error| self.cannot_open(error))?);
        let usable = match self.access {
            Access::Write => self.take(),
            Access::Read => Ok(()),
        };
        usable.inspect_err(|_| self.session = None)
    }

    /// Makes the database this server's own.
    fn take(&mut self) -> Result<(), Error> {
        let taken = Error::Taken { database: self.address.to_string() };
        if self.number(LOCK)? != Some(1) {
            return Err(taken);
        }
        if self.number("select current_setting('server_encoding') = 'UTF8'")? != Some(1) {
            let source: Cause = Arc::from(Box::<dyn std::error::Error + Send + Sync>::from("its encoding is not UTF8"));
            return Err(Error::Open { database: self.address.to_string(), source });
        }
        if let Some(server) = self.server {
            let last = self.number("select servers from peregrine_database")?;
            return if last == Some(server) { Ok(()) } else { Err(taken) };
        }
        self.migrate()?;
        self.server = self.number("update peregrine_database set servers = servers + 1 returning servers")?;
        Ok(())
    }

    fn migrate(&mut self) -> Result<(), Error> {
        let known = self.number("select to_regclass('peregrine_database') is not null")? == Some(1);
        let found = match known {
            true => self.number("select schema_version from peregrine_database")?.unwrap_or(0),
            false => 0,
        };
        let found = migrate::not_newer(found, &self.address.to_string())?;
        let mut words = if known { String::new() } else { ABOUT.to_owned() };
        for (version, step) in migrate::steps_after(found)? {
            let step = dialect::schema(step);
            words += &if version <= FIRST_SCHEMA { dialect::without_rows(&step) } else { step };
            words += &format!("; update peregrine_database set schema_version = {version};");
        }
        self.with(async |session| session.say(&format!("begin; {words} commit")).await)
    }

    /// The one number a query gives.
    fn number(&mut self, sql: &str) -> Result<Option<i64>, Error> {
        self.fetch(sql, &[])?.into_iter().next().map(|mut row| row.int(0)).transpose()
    }

    fn with<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Session) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, Error> {
        let Some(session) = &mut self.session else { return Err(self.lost()) };
        let done = self.runtime.block_on(work(session));
        done.map_err(|error| self.sort(error))
    }

    /// Turns the faults that callers act on into variants of their own.
    fn sort(&mut self, error: tokio_postgres::Error) -> Error {
        let code = error.code().cloned();
        let closed = self.session.as_ref().is_none_or(|session| session.client.is_closed()) || error.is_closed();
        match &code {
            Some(code) if code.code().starts_with("23") => Error::Exists,
            Some(code) if code.code().starts_with("40") => Error::Conflict,
            Some(code) if *code == SqlState::DISK_FULL => Error::Full { path: self.address.to_string().into() },
            code if closed || code.as_ref().is_some_and(is_over) => {
                self.session = None;
                Error::Unreachable { database: self.address.to_string(), source: Arc::new(error) }
            }
            _ => Error::Sql(Arc::new(error)),
        }
    }

    fn cannot_open(&self, error: tokio_postgres::Error) -> Error {
        let (database, answered) = (self.address.to_string(), error.code().is_some_and(|code| !is_over(code)));
        let source: Cause = Arc::new(error);
        match answered {
            true => Error::Open { database, source },
            false => Error::Unreachable { database, source },
        }
    }

    /// What is said while there is no session.
    fn lost(&self) -> Error {
        let source: Cause = Arc::new(std::io::Error::from(std::io::ErrorKind::NotConnected));
        Error::Unreachable { database: self.address.to_string(), source }
    }
}

impl Session {
    /// The statement in the words of Postgres, prepared once.
    async fn prepared(&mut self, sql: &str) -> Result<Statement, tokio_postgres::Error> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        self.flush().await?;
        let statement = self.client.prepare(&dialect::statement(sql)).await?;
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn words(&mut self) -> String {
        std::mem::take(&mut self.waiting)
    }

    async fn flush(&mut self) -> Result<(), tokio_postgres::Error> {
        let words = self.words();
        self.say(&words).await
    }

    async fn say(&self, words: &str) -> Result<(), tokio_postgres::Error> {
        if words.is_empty() { Ok(()) } else { self.client.batch_execute(words).await }
    }
}

/// Whether this answer means that the session, or the server as it was, is no more.
fn is_over(code: &SqlState) -> bool {
    let word = code.code();
    word.starts_with("08") || word.starts_with("57P") || word == "25006" || word == "53300"
}
