//! The agents' routes: offers out, reports in.
//!
//! An attempt belongs to its agent until the agent says it is over or the machine is known to have restarted.
//! Invariant: only a job that was never offered, or is still merely placed, is offered; work that an agent
//! once began and no longer knows is recorded as lost, never silently begun again.

use super::Body;
use crate::{
    app::{App, Seen, scope},
    auth::job_token,
    metrics::Labelled,
    problem::Problem,
};
use axum::{Json, extract::State};
use domain::{
    Assignment, AttemptId, Job, JobEvent, JobState, Outcome, Timestamp,
    job::Failure,
    report::{NodeFacts, Poll, PollAnswer, Report, ReportAnswer, ReportBatch, What},
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};
use store::{Bell, Error, Tx, WorkspaceRow};

/// How long a poll waits for something to say.
const WAIT: Duration = Duration::from_secs(20);
/// A node is written down as seen at least this often.
const SEEN_EVERY_MS: i64 = 5_000;
/// All of a node's attempts are compared with what it holds at least this often.
const COMPARE_EVERY_MS: i64 = 2_000;
const KEEP_SAMPLES_MS: i64 = 7 * 24 * 3_600_000;
const TOKEN_LIFE_MS: i64 = 30 * 24 * 3_600_000;

pub(crate) async fn poll(State(app): State<App>, Body(poll): Body<Poll>) -> Result<Json<PollAnswer>, Problem> {
    see(&app, &poll.facts).await?;
    let mut bell = app.store.changed(Bell::Agents);
    let deadline = tokio::time::Instant::now() + WAIT;
    loop {
        bell.mark_unchanged();
        let answer = offers(&app, &poll).await?;
        let something = !(answer.assignments.is_empty() && answer.stop.is_empty() && answer.unknown.is_empty());
        if something || tokio::time::Instant::now() >= deadline {
            return Ok(Json(answer));
        }
        let _ = tokio::time::timeout_at(deadline, bell.changed()).await;
    }
}

/// Notes that a node was heard of. After a restart of its machine, everything it ran is over.
async fn see(app: &App, facts: &NodeFacts) -> Result<(), Problem> {
    let now = app.now();
    {
        let nodes = app.nodes.lock().expect("nothing panics while it holds the table");
        let fresh = |seen: &Seen| seen.facts == *facts && now.0 - seen.written_at.0 < SEEN_EVERY_MS;
        if nodes.get(&facts.node).is_some_and(fresh) {
            return Ok(());
        }
    }
    let written = facts.clone();
    app.store
        .write(move |tx| {
            let before = tx.see_node(&written, now)?;
            if before.is_some_and(|before| before.boot_id != written.boot_id) {
                lose_all(tx, "the machine was restarted while the job was on it", now)?;
            }
            tx.ring(Bell::Queue);
            Ok(())
        })
        .await?;
    let mut nodes = app.nodes.lock().expect("nothing panics while it holds the table");
    let compared_at = nodes.get(&facts.node).map_or(Timestamp(0), |seen| seen.compared_at);
    nodes.insert(facts.node.clone(), Seen { facts: facts.clone(), written_at: now, compared_at });
    Ok(())
}

fn lose_all(tx: &mut Tx<'_>, why: &str, now: Timestamp) -> Result<(), Error> {
    for job in tx.active_jobs()? {
        lose(tx, job, why, now)?;
    }
    Ok(())
}

/// Ends an attempt that nobody runs any more.
fn lose(tx: &mut Tx<'_>, mut job: Job, why: &str, now: Timestamp) -> Result<(), Error> {
    let failure = Failure { retryable: true, ..Failure::new("AttemptLost", why) };
    if job.apply(JobEvent::Over(Outcome::Failed(failure)), now).is_ok() {
        tx.put_job(&job, Some(why), now)?;
        tx.add_event(job.seq, now, "lost", &format!("attempt {} is over: {why}", job.attempts.saturating_sub(1)))?;
    }
    Ok(())
}

