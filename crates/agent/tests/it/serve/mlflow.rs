//! A model that real MLflow has saved, served without a script.

use super::site::{Site, installed, mlflow_model};
use crate::pod::house::skipped;
use domain::{EnvironmentPlan, Place, PlannedInput, assignment::InputMode};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};

/// Two columns with names, one answer; saved with a signature.
const SAVE: &str = "
import sys, mlflow, pandas
from sklearn.linear_model import LinearRegression
table = pandas.DataFrame({'a': [0.0, 1.0, 2.0, 3.0], 'b': [1.0, 0.0, 1.0, 0.0]})
model = LinearRegression().fit(table, 2 * table.a + table.b)
signature = mlflow.models.infer_signature(table, model.predict(table))
mlflow.sklearn.save_model(model, sys.argv[1], signature=signature)
";

/// Saves the model with an MLflow of this machine's tool cache.
fn saved(to: &Path) -> bool {
    let tools = std::path::PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/peregrine/tools");
    let folders = fs::read_dir(tools).into_iter().flatten().flatten();
    let mut pythons: Vec<_> = folders
        .filter(|folder| folder.file_name().to_string_lossy().starts_with("mlflow-2"))
        .flat_map(|folder| ["bin/python", "venv/bin/python"].map(|python| folder.path().join(python)))
        .filter(|python| python.exists())
        .collect();
    pythons.sort();
    let Some(python) = pythons.pop() else { return false };
    let save = Command::new(python).args(["-c", SAVE]).arg(to).output().unwrap();
    assert!(save.status.success(), "{}", String::from_utf8_lossy(&save.stderr));
    true
}

#[test]
fn an_mlflow_model_answers_every_form_of_input_and_refuses_what_is_none() {
    let Some(site) = Site::new() else { return };
    let model = site.path().join("registered/model");
    if !saved(&model) {
        return skipped("MLflow models (no MLflow in the tool cache)");
    }
    let conda = fs::read_to_string(model.join("conda.yaml")).unwrap();
    let own = EnvironmentPlan {
        conda: Some(conda),
        pip: vec!["azureml-inference-server-http".into()],
        ..EnvironmentPlan::default()
    };
    if !installed(&own) {
        return;
    }
    let mut plan = mlflow_model();
    let place = Place::Folder { path: model };
    let input = PlannedInput::Data { place, mode: InputMode::RoMount, uri: "azureml:m:1".into(), file: false };
    plan.inputs.insert("model".into(), input);
    let house = site.house(plan, &[]);
    house.ready();
    let split = json!({"columns": ["a", "b"], "index": [0, 1], "data": [[1, 1], [10, 0]]});
    let records = json!([{"a": 1, "b": 1}, {"b": 0, "a": 10}]);
    for (form, value) in [
        ("input_data", split.clone()),
        ("input_data", records.clone()),
        ("input_data", json!([[1, 1], [10, 0]])),
        ("input_data", json!({"a": [1, 10], "b": [1, 0]})),
        ("dataframe_split", split),
        ("dataframe_records", records),
        ("instances", json!([{"a": 1, "b": 1}, {"a": 10, "b": 0}])),
        ("inputs", json!({"a": [1.0, 10.0], "b": [1.0, 0.0]})),
    ] {
        let (status, body) = house.post("/score", &json!({form: value}).to_string());
        assert_eq!(status, 200, "{form} {value} {body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let predictions = if form == "input_data" { &answer } else { &answer["predictions"] };
        let near = |at: usize, wanted: f64| (predictions[at].as_f64().unwrap() - wanted).abs() < 1e-6;
        assert!(near(0, 3.0) && near(1, 20.0), "{form} {value} {body}");
    }
    for (body, told) in [
        ("not json", "cannot be read"),
        ("[1, 2]", "input_data"),
        ("{}", "input_data"),
        ("{\"input_data\": [[1]]}", "2 values"),
        ("{\"dataframe_split\": {\"data\": 1}}", "`columns`"),
        ("{\"input_data\": {\"columns\": [\"a\"], \"data\": [[1]]}}", "b"),
        ("{\"dataframe_records\": [{\"a\": \"x\", \"b\": \"y\"}]}", "a"),
        ("{\"input_data\": [[1, 1]], \"params\": 3}", "`params`"),
    ] {
        let (status, answer) = house.post("/score", body);
        assert!(status == 400 && answer.contains(told), "{body} {status} {answer}");
    }
}
