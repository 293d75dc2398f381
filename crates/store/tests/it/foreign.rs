//! Databases of MLflow, old and new, read without being touched.

use rusqlite::Connection;
use std::{fs, path::PathBuf};
use store::foreign::{ForeignError, mlflow::Mlflow};

/// What the first databases of MLflow had.
const OLD: &str = "
    create table alembic_version (version_num text);
    insert into alembic_version values ('451aebb31d03');
    create table experiments (experiment_id integer primary key, name text, artifact_location text, lifecycle_stage text);
    create table runs (run_uuid text primary key, name text, user_id text, status text, start_time integer, end_time integer,
        lifecycle_stage text, artifact_uri text, experiment_id integer);
    create table metrics (key text, value real, timestamp integer, run_uuid text);
    create table params (key text, value text, run_uuid text);
    create table tags (key text, value text, run_uuid text);
    insert into experiments values (0, 'Default', './mlruns/0', 'active'), (1, 'gone', './mlruns/1', 'deleted');
    insert into runs values ('b', '', 'me', 'FINISHED', 7, null, 'active', './mlruns/0/b/artifacts', 0),
        ('a', null, null, 'FAILED', 5, 6, 'deleted', null, 0);
    insert into metrics values ('loss', 0.5, 2, 'b'), ('loss', 1e999, 1, 'b');
    insert into params values ('lr', '0.1', 'b');
    insert into tags values ('t', null, 'b');
";

fn database(folder: &tempfile::TempDir, sql: &str) -> PathBuf {
    let path = folder.path().join("mlflow.db");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    path
}

#[test]
fn a_database_of_old_is_read_and_what_it_lacks_is_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(&folder, OLD);
    let before = fs::read(&path).unwrap();
    let db = Mlflow::open(&path).unwrap();
    assert_eq!(db.revision(), "451aebb31d03");
    let experiments = db.experiments().unwrap();
    let seen: Vec<_> = experiments.iter().map(|one| (one.id, one.name.as_str(), one.deleted, one.created_at)).collect();
    assert_eq!(seen, [(0, "Default", false, None), (1, "gone", true, None)]);
    let runs = db.runs(0).unwrap();
    let seen: Vec<_> = runs.iter().map(|run| (run.id.as_str(), run.deleted, run.ended_at)).collect();
    assert_eq!(seen, [("a", true, Some(6)), ("b", false, None)], "the oldest first");
    let logged = db.logged("b").unwrap();
    let points: Vec<_> = logged.points.iter().map(|(_, p)| (p.timestamp_ms, p.step, p.value)).collect();
    assert_eq!(points, [(1, 0, f64::MAX), (2, 0, 0.5)], "an infinity is the largest number");
    assert_eq!((logged.params["lr"].as_str(), logged.tags["t"].as_str()), ("0.1", ""));
    assert!(logged.datasets.is_empty() && db.logged_models(0).unwrap().is_empty() && db.versions().unwrap().is_empty());
    assert!(db.unread().unwrap().is_empty());
    drop(db);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was written beside it");
}

#[test]
fn a_value_that_is_no_number_is_told_by_its_flag_and_other_workspaces_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let newer = format!(
        "{OLD} alter table metrics add column is_nan integer; alter table metrics add column step integer;
         insert into metrics values ('nan', 0, 1, 'b', 1, 4);
         alter table experiments add column workspace text default 'default';
         insert into experiments values (2, 'theirs', '', 'active', 'team');"
    );
    let db = Mlflow::open(&database(&folder, &newer)).unwrap();
    let logged = db.logged("b").unwrap();
    let (key, point) = logged.points.last().unwrap();
    assert_eq!((key.as_str(), point.step, point.value.is_nan()), ("nan", 4, true));
    assert_eq!(db.experiments().unwrap().len(), 2);
    assert_eq!(db.unread().unwrap(), [("experiments of other workspaces than `default`", 1)]);
}

#[test]
fn what_cannot_be_read_is_told_apart() {
    let told = |sql: &str| {
        let folder = tempfile::tempdir().unwrap();
        Mlflow::open(&database(&folder, sql)).err().unwrap()
    };
    assert!(matches!(told("create table x (y)"), ForeignError::NotMlflow { table: "experiments", .. }));
    match told(&OLD.replace("user_id text", "user_key text")) {
        ForeignError::Schema { lacks, revision, .. } => {
            assert_eq!((lacks.as_str(), revision.as_str()), ("runs.user_id", "451aebb31d03"));
        }
        other => panic!("{other}"),
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    assert!(matches!(Mlflow::open(&path), Err(ForeignError::Missing { .. })));
    fs::write(&path, "no database at all, but long enough to have a head of one".repeat(4)).unwrap();
    assert!(matches!(Mlflow::open(&path), Err(ForeignError::NotSqlite { .. })));
}
