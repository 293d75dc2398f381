//! Metric points: none is lost, none is doubled, and folding them is seen by nobody.

use super::{NOW, fresh, runs::insert};
use domain::tracking::Point;
use std::collections::BTreeMap;
use store::Store;

async fn run(store: &Store, id: &'static str) -> i64 {
    store.write(move |tx| insert(tx, id)).await.unwrap()
}

fn at(step: i64, value: f64) -> Point {
    Point { timestamp_ms: NOW.0 + step, step, value }
}

/// Logs one request a point.
async fn log(store: &Store, run: i64, key: &'static str, points: Vec<Point>) {
    let logged = store.write(move |tx| points.iter().try_for_each(|point| tx.append_points(run, &[(key, *point)])));
    logged.await.unwrap();
}

async fn history(store: &Store, run: i64, key: &'static str) -> Vec<Point> {
    store.read(move |tx| tx.history(run, key)).await.unwrap()
}

async fn latest(store: &Store, run: i64) -> BTreeMap<String, Point> {
    let mut all = store.read(move |tx| tx.latest_of(&[run])).await.unwrap();
    all.remove(&run).unwrap_or_default().into_iter().map(|latest| (latest.key, latest.point)).collect()
}

#[tokio::test]
async fn what_is_shown_is_the_same_before_and_after_folding() {
    let (_home, store) = fresh();
    let run = run(&store, "r").await;
    let wave: Vec<Point> = (0..100).map(|step| at(step, f64::from(step as i32).sin())).collect();
    log(&store, run, "loss", wave.clone()).await;
    log(&store, run, "acc", vec![at(3, 0.5), at(1, 0.25), at(3, 0.75)]).await;
    let before = (history(&store, run, "loss").await, history(&store, run, "acc").await, latest(&store, run).await);
    store.write(move |tx| tx.fold_points(run)).await.unwrap();
    let after = (history(&store, run, "loss").await, history(&store, run, "acc").await, latest(&store, run).await);
    assert_eq!(before, after);
    assert_eq!(before.0, wave);
    assert_eq!(before.1, [at(1, 0.25), at(3, 0.5), at(3, 0.75)]);
    assert_eq!(before.2["acc"], at(3, 0.75));
    log(&store, run, "acc", vec![at(7, 1.0)]).await;
    let together = store.read(move |tx| {
        let mut all = Vec::new();
        tx.histories(run, ["loss", "none", "acc"].into_iter(), |history| all.push(history))?;
        Ok((all, tx.last_points(run)?))
    });
    let together = together.await.unwrap();
    assert_eq!(together.0, [wave, Vec::new(), history(&store, run, "acc").await], "as if each were asked for alone");
    assert_eq!(together.1, 103, "requests are counted on after folding");
}

#[tokio::test]
async fn many_requests_are_folded_and_joined_without_losing_a_point() {
    let (_home, store) = fresh();
    let run = run(&store, "r").await;
    // Past 64 foldings of 512 requests each, chunks are joined too.
    let all: Vec<Point> = (0..512 * 66).map(|step| at(step, step as f64 * 0.5)).collect();
    for some in all.chunks(4096) {
        log(&store, run, "loss", some.to_vec()).await;
    }
    assert_eq!(history(&store, run, "loss").await, all);
    assert_eq!(latest(&store, run).await["loss"], *all.last().unwrap());
}

#[tokio::test]
async fn many_different_metrics_are_folded_a_part_at_a_time() {
    let (_home, store) = fresh();
    let run = run(&store, "r").await;
    for batch in 0..6 {
        let logged = store.write(move |tx| {
            let keys: Vec<String> = (0..1000).map(|n| format!("k{}", batch * 1000 + n)).collect();
            let points: Vec<(&str, Point)> = keys.iter().map(|key| (key.as_str(), at(batch, 1.0))).collect();
            tx.append_points(run, &points)
        });
        logged.await.unwrap();
    }
    let mut parts = 1;
    while store.write(move |tx| tx.fold_points(run)).await.unwrap() {
        parts += 1;
        assert_eq!(latest(&store, run).await.len(), 6000, "half-way everything is seen too");
    }
    assert_eq!(parts, 3, "two requests at a time");
    assert_eq!(latest(&store, run).await.len(), 6000);
    assert_eq!(history(&store, run, "k5999").await, [at(5, 1.0)]);
    log(&store, run, "k0", vec![at(9, 2.0)]).await;
    assert_eq!(history(&store, run, "k0").await, [at(0, 1.0), at(9, 2.0)], "and logging goes on");
}

