//! Retention: what was deleted long ago goes for good, and the space with it; nothing else does.

use super::{NOW, fresh, new_job};
use domain::{Timestamp, tracking::Point};
use std::fs;
use store::{AssetKey, ExperimentRow, Freed, LoggedModelRow, NewRun, Purged, Store};

const DAY: i64 = 24 * 3_600_000;
const LATER: Timestamp = Timestamp(NOW.0 + 10 * DAY);

/// A run with everything one can have, deleted at `deleted` if it is.
async fn run(store: &Store, experiment: &'static str, id: &str, deleted: Option<Timestamp>) {
    let run_id = id.to_owned();
    let made = store.write(move |tx| {
        let experiment = tx.experiment_named("w", experiment, NOW)?;
        let run = tx.insert_run(&NewRun {
            workspace: "w",
            run_id: &run_id,
            experiment,
            job_seq: None,
            name: &run_id,
            user: "me",
            status: "FINISHED",
            started_at: NOW,
        })?;
        tx.add_param(run, "lr", &"1".repeat(500))?;
        tx.put_run_tag(run, "team", &"a".repeat(5000))?;
        for batch in 0..10 {
            let noise = |n: i64| ((n * 2_654_435_761) % 1_000_003) as f64 / 7.0;
            let points: Vec<(&str, Point)> = (batch * 1000..batch * 1000 + 1000)
                .map(|step| ("loss", Point { timestamp_ms: noise(step) as i64, step, value: noise(step) }))
                .collect();
            tx.append_points(run, &points)?;
        }
        tx.fold_points(run)?;
        let mut row = tx.run("w", &run_id)?.unwrap();
        row.deleted_at = deleted;
        tx.put_run(&row)
    });
    made.await.unwrap();
    let folder = store.files().artifacts("w", id);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("model.bin"), [7; 1000]).unwrap();
}

async fn delete_experiment(store: &Store, name: &'static str, at: Timestamp) -> i64 {
    let deleted = store.write(move |tx| {
        let row = tx.experiment_by_name("w", name)?.unwrap();
        tx.delete_runs_of(row.seq, true, at)?;
        tx.put_experiment(&ExperimentRow { deleted: true, changed_at: at, ..row.clone() })?;
        Ok(row.number)
    });
    deleted.await.unwrap()
}

