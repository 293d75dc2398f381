//! The store on a real database: what is promised to those who build on it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may as well stop where it stands")]

mod assets;
mod commit;
mod foreign;
mod jobs;
mod open;
mod points;
mod retention;
mod runs;
mod secrets;

use domain::{JobName, Plan, Resources, Timestamp};
use store::{NewJob, Store};
use tempfile::TempDir;

const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// A store in a folder of its own, which goes when the test does.
fn fresh() -> (TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    (home, store)
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
        priority: 2,
        max_retries: 1,
        registers: false,
        created_by: "me".into(),
        at: NOW,
    }
}
