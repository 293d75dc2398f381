//! How full a target on a cluster was over time.

use super::{LOCAL, find};
use crate::{
    app::App,
    http::{Asked, At, change},
    problem::Problem,
};
use axum::{
    Json,
    extract::{Path, Query, State},
};
use domain::{Timestamp, cluster::ClusterSample};
use serde_json::{Value, json};
use std::{collections::HashMap, ops::RangeInclusive};

const HOUR_MS: i64 = 3_600_000;
/// Samples are kept for a week.
const HOURS: RangeInclusive<i64> = 1..=168;
const POINTS: RangeInclusive<i64> = 1..=1_000;

/// The last `hours`, cut into as many stretches as `points` says, each shown by its busiest minute.
pub(crate) async fn usage(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (hours, points) = (number(&asked, "hours", 24, HOURS)?, number(&asked, "points", 288, POINTS)?);
    if at.name.eq_ignore_ascii_case(LOCAL) {
        return Err(nothing(&at.name));
    }
    let from = Timestamp(app.now().0 - hours * HOUR_MS);
    let found = change::look(&app, move |tx| {
        let row = find(tx, &workspace.name, &at.name)?;
        let Some(target) = tx.target(&workspace.name, &row.name)? else { return Err(nothing(&row.name).into()) };
        Ok(tx.cluster_samples(&target.cluster, from)?)
    });
    let value: Vec<_> = busiest(found.await?, from, hours * HOUR_MS / points).iter().map(view).collect();
    Ok(Json(json!({"value": value})))
}

fn nothing(name: &str) -> Problem {
    Problem::bad(format!(
        "how full `{name}` was is not kept; it is for targets that lie on a cluster. `peregrine compute list-usage` says how much \
         of everything is in use now"
    ))
}

fn number(asked: &HashMap<String, String>, key: &str, usual: i64, within: RangeInclusive<i64>) -> Result<i64, Problem> {
    let Some(text) = asked.get(key) else { return Ok(usual) };
    let number = text.parse().ok().filter(|number| within.contains(number));
    number.ok_or_else(|| {
        let (least, most) = (within.start(), within.end());
        Problem::bad(format!("`{key}={text}` is not a whole number from {least} to {most}"))
    })
}

/// Of each stretch the sample in which most was in use.
fn busiest(samples: Vec<ClusterSample>, from: Timestamp, stretch_ms: i64) -> Vec<ClusterSample> {
    let place = |sample: &ClusterSample| (sample.at.0 - from.0) / stretch_ms.max(1);
    let busy = |sample: &ClusterSample| {
        let used = sample.room.allocatable.minus(&sample.room.free);
        (used.gpus, used.cpu_milli, used.memory_bytes, sample.waiting)
    };
    let mut all: Vec<ClusterSample> = Vec::new();
    for sample in samples {
        match all.last_mut().filter(|last| place(last) == place(&sample)) {
            Some(last) if busy(&sample) > busy(last) => *last = sample,
            Some(_) => {}
            None => all.push(sample),
        }
    }
    all
}

fn view(sample: &ClusterSample) -> Value {
    json!({
        "at": sample.at.iso(), "nodes": sample.nodes, "readyNodes": sample.ready, "allocatable": sample.room.allocatable,
        "free": sample.room.free, "runningJobs": sample.running, "waitingJobs": sample.waiting,
    })
}
