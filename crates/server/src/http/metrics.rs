//! What a job has logged: all at once, or as it comes over server-sent events.
//!
//! A stream begins with what there is, thinned, and goes on with every point that is logged from then on. Each event
//! names the last request it tells of, so a client that was cut off resumes where it was. Where requests were folded in
//! between, what there is is sent anew.

use super::{Asked, At, mlflow::view};
use crate::{app::App, problem::Problem};
use axum::{
    Json,
    body::{Body, Bytes},
    extract::{Path, Query, State},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use domain::tracking::{Point, RunStatus, points};
use futures_util::stream;
use serde_json::{Value, json};
use std::{collections::HashMap, convert::Infallible, time::Duration};
use store::{Bell, Error, RunRow, Since, Tx};
use tokio::sync::watch;

/// Points of one metric unless asked otherwise, and the most of them; metrics shown at once.
const POINTS: usize = 200;
const MOST_POINTS: usize = 2500;
const MOST_KEYS: usize = 1000;
/// A silent stream says this often that it is alive; a busy one rests this long between two events.
const ALIVE: Duration = Duration::from_secs(15);
const REST: Duration = Duration::from_millis(200);

/// What is asked of a run.
#[derive(Debug, Clone)]
struct Wanted {
    workspace: String,
    run_id: String,
    points: usize,
    /// Only this metric.
    key: Option<String>,
}

pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
) -> Result<Json<Value>, Problem> {
    let wanted = wanted(&app, &at, &asked).await?;
    let found = app.store.read(move |tx| run(tx, &wanted)?.map(|run| snapshot(tx, &wanted, &run)).transpose()).await?;
    found.map(Json).ok_or_else(|| Problem::not_found("job", &at.name))
}

async fn wanted(app: &App, at: &At, asked: &HashMap<String, String>) -> Result<Wanted, Problem> {
    let workspace = app.workspace(&at.workspace).await?.name.clone();
    let points = match asked.get("points") {
        None => POINTS,
        Some(text) => text.parse().ok().filter(|n| (1..=MOST_POINTS).contains(n)).ok_or_else(|| {
            Problem::bad(format!("`points` is `{text}`; it must be a number from 1 to {MOST_POINTS}"))
        })?,
    };
    Ok(Wanted { workspace, run_id: at.name.clone(), points, key: asked.get("key").cloned() })
}

fn run(tx: &mut Tx<'_>, wanted: &Wanted) -> Result<Option<RunRow>, Error> {
    tx.run(&wanted.workspace, &wanted.run_id)
}

/// Every metric with its latest value and a line to draw.
fn snapshot(tx: &mut Tx<'_>, wanted: &Wanted, run: &RunRow) -> Result<Value, Error> {
    let mut latest = tx.latest_of(&[run.seq])?.remove(&run.seq).unwrap_or_default();
    latest.retain(|latest| wanted.key.as_ref().is_none_or(|key| latest.key == *key));
    let left_out = latest.len().saturating_sub(MOST_KEYS);
    let mut value = Vec::new();
    for latest in latest.into_iter().take(MOST_KEYS) {
        let mut history = tx.history(run.seq, &latest.key)?;
        history.sort_by_key(|point| (point.step, point.timestamp_ms));
        let (low, high) = extremes(&history);
        value.push(json!({
            "key": latest.key, "latest": shown(&latest.point), "count": history.len(), "min": low, "max": high,
            "points": points::downsample(&history, wanted.points).iter().map(shown).collect::<Vec<_>>(),
        }));
    }
    Ok(json!({"name": run.run_id, "status": run.status, "value": value, "leftOut": left_out}))
}

fn extremes(history: &[Point]) -> (Option<f64>, Option<f64>) {
    let numbers = || history.iter().map(|point| point.value).filter(|value| !value.is_nan());
    (numbers().min_by(f64::total_cmp), numbers().max_by(f64::total_cmp))
}

fn shown(point: &Point) -> Value {
    json!({"step": point.step, "timestamp": point.timestamp_ms, "value": view::value(point.value)})
}

/// What a stream knows between two events.
struct Following {
    app: App,
    wanted: Wanted,
    points: watch::Receiver<u64>,
    jobs: watch::Receiver<u64>,
    /// The last request that was told of; `None` before the first event.
    last: Option<i64>,
    over: bool,
}

pub(crate) async fn stream(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wanted = wanted(&app, &at, &asked).await?;
    let looked = wanted.clone();
    if app.store.read(move |tx| run(tx, &looked)).await?.is_none() {
        return Err(Problem::not_found("job", &at.name));
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let (points, jobs) = (app.store.changed(Bell::Points), app.store.changed(Bell::Jobs));
    let following = Following { app, wanted, points, jobs, last, over: false };
    let events = stream::unfold(following, |mut following| async move {
        let text = following.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), following))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((kind, Body::from_stream(events)).into_response())
}

impl Following {
    /// The next words of the stream; `None` when it is over.
    async fn next(&mut self) -> Option<String> {
        if self.over {
            return None;
        }
        loop {
            self.points.mark_unchanged();
            self.jobs.mark_unchanged();
            let (wanted, last) = (self.wanted.clone(), self.last);
            let news = self.app.store.read(move |tx| news(tx, &wanted, last)).await;
            match news {
                Ok(Some(News { text, last, over })) => {
                    self.last = Some(last);
                    self.over = over;
                    if !text.is_empty() {
                        tokio::time::sleep(REST).await;
                        return Some(text);
                    }
                }
                // The run is gone: nothing will come any more.
                Ok(None) => return None,
                Err(error) => {
                    Problem::from(error).log();
                    return None;
                }
            }
            let rung = async {
                tokio::select! { rung = self.points.changed() => rung, rung = self.jobs.changed() => rung }
            };
            match tokio::time::timeout(ALIVE, rung).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some(": alive\n\n".to_owned()),
            }
        }
    }
}

/// What there is to tell after a request.
struct News {
    text: String,
    last: i64,
    over: bool,
}

fn news(tx: &mut Tx<'_>, wanted: &Wanted, last: Option<i64>) -> Result<Option<News>, Error> {
    let Some(run) = run(tx, wanted)? else { return Ok(None) };
    let Since { last: now, gap, mut points } = tx.points_since(run.seq, last.unwrap_or(-1))?;
    points.retain(|key, _| wanted.key.as_ref().is_none_or(|only| only == key));
    let mut text = String::new();
    if last.is_none() || gap {
        text += &event("metrics", now, &snapshot(tx, wanted, &run)?);
    } else if !points.is_empty() {
        let value: Vec<Value> = points
            .iter()
            .map(|(key, points)| json!({"key": key, "points": points.iter().map(shown).collect::<Vec<_>>()}))
            .collect();
        text += &event("points", now, &json!({"value": value}));
    }
    let over = RunStatus::parse(&run.status).is_ok_and(RunStatus::is_terminal);
    if over {
        text += &event("end", now, &json!({"status": run.status}));
    }
    Ok(Some(News { text, last: now, over }))
}

fn event(name: &str, id: i64, data: &Value) -> String {
    format!("event: {name}\nid: {id}\ndata: {data}\n\n")
}
