//! The points of a metric: all of them by pages, or thinned for a chart.

use super::{
    Answer, brief,
    call::{Asker, Call},
    fault::{Fault, read},
    search::{offset, token},
    view,
};
use crate::app::App;
use axum::{Json, extract::State};
use domain::tracking::{Point, limits::Search, points::downsample};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) async fn whole(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.run_id()?;
    let key = call.need("metric_key")?;
    let most = call.most(Search::MetricHistory)?.unwrap_or(usize::MAX);
    let from = offset(&call)?;
    let all = points_of(&app, call.by.clone(), vec![run_id], key.clone()).await?;
    let all = all.into_iter().next().map(|(_, points)| points).unwrap_or_default();
    let page: Vec<Value> = all.iter().skip(from).take(most).map(|point| view::point(&key, point)).collect();
    let next = (from.saturating_add(most) < all.len()).then(|| token(from + most));
    Ok(Json(brief([("metrics", json!(page)), ("next_page_token", json!(next))])))
}

/// The points of a metric of some runs, by run; a run that is not there has none.
async fn points_of(app: &App, by: Asker, ids: Vec<String>, key: String) -> Result<Vec<(String, Vec<Point>)>, Fault> {
    read(app, move |tx| {
        let mut all = Vec::new();
        for run_id in ids {
            if tx.run(by.workspace(), &run_id)?.is_some() {
                let row = by.run(tx, &run_id)?;
                all.push((run_id, tx.history(row.seq, &key)?));
            }
        }
        Ok(all)
    })
    .await
}

/// The runs a call names for a chart, each once.
fn runs_of(call: &Call, name: &str) -> Result<Vec<String>, Fault> {
    let ids = call.texts(name)?;
    if ids.is_empty() {
        return Err(Fault::required(name));
    }
    if ids.len() > CHART_RUNS {
        return Err(Fault::invalid(format!("a request may name at most {CHART_RUNS} runs, and names {}", ids.len())));
    }
    Ok(ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect())
}

/// Points of a metric of several runs.
pub(super) async fn of_runs(State(app): State<App>, call: Call) -> Answer {
    for key in ["run_id", "metric_key"] {
        if !call.args.contains_key(key) {
            return Err(Fault::invalid(format!("the request must name a {key}")));
        }
    }
    let (ids, key) = (runs_of(&call, "run_id")?, call.need("metric_key")?);
    let most = call.int("max_results")?.and_then(|most| usize::try_from(most).ok()).unwrap_or(HISTORY_POINTS);
    let all = points_of(&app, call.by.clone(), ids, key.clone()).await?;
    let points = all.iter().flat_map(|(run, points)| points.iter().map(move |point| (run, point)));
    let shown: Vec<Value> =
        points.take(most.min(HISTORY_POINTS)).map(|(run, point)| with_run(&key, point, run)).collect();
    Ok(Json(json!({"metrics": shown})))
}

fn with_run(key: &str, point: &Point, run: &str) -> Value {
    let mut shown = view::point(key, point);
    shown["run_id"] = json!(run);
    shown
}

/// The most points one call returns of several runs, and a chart gets of each.
const HISTORY_POINTS: usize = 25_000;
const CHART_POINTS: i64 = 2500;
const CHART_RUNS: usize = 100;

/// Points of a metric of several runs, thinned so that a chart shows what all of them would.
pub(super) async fn thinned(State(app): State<App>, call: Call) -> Answer {
    let (ids, key) = (runs_of(&call, "run_ids")?, call.need("metric_key")?);
    let most = call.int("max_results")?.unwrap_or(CHART_POINTS);
    if !(1..=CHART_POINTS).contains(&most) {
        return Err(Fault::invalid(format!("max_results must be between 1 and {CHART_POINTS}.")));
    }
    let (start, end) = (call.int("start_step")?, call.int("end_step")?);
    if start.is_some() != end.is_some() {
        return Err(Fault::invalid("If either start step or end step are specified, both must be specified."));
    }
    if start > end {
        return Err(Fault::invalid("end_step must not be before start_step"));
    }
    let within = start.unwrap_or(i64::MIN)..=end.unwrap_or(i64::MAX);
    let mut all = Vec::new();
    for (run_id, mut points) in points_of(&app, call.by.clone(), ids, key.clone()).await? {
        points.retain(|point| within.contains(&point.step));
        points.sort_by_key(|point| (point.step, point.timestamp_ms));
        let kept = downsample(&points, usize::try_from(most).unwrap_or(1));
        all.extend(kept.iter().map(|point| with_run(&key, point, &run_id)));
    }
    Ok(Json(brief([("metrics", json!(all))])))
}
