//! The agents' routes: offers out, reports in.
//!
//! An attempt belongs to its agent until the agent says it is over or the machine is known to have restarted. This
//! machine's agent holds many, and that of a node of a managed cluster what was given to the node; elsewhere an agent is
//! started for one attempt, or a part of one, and its token is good for that alone. Invariant: only a job that was never offered, or is still merely placed, is offered; work that an agent
//! once began and no longer knows is recorded as lost, never silently begun again.

mod assignment;
mod local;
mod logs;
pub(super) mod nodes;
pub(crate) mod parts;
mod peers;
pub(crate) mod places;
pub(crate) mod record;

pub(crate) use logs::{log, spot as log_spot};
pub(crate) use peers::peers;

use super::Body;
use crate::{
    app::App,
    auth::{Caller, Who},
    metrics::Labelled,
    problem::Problem,
};
use axum::{Extension, Json, extract::State, http::HeaderMap};
use domain::{
    Timestamp,
    report::{Poll, PollAnswer, ReportAnswer, ReportBatch},
};
use std::time::Duration;

/// How long a poll waits for something to say.
pub(crate) const WAIT: Duration = Duration::from_secs(20);
const KEEP_SAMPLES_MS: i64 = 7 * 24 * 3_600_000;

pub(crate) async fn poll(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(poll): Body<Poll>,
) -> Result<Json<PollAnswer>, Problem> {
    let answer = match &caller.who {
        Who::Attempt(attempt) => parts::poll(&app, attempt, &poll, &app.reached_by(&headers)).await,
        Who::Machine { cluster, machine, .. } => {
            nodes::poll(&app, (cluster, machine), &poll, &app.reached_by(&headers)).await
        }
        _ => local::poll(&app, &poll).await,
    };
    answer.map(Json)
}

pub(crate) async fn report(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(batch): Body<ReportBatch>,
) -> Result<Json<ReportAnswer>, Problem> {
    let batch = batch.heard_at(app.now());
    match &caller.who {
        Who::Attempt(attempt) => return parts::report(&app, attempt, batch).await.map(Json),
        Who::Machine { cluster, machine, .. } => {
            return nodes::report(&app, (cluster, machine), batch).await.map(Json);
        }
        _ => {}
    }
    let now = app.now();
    let node = batch.facts.node.clone();
    let (recorded, ended, moved) = app
        .store
        .write(move |tx| {
            if !batch.samples.is_empty() {
                tx.add_samples(&node, &batch.samples, Timestamp(now.0 - KEEP_SAMPLES_MS))?;
            }
            let moved = record::moved(tx, 0, &batch.reports)?;
            record::all(tx, batch.reports, "the node", now).map(|(recorded, ended)| (recorded, ended, moved))
        })
        .await?;
    count(&app, ended);
    app.metrics.moved(&moved);
    Ok(Json(ReportAnswer { recorded }))
}

/// Counts jobs that have ended, by how.
pub(crate) fn count(app: &App, ended: impl IntoIterator<Item = &'static str>) {
    for status in ended {
        app.metrics.ended.get_or_create(&Labelled { is: status.to_owned() }).inc();
    }
}
