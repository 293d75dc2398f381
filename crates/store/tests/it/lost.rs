//! A database in Postgres: who may use it, and what happens when it goes away.

use crate::{Home, NOW, new_job, server};
use std::time::Duration;
use store::{Database, Error, JobFilter, PostgresAddress, SCHEMA_VERSION, Store};

/// Ends every session there is with the database.
const END_SESSIONS: &str = "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity \
                            where datname = current_database() and pid <> pg_backend_pid()";

fn on_postgres() -> Option<Home> {
    Some(Home::with_postgres()).filter(|home| home.postgres.is_some())
}

fn ask(home: &Home, sql: &str) -> String {
    home.postgres.as_ref().unwrap().ask(sql)
}

#[tokio::test]
async fn a_database_has_one_server() {
    let Some((home, store)) = on_postgres().map(Home::opened) else { return };
    let second = home.try_open().err().unwrap();
    assert!(matches!(second, Error::Taken { .. }), "{second:?}");
    drop(store);
    home.open();
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_and_not_touched() {
    let Some((home, store)) = on_postgres().map(Home::opened) else { return };
    drop(store);
    let before = "select schema_version || ' ' || servers from peregrine_database";
    ask(&home, "update peregrine_database set schema_version = 99");
    let was = ask(&home, before);
    let error = home.try_open().err().unwrap();
    assert!(matches!(error, Error::Newer { found: 99, known, .. } if known == SCHEMA_VERSION), "{error:?}");
    assert_eq!(ask(&home, before), was);
}

#[tokio::test]
async fn a_session_that_ended_is_made_anew_before_anyone_notices() {
    let Some((home, store)) = on_postgres().map(Home::opened) else { return };
    insert(&store, "before").await.unwrap();
    assert_ne!(ask(&home, END_SESSIONS), "0");
    insert(&store, "after").await.unwrap();
    for _ in 0..3 {
        assert_eq!(count(&store).await.unwrap(), 2);
    }
}

#[tokio::test]
async fn work_under_way_when_the_session_ends_is_a_failure_and_leaves_nothing() {
    let Some((home, store)) = on_postgres().map(Home::opened) else { return };
    let url = home.postgres.as_ref().unwrap().url();
    let cut = store.write(move |tx| {
        tx.insert_job(&new_job("cut"))?;
        end_sessions(&url);
        tx.insert_job(&new_job("never"))
    });
    let error = cut.await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(!error.to_string().contains("password"), "{error}");
    insert(&store, "next").await.unwrap();
    assert_eq!(count(&store).await.unwrap(), 1);
}

#[tokio::test]
async fn a_commit_that_nobody_can_be_sure_of_is_a_failure() {
    let Some((home, store)) = on_postgres().map(Home::opened) else { return };
    let url = home.postgres.as_ref().unwrap().url();
    let cut = store.write(move |tx| {
        let seq = tx.insert_job(&new_job("cut"))?;
        end_sessions(&url);
        Ok(seq)
    });
    assert!(matches!(cut.await, Err(Error::Unreachable { .. })));
    assert_eq!(count(&store).await.unwrap(), 0);
}

#[tokio::test]
async fn a_server_that_lost_its_database_to_another_does_not_write_to_it_again() {
    let Some((home, first)) = on_postgres().map(Home::opened) else { return };
    ask(&home, END_SESSIONS);
    let second = home.open();
    insert(&second, "a").await.unwrap();
    let refused = insert(&first, "b").await.unwrap_err();
    assert!(matches!(refused, Error::Taken { .. }), "{refused:?}");
    drop(second);
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let refused = insert(&first, "b").await.unwrap_err();
        assert!(matches!(refused, Error::Taken { .. } | Error::Unreachable { .. }), "{refused:?}");
    }
}

#[tokio::test]
async fn what_was_answered_outlives_a_killed_postgres_and_what_was_not_is_a_failure() {
    let mut postgres = match server::Server::start(&[]) {
        Ok(postgres) => postgres,
        Err(reason) => return eprintln!("skipped: Postgres ({reason})"),
    };
    let url = postgres.make("ml").unwrap();
    let home = Home::with_sqlite();
    let store = Store::open_at(home.path(), &Database::Postgres(PostgresAddress::parse(&url).unwrap())).unwrap();
    let (mut answered, mut down) = (0, 0);
    for round in 0..3 {
        for n in 0..20 {
            insert(&store, &format!("j{round}-{n}")).await.unwrap();
            answered += 1;
        }
        postgres.kill();
        let error = insert(&store, &format!("down-{round}")).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
        down += 1;
        assert!(matches!(count(&store).await, Err(Error::Unreachable { .. })));
        postgres.resume().unwrap();
        let again = async { while insert(&store, &format!("up-{round}")).await.is_err() {} };
        tokio::time::timeout(Duration::from_secs(30), again).await.unwrap();
        answered += 1;
    }
    let read = async {
        loop {
            if let Ok(count) = count(&store).await {
                return count;
            }
        }
    };
    assert_eq!((tokio::time::timeout(Duration::from_secs(30), read).await.unwrap(), down), (answered, 3));
}

fn end_sessions(url: &str) {
    let (name, host) = url.trim_start_matches("postgresql://postgres@/").split_once("?host=").unwrap();
    server::psql(host.as_ref(), name, END_SESSIONS).unwrap();
}

async fn insert(store: &Store, name: &str) -> Result<i64, Error> {
    let job = store::NewJob { at: NOW, ..new_job(name) };
    store.write(move |tx| tx.insert_job(&job)).await
}

async fn count(store: &Store) -> Result<usize, Error> {
    let all = JobFilter { workspace: "w".into(), limit: 1000, ..JobFilter::default() };
    Ok(store.read(move |tx| tx.jobs(&all)).await?.rows.len())
}