async fn offers(app: &App, poll: &Poll) -> Result<PollAnswer, Problem> {
    let now = app.now();
    let holds: HashSet<AttemptId> = poll.holds.iter().cloned().collect();
    let stopping: HashSet<AttemptId> = poll.stopping.iter().cloned().collect();
    let compare = due_for_comparison(app, &poll.facts.node, now);
    let (found, lost) = app
        .store
        .look(move |tx| {
            let mut found = Found::default();
            for attempt in tx.offered("placed")?.into_iter().filter(|attempt| !holds.contains(attempt)) {
                found.offer.extend(assignment(tx, attempt)?);
            }
            let stop = tx.offered("stopping")?;
            found.stop = stop.into_iter().filter(|a| holds.contains(a) && !stopping.contains(a)).collect();
            let lost = if compare { compare_all(tx, &holds, &mut found)? } else { Vec::new() };
            Ok((found, lost))
        })
        .await?;
    if !lost.is_empty() {
        app.store.write(move |tx| settle_lost(tx, lost, now)).await?;
    }
    let mut assignments = Vec::with_capacity(found.offer.len());
    for assignment in found.offer {
        let workspace = app.workspace(&assignment.workspace).await?;
        assignments.push(with_server_variables(app, &workspace, assignment, now));
    }
    Ok(PollAnswer { assignments, stop: found.stop, unknown: found.unknown, leave: false })
}

#[derive(Default)]
struct Found {
    offer: Vec<Assignment>,
    stop: Vec<AttemptId>,
    unknown: Vec<AttemptId>,
}

/// Everything on record against everything the agent holds: jobs it should have and has not, attempts it has and
/// should not.
fn compare_all(tx: &mut Tx<'_>, holds: &HashSet<AttemptId>, found: &mut Found) -> Result<Vec<Job>, Error> {
    let active = tx.active_jobs()?;
    let known: HashSet<&AttemptId> = active.iter().filter_map(|job| job.state.attempt()).collect();
    for attempt in holds.iter().filter(|attempt| !known.contains(attempt)) {
        // An attempt that has ended is only waiting for its receipt.
        let ended = attempt.parts().map(|(seq, _)| tx.job_by_seq(seq)).transpose()?.flatten();
        if ended.is_none() {
            found.unknown.push(attempt.clone());
        }
    }
    let held = |job: &Job| job.state.attempt().is_none_or(|attempt| holds.contains(attempt));
    Ok(active.into_iter().filter(|job| !matches!(job.state, JobState::Placed { .. }) && !held(job)).collect())
}

fn due_for_comparison(app: &App, node: &str, now: Timestamp) -> bool {
    let mut nodes = app.nodes.lock().expect("nothing panics while it holds the table");
    let Some(seen) = nodes.get_mut(node) else { return true };
    let due = now.0 - seen.compared_at.0 >= COMPARE_EVERY_MS;
    if due {
        seen.compared_at = now;
    }
    due
}

/// Attempts the agent does not hold: a stop that never had to reach it is done; anything else is lost.
fn settle_lost(tx: &mut Tx<'_>, lost: Vec<Job>, now: Timestamp) -> Result<(), Error> {
    for seen in lost {
        let Some(mut job) = tx.job_by_seq(seen.seq)?.filter(|job| job.version == seen.version) else { continue };
        match &job.state {
            JobState::Stopping { .. } => {
                let reason = "canceled before its node had begun with it".to_owned();
                if job.apply(JobEvent::Over(Outcome::Canceled { reason: reason.clone() }), now).is_ok() {
                    tx.put_job(&job, Some(&reason), now)?;
                    tx.add_event(job.seq, now, "ended", &reason)?;
                }
            }
            _ => lose(tx, job, "the agent no longer knows of this attempt; its folder on the node was removed", now)?,
        }
    }
    Ok(())
}

