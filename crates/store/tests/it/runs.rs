//! Runs: found by what was logged, whether they are jobs or not.

use super::{Home, NOW, fresh, new_job};
use domain::{
    AttemptId, JobEvent, Outcome, Timestamp,
    tracking::{Filter, Order, Point, Subject, ViewType},
};
use store::{NewRun, RunQuery, Store};

/// Runs `a` to `f`, one a second, with metric `m`: 3, 1, not a number, none, 1, 2.
async fn planted() -> (Home, Store) {
    let (home, store) = fresh();
    let values = [Some(3.0), Some(1.0), Some(f64::NAN), None, Some(1.0), Some(2.0)];
    let plant = store.write(move |tx| {
        let experiment = tx.experiment_named("w", "e", NOW)?;
        for (n, (id, value)) in ["a", "b", "c", "d", "e", "f"].into_iter().zip(values).enumerate() {
            let started_at = Timestamp(NOW.0 + n as i64 * 1000);
            let run = tx.insert_run(&NewRun {
                workspace: "w",
                run_id: id,
                experiment,
                job_seq: None,
                name: &format!("Run {id}"),
                user: "me",
                status: if n % 2 == 0 { "FINISHED" } else { "FAILED" },
                started_at,
            })?;
            tx.add_param(run, "lr", &format!("0.{n}"))?;
            if n < 3 {
                tx.put_run_tag(run, "team", "vision's")?;
            }
            if let Some(value) = value {
                tx.append_points(run, &[("m", Point { timestamp_ms: 1, step: 0, value })])?;
                tx.fold_points(run)?;
            }
        }
        Ok(())
    });
    plant.await.unwrap();
    (home, store)
}

pub(super) fn insert(tx: &mut store::Tx<'_>, id: &str) -> Result<i64, store::Error> {
    let experiment = tx.experiment_named("w", "e", NOW)?;
    tx.insert_run(&NewRun {
        workspace: "w",
        run_id: id,
        experiment,
        job_seq: None,
        name: id,
        user: "me",
        status: "RUNNING",
        started_at: NOW,
    })
}

async fn find(store: &Store, filter: &str, order: &[&str], page: (usize, usize)) -> String {
    rows(store, filter, order, page).await.into_iter().map(|row| row.run_id).collect::<Vec<_>>().join("")
}

async fn search(store: &Store, filter: &str, order: &[&str], page: (usize, usize)) -> Vec<i64> {
    rows(store, filter, order, page).await.into_iter().map(|row| row.seq).collect()
}

async fn rows(store: &Store, filter: &str, order: &[&str], page: (usize, usize)) -> Vec<store::RunRow> {
    let query = RunQuery {
        workspace: "w".into(),
        experiments: Some(vec![1]),
        filter: Filter::parse(Subject::Runs, filter).unwrap(),
        order: Order::parse(Subject::Runs, order).unwrap(),
        shows: ViewType::ActiveOnly,
        from: page.0,
        after: None,
        limit: page.1,
    };
    store.read(move |tx| tx.search_runs(&query)).await.unwrap()
}

#[tokio::test]
async fn filters_find_what_they_name_and_nothing_else() {
    let (_home, store) = planted().await;
    for (filter, expect) in [
        ("", "fedcba"),
        ("metrics.m > 1", "fa"),
        ("metrics.m >= 1 AND metrics.m < 3", "feb"),
        ("metrics.m != 1", "fca"),
        ("params.lr = '0.3'", "d"),
        ("params.lr LIKE '0._'", "fedcba"),
        ("tags.team = \"vision's\"", "cba"),
        ("tags.team IS NULL", "fed"),
        ("attributes.status = 'FAILED' AND tags.team IS NOT NULL", "b"),
        ("run_name LIKE 'run%'", ""),
        ("run_name ILIKE 'RUN _'", "fedcba"),
        ("run_name LIKE 'Run [ab]'", ""),
        ("run_name LIKE '*'", ""),
        ("attributes.run_id IN ('a', 'z', 'c')", "ca"),
        ("attributes.start_time > 1700000003000", "fe"),
        ("attributes.start_time > 1700000003000.5", "fe"),
        ("attributes.end_time > 0", ""),
        ("attributes.run_id NOT IN ('a', 'z', 'c')", "fedb"),
        ("run_name LIKE 'Run !_'", ""),
        ("run_name LIKE '%n \\\\_'", ""),
        ("params.lr = '0.3'' or ''1''=''1'", ""),
    ] {
        match Filter::parse(Subject::Runs, filter) {
            Ok(_) => assert_eq!(find(&store, filter, &[], (0, 100)).await, expect, "{filter}"),
            Err(_) => assert_eq!(expect, "", "{filter}"),
        }
    }
}

