//! What a job has logged: all at once, or as it comes over server-sent events.
//!
//! A stream begins with what there is, thinned, and goes on with every point that is logged from then on. Each event
//! names the last request it tells of, so a client that was cut off resumes where it was. Where requests were folded in
//! between, what there is is sent anew.

use super::{Asked, At};
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
use serde::{Serialize, Serializer};
use serde_json::json;
use std::{collections::HashMap, convert::Infallible, time::Duration};
use store::{Bell, Error, Latest, RunRow, Since, Tx};
use tokio::{sync::watch, time::Instant};

/// Points of one metric unless asked otherwise, and the most of them; metrics shown at once.
const POINTS: usize = 200;
const MOST_POINTS: usize = 2500;
const MOST_KEYS: usize = 1000;
/// Other runs that are answered with one.
const MOST_ALSO: usize = 50;
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
    /// Only those with this in their name.
    part: Option<String>,
}

impl Wanted {
    fn has(&self, key: &str) -> bool {
        self.key.as_ref().is_none_or(|only| only == key) && self.part.as_ref().is_none_or(|part| key.contains(part))
    }
}

pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
) -> Result<Json<Snapshot>, Problem> {
    let wanted = wanted(&app, &at, &asked).await?;
    let others = others(&asked)?;
    let found = app.store.read(move |tx| {
        let Some(mut first) = of_run(tx, &wanted)? else { return Ok(None) };
        for run_id in others {
            first.also.extend(of_run(tx, &Wanted { run_id, ..wanted.clone() })?);
        }
        Ok(Some(first))
    });
    found.await?.map(Json).ok_or_else(|| Problem::not_found("job", &at.name))
}

/// The runs that are asked for along with the one in the path.
fn others(asked: &HashMap<String, String>) -> Result<Vec<String>, Problem> {
    let names = asked.get("also").map_or("", String::as_str).split(',').filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(str::to_owned).collect();
    if names.len() > MOST_ALSO {
        let message = format!("`also` names {} runs; one answer has at most {MOST_ALSO} of them", names.len());
        return Err(Problem::bad(message));
    }
    Ok(names)
}

fn of_run(tx: &mut Tx<'_>, wanted: &Wanted) -> Result<Option<Snapshot>, Error> {
    run(tx, wanted)?.map(|run| snapshot(tx, wanted, &run)).transpose()
}

async fn wanted(app: &App, at: &At, asked: &HashMap<String, String>) -> Result<Wanted, Problem> {
    let workspace = app.workspace(&at.workspace).await?.name.clone();
    let points = match asked.get("points") {
        None => POINTS,
        Some(text) => text.parse().ok().filter(|n| (1..=MOST_POINTS).contains(n)).ok_or_else(|| {
            Problem::bad(format!("`points` is `{text}`; it must be a number from 1 to {MOST_POINTS}"))
        })?,
    };
    Ok(Wanted {
        workspace,
        run_id: at.name.clone(),
        points,
        key: asked.get("key").cloned(),
        part: asked.get("part").cloned(),
    })
}

fn run(tx: &mut Tx<'_>, wanted: &Wanted) -> Result<Option<RunRow>, Error> {
    tx.run(&wanted.workspace, &wanted.run_id)
}

/// What there is of a run. Typed, not a tree of values: a chart has thousands of points.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Snapshot {
    name: String,
    status: String,
    value: Vec<Line>,
    /// How many metrics are not among them.
    left_out: usize,
    /// The other runs that were asked for, as far as they exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<Snapshot>,
}

/// A metric with its latest value and its range.
#[derive(Serialize)]
struct Line {
    key: String,
    latest: Dot,
    count: usize,
    min: Option<f64>,
    max: Option<f64>,
    points: Vec<Dot>,
}

/// Points of a metric that have come.
#[derive(Serialize)]
struct News<'n> {
    key: &'n str,
    points: Vec<Dot>,
}

#[derive(Serialize)]
struct Dot {
    step: i64,
    timestamp: i64,
    #[serde(serialize_with = "value")]
    value: f64,
}