/// What the agent is to run, unless the job has moved on meanwhile.
fn assignment(tx: &mut Tx<'_>, attempt: AttemptId) -> Result<Option<Assignment>, Error> {
    let Some(job) = attempt.parts().map(|(seq, _)| tx.job_by_seq(seq)).transpose()?.flatten() else { return Ok(None) };
    if job.state.attempt() != Some(&attempt) {
        return Ok(None);
    }
    let plan = tx.plan(job.seq)?.ok_or_else(|| Error::Decode(format!("job {} has no plan", job.name)))?;
    let mut secrets = BTreeMap::new();
    for datastore in datastores_of(&plan) {
        let secret = tx.datastore_secret(&job.workspace, &datastore)?;
        secrets.insert(datastore, secret);
    }
    let run = tx.run(&job.workspace, job.name.as_str())?;
    let experiment = run.map(|run| tx.experiment(&job.workspace, run.number)).transpose()?.flatten();
    let mut server_variables = BTreeMap::new();
    if let Some(experiment) = experiment {
        server_variables.insert("MLFLOW_EXPERIMENT_ID".to_owned(), experiment.number.to_string());
        server_variables.insert("AZUREML_EXPERIMENT_ID".to_owned(), experiment.number.to_string());
        server_variables.insert("MLFLOW_EXPERIMENT_NAME".to_owned(), experiment.name.clone());
        server_variables.insert("AZUREML_ARM_PROJECT_NAME".to_owned(), experiment.name);
    }
    Ok(Some(Assignment {
        number: job.attempts.saturating_sub(1),
        workspace: job.workspace.clone(),
        job: job.name.clone(),
        priority: job.priority,
        attempt,
        plan,
        part: None,
        secrets,
        server_variables,
    }))
}

fn datastores_of(plan: &domain::Plan) -> HashSet<String> {
    let inputs = plan.inputs.values().filter_map(|input| match input {
        domain::PlannedInput::Data { place, .. } => Some(place),
        domain::PlannedInput::Literal { .. } => None,
    });
    let places = inputs.chain(plan.outputs.values().map(|output| &output.place)).chain(plan.code.iter());
    let places = places.chain(plan.environment.build.iter().map(|(place, _)| place));
    places
        .filter_map(|place| match place {
            domain::Place::Object { datastore, .. } if !datastore.is_empty() => Some(datastore.clone()),
            _ => None,
        })
        .collect()
}

/// What a job's process is told about its workspace and its server.
fn with_server_variables(app: &App, row: &WorkspaceRow, mut assignment: Assignment, now: Timestamp) -> Assignment {
    let expires = Timestamp(now.0 + TOKEN_LIFE_MS);
    let token = job_token(app.store.keyring(), &assignment.workspace, assignment.job.as_str(), expires);
    let job = assignment.job.to_string();
    let mut set = |name: &str, value: String| drop(assignment.server_variables.insert(name.to_owned(), value));
    set("MLFLOW_TRACKING_URI", format!("{}/mlflow/v1.0{}", app.url, scope(row).path()));
    set("MLFLOW_TRACKING_TOKEN", token.clone());
    set("MLFLOW_RUN_ID", job);
    set("AZUREML_ARM_SUBSCRIPTION", row.subscription.clone());
    set("AZUREML_ARM_RESOURCEGROUP", row.resource_group.clone());
    set("AZUREML_WORKSPACE_ID", row.id.clone());
    set("AZUREML_ARM_WORKSPACE_NAME", assignment.workspace.clone());
    set("IDENTITY_ENDPOINT", format!("{}/msi/token", app.url));
    set("IDENTITY_HEADER", token.clone());
    set("ARM_CLOUD_METADATA_URL", format!("{}/metadata/endpoints?api-version=2019-05-01", app.url));
    set("AZUREML_CURRENT_CLOUD", super::identity::CLOUD.to_owned());
    if let Some(bundle) = &app.settings.bundle {
        set("REQUESTS_CA_BUNDLE", bundle.display().to_string());
    }
    set("AZUREML_RUN_TOKEN", token);
    set("AZUREML_RUN_TOKEN_EXPIRY", (expires.0 / 1000).to_string());
    set("AZUREML_SERVICE_ENDPOINT", app.url.clone());
    set("AZUREML_DISCOVERY_SERVICE_ENDPOINT", format!("{}/discovery", app.url));
    assignment
}