#[tokio::test]
async fn a_metric_orders_numbers_then_what_is_none_then_what_is_missing() {
    let (_home, store) = planted().await;
    for (order, expect) in [
        (vec!["metrics.m"], "ebfacd"),
        (vec!["metrics.m DESC"], "afebcd"),
        (vec!["metrics.m", "attributes.start_time ASC"], "befacd"),
        (vec!["attributes.status", "metrics.m"], "bfdeac"),
        (vec!["metrics.none"], "fedcba"),
        (vec!["tags.team", "run_id DESC"], "cbafed"),
        (vec!["params.lr DESC"], "fedcba"),
    ] {
        assert_eq!(find(&store, "", &order, (0, 100)).await, expect, "{order:?}");
    }
}

#[tokio::test]
async fn texts_are_kept_whole_and_ordered_by_their_bytes() {
    let (_home, store) = fresh();
    let texts = [
        "",
        " ",
        "!x",
        "10",
        "9",
        "A",
        "B",
        "_",
        "a",
        "a\0b",
        "b",
        "~",
        "Ä",
        "ä",
        "\u{fffd}",
        "\u{10ffff}",
        "\u{10ffff}0",
    ];
    let plant = store.write(move |tx| {
        for (n, text) in texts.iter().enumerate().rev() {
            let run = insert(tx, &format!("r{n:02}"))?;
            tx.put_run_tag(run, "t", text)?;
        }
        Ok(())
    });
    plant.await.unwrap();
    for (order, backwards) in [("tags.t", false), ("tags.t DESC", true)] {
        let found = search(&store, "", &[order], (0, 100)).await;
        let mut tags = store
            .read(move |tx| {
                let all = tx.tags_of(&found)?;
                Ok(found.iter().map(|run| all[run]["t"].clone()).collect::<Vec<_>>())
            })
            .await
            .unwrap();
        if backwards {
            tags.reverse();
        }
        // Where a text is kept in another way, its neighbours may be too.
        let plain = |text: &&String| !text.contains(['\0', '\u{10ffff}']);
        assert!(tags.iter().filter(plain).is_sorted_by(|a, b| a.as_bytes() < b.as_bytes()), "{tags:?}");
        tags.sort();
        assert_eq!(tags, texts);
    }
}

#[tokio::test]
async fn the_ends_of_the_numbers_are_numbers() {
    let (_home, store) = fresh();
    let values = [f64::INFINITY, f64::MAX, 1e-300, 0.0, -0.0, f64::MIN, f64::NEG_INFINITY, f64::NAN];
    let plant = store.write(move |tx| {
        for (n, value) in values.into_iter().enumerate() {
            let run = insert(tx, &n.to_string())?;
            tx.append_points(run, &[("m", Point { timestamp_ms: 1, step: 0, value })])?;
            tx.fold_points(run)?;
        }
        Ok(())
    });
    plant.await.unwrap();
    for (filter, order, expect) in [
        // Zero is zero, whatever its sign.
        ("", vec!["metrics.m DESC", "run_id"], "01234567"),
        ("", vec!["metrics.m", "run_id"], "65342107"),
        ("metrics.m > 0", vec!["metrics.m", "run_id"], "210"),
        ("metrics.m = 0", vec!["run_id"], "34"),
        ("metrics.m < -1e308", vec!["metrics.m", "run_id"], "65"),
        ("metrics.m != 0", vec!["run_id"], "012567"),
    ] {
        assert_eq!(find(&store, filter, &order, (0, 100)).await, expect, "{filter} {order:?}");
    }
}

