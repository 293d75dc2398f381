//! The engine under the store: one writer thread with group commit, a few reader threads.
//!
//! SQLite wants a single writer, so all writes go through one thread. It takes everything that waits,
//! runs each piece in a savepoint and commits once. Readers are few, so that each keeps its pages warm.
//! Invariant: the answer to a write is sent only after the commit.

mod migrate;
mod shrink;
mod values;

pub use migrate::SCHEMA_VERSION;
pub use values::{Row, Value};

use crate::{BELLS, Error, Tx, secrets::Keyring};
use rusqlite::{Connection, OpenFlags};
use std::{
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};
use tokio::sync::{oneshot, watch};

/// How many pieces of work share one commit at most.
const BATCH: usize = 512;

type Answer = Box<dyn FnOnce(Result<(), Error>) + Send>;
type Piece = Box<dyn FnOnce(&mut Tx<'_>) -> (bool, Answer) + Send>;
type Look = Box<dyn FnOnce(&Connection) + Send>;

const READERS: usize = 3;

/// A handle to the database; cheap to clone.
#[derive(Clone)]
pub struct Engine {
    writer: mpsc::Sender<Piece>,
    readers: Arc<[mpsc::Sender<Look>]>,
    turn: Arc<AtomicUsize>,
    path: Arc<Path>,
}

impl Engine {
    pub(crate) fn open(
        home: &Path,
        bells: Arc<[watch::Sender<u64>; BELLS]>,
        keyring: Arc<Keyring>,
    ) -> Result<Engine, Error> {
        let path: PathBuf = home.join("peregrine.db");
        if path.exists() {
            // Before the first statement that would write to it.
            migrate::refuse_newer(&connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?, &path)?;
        }
        let writer = connect(&path, OpenFlags::default())?;
        migrate::check_and_migrate(&writer, home, &path)?;
        let (sender, pieces) = mpsc::channel::<Piece>();
        let db = path.clone();
        std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || write_all(writer, &pieces, &bells, &keyring, &db))
            .map_err(|source| Error::Io { what: "start a thread for", path: path.clone(), source })?;
        let readers = (0..READERS).map(|n| start_reader(n, &path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Engine { writer: sender, readers: readers.into(), turn: Arc::default(), path: path.into() })
    }

    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
    {
        let (send, receive) = oneshot::channel();
        let piece: Piece = Box::new(move |tx| {
            let result = work(tx);
            let ok = result.is_ok();
            let answer: Answer = Box::new(move |committed| {
                // The caller may have gone away; its work stands all the same.
                let _ = send.send(committed.and(result));
            });
            (ok, answer)
        });
        self.writer.send(piece).map_err(|_| Error::Closed)?;
        receive.await.map_err(|_| Error::Closed)?
    }

    pub(crate) async fn read<T, F>(&self, work: F, keyring: Arc<Keyring>) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
    {
        let (send, receive) = oneshot::channel();
        let path = Arc::clone(&self.path);
        let look: Look = Box::new(move |connection| {
            let result = in_snapshot(connection, &keyring, work).map_err(|error| sort(error, &path));
            let _ = send.send(result);
        });
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.readers[turn % READERS].send(look).map_err(|_| Error::Closed)?;
        receive.await.map_err(|_| Error::Closed)?
    }

    pub(crate) async fn backup(&self, to: PathBuf) -> Result<(), Error> {
        let path = Arc::clone(&self.path);
        let copy = move || -> Result<(), Error> {
            let from = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            from.execute("vacuum into ?1", [to.to_string_lossy()])?;
            Ok(())
        };
        tokio::task::spawn_blocking(copy).await.map_err(|_| Error::Closed)?
    }
}

fn start_reader(n: usize, path: &Path) -> Result<mpsc::Sender<Look>, Error> {
    let (sender, looks) = mpsc::channel::<Look>();
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    std::thread::Builder::new()
        .name(format!("store-reader-{n}"))
        .spawn(move || looks.into_iter().for_each(|look| look(&connection)))
        .map_err(|source| Error::Io { what: "start a thread for", path: path.to_owned(), source })?;
    Ok(sender)
}

fn in_snapshot<T>(
    connection: &Connection,
    keyring: &Keyring,
    work: impl FnOnce(&mut Tx<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    connection.execute_batch("begin")?;
    let result = work(&mut Tx { on: connection, rung: [false; BELLS], keyring });
    connection.execute_batch("commit")?;
    result
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_prepared_statement_cache_capacity(128);
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        if !flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) {
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_update(None, "foreign_keys", "on")?;
        }
        connection.pragma_update(None, "temp_store", "memory")?;
        connection.pragma_update(None, "cache_size", -4096)?;
        Ok(connection)
    };
    open().map_err(|source| sort(Error::Open { path: path.to_owned(), source }, path))
}

