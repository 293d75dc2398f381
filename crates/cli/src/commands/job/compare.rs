//! Jobs side by side: how they ended, what they were given, what they logged last.

use super::metrics::number;
use crate::{
    args::job::Compare,
    commands::{Context, Session},
    failure::{Doing, Done, Failure},
    output::duration_between,
    outside,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) async fn compare(context: &Context, args: &Compare) -> Done {
    if args.name.len() < 2 {
        return Err(Failure::input("there is nothing to compare with one job").hint("name another with `-n`"));
    }
    let session = context.session().await?;
    let mut runs = Vec::new();
    for name in &args.name {
        runs.push(Side::of(&run(&session, name).await?));
    }
    let mut rows = rows(&runs);
    if args.differing {
        rows.retain(|row| row[1..].iter().any(|cell| *cell != row[1]));
    }
    let heads = std::iter::once("NAME".to_owned()).chain(runs.iter().map(|side| side.name.clone())).collect();
    rows.insert(0, heads);
    context.output.grid(&rows, runs.iter().map(Side::value).collect())
}

/// The run of a job, in MLflow's words: there a job and what it logged are one.
async fn run(session: &Session<'_>, name: &str) -> Done<Value> {
    let id = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
    let path = format!("/mlflow/v1.0{}/api/2.0/mlflow/runs/get?run_id={id}", session.scope.path());
    match session.find(&path).await.doing(|| format!("cannot read job `{name}`"))? {
        Some(found) => Ok(found["run"].clone()),
        None => Err(Failure::input(format!("there is no job `{name}`"))
            .because(format!("workspace `{}` has none of that name", session.scope.workspace))
            .hint("run `peregrine job list`, or name another workspace with `-w`")),
    }
}

/// One of the jobs.
struct Side {
    name: String,
    status: String,
    duration: String,
    params: BTreeMap<String, String>,
    metrics: BTreeMap<String, Value>,
}

impl Side {
    fn of(run: &Value) -> Side {
        let info = &run["info"];
        let pairs = |key: &str| run["data"][key].as_array().cloned().unwrap_or_default();
        let key = |pair: &Value| pair["key"].as_str().unwrap_or_default().to_owned();
        Side {
            name: info["run_id"].as_str().unwrap_or_default().to_owned(),
            status: info["status"].as_str().unwrap_or_default().to_lowercase(),
            duration: duration_between(&info["start_time"], &info["end_time"], outside::now()),
            params: pairs("params").iter().map(|p| (key(p), p["value"].as_str().unwrap_or_default().into())).collect(),
            metrics: pairs("metrics").iter().map(|metric| (key(metric), metric["value"].clone())).collect(),
        }
    }

    fn value(&self) -> Value {
        json!({
            "name": self.name, "status": self.status, "duration": self.duration, "params": self.params,
            "metrics": self.metrics,
        })
    }
}

fn rows(sides: &[Side]) -> Vec<Vec<String>> {
    let row = |head: String, cell: &dyn Fn(&Side) -> String| -> Vec<String> {
        std::iter::once(head).chain(sides.iter().map(cell)).collect()
    };
    let mut rows =
        vec![row("status".into(), &|side| side.status.clone()), row("duration".into(), &|side| side.duration.clone())];
    let params: BTreeSet<&String> = sides.iter().flat_map(|side| side.params.keys()).collect();
    let metrics: BTreeSet<&String> = sides.iter().flat_map(|side| side.metrics.keys()).collect();
    for key in params {
        rows.push(row(format!("params.{key}"), &|side| side.params.get(key).cloned().unwrap_or_default()));
    }
    for key in metrics {
        rows.push(row(format!("metrics.{key}"), &|side| side.metrics.get(key).map(number).unwrap_or_default()));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_job_lacks_is_an_empty_cell() {
        let run = |id: &str, data: Value| json!({"info": {"run_id": id, "status": "FINISHED", "start_time": 0, "end_time": 1500}, "data": data});
        let a =
            run("a", json!({"params": [{"key": "lr", "value": "0.1"}], "metrics": [{"key": "loss", "value": 0.25}]}));
        let b = run("b", json!({"metrics": [{"key": "loss", "value": "NaN"}]}));
        let rows = rows(&[Side::of(&a), Side::of(&b)]);
        let expect = [
            ["status", "finished", "finished"],
            ["duration", "1.5 s", "1.5 s"],
            ["params.lr", "0.1", ""],
            ["metrics.loss", "0.25", "NaN"],
        ];
        assert_eq!(rows, expect);
    }
}
