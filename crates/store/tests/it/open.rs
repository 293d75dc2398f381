//! Opening a database in the home: one of a newer version or with damage is refused and left as it is; a backup is a database.

use crate::{Home, new_job};
use std::{fs, path::Path};
use store::{Error, JobFilter, SCHEMA_VERSION, Store};

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_and_not_touched() {
    let (home, store) = Home::with_sqlite().opened();
    store.write(|tx| tx.insert_job(&new_job("a"))).await.unwrap();
    drop(store);
    set_version(home.path(), SCHEMA_VERSION + 5);
    let error = Store::open(home.path()).err().unwrap();
    assert!(
        matches!(error, Error::Newer { found, known, .. } if found == SCHEMA_VERSION + 5 && known == SCHEMA_VERSION)
    );
    let message = error.to_string();
    for piece in ["peregrine.db", "newer Peregrine", "restore a backup"] {
        assert!(message.contains(piece), "no `{piece}` in: {message}");
    }
    set_version(home.path(), SCHEMA_VERSION);
    assert_eq!(jobs(&Store::open(home.path()).unwrap()).await, 1);
}

#[test]
fn a_file_that_is_no_database_is_refused_with_the_way_to_restore() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("peregrine.db"), "not a database, but long enough to be read as one ".repeat(100))
        .unwrap();
    let error = Store::open(home.path()).err().unwrap();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("backups"), "{error}");
}

#[tokio::test]
async fn damage_inside_a_database_is_found_when_it_is_opened() {
    let (home, store) = Home::with_sqlite().opened();
    for n in 0..50 {
        store.write(move |tx| tx.insert_job(&new_job(&format!("job-{n}")))).await.unwrap();
    }
    let copy = home.path().join("whole.db");
    store.backup(copy.clone()).await.unwrap();
    let damaged = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(copy).unwrap();
    let (from, to) = (bytes.len() / 2, bytes.len() / 2 + 9000);
    bytes[from..to].fill(0xA5);
    fs::write(damaged.path().join("peregrine.db"), &bytes).unwrap();
    let error = Store::open(damaged.path()).err().unwrap();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert!(fs::read(damaged.path().join("peregrine.db")).unwrap() == bytes, "it was changed");
}

#[tokio::test]
async fn a_backup_is_a_database_as_it_was_then() {
    let (home, store) = Home::with_sqlite().opened();
    store.write(|tx| tx.insert_job(&new_job("before"))).await.unwrap();
    let restored = tempfile::tempdir().unwrap();
    store.backup(restored.path().join("peregrine.db")).await.unwrap();
    store.write(|tx| tx.insert_job(&new_job("after"))).await.unwrap();
    assert_eq!(jobs(&Store::open(restored.path()).unwrap()).await, 1);
    assert_eq!(jobs(&store).await, 2);
    let taken = home.path().join("taken.db");
    fs::write(&taken, "something else").unwrap();
    assert!(store.backup(taken.clone()).await.is_err());
    assert_eq!(fs::read_to_string(taken).unwrap(), "something else");
}

#[tokio::test]
async fn what_was_answered_outlives_the_process() {
    let (home, store) = Home::with_sqlite().opened();
    store.write(|tx| tx.insert_job(&new_job("kept"))).await.unwrap();
    // The files as they are at this moment are what a killed process leaves behind.
    let copy = tempfile::tempdir().unwrap();
    for name in ["peregrine.db", "peregrine.db-wal"] {
        fs::copy(home.path().join(name), copy.path().join(name)).unwrap();
    }
    assert_eq!(jobs(&Store::open(copy.path()).unwrap()).await, 1);
}

async fn jobs(store: &Store) -> usize {
    let filter = JobFilter { workspace: "w".into(), limit: 100, ..JobFilter::default() };
    store.read(move |tx| tx.jobs(&filter)).await.unwrap().rows.len()
}

fn set_version(home: &Path, version: i64) {
    let on = rusqlite::Connection::open(home.join("peregrine.db")).unwrap();
    on.pragma_update(None, "user_version", version).unwrap();
}