/// The writer's whole life: take what waits, commit it together, answer.
fn write_all(
    connection: Connection,
    pieces: &mpsc::Receiver<Piece>,
    bells: &[watch::Sender<u64>; BELLS],
    keyring: &Keyring,
    path: &Path,
) {
    while let Ok(first) = pieces.recv() {
        let mut answers = Vec::new();
        let mut rung = [false; BELLS];
        let mut begun = connection.execute_batch("begin immediate");
        let mut next = Some(first);
        while let Some(piece) = next {
            let mut tx = Tx { on: &connection, rung: [false; BELLS], keyring };
            if begun.is_ok() {
                begun = connection.execute_batch("savepoint piece");
            }
            // Work that panics is undone like work that fails; its caller learns it from the missing answer.
            let done = panic::catch_unwind(AssertUnwindSafe(|| piece(&mut tx))).ok();
            let ok = done.as_ref().is_some_and(|(ok, _)| *ok);
            if begun.is_ok() {
                let end = if ok { "release piece" } else { "rollback to piece; release piece" };
                begun = connection.execute_batch(end);
                if ok {
                    rung.iter_mut().zip(tx.rung).for_each(|(all, one)| *all |= one);
                }
            }
            answers.extend(done);
            next = if answers.len() < BATCH { pieces.try_recv().ok() } else { None };
        }
        let committed = begun.and_then(|()| connection.execute_batch("commit"));
        if committed.is_err() && !connection.is_autocommit() {
            let _ = connection.execute_batch("rollback");
        }
        if committed.is_ok() {
            bells.iter().zip(rung).filter(|(_, rung)| *rung).for_each(|(bell, _)| bell.send_modify(|n| *n += 1));
        }
        for (ok, answer) in answers {
            match &committed {
                Err(error) if ok => answer(Err(sort(Error::Sql(copy(error)), path))),
                _ => answer(Ok(())),
            }
        }
    }
}

/// A statement's error can be told to only one caller; the others get its code.
fn copy(error: &rusqlite::Error) -> rusqlite::Error {
    match error.sqlite_error() {
        Some(code) => rusqlite::Error::SqliteFailure(*code, Some(error.to_string())),
        None => rusqlite::Error::InvalidQuery,
    }
}

/// Turns the faults that callers act on into variants of their own.
pub(crate) fn sort(error: Error, path: &Path) -> Error {
    use rusqlite::ErrorCode as Code;
    let sql = match &error {
        Error::Sql(sql) | Error::Open { source: sql, .. } => sql,
        _ => return error,
    };
    match sql.sqlite_error_code() {
        Some(Code::DiskFull) => Error::Full { path: path.to_owned() },
        Some(Code::DatabaseCorrupt | Code::NotADatabase) => {
            Error::Corrupt { path: path.to_owned(), backups: path.parent().unwrap_or(Path::new(".")).join("backups") }
        }
        Some(Code::ConstraintViolation) => Error::Exists,
        _ => error,
    }
}
