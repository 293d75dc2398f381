//! The only SQL in the house, and the files of logs and artifacts.
//!
//! Work on the database is a closure over a [`Tx`]. Writes run one after another on the engine's writer,
//! many to a commit, so that a hundred callers share one `fsync`; a closure that fails is undone alone.
//! Invariants: `write` returns only after its change is on disk; a change and the event that explains it
//! are one transaction; no closure waits for the network.

mod engine;
pub mod files;
pub mod foreign;
mod retention;
pub mod secrets;
pub mod tables;

pub use engine::{BadAddress, Database, Engine, PostgresAddress, Row, SCHEMA_VERSION, Value, fold_log};
pub use retention::Freed;
pub use tables::{
    Act, AssetKey, AssetRow, AuditRow, Child, ChildOf, Choice, ClusterRow, ComputeRow, DEFAULT_EXPERIMENT,
    DatastoreRow, DeliveryRow, EventRow, ExperimentRow, HERE, HeldRow, HolderJob, InUse, JobFilter, JobPage, JobRow,
    Latest, LoggedModelRow, MachinePart, MachineRow, ModelPoint, NOWHERE, NewJob, NewRun, NodeRow, OperationRow,
    POOLED, PrincipalRow, Purged, QueuedJob, REPLICA, RecordFilter, RecordKey, RecordRow, ReplicaRow, RunCount,
    RunInput, RunModel, RunPlace, RunQuery, RunRow, ScheduleEvent, ScheduleRow, ScheduleRun, ServingKey, ServingRow,
    Since, Stopped, TargetRow, TargetState, Texts, Used, UserRow, VersionFilter, WorkspaceRow, acting, digest_of,
    site_name,
};

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::watch;

/// Why a statement or a connection failed; told to everyone whose work was in it.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Something a caller acts on differently.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("someone else changed it first")]
    Conflict,
    #[error("it exists already")]
    Exists,
    /// The work found a reason of its own not to go on; everything it did is undone.
    #[error("the work was given up")]
    Refused,
    #[error("the disk that holds `{}` is full", .path.display())]
    Full { path: PathBuf },
    #[error(
        "the database `{}` is damaged; to restore, move it and the `-wal` and `-shm` files beside it away, then copy a backup to its place: \
         the newest file of `{}`, or one you made with `peregrine server backup`",
        .path.display(), .backups.display()
    )]
    Corrupt { path: PathBuf, backups: PathBuf },
    #[error(
        "the database `{database}` was written by a newer Peregrine (schema {found}, this one knows {known}); start that version, or restore a backup made before the upgrade"
    )]
    Newer { database: String, found: i64, known: i64 },
    #[error("cannot open the database `{database}`")]
    Open { database: String, source: Cause },
    #[error("the database `{database}` does not answer")]
    Unreachable { database: String, source: Cause },
    #[error("another server uses the database `{database}`, or has used it since this one lost it")]
    Taken { database: String },
    /// It is not this program's to copy.
    #[error("the database is kept by a server of its own, whose tools copy it")]
    Elsewhere,
    #[error("database statement failed")]
    Sql(#[source] Cause),
    #[error("the database holds a value that cannot be read: {0}")]
    Decode(String),
    #[error("the store has shut down")]
    Closed,
    #[error("cannot {what} `{}`", .path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// What kind of thing changed; waiting loops listen to one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bell {
    /// The queue: a job came, or room was made.
    Queue,
    /// Something for an agent: a placement or a stop.
    Agents,
    /// Any job's state.
    Jobs,
    /// Points of any run.
    Points,
    /// Something for a cluster: a placement, a stop, an end, a check.
    Clusters,
    /// What is to be told to webhooks.
    Deliveries,
    /// What routers and the serving loop look at: endpoints, deployments, replicas, jobs that end.
    Serving,
    /// Something for a job that consists of others: it came, is to stop, or one of its children has ended.
    Parents,
    /// Schedules: one was changed, or what one waits for has happened.
    Calendar,
    /// Nodes of managed clusters: one was ordered, joined, told something, or has something to do.
    Machines,
}

/// How many bells there are.
pub(crate) const BELLS: usize = 10;

/// A handle to the store; cheap to clone.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    bells: Arc<[watch::Sender<u64>; BELLS]>,
    home: Arc<Path>,
    secrets: Arc<secrets::Keyring>,
    files: files::Files,
}

/// One unit of work. Methods that read and write tables live in [`tables`].
pub struct Tx<'c> {
    on: &'c mut dyn engine::Connection,
    /// How many rows were added, changed or removed.
    pub(crate) changes: usize,
    pub(crate) rung: [bool; BELLS],
    pub(crate) keyring: &'c secrets::Keyring,
}

