//! The loops against a real store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may as well stop where it stands")]

mod clusters;
mod front;
mod managed;
mod pipelines;
#[path = "../../../../tests/postgres.rs"]
#[expect(dead_code, reason = "other suites use what this one does not")]
mod postgres;
mod reuse;
mod seeds;
mod serve;
mod sharing;
mod sim;
mod sweeps;
mod upkeep;

use controller::{Context, NoRouters, Sharing};
use domain::{JobName, Plan, Timestamp};
use std::sync::Arc;
use store::{Database, HERE, NOWHERE, NewJob, PostgresAddress, Store};
use tempfile::TempDir;

const SHARING: Sharing = Sharing { half_life_ms: 86_400_000, preempt: false };

/// What the loops are given where neither drivers nor routers matter.
fn context(store: Store, clock: fn() -> Timestamp) -> Context {
    Context {
        store,
        drivers: Arc::default(),
        keep_deleted: None,
        routers: Arc::new(NoRouters),
        register: |_, _, _| Ok(()),
        clock,
        sharing: SHARING,
    }
}

/// A command for this machine that asks for nothing.
fn job(name: &str, at: Timestamp) -> NewJob {
    NewJob {
        workspace: "w".into(),
        name: JobName::parse(name).unwrap(),
        body: "{}".into(),
        plan: Plan::default(),
        kind: "Command",
        experiment: "e".into(),
        target: "local".into(),
        cluster: HERE.into(),
        priority: 2,
        max_retries: 0,
        registers: false,
        created_by: "me".into(),
        at,
        parent: None,
        reused: None,
    }
}

/// A job that consists of others, and that no node is offered.
fn leader(name: &str, kind: &'static str, at: Timestamp) -> NewJob {
    NewJob { kind, target: String::new(), cluster: NOWHERE.into(), ..job(name, at) }
}

/// A folder, and the database that belongs to it.
struct Home {
    folder: TempDir,
    postgres: Option<postgres::Database>,
}

impl Home {
    fn new() -> Home {
        // Durability is the store's own matter; a disk in memory makes room for more seeds.
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Home { folder: folder.unwrap(), postgres: postgres::wanted() }
    }

    fn open(&self) -> Store {
        let address = self.postgres.as_ref().map(|database| PostgresAddress::parse(&database.url()).unwrap());
        Store::open_at(self.folder.path(), &address.map_or(Database::Sqlite, Database::Postgres)).unwrap()
    }
}
