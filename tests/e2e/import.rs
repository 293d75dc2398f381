//! A store that MLflow's own client wrote, brought in by `peregrine import mlflow`: nothing is lost, nothing comes twice, and
//! what is not as it was is told.

use crate::{
    faults::door::Door,
    harness::{Home, Said, said},
    sdk::venv,
};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};

const VERSION: &str = "3.17.2";
const FROM: &str = "sqlite:///mlflow.db";

/// A home with a store beside it, and the ids in the store.
fn store() -> Option<(Home, Value)> {
    let Some(python) = venv::with("mlflow", VERSION, &[]) else {
        crate::skip::skip(&format!("mlflow {VERSION} is not kept here and the package index cannot be reached"));
        return None;
    };
    let home = Home::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mlflow/store.py");
    let mut write = Command::new("timeout");
    write.arg("200").arg(python).arg(script).args(["mlflow.db", "artifacts"]).current_dir(home.path());
    let told = said(write.env_remove("PYTHONPATH").output().unwrap());
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
    let ids = serde_json::from_str(told.out.lines().last().unwrap()).unwrap();
    Some((home, ids))
}

fn import(home: &Home, more: &[&str]) -> Said {
    let mut args = vec!["import", "mlflow", "--from", FROM, "-o", "json"];
    args.extend(more);
    home.run(&args)
}

/// One column of the table, by row.
fn column(report: &Value, name: &str) -> Vec<(String, u64)> {
    let rows = report["counts"].as_array().unwrap();
    rows.iter().map(|row| (row["what"].as_str().unwrap().to_owned(), row[name].as_u64().unwrap())).collect()
}

struct Asked<'a> {
    home: &'a Home,
    door: Door,
}

impl Asked<'_> {
    fn ask(&self, method: &str, call: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let path = format!("/api/2.0/mlflow/{call}");
        let (status, answer) = self.door.ask(method, &path, Some(&self.home.token("user")), &body);
        assert_eq!(status, 200, "{call}: {answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn get(&self, call: &str) -> Value {
        self.ask("GET", call, &Value::Null)
    }

    fn run(&self, id: &Value) -> Value {
        self.get(&format!("runs/get?run_id={}", id.as_str().unwrap()))["run"].take()
    }
}

fn pair(list: &Value, key: &str) -> Value {
    let list = list.as_array().unwrap();
    list.iter().find(|one| one["key"] == key).map_or(Value::Null, |one| one["value"].clone())
}

#[test]
fn a_store_of_mlflow_comes_over_whole_and_only_once() {
    let Some((home, ids)) = store() else { return };
    let source = fs::read(home.path().join("mlflow.db")).unwrap();
    let door = home.open_door();
    let first = import(&home, &[]);
    assert_eq!(first.code, Some(0), "{}\n{}", first.out, first.err);
    let report: Value = serde_json::from_str(&first.out).unwrap();
    assert!(report["counts"].as_array().unwrap().iter().all(|row| row["verified"] == true), "{report}");
    let counts = column(&report, "source");
    for (what, least) in [
        ("experiments", 6),
        ("runs", 9),
        ("params", 252),
        ("metric points", 5011),
        ("artifact files", 6),
        ("aliases", 2),
    ] {
        assert!(counts.contains(&(what.to_owned(), least)), "{what} {least}: {counts:?}");
    }
    assert_eq!(report["differences"], json!([]));
    let asked = Asked { home: &home, door };
    has_what_was_logged(&asked, &ids);
    has_the_models(&asked, &ids);
    comes_once(&home, &asked, &ids);
    assert_eq!(fs::read(home.path().join("mlflow.db")).unwrap(), source, "the source is as it was");
}

fn has_what_was_logged(asked: &Asked<'_>, ids: &Value) {
    let run = asked.run(&ids["run"]);
    let info = &run["info"];
    assert_eq!(info["status"], "FINISHED");
    assert_eq!(
        (&info["start_time"], &info["end_time"]),
        (&json!(1_700_000_000_000_i64), &json!(1_700_000_200_000_i64))
    );
    assert_eq!(pair(&run["data"]["tags"], "note"), "line one\nline two: é 日本");
    assert_eq!(pair(&run["data"]["tags"], "peregrine.imported_from"), FROM);
    assert_eq!(pair(&run["data"]["tags"], "peregrine.import_unfinished"), Value::Null);
    assert_eq!(pair(&run["data"]["params"], "p249"), "v".repeat(249));
    assert_eq!(run["inputs"]["dataset_inputs"][0]["dataset"]["name"], "birds");
    let history = |key: &str| {
        let id = ids["run"].as_str().unwrap();
        asked.get(&format!("metrics/get-history?run_id={id}&metric_key={key}"))["metrics"].as_array().unwrap().clone()
    };
    assert_eq!(history("loss").len(), 5002);
    let odd: Vec<Value> = history("odd").iter().map(|point| point["value"].clone()).collect();
    assert!(odd.contains(&json!("NaN")) && odd.contains(&json!(f64::MAX)) && odd.contains(&json!(f64::MIN)), "{odd:?}");
    for (child, status) in [(&ids["children"][0], "FAILED"), (&ids["children"][1], "KILLED")] {
        let child = asked.run(child);
        assert_eq!(child["info"]["status"], status);
        assert_eq!(pair(&child["data"]["tags"], "mlflow.parentRunId"), ids["run"]);
    }
    assert_eq!(asked.run(&ids["deleted"])["info"]["lifecycle_stage"], "deleted");
    assert_eq!(asked.run(&ids["running"])["info"]["status"], "RUNNING");
    assert_eq!(asked.run(&ids["in_default"])["info"]["experiment_id"], "0");
    let gone = asked.get("experiments/get-by-name?experiment_name=gone");
    assert_eq!(gone["experiment"]["lifecycle_stage"], "deleted");
    let away = asked.get("experiments/get-by-name?experiment_name=away");
    assert_eq!(away["experiment"]["artifact_location"], "s3://bucket/path", "clients read there as before");
    let files = asked.home.artifacts(ids["run"].as_str().unwrap());
    let original = fs::read(asked.home.path().join("made/deep/er/large.bin")).unwrap();
    assert!(fs::read(files.join("data/deep/er/large.bin")).unwrap() == original, "the bytes are the same");
}