#[tokio::test]
async fn pages_join_to_the_whole_wherever_they_are_cut() {
    let (_home, store) = planted().await;
    for order in [vec!["metrics.m DESC"], vec!["metrics.m"], vec![], vec!["params.lr"]] {
        for filter in ["", "metrics.m >= 1"] {
            let whole = find(&store, filter, &order, (0, 100)).await;
            for size in 1..=whole.len() {
                let mut joined = String::new();
                for from in (0..whole.len()).step_by(size) {
                    joined += &find(&store, filter, &order, (from, size)).await;
                }
                assert_eq!(joined, whole, "{order:?} {filter} by {size}");
            }
        }
    }
}

#[tokio::test]
async fn a_job_is_a_run_with_the_jobs_status_labels_and_inputs() {
    let (_home, store) = fresh();
    let body =
        r#"{"displayName":"shown","tags":{"team":"a"},"inputs":{"lr":{"jobInputType":"literal","value":"0.1"}}}"#;
    let seq = store.write(|tx| tx.insert_job(&store::NewJob { body: body.into(), ..new_job("train") })).await.unwrap();
    for filter in [
        "tags.team = 'a'",
        "params.lr = '0.1'",
        "run_name = 'shown'",
        "status = 'SCHEDULED'",
        "tags.mlflow.user = 'me'",
    ] {
        assert_eq!(find(&store, filter, &[], (0, 10)).await, "train", "{filter}");
    }
    let started = Timestamp(NOW.0 + 5000);
    let finish = store.write(move |tx| {
        let mut job = tx.job_by_seq(seq)?.unwrap();
        job.apply(JobEvent::Placed(AttemptId::of(seq, 0)), NOW).unwrap();
        tx.put_job(&job, None, NOW)?;
        for (event, at) in [(JobEvent::Started, started), (JobEvent::Over(Outcome::Completed), Timestamp(NOW.0 + 9000))]
        {
            job = tx.job_by_seq(seq)?.unwrap();
            job.apply(event, at).unwrap();
            tx.put_job(&job, None, at)?;
        }
        tx.run("w", "train")
    });
    let run = finish.await.unwrap().unwrap();
    assert_eq!(
        (run.status.as_str(), run.started_at, run.ended_at),
        ("FINISHED", started, Some(Timestamp(NOW.0 + 9000)))
    );
    assert_eq!(find(&store, "status = 'FINISHED' and tags.team = 'a'", &[], (0, 10)).await, "train");
}

#[tokio::test]
async fn a_parameter_keeps_its_first_value() {
    let (_home, store) = planted().await;
    let again = store.write(|tx| {
        let run = tx.run("w", "a")?.unwrap().seq;
        Ok((tx.add_param(run, "lr", "9")?, tx.params_of(&[run])?[&run]["lr"].clone()))
    });
    assert_eq!(again.await.unwrap(), (Some("0.0".into()), "0.0".into()));
}

#[tokio::test]
async fn experiments_have_numbers_of_their_own_workspace() {
    let (_home, store) = fresh();
    let made = store.write(|tx| {
        let mut all = Vec::new();
        for (workspace, name) in [("w", "Default"), ("w", "x"), ("v", "Default"), ("v", "x"), ("w", "y")] {
            all.push(tx.insert_experiment(workspace, name, "", NOW)?.1);
        }
        Ok(all)
    });
    assert_eq!(made.await.unwrap(), [0, 1, 0, 1, 2]);
    let taken = store.write(|tx| tx.insert_experiment("w", "x", "", NOW)).await;
    assert!(matches!(taken, Err(store::Error::Exists)), "{taken:?}");
}