pub(crate) async fn report(
    State(app): State<App>,
    Body(batch): Body<ReportBatch>,
) -> Result<Json<ReportAnswer>, Problem> {
    let now = app.now();
    let node = batch.facts.node.clone();
    let (recorded, ended) = app
        .store
        .write(move |tx| {
            if !batch.samples.is_empty() {
                tx.add_samples(&node, &batch.samples, Timestamp(now.0 - KEEP_SAMPLES_MS))?;
            }
            record(tx, batch.reports, now)
        })
        .await?;
    for status in ended {
        app.metrics.ended.get_or_create(&Labelled { is: status.to_owned() }).inc();
    }
    Ok(Json(ReportAnswer { recorded }))
}

/// Applies reports to their jobs, one write a job; the attempts whose end is now on record.
fn record(tx: &mut Tx<'_>, reports: Vec<Report>, now: Timestamp) -> Result<(Vec<AttemptId>, Vec<&'static str>), Error> {
    let mut order: Vec<AttemptId> = Vec::new();
    let mut by_attempt: HashMap<AttemptId, Vec<Report>> = HashMap::new();
    for report in reports {
        let list = by_attempt.entry(report.attempt.clone()).or_default();
        if list.is_empty() {
            order.push(report.attempt.clone());
        }
        list.push(report);
    }
    let (mut recorded, mut ended) = (Vec::new(), Vec::new());
    for attempt in order {
        let reports = by_attempt.remove(&attempt).unwrap_or_default();
        let over = reports.iter().any(|report| matches!(report.what, What::Over { .. }));
        if let Some(status) = record_attempt(tx, &attempt, reports, now)? {
            ended.push(status);
        }
        if over {
            recorded.push(attempt);
        }
    }
    Ok((recorded, ended))
}

fn record_attempt(
    tx: &mut Tx<'_>,
    attempt: &AttemptId,
    reports: Vec<Report>,
    now: Timestamp,
) -> Result<Option<&'static str>, Error> {
    let Some((seq, _)) = attempt.parts() else { return Ok(None) };
    let Some(mut job) = tx.job_by_seq(seq)? else { return Ok(None) };
    // A report may come twice; one that is not about the current attempt is old news.
    if job.state.attempt() != Some(attempt) {
        return Ok(None);
    }
    let (mut note, mut changed, mut isolated) = (None, false, None);
    for Report { at, what, .. } in reports {
        let (event, kind, text) = match what {
            What::Note { text } => {
                note = Some(text);
                continue;
            }
            What::Notice { text } => {
                tx.add_event(seq, at, "notice", &text)?;
                note = Some(text);
                continue;
            }
            What::Preparing => {
                (JobEvent::Preparing, "preparing", "the node prepares code, data and environment".to_owned())
            }
            What::Started { pid } => (JobEvent::Started, "running", format!("the command runs as process {pid}")),
            What::Exited { code, signal } => (JobEvent::Exited, "exited", exit_text(code, signal)),
            What::Over { outcome, isolation } => {
                isolated = Some(isolation);
                let text = over_text(&outcome);
                (JobEvent::Over(outcome), "ended", text)
            }
        };
        if job.apply(event, at).is_ok() {
            changed = true;
            tx.add_event(seq, at, kind, &text)?;
            note = Some(text);
        }
    }
    match (changed, note) {
        (true, note) => tx.put_job(&job, note.as_deref(), now)?,
        (false, Some(note)) => tx.put_note(seq, &note)?,
        (false, None) => {}
    }
    if let Some(isolation) = isolated {
        tx.put_isolation(seq, &isolation)?;
    }
    if matches!(job.state, JobState::Ended { outcome: Outcome::Completed, .. }) {
        super::assets::register_outputs(tx, &job, now)?;
    }
    Ok((changed && job.state.is_ended()).then(|| job.state.status()))
}

fn exit_text(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("the command exited with code {code}; collecting"),
        (None, Some(signal)) => format!("the command was ended by signal {signal}; collecting"),
        (None, None) => "the command has ended; collecting".to_owned(),
    }
}

fn over_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed => "completed; logs and outputs are stored".to_owned(),
        Outcome::Failed(failure) => failure.message.clone(),
        Outcome::Canceled { reason } => reason.clone(),
    }
}