#[tokio::test]
async fn a_request_sent_twice_is_counted_once() {
    let (_home, store) = fresh();
    let run = run(&store, "r").await;
    let points = vec![at(0, 1.0), at(1, f64::NAN), at(2, -0.0)];
    for folds in [false, true, false] {
        log(&store, run, "loss", points.clone()).await;
        if folds {
            store.write(move |tx| tx.fold_points(run)).await.unwrap();
        }
    }
    let shown = history(&store, run, "loss").await;
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[1].value.is_nan());
}

#[tokio::test]
async fn the_latest_value_is_that_of_the_last_step_not_of_the_last_request() {
    let cases = [
        ("later step", vec![at(1, 5.0), at(2, 1.0), at(0, 9.0)], 1.0),
        (
            "same step, later time",
            vec![Point { timestamp_ms: 9, ..at(1, 1.0) }, Point { timestamp_ms: 8, ..at(1, 7.0) }],
            1.0,
        ),
        ("same step and time, greater value", vec![at(1, 2.0), at(1, 3.0), at(1, 1.0)], 3.0),
    ];
    let (_home, store) = fresh();
    for (n, (what, points, expect)) in cases.into_iter().enumerate() {
        let run = run(&store, ["a", "b", "c"][n]).await;
        for point in points {
            log(&store, run, "m", vec![point]).await;
            store.write(move |tx| tx.fold_points(run)).await.unwrap();
        }
        assert_eq!(latest(&store, run).await["m"].value, expect, "{what}");
    }
}

#[tokio::test]
async fn a_purged_run_leaves_nothing_behind() {
    let (_home, store) = fresh();
    let (gone, stays) = (run(&store, "gone").await, run(&store, "stays").await);
    for run in [gone, stays] {
        log(&store, run, "loss", vec![at(0, 1.0)]).await;
        store.write(move |tx| tx.fold_points(run)).await.unwrap();
        log(&store, run, "loss", vec![at(1, 2.0)]).await;
    }
    store.write(move |tx| tx.purge_run(gone)).await.unwrap();
    assert!(history(&store, gone, "loss").await.is_empty());
    assert_eq!(history(&store, stays, "loss").await.len(), 2);
    assert!(store.read(|tx| tx.run("w", "gone")).await.unwrap().is_none());
}

#[tokio::test]
async fn whoever_follows_a_run_gets_what_is_new_or_is_told_that_some_was_folded() {
    let (_home, store) = fresh();
    let run = run(&store, "r").await;
    let since = |after: i64| {
        let store = store.clone();
        async move {
            let since = store.read(move |tx| tx.points_since(run, after)).await.unwrap();
            (since.last, since.gap, since.points.values().map(Vec::len).sum::<usize>())
        }
    };
    assert_eq!(since(-1).await, (-1, false, 0));
    log(&store, run, "a", vec![at(0, 1.0), at(1, 2.0)]).await;
    assert_eq!(since(-1).await, (1, false, 2));
    assert_eq!(since(0).await, (1, false, 1));
    store.write(move |tx| tx.fold_points(run)).await.unwrap();
    assert_eq!(since(1).await, (1, false, 0));
    assert_eq!(since(0).await, (1, true, 0));
    log(&store, run, "a", vec![at(2, 3.0)]).await;
    assert_eq!(since(1).await, (2, false, 1));
    assert_eq!(since(-1).await, (2, true, 1));
    // Folding twice in a row, with nothing new in between, changes nothing.
    for _ in 0..2 {
        store.write(move |tx| tx.fold_points(run)).await.unwrap();
    }
    assert_eq!(history(&store, run, "a").await.len(), 3);
}
