//! What an operator tells: what its cluster has, what happened to attempts there, what its checks have found.
//!
//! Invariant: news may come twice, late, or about what is over; it is applied once or not at all.

use super::{another, cluster_of};
use crate::{
    app::App,
    auth::Caller,
    http::{
        Body,
        agents::{count, parts, record::Change},
        change,
    },
    problem::Problem,
};
use axum::{Extension, Json, extract::State};
use domain::{
    JobState, Outcome, Timestamp,
    cluster::{AttemptNews, CheckResult, ClusterFacts, ClusterReport, ClusterWhat},
    job::Failure,
};
use serde_json::{Value, json};
use std::sync::Arc;
use store::{Bell, Error, TargetState, Tx, files::Spot};

/// The log that says where parts were put.
const WHERE_LOG: &str = "system_logs/amlarc_cr_bootstrap.log";

/// A line for a log, behind what it holds already.
struct Line {
    spot: Spot,
    offset: u64,
    text: String,
}

pub(crate) async fn report(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(report): Body<ClusterReport>,
) -> Result<Json<Value>, Problem> {
    let name = cluster_of(&caller)?.to_owned();
    let now = app.now();
    // If they have changed since, the next poll says so and they are asked for again.
    let digest = app.watched(&name, |watched| watched.facts.clone());
    let attempts: Vec<_> = report.news.iter().map(|news| news.attempt.clone()).collect();
    let facts = report.facts.map(Arc::new);
    let (cluster, new) = (name.clone(), facts.clone());
    let told = change::change(&app, move |tx| {
        if let Some(facts) = new {
            put_facts(tx, &name, &digest, &facts)?;
        }
        for result in report.checks {
            checked(tx, &name, result, now)?;
        }
        let (mut ended, mut lines) = (Vec::new(), Vec::new());
        for news in report.news {
            let (status, line) = hear(tx, &name, news, now)?;
            ended.extend(status);
            lines.extend(line);
        }
        Ok((ended, lines))
    });
    let (ended, lines) = told.await?;
    if facts.is_some() {
        app.watched(&cluster, |watched| watched.told = facts);
    }
    count(&app, ended);
    write_lines(&app, lines).await?;
    attempts.iter().for_each(|attempt| app.calls.ring(attempt));
    Ok(Json(json!({})))
}

/// Keeps what a cluster has. A token speaks for one cluster, for as long as that lives.
fn put_facts(tx: &mut Tx<'_>, name: &str, digest: &str, facts: &ClusterFacts) -> Result<(), change::Halt> {
    let before = tx.facts(name)?;
    if !before.uid.is_empty() && before.uid != facts.uid {
        return Err(Problem::conflict(another(name, &before.uid, &facts.uid)).into());
    }
    tx.put_facts(name, digest, facts)?;
    tx.ring(Bell::Queue);
    Ok(())
}

fn checked(tx: &mut Tx<'_>, cluster: &str, result: CheckResult, now: Timestamp) -> Result<(), Error> {
    let waits = |row: &store::TargetRow| row.check_id == result.id && row.state == TargetState::Creating;
    let Some(row) = tx.targets_on(cluster)?.into_iter().find(waits) else { return Ok(()) };
    // What the server finds out by itself comes first.
    let mut findings = match tx.cluster(cluster)? {
        Some(cluster) => super::attach::look(tx, &cluster, now)?,
        None => Vec::new(),
    };
    findings.extend(result.findings);
    tx.put_findings(row, findings, result.done, now)
}

/// Applies one piece of news; how its job ended, if it did, and what is to be added to a log.
fn hear(
    tx: &mut Tx<'_>,
    cluster: &str,
    news: AttemptNews,
    now: Timestamp,
) -> Result<(Option<&'static str>, Option<Line>), Error> {
    let attempt = news.attempt;
    let Some(mut change) = Change::of_attempt(tx, &attempt)? else { return Ok((None, None)) };
    // A cluster speaks of its own jobs only.
    if tx.jobs_by_seq(&[change.job.seq])?.first().is_none_or(|row| row.cluster != cluster) {
        return Ok((None, None));
    }
    let at = news.at.min(now).max(change.job.created_at.min(now));
    let mut line = None;
    let mut gang = parts::gang_of(tx, &change.job, &attempt)?;
    match news.what {
        ClusterWhat::Waiting { text } => {
            if matches!(change.job.state, JobState::Placed { .. }) {
                change.notes(text);
            }
            return Ok((change.finish(tx, now)?, None));
        }
        ClusterWhat::Notice { text } => {
            let told = tx.events(change.job.seq)?.iter().any(|event| event.at == at && event.text == text);
            if !told {
                change.notice(tx, text, at)?;
            }
            return Ok((change.finish(tx, now)?, None));
        }
        ClusterWhat::Bound { part, node } => {
            if let Some((before, text)) = gang.bind(part, &node) {
                let which = if gang.count() > 1 { format!("part {part}") } else { "it".to_owned() };
                tx.add_event(change.job.seq, at, "bound", &format!("{which} was given node `{node}`"))?;
                let spot = crate::http::agents::log_spot(&change.job, WHERE_LOG);
                line = spot.ok().map(|spot| Line { spot, offset: before.len() as u64, text });
            }
        }
        ClusterWhat::Gone { part, code, why, retryable } => {
            gang.end(part, Outcome::Failed(Failure { retryable, ..Failure::new(&code, why) }));
        }
    }
    Ok((parts::settle(tx, &attempt, change, gang, now)?, line))
}

/// Logs are no part of the transaction; a line that is there already is not added again.
async fn write_lines(app: &App, lines: Vec<Line>) -> Result<(), Problem> {
    if lines.is_empty() {
        return Ok(());
    }
    let files = app.files.clone();
    let written = tokio::task::spawn_blocking(move || {
        lines.iter().try_for_each(|line| {
            let Ok(room) = files.room(line.spot.workspace(), 0, 0) else { return Ok(()) };
            files.append(&line.spot, line.offset, line.text.as_bytes(), room).map(drop)
        })
    });
    Ok(written.await.map_err(|_| Error::Closed)??)
}
