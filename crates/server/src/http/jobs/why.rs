//! Why a job is where it is, in words, with its whole story and what its user could do next.

use super::{find, wait};
use crate::{
    app::App,
    http::{At, clusters},
    problem::Problem,
};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::{JobState, Outcome, Timestamp};
use serde_json::{Value, json};
use store::JobRow;

/// Where a job is and why, in words, with its whole story.
pub(crate) async fn why(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (_, row) = find(&app, &at).await?;
    let (wanted, then) = (row.clone(), app.clone());
    let look = app.store.read(move |tx| {
        let seq = wanted.job.seq;
        let wait = wait::of(&then, tx, &wanted)?;
        Ok((tx.events(seq)?, tx.ahead_of(&wanted)?, tx.cluster(&wanted.cluster)?, tx.pool_of(seq)?, wait))
    });
    let (events, ahead, cluster, pool, wait) = look.await?;
    let ahead = if matches!(row.job.state, JobState::Queued { .. } | JobState::Placed { .. }) { ahead } else { 0 };
    let (mut summary, mut hints) = explain(&row, ahead, app.now());
    hints.extend(wait.stays.clone());
    let silent =
        cluster.filter(|cluster| !row.job.state.is_ended() && !cluster.answers(app.now(), clusters::SILENT_MS));
    if let Some(cluster) = silent {
        let heard = cluster.last_heard(app.now());
        if !summary.contains(&heard) {
            summary = format!("{summary}; {heard}, so nothing new is known of it");
        }
        hints.push("is the extension alive? `peregrine extension status`".to_owned());
    }
    let failure = match &row.job.state {
        JobState::Ended { outcome: Outcome::Failed(failure), .. } => Some(failure),
        _ => None,
    };
    let events: Vec<Value> = events.iter().map(|e| json!({"at": e.at.iso(), "kind": e.kind, "text": e.text})).collect();
    Ok(Json(json!({
        "name": row.job.name, "status": row.job.state.status(), "phase": row.job.state.name(), "note": row.note,
        "target": row.target, "pool": pool, "quotas": wait.quotas, "first": wait.first, "expected": wait.expected, "ahead": ahead, "summary": summary, "failure": failure, "hints": hints, "events": events,
    })))
}

/// One sentence on where a job is, and what its user could do next.
fn explain(row: &JobRow, ahead: i64, now: Timestamp) -> (String, Vec<String>) {
    let name = &row.job.name;
    let for_time = |since: Timestamp| domain::time::humane(now.since(since));
    match &row.job.state {
        JobState::Queued { since } | JobState::Placed { since, .. } => {
            let summary = format!("it has waited for {}: {}; {ahead} jobs stand before it", for_time(*since), row.note);
            (
                summary,
                vec![format!(
                    "see what runs: `peregrine job list`, what there is: `peregrine compute show -n {}`",
                    row.target
                )],
            )
        }
        JobState::Preparing { since, .. } => {
            (format!("its node has been preparing for {}: {}", for_time(*since), row.note), vec![])
        }
        JobState::Running { since, .. } => (
            format!("its command has been running for {}", for_time(*since)),
            vec![format!("follow it: `peregrine job stream -n {name}`")],
        ),
        JobState::Finalizing { .. } => ("its command has ended; logs and outputs are being collected".into(), vec![]),
        JobState::Stopping { since, reason, again: true, .. } => (
            format!("it {reason}: asked to stop {} ago, it waits again as soon as it has gone", for_time(*since)),
            vec![],
        ),
        JobState::Stopping { since, .. } => {
            (format!("it was asked to stop {} ago and has not gone yet", for_time(*since)), vec![])
        }
        JobState::Conducting { since } => (
            format!("it has been under way for {}: {}", for_time(*since), row.note),
            vec![format!("see its steps: `peregrine job show -n {name} --graph`")],
        ),
        JobState::Halting { since, .. } => {
            (format!("it was asked to stop {} ago and waits for what it started", for_time(*since)), vec![])
        }
        JobState::Ended { outcome, .. } => match outcome {
            Outcome::Completed if row.reused.is_some() => {
                let original = row.reused.as_deref().unwrap_or_default();
                let hint = "to run it all the same: `properties: {peregrine.reuse: \"false\"}` on the step, or `settings: {force_rerun: true}`";
                (
                    format!("it was not run: job `{original}` is the same in everything that matters"),
                    vec![hint.to_owned()],
                )
            }
            Outcome::Completed => {
                ("it completed".into(), vec![format!("get its files: `peregrine job download -n {name} --all`")])
            }
            Outcome::Canceled { reason } => (format!("it was canceled: {reason}"), vec![]),
            Outcome::Failed(failure) => (
                format!("it failed: {}", failure.message),
                vec![format!("read its log: `peregrine job stream -n {name}`"), hint_for(&failure.code).to_owned()],
            ),
        },
    }
}

fn hint_for(code: &str) -> &'static str {
    match code {
        "UserError.OutOfMemory" | "OutOfMemory" => "choose a larger `resources.instance_type`, or use less memory",
        "UserError.CommandNotFound" => {
            "is the program in the job's `environment`, and the script in its `code` folder?"
        }
        "EnvironmentBuildFailed" => "the build log is `system_logs/environment.log`: `peregrine job stream --all`",
        "DataAccessError" => "does the input exist, and does its datastore hold working credentials?",
        "AttemptLost" | "NodeLost" => "submit it again; `properties: {peregrine.max_retries: \"5\"}` tries more often",
        "Evicted" | "Preempted" | "NodeShutdown" | "Disrupted" => {
            "the cluster took its pods away: submit it again; `properties: {peregrine.max_retries: \"5\"}` tries more often, and \
             an instance type with a higher `priorityClassName` is spared longer"
        }
        "ImagePullFailed" => {
            "does the image exist, and may the cluster's nodes pull it? `image_pull_secrets` on the target names what to pull \
             with"
        }
        "Refused" => "the cluster's own rules refuse its pods: see `docs/guides/kubernetes-troubleshooting.md`",
        "CannotStart" => {
            "does the image have the user, the folders and the libraries that its container is started with?"
        }
        "NotPrepared" => "`kubectl describe pod` says which volume or network its node waits for",
        "DeadlineExceeded" => "raise `limits.timeout`",
        "NodeDiskFull" => "free space on the node; `peregrine doctor` shows how much there is",
        _ => "run the command by hand in the job's `code` folder to see the fault again",
    }
}