impl Store {
    /// Opens (or makes) the database under `home` and brings its schema up to date.
    pub fn open(home: &Path) -> Result<Store, Error> {
        Store::open_at(home, &Database::Sqlite)
    }

    /// The same with the records in `database`; keys and files are under `home` all the same.
    pub fn open_at(home: &Path, database: &Database) -> Result<Store, Error> {
        let secrets = Arc::new(secrets::Keyring::load_or_make(&home.join("keys"))?);
        let bells = Arc::new(std::array::from_fn(|_| watch::Sender::new(0)));
        let engine = Engine::open(home, database, Arc::clone(&bells), Arc::clone(&secrets))?;
        Ok(Store { engine, bells, home: home.into(), secrets, files: files::Files::under(home) })
    }

    /// Runs `work` in a transaction and waits until it is durable. An error undoes everything `work` did; a statement
    /// that failed is to end the work, because Postgres takes no other after it. A change made
    /// while someone [acts](acting) is recorded in the audit in the same transaction.
    pub async fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
    {
        match tables::act_under_way() {
            Some(acting) => self.engine.write(move |tx| tx.audited(&acting, work)).await,
            None => self.engine.write(work).await,
        }
    }

    /// Records what someone is doing although it changes nothing in the database, such as a file.
    pub async fn record_act(&self) -> Result<(), Error> {
        match tables::act_under_way() {
            Some(acting) => self.engine.write(move |tx| tx.record_act(&acting)).await,
            None => Ok(()),
        }
    }

    /// Reads in the writer's turn, where pages are warm: for the loops that look after every change. A reader of its own
    /// would have to read the pages anew each time, because someone else has written in between.
    pub async fn look<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
    {
        self.engine.write(work).await
    }

    /// Runs `work` on a snapshot; it must only read.
    pub async fn read<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
    {
        self.engine.read(work, Arc::clone(&self.secrets)).await
    }

    /// Rings after each commit that touched this kind of thing. A hint: nothing may depend on hearing it.
    pub fn changed(&self, bell: Bell) -> watch::Receiver<u64> {
        self.bells[bell as usize].subscribe()
    }

    /// Rings for something that changed outside the database.
    pub fn ring(&self, bell: Bell) {
        self.bells[bell as usize].send_modify(|count| *count += 1);
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The files beside the database.
    pub fn files(&self) -> &files::Files {
        &self.files
    }

    pub fn keyring(&self) -> &secrets::Keyring {
        &self.secrets
    }

    /// Whether the database is a file in the home, and so ours to copy.
    pub fn is_file(&self) -> bool {
        self.engine.is_file()
    }

    /// Copies the database, consistent as of now, into `to`, which must not exist. `Elsewhere` for one in Postgres.
    pub async fn backup(&self, to: PathBuf) -> Result<(), Error> {
        self.engine.back_up(to).await
    }
}

impl Error {
    /// The same for another caller whose work was in the same commit.
    fn copy(&self) -> Error {
        match self {
            Error::Full { path } => Error::Full { path: path.clone() },
            Error::Corrupt { path, backups } => Error::Corrupt { path: path.clone(), backups: backups.clone() },
            Error::Unreachable { database, source } => {
                Error::Unreachable { database: database.clone(), source: Arc::clone(source) }
            }
            Error::Taken { database } => Error::Taken { database: database.clone() },
            Error::Sql(source) => Error::Sql(Arc::clone(source)),
            other => Error::Sql(Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(other.to_string()))),
        }
    }
}

impl<'c> Tx<'c> {
    fn on(on: &'c mut dyn engine::Connection, keyring: &'c secrets::Keyring) -> Tx<'c> {
        Tx { on, changes: 0, rung: [false; BELLS], keyring }
    }

    /// The keys of this home.
    pub fn keyring(&self) -> &secrets::Keyring {
        self.keyring
    }

    /// Random bytes from the operating system.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        self.keyring.random()
    }

    /// Gives up to so many unused pages back to the file system; how many bytes that were.
    pub(crate) fn give_back(&mut self, pages: i64) -> Result<u64, Error> {
        self.on.give_back(pages)
    }

    /// Rings this bell once the transaction is durable.
    pub fn ring(&mut self, bell: Bell) {
        self.rung[bell as usize] = true;
    }

    /// Whether this bell will ring by what was done so far.
    pub fn will_ring(&self, bell: Bell) -> bool {
        self.rung[bell as usize]
    }
}