impl From<&Point> for Dot {
    fn from(point: &Point) -> Dot {
        Dot { step: point.step, timestamp: point.timestamp_ms, value: point.value }
    }
}

/// As MLflow's answers have it: what is not a number is a word.
fn value<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    if value.is_nan() { to.serialize_str("NaN") } else { to.serialize_f64(*value) }
}

/// Every metric with its latest value and a line to draw.
fn snapshot(tx: &mut Tx<'_>, wanted: &Wanted, run: &RunRow) -> Result<Snapshot, Error> {
    let mut latest = tx.latest_of(&[run.seq])?.remove(&run.seq).unwrap_or_default();
    latest.retain(|latest| wanted.has(&latest.key));
    let left_out = latest.len().saturating_sub(MOST_KEYS);
    latest.truncate(MOST_KEYS);
    let (mut value, mut known) = (Vec::with_capacity(latest.len()), latest.iter());
    tx.histories(run.seq, latest.iter().map(|latest| latest.key.as_str()), |history| {
        value.extend(known.next().map(|latest| line(latest, history, wanted.points)));
    })?;
    Ok(Snapshot { name: run.run_id.clone(), status: run.status.clone(), value, left_out, also: Vec::new() })
}

fn line(latest: &Latest, mut history: Vec<Point>, most: usize) -> Line {
    history.sort_by_key(|point| (point.step, point.timestamp_ms));
    let (min, max) = extremes(&history);
    Line {
        key: latest.key.clone(),
        latest: Dot::from(&latest.point),
        count: history.len(),
        min,
        max,
        points: points::downsample(&history, most).iter().map(Dot::from).collect(),
    }
}

fn extremes(history: &[Point]) -> (Option<f64>, Option<f64>) {
    let numbers = || history.iter().map(|point| point.value).filter(|value| !value.is_nan());
    (numbers().min_by(f64::total_cmp), numbers().max_by(f64::total_cmp))
}

/// What a stream knows between two events.
struct Following {
    app: App,
    wanted: Wanted,
    points: watch::Receiver<u64>,
    jobs: watch::Receiver<u64>,
    /// The last request that was told of; `None` before the first event.
    last: Option<i64>,
    /// When there may be another event: at once for the first.
    rested_at: Instant,
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
    let following = Following { app, wanted, points, jobs, last, rested_at: Instant::now(), over: false };
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
        tokio::time::sleep_until(self.rested_at).await;
        loop {
            self.points.mark_unchanged();
            self.jobs.mark_unchanged();
            let (wanted, last) = (self.wanted.clone(), self.last);
            let news = self.app.store.read(move |tx| news(tx, &wanted, last)).await;
            match news {
                Ok(Some(Told { text, last, over })) => {
                    self.last = Some(last);
                    self.over = over;
                    if !text.is_empty() {
                        self.rested_at = Instant::now() + REST;
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
struct Told {
    text: String,
    last: i64,
    over: bool,
}

fn news(tx: &mut Tx<'_>, wanted: &Wanted, last: Option<i64>) -> Result<Option<Told>, Error> {
    let Some(run) = run(tx, wanted)? else { return Ok(None) };
    // Who knows nothing yet is told what there is, not how it came.
    let Since { last: now, gap, mut points } = match last {
        Some(last) => tx.points_since(run.seq, last)?,
        None => Since { last: tx.last_points(run.seq)?, ..Since::default() },
    };
    points.retain(|key, _| wanted.has(key));
    let mut text = String::new();
    if last.is_none() || gap {
        text += &event("metrics", now, &snapshot(tx, wanted, &run)?);
    } else if !points.is_empty() {
        let value = points.iter().map(|(key, points)| News { key, points: points.iter().map(Dot::from).collect() });
        text += &event("points", now, &json!({"value": value.collect::<Vec<_>>()}));
    }
    let over = RunStatus::parse(&run.status).is_ok_and(RunStatus::is_terminal);
    if over {
        text += &event("end", now, &json!({"status": run.status}));
    }
    Ok(Some(Told { text, last: now, over }))
}

fn event(name: &str, id: i64, data: &impl Serialize) -> String {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\nid: {id}\ndata: {data}\n\n")
}
