//! The store on real databases: what is promised to those who build on it, the same on both engines.
//!
//! Every file of the suite is part of two modules, `sqlite` and `postgres`, which differ in the [`Home`] they open.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may as well stop where it stands")]
#![expect(clippy::duplicate_mod, reason = "one suite for both engines")]

mod foreign;
mod lost;
mod open;
mod reach;
#[path = "../../../../tests/postgres.rs"]
#[expect(dead_code, reason = "other suites use what this one does not")]
mod server;

use domain::{JobName, Plan, Resources, Timestamp};
use store::{Database, Error, NewJob, PostgresAddress, Store};
use tempfile::TempDir;

const NOW: Timestamp = Timestamp(1_700_000_000_000);

#[path = "."]
mod sqlite {
    mod assets;
    mod audit;
    mod children;
    mod commit;
    mod jobs;
    mod kept;
    mod machines;
    mod points;
    mod retention;
    mod runs;
    mod schedules;
    mod secrets;

    use super::{Home, NOW, new_job};

    fn fresh() -> (Home, store::Store) {
        Home::with_sqlite().opened()
    }
}

#[path = "."]
mod postgres {
    mod assets;
    mod audit;
    mod children;
    mod commit;
    mod jobs;
    mod kept;
    mod machines;
    mod points;
    mod retention;
    mod runs;
    mod schedules;
    mod secrets;

    use super::{Home, NOW, new_job};

    fn fresh() -> (Home, store::Store) {
        Home::with_postgres().opened()
    }
}

/// A folder, and the database that belongs to it.
struct Home {
    folder: TempDir,
    postgres: Option<server::Database>,
}

impl Home {
    fn with_sqlite() -> Home {
        Home { folder: tempfile::tempdir().unwrap(), postgres: None }
    }

    /// Where no Postgres can be had, says so and goes on without.
    fn with_postgres() -> Home {
        Home { folder: tempfile::tempdir().unwrap(), postgres: server::database_or_skip() }
    }

    /// The home and its store; both go when the test does.
    fn opened(self) -> (Home, Store) {
        let store = self.open();
        (self, store)
    }

    fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    fn database(&self) -> Database {
        match &self.postgres {
            Some(database) => Database::Postgres(PostgresAddress::parse(&database.url()).unwrap()),
            None => Database::Sqlite,
        }
    }

    fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    fn try_open(&self) -> Result<Store, Error> {
        Store::open_at(self.path(), &self.database())
    }
}

fn new_job(name: &str) -> NewJob {
    NewJob {
        workspace: "w".into(),
        name: JobName::parse(name).unwrap(),
        body: r#"{"tags":{"team":"a"}}"#.into(),
        plan: Plan { requests: Resources { cpu_milli: 1000, ..Resources::default() }, ..Plan::default() },
        kind: "Command",
        experiment: "e".into(),
        target: "local".into(),
        cluster: store::HERE.into(),
        priority: 2,
        max_retries: 1,
        registers: false,
        created_by: "me".into(),
        at: NOW,
        parent: None,
        reused: None,
    }
}
