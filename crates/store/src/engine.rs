//! The engine under the store: one writer thread with group commit, a few reader threads.
//!
//! All writes go through one thread. It takes everything that waits, runs each piece in a savepoint and commits once,
//! so that a hundred callers share one wait for the disk. Readers are few, so that each keeps its pages warm. What
//! SQLite and Postgres do differently is a [`Connection`].
//! Invariant: the answer to a write is sent only after the commit; a commit nobody can be sure of is a failure.

mod migrate;
mod postgres;
mod sqlite;
mod values;

pub use migrate::SCHEMA_VERSION;
pub use postgres::{BadAddress, PostgresAddress};
pub use sqlite::fold_log;
pub use values::{Row, Value};

use crate::{BELLS, Error, Tx, secrets::Keyring};
use postgres::Postgres;
use sqlite::Sqlite;
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

const READERS: usize = 3;

/// A connection to a database, of one writer or one reader. Statements are written once, with `?1` for a value and
/// `in (select value from json_each(?1))` for a list of them.
pub(crate) trait Connection {
    /// Begins a transaction: one that may write, or one that reads a snapshot. A lost connection is made anew.
    fn begin(&mut self) -> Result<(), Error>;
    /// Runs words of our own that take no values and give no rows; with the next statement, if need be.
    fn run(&mut self, words: &str) -> Result<(), Error>;
    /// Ends the transaction; what it did is on disk.
    fn commit(&mut self) -> Result<(), Error>;
    /// Ends the transaction and undoes what it did.
    fn rollback(&mut self) -> Result<(), Error>;
    /// Runs a statement; how many rows it changed.
    fn exec(&mut self, sql: &str, values: &[Value]) -> Result<usize, Error>;
    /// Runs a query; all its rows.
    fn fetch(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Error>;
    /// Gives up to so many unused pages back to the file system; how many bytes that were. Postgres sees to it by itself.
    fn give_back(&mut self, _pages: i64) -> Result<u64, Error> {
        Ok(0)
    }
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Write,
    Read,
}

/// Where the records are kept.
#[derive(Debug, Clone, Default)]
pub enum Database {
    /// A file in the home.
    #[default]
    Sqlite,
    Postgres(PostgresAddress),
}

type Answer = Box<dyn FnOnce(Result<(), Error>) + Send>;
type Piece = Box<dyn FnOnce(Result<&mut Tx<'_>, Error>) -> (bool, Answer) + Send>;
type Look = Box<dyn FnOnce(&mut dyn Connection) + Send>;

/// A handle to the database; cheap to clone.
#[derive(Clone)]
pub struct Engine {
    writer: mpsc::Sender<Piece>,
    readers: Arc<[mpsc::Sender<Look>]>,
    turn: Arc<AtomicUsize>,
    /// The file, where the database is one.
    file: Option<Arc<Path>>,
}

impl Engine {
    pub(crate) fn open(
        home: &Path,
        database: &Database,
        bells: Arc<[watch::Sender<u64>; BELLS]>,
        keyring: Arc<Keyring>,
    ) -> Result<Engine, Error> {
        let file = sqlite::file(home);
        let (write, read): (Opening, Vec<Opening>) = match database {
            Database::Sqlite => {
                let path = file.clone();
                let read = |path: PathBuf| opening(move || Sqlite::connect(&path, Access::Read));
                (opening(move || sqlite::open(&path)), (0..READERS).map(|_| read(file.clone())).collect())
            }
            Database::Postgres(address) => {
                let connect = |access| {
                    let address = address.clone();
                    opening(move || Postgres::connect(&address, access))
                };
                (connect(Access::Write), (0..READERS).map(|_| connect(Access::Read)).collect())
            }
        };
        let writer = start("store-writer", write, move |connection, pieces: mpsc::Receiver<Piece>| {
            write_all(connection, &pieces, &bells, &keyring);
        })?;
        let readers = read.into_iter().enumerate().map(|(n, read)| {
            start(&format!("store-reader-{n}"), read, |connection, looks: mpsc::Receiver<Look>| {
                looks.into_iter().for_each(|look| look_through(connection, look));
            })
        });
        let readers: Arc<[_]> = readers.collect::<Result<Vec<_>, Error>>()?.into();
        let file = matches!(database, Database::Sqlite).then(|| file.into());
        Ok(Engine { writer, readers, turn: Arc::default(), file })
    }

    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
    {
        let (send, receive) = oneshot::channel();
        let piece: Piece = Box::new(move |tx| {
            let result = tx.and_then(work);
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
        let look: Look = Box::new(move |connection| {
            let result = connection.begin().and_then(|()| work(&mut Tx::on(connection, &keyring)));
            let _ = send.send(result);
        });
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.readers[turn % READERS].send(look).map_err(|_| Error::Closed)?;
        receive.await.map_err(|_| Error::Closed)?
    }

    pub(crate) fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Copies the database; `Elsewhere` where that is not ours to do.
    pub(crate) async fn back_up(&self, to: PathBuf) -> Result<(), Error> {
        let file = self.file.clone().ok_or(Error::Elsewhere)?;
        let copied = tokio::task::spawn_blocking(move || sqlite::back_up(&file, &to));
        copied.await.map_err(|_| Error::Closed)?
    }
}

/// Makes a connection, on the thread that will use it.
type Opening = Box<dyn FnOnce() -> Result<Box<dyn Connection>, Error> + Send>;

fn opening<C: Connection + 'static>(open: impl FnOnce() -> Result<C, Error> + Send + 'static) -> Opening {
    Box::new(move || open().map(|connection| Box::new(connection) as Box<dyn Connection>))
}

/// Starts a thread with a connection of its own; returns once the connection stands.
fn start<W: Send + 'static>(
    name: &str,
    open: Opening,
    live: impl FnOnce(&mut dyn Connection, mpsc::Receiver<W>) + Send + 'static,
) -> Result<mpsc::Sender<W>, Error> {
    let (sender, work) = mpsc::channel();
    let (opened, is_open) = mpsc::channel();
    let life = move || match open() {
        Ok(mut connection) => {
            let _ = opened.send(Ok(()));
            live(&mut *connection, work);
        }
        Err(error) => drop(opened.send(Err(error))),
    };
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(life);
    started.map_err(|source| Error::Io { what: "start the thread", path: name.into(), source })?;
    is_open.recv().map_err(|_| Error::Closed)??;
    Ok(sender)
}

/// One read. Its answer is sent before the snapshot is let go; a panic ends it and nothing else.
fn look_through(connection: &mut dyn Connection, look: Look) {
    let looked = panic::catch_unwind(AssertUnwindSafe(|| look(connection)));
    if looked.is_err() || connection.commit().is_err() {
        let _ = connection.rollback();
    }
}

/// The writer's whole life: take what waits, commit it together, answer.
fn write_all(
    connection: &mut dyn Connection,
    pieces: &mpsc::Receiver<Piece>,
    bells: &[watch::Sender<u64>; BELLS],
    keyring: &Keyring,
) {
    while let Ok(first) = pieces.recv() {
        let mut answers = Vec::new();
        let mut rung = [false; BELLS];
        let mut going = connection.begin();
        let mut next = Some(first);
        while let Some(piece) = next {
            going = going.and_then(|()| connection.run("savepoint piece"));
            let mut tx = Tx::on(connection, keyring);
            let given = match &going {
                Ok(()) => Ok(&mut tx),
                Err(error) => Err(error.copy()),
            };
            // Work that panics is undone like work that fails; its caller learns it from the missing answer.
            let done = panic::catch_unwind(AssertUnwindSafe(|| piece(given))).ok();
            let ok = done.as_ref().is_some_and(|(ok, _)| *ok);
            if ok {
                rung.iter_mut().zip(tx.rung).for_each(|(all, one)| *all |= one);
            }
            let end = if ok { "release piece" } else { "rollback to piece; release piece" };
            going = going.and_then(|()| connection.run(end));
            answers.extend(done);
            next = if answers.len() < BATCH { pieces.try_recv().ok() } else { None };
        }
        let committed = going.and_then(|()| connection.commit());
        if committed.is_err() {
            let _ = connection.rollback();
        } else {
            bells.iter().zip(rung).filter(|(_, rung)| *rung).for_each(|(bell, _)| bell.send_modify(|n| *n += 1));
        }
        for (ok, answer) in answers {
            match &committed {
                Err(error) if ok => answer(Err(error.copy())),
                _ => answer(Ok(())),
            }
        }
    }
}