fn has_the_models(asked: &Asked<'_>, ids: &Value) {
    let model = asked.get("registered-models/get?name=birds");
    assert_eq!(model["registered_model"]["description"], "tells birds apart");
    let number = asked.run(&ids["run"])["info"]["experiment_id"].as_str().unwrap().to_owned();
    let version =
        |alias: &str| asked.get(&format!("registered-models/alias?name=birds&alias={alias}"))["model_version"].take();
    let (old, champion) = (version("old"), version("champion"));
    assert_eq!((&old["version"], &old["current_stage"]), (&json!("1"), &json!("Production")));
    let source = format!("mlflow-artifacts:/{number}/{}/artifacts/data", ids["run"].as_str().unwrap());
    assert_eq!(old["source"], json!(source));
    assert_eq!(champion["version"], "3", "a number whose version was deleted stays free");
    assert_eq!(champion["source"], json!(format!("models:/{}", ids["model"].as_str().unwrap())));
    let next = json!({"name": "birds", "source": source, "run_id": ids["run"]});
    assert_eq!(asked.ask("POST", "model-versions/create", &next)["model_version"]["version"], "4");
    let logged = asked.get(&format!("logged-models/{}", ids["model"].as_str().unwrap()))["model"].take();
    assert_eq!(logged["data"]["metrics"][0]["value"], 0.9);
}

/// Nothing is new the second time; what was cut short or not found the first time is made good.
fn comes_once(home: &Home, asked: &Asked<'_>, ids: &Value) {
    let new = |said: Said| {
        assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
        let report: Value = serde_json::from_str(&said.out).unwrap();
        column(&report, "new").into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>()
    };
    assert_eq!(new(import(home, &[])), []);
    let (run, tag) = (&ids["running"], "peregrine.import_unfinished");
    asked.ask("POST", "runs/set-tag", &json!({"run_id": run, "key": tag, "value": "true"}));
    asked.ask("POST", "runs/delete-tag", &json!({"run_id": run, "key": "mlflow.runName"}));
    let again = new(import(home, &[]));
    assert!(again.contains(&("runs".to_owned(), 1)), "{again:?}");
    assert_eq!(pair(&asked.run(run)["data"]["tags"], "mlflow.runName"), "running");
    assert_eq!(new(import(home, &["--artifacts", "artifacts"])), [("artifact files".to_owned(), 1)]);
    let kept = home.artifacts(ids["served"].as_str().unwrap()).join("kept.txt");
    assert_eq!(fs::read_to_string(kept).unwrap(), "kept by a server");
    assert_eq!(new(import(home, &["--artifacts", "artifacts"])), []);
}

#[test]
fn an_import_says_what_it_would_do_and_what_it_cannot() {
    let Some((home, ids)) = store() else { return };
    let dry = import(&home, &["--dry-run", "--experiment", "second"]);
    assert_eq!(dry.code, Some(0), "{}", dry.err);
    let report: Value = serde_json::from_str(&dry.out).unwrap();
    assert!(column(&report, "source").contains(&("runs".to_owned(), 2)), "{report}");
    assert!(home.pid("server").is_none(), "nothing was started");
    home.file("text.db", "this is not a database, and longer than the head of one would be: ".repeat(3).as_str());
    fs::write(home.path().join("empty.db"), "").unwrap();
    for (args, words) in [
        (&["--from", "sqlite:///none.db"][..], &["no file `none.db`"][..]),
        (&["--from", "text.db"], &["`text.db` is not a SQLite database", "--backend-store-uri"]),
        (&["--from", "empty.db"], &["is not a database of MLflow", "`experiments`"]),
        (&["--from", "postgresql://me:pass@host/db"], &["only SQLite"]),
        (&["--from", "artifacts"], &["is a folder", "migrate-filestore"]),
        (&["--from", FROM, "--experiment", "third"], &["no experiment `third`", "`second`"]),
        (&["--from", FROM, "--artifacts", "nowhere"], &["no folder `nowhere`"]),
    ] {
        let told = home.run(&[&["import", "mlflow"], args].concat());
        told.must(2, words);
        assert!(!told.err.contains("pass"), "{}", told.err);
    }
    differing_is_told(&home, &ids);
}

/// A value that the server cannot keep whole is found when it is read back.
fn differing_is_told(home: &Home, ids: &Value) {
    let python = venv::with("mlflow", VERSION, &[]).unwrap();
    let change = "import sqlite3; db = sqlite3.connect('mlflow.db'); \
                  db.execute(\"update params set value = ? where key = 'a'\", ('x' * 7000,)); db.commit()";
    let told = said(Command::new(python).args(["-c", change]).current_dir(home.path()).output().unwrap());
    assert_eq!(told.code, Some(0), "{}", told.err);
    let told = import(home, &["--experiment", "second"]);
    told.must(5, &["not what the source has", "differ in params", "`a`", ids["deleted"].as_str().unwrap()]);
    let report: Value = serde_json::from_str(&told.out).unwrap();
    let params = report["counts"].as_array().unwrap().iter().find(|row| row["what"] == "params").unwrap();
    assert_eq!(params["verified"], false, "{params}");
}
