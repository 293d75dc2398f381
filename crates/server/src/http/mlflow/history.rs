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
use domain::tracking::{
    Point,
    limits::Search,
    points::downsample,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) async fn whole(State(app): State<App>, call: Call) -> Answer {
    let run_id = match call.text("run_id")?.filter(|id| !id.is_empty()) {
        Some(id) => id,
        None => call.need("run_uuid").map_err(|_| Fault::required("run_id"))?,
    };
    let key = call.need("metric_key")?;
    let most = call.most(Search::MetricHistory)?.unwrap_or(usize::MAX);
    let from = offset(&call)?;
    let all = points_of(&app, call.by.clone(), run_id, key.clone()).await?;
    let page: Vec<Value> = all.iter().skip(from).take(most).map(|point| view::point(&key, point)).collect();
    let next = (from.saturating_add(most) < all.len()).then(|| token(from + most));
    Ok(Json(brief([("metrics", json!(page)), ("next_page_token", json!(next))])))
}

async fn points_of(app: &App, by: Asker, run_id: String, key: String) -> Result<Vec<Point>, Fault> {
    read(app, move |tx| {
        let row = by.run(tx, &run_id)?;
        Ok(tx.history(row.seq, &key)?)
    })
    .await
}

/// How many points a chart gets of each run unless it asks for another number, and the most it may ask for.
const CHART_POINTS: i64 = 320;
const CHART_POINTS_MOST: i64 = 2500;
const CHART_RUNS: usize = 100;

/// Points of a metric of several runs, thinned so that a chart shows what all of them would.
pub(super) async fn thinned(State(app): State<App>, call: Call) -> Answer {
    let ids: BTreeSet<String> = call.texts("run_ids")?.into_iter().filter(|id| !id.is_empty()).collect();
    let key = call.need("metric_key")?;
    if ids.is_empty() || ids.len() > CHART_RUNS {
        return Err(Fault::invalid(format!("the request must name between 1 and {CHART_RUNS} runs in 'run_ids'")));
    }
    let most = call.int("max_results")?.unwrap_or(CHART_POINTS);
    if !(1..=CHART_POINTS_MOST).contains(&most) {
        return Err(Fault::invalid(format!("'max_results' must be between 1 and {CHART_POINTS_MOST}")));
    }
    let (start, end) = (call.int("start_step")?, call.int("end_step")?);
    if start.is_some() != end.is_some() || start > end {
        return Err(Fault::invalid("'start_step' and 'end_step' must be given together, the first not after the second"));
    }
    let within = start.unwrap_or(i64::MIN)..=end.unwrap_or(i64::MAX);
    let mut all = Vec::new();
    for run_id in ids {
        let mut points = points_of(&app, call.by.clone(), run_id.clone(), key.clone()).await?;
        points.retain(|point| within.contains(&point.step));
        points.sort_by_key(|point| (point.step, point.timestamp_ms));
        for point in downsample(&points, usize::try_from(most).unwrap_or(1)) {
            let mut shown = view::point(&key, &point);
            shown["run_id"] = json!(run_id);
            all.push(shown);
        }
    }
    Ok(Json(brief([("metrics", json!(all))])))
}