/// Which of these runs there are, and whose files.
async fn left(store: &Store, ids: &[&'static str]) -> (Vec<&'static str>, Vec<&'static str>) {
    let mut there = Vec::new();
    for &id in ids {
        if store.read(move |tx| tx.run("w", id)).await.unwrap().is_some() {
            there.push(id);
        }
    }
    let files = ids.iter().copied().filter(|id| store.files().artifacts("w", id).exists()).collect();
    (there, files)
}

fn rows(experiments: usize, runs: usize, models: usize, kept: usize) -> Purged {
    Purged { experiments, runs, models, kept }
}

#[tokio::test]
async fn only_what_was_deleted_long_enough_ago_goes() {
    let (_home, store) = fresh();
    let ids = ["old", "recent", "alive"];
    run(&store, "e", "old", Some(NOW)).await;
    run(&store, "e", "recent", Some(LATER)).await;
    run(&store, "e", "alive", None).await;
    assert_eq!(store.free(None).await.unwrap().rows, Purged::default());
    let freed = store.free(Some(Timestamp(LATER.0 - DAY))).await.unwrap();
    assert_eq!((freed.rows, freed.file_bytes), (rows(0, 1, 0, 0), 1000));
    assert_eq!(left(&store, &ids).await, (vec!["recent", "alive"], vec!["recent", "alive"]));
    assert_eq!(store.free(Some(LATER)).await.unwrap().rows, rows(0, 1, 0, 0));
    assert_eq!(left(&store, &ids).await, (vec!["alive"], vec!["alive"]));
    assert_eq!(
        store.read(|tx| tx.history(3, "loss")).await.unwrap().len(),
        10_000,
        "the run that lives has its points"
    );
    assert_eq!(store.free(Some(LATER)).await.unwrap(), Freed::default(), "nothing is left to do");
}

#[tokio::test]
async fn the_file_of_the_database_is_smaller_afterwards() {
    let (home, store) = fresh();
    if !store.is_file() {
        // Postgres sees to its own files.
        return;
    }
    run(&store, "e", "alive", None).await;
    let size = || {
        store::fold_log(home.path()).unwrap();
        fs::metadata(home.path().join("peregrine.db")).unwrap().len()
    };
    let lean = size();
    for n in 0..60 {
        run(&store, "e", &format!("r{n}"), Some(NOW)).await;
    }
    let full = size();
    assert!(full > 8 * lean, "{lean} bytes with one run, {full} with 60 more");
    let freed = store.free(Some(LATER)).await.unwrap();
    assert_eq!(freed.rows.runs, 60);
    let after = size();
    assert!(after < lean + (64 << 10), "{after} bytes are left of {full}, where {lean} would do");
    assert!(freed.database_bytes > full / 2, "{freed:?}");
}

#[tokio::test]
async fn a_job_and_what_an_asset_refers_to_stay() {
    let (_home, store) = fresh();
    store.write(|tx| tx.insert_job(&new_job("train")).map(drop)).await.unwrap();
    run(&store, "e", "used", None).await;
    run(&store, "e", "unused", None).await;
    delete_experiment(&store, "e", NOW).await;
    let key = AssetKey { workspace: "w".into(), kind: "models".into(), name: "net".into(), version: "1".into() };
    let body = r#"{"modelUri": "azureml://datastores/workspaceartifactstore/paths/ExperimentRun/dcid.used/model"}"#;
    let wanted = key.clone();
    store.write(move |tx| tx.insert_asset(&key, body, None, "me", NOW)).await.unwrap();
    assert_eq!(store.free(Some(LATER)).await.unwrap().rows, rows(0, 1, 0, 1));
    assert_eq!(left(&store, &["used", "unused", "train"]).await, (vec!["used", "train"], vec!["used"]));
    let unregister = store.write(move |tx| {
        let row = tx.asset(&wanted)?.unwrap();
        tx.delete_asset(row.seq)
    });
    unregister.await.unwrap();
    // The experiment stays for the job in it.
    assert_eq!(store.free(Some(LATER)).await.unwrap().rows, rows(0, 1, 0, 0));
    assert!(store.read(|tx| tx.experiment_by_name("w", "e")).await.unwrap().is_some());
    assert!(store.read(|tx| tx.job("w", "train")).await.unwrap().is_some());
}

#[tokio::test]
async fn an_experiment_takes_its_models_along_and_its_number_is_not_given_out_again() {
    let (_home, store) = fresh();
    run(&store, "e", "r", None).await;
    let insert = store.write(|tx| {
        let experiment = tx.experiment_named("w", "e", NOW)?;
        tx.insert_logged_model(
            experiment,
            &LoggedModelRow {
                seq: 0,
                workspace: "w".into(),
                model_id: "m-1".into(),
                number: 1,
                location: String::new(),
                name: "net".into(),
                model_type: None,
                source_run: Some("r".into()),
                status: "LOGGED_MODEL_READY".into(),
                status_message: None,
                deleted: false,
                created_at: NOW,
                changed_at: NOW,
                tags: [].into(),
                params: [].into(),
            },
        )
    });
    insert.await.unwrap();
    let number = delete_experiment(&store, "e", NOW).await;
    assert_eq!(store.free(Some(LATER)).await.unwrap().rows, rows(1, 1, 1, 0));
    assert!(store.read(|tx| tx.logged_model("w", "m-1")).await.unwrap().is_none());
    let (_, next) = store.write(|tx| tx.insert_experiment("w", "e", "", NOW)).await.unwrap();
    assert_eq!(next, number + 1, "the name is free again, the number is not");
}
