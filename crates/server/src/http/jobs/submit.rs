//! Submitting: a body is read, checked, resolved and stored in one transaction, so that what it refers to is there.

use super::update::{Labels, change};
use crate::{app::App, http::sharing, problem::Problem, resolve};
use api::arm;
use domain::{
    JobName, JobState, Plan, Search,
    pipeline::StepJob,
    sharing::Holder,
    spec::{Mistake, check},
};
use serde::Serialize;
use serde_json::Value;
use store::{Error, JobRow, NOWHERE, NewJob, Tx, WorkspaceRow};

/// The experiment of jobs that name none.
pub(crate) const DEFAULT_EXPERIMENT: &str = "Default";

/// What became of a submit.
pub(crate) enum Submitted {
    Accepted(Box<JobRow>),
    /// A job of that name is there already, and has new labels now.
    Changed(Box<JobRow>),
    Refused(Problem),
}

/// Accepts a new job, or changes the labels of one that is there.
pub(crate) fn submit(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    name: JobName,
    properties: &Value,
    by: String,
) -> Result<Submitted, Error> {
    if let Some(row) = tx.job(&workspace.name, name.as_str())? {
        return Ok(match change(tx, row, properties, Labels::Replaced, app.now())? {
            Ok(row) => Submitted::Changed(Box::new(row)),
            Err(problem) => Submitted::Refused(problem),
        });
    }
    let (new, leader) = match prepare(app, workspace, tx, (&name, properties), by)? {
        Ok(new) => new,
        Err(mistakes) => return Ok(Submitted::Refused(Problem::mistakes(&format!("job `{name}`"), &mistakes))),
    };
    let seq = tx.insert_job(&new)?;
    match leader {
        Some(Leader::Pool(pooled)) => {
            tx.put_choices(seq, &pooled.choices)?;
            if !pooled.notice.is_empty() {
                tx.add_event(seq, new.at, "notice", &pooled.notice)?;
            }
        }
        Some(leader) => {
            tx.put_conductor(seq, &leader)?;
            if let Leader::Graph(woven) = &leader {
                tx.add_components(seq, &woven.components)?;
            }
        }
        None => {}
    }
    Ok(Submitted::Accepted(Box::new(born(seq, new))))
}

/// Reads, checks and resolves a job without accepting it.
pub(crate) fn prepare(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    job: (&JobName, &Value),
    by: String,
) -> Result<Prepared, Error> {
    let prepared = match arm::job::parent_kind(job.1) {
        Some("Pipeline") => pipeline(app, workspace, tx, job, by)?,
        Some("Sweep") => sweep(app, workspace, tx, job, by)?,
        _ => command(app, workspace, tx, job, by)?,
    };
    let Ok((new, leader)) = &prepared else { return Ok(prepared) };
    let holder = Holder { workspace: new.workspace.clone(), person: new.created_by.clone() };
    let mistakes = sharing::never_fits(tx, &holder, plans(new, leader.as_ref()).into_iter())?;
    Ok(if mistakes.is_empty() { prepared } else { Err(mistakes) })
}

/// Everything that would run, and where.
fn plans<'p>(new: &'p NewJob, leader: Option<&'p Leader>) -> Vec<(&'p str, &'p Plan)> {
    let step = |job: &'p StepJob| (job.places.first().map_or(&job.target, |place| &place.target).as_str(), &job.plan);
    match leader {
        None => vec![(new.target.as_str(), &new.plan)],
        Some(Leader::Pool(pooled)) => {
            pooled.choices.iter().take(1).map(|one| (one.target.as_str(), &one.plan)).collect()
        }
        Some(Leader::Graph(woven)) => {
            let run =
                |one: &'p domain::pipeline::Step| step(one.search.as_ref().map_or(&one.job, |search| &search.trial));
            woven.graph.steps.iter().map(run).collect()
        }
        Some(Leader::Search(search)) => vec![step(&search.trial)],
    }
}

/// A job to accept, and what leads it where it consists of others.
pub(crate) type Prepared = Result<(NewJob, Option<Leader>), Vec<Mistake>>;

/// What leads a job that consists of others.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Leader {
    Graph(Box<resolve::Woven>),
    Search(Box<Search>),
    /// It does not consist of others, but where it runs is still to be chosen.
    #[serde(skip)]
    Pool(Box<resolve::Pooled>),
}

fn command(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    (name, properties): (&JobName, &Value),
    by: String,
) -> Result<Prepared, Error> {
    let spec = match arm::job::spec(properties) {
        Ok(spec) => spec,
        Err(mistakes) => return Ok(Err(mistakes)),
    };
    let mut mistakes = check::command_job(&spec);
    let (resolved, pooled) = match resolve::placed(app, workspace, tx, (name, &spec))? {
        Ok((resolved, pooled)) if mistakes.is_empty() => {
            (resolved, pooled.map(|pooled| Leader::Pool(Box::new(pooled))))
        }
        Ok(_) => return Ok(Err(mistakes)),
        Err(more) => {
            mistakes.extend(more);
            return Ok(Err(mistakes));
        }
    };
    let new = NewJob {
        workspace: workspace.name.clone(),
        name: name.clone(),
        body: properties.to_string(),
        plan: resolved.plan,
        kind: "Command",
        experiment: spec.experiment_name.unwrap_or_else(|| DEFAULT_EXPERIMENT.into()),
        target: resolved.target,
        cluster: resolved.cluster,
        priority: spec.queue_settings.priority.map_or(2, |priority| priority as i64 + 1),
        max_retries: resolved.max_retries,
        registers: spec.outputs.values().any(|output| output.name.is_some()),
        created_by: by,
        at: app.now(),
        parent: None,
        reused: None,
    };
    Ok(Ok((new, pooled)))
}

fn pipeline(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    (name, properties): (&JobName, &Value),
    by: String,
) -> Result<Prepared, Error> {
    let mut woven = match resolve::weave(app, workspace, tx, name, properties)? {
        Ok(woven) => Box::new(woven),
        Err(mistakes) => return Ok(Err(mistakes)),
    };
    let new = NewJob {
        workspace: workspace.name.clone(),
        name: name.clone(),
        body: properties.to_string(),
        plan: std::mem::take(&mut woven.plan),
        kind: "Pipeline",
        experiment: std::mem::take(&mut woven.experiment),
        target: String::new(),
        cluster: NOWHERE.to_owned(),
        priority: 2,
        max_retries: 0,
        registers: false,
        created_by: by,
        at: app.now(),
        parent: None,
        reused: None,
    };
    Ok(Ok((new, Some(Leader::Graph(woven)))))
}

fn sweep(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    (name, properties): (&JobName, &Value),
    by: String,
) -> Result<Prepared, Error> {
    let searched = match resolve::search(app, workspace, tx, name, properties)? {
        Ok(searched) => searched,
        Err(mistakes) => return Ok(Err(mistakes)),
    };
    let new = NewJob {
        workspace: workspace.name.clone(),
        name: name.clone(),
        body: properties.to_string(),
        plan: searched.plan,
        kind: "Sweep",
        experiment: searched.experiment.unwrap_or_else(|| DEFAULT_EXPERIMENT.into()),
        target: String::new(),
        cluster: NOWHERE.to_owned(),
        priority: searched.priority,
        max_retries: 0,
        registers: searched.registers,
        created_by: by,
        at: app.now(),
        parent: None,
        reused: None,
    };
    Ok(Ok((new, Some(Leader::Search(Box::new(searched.search))))))
}

fn born(seq: i64, new: NewJob) -> JobRow {
    JobRow {
        job: domain::Job {
            seq,
            workspace: new.workspace,
            name: new.name,
            state: JobState::Queued { since: new.at },
            attempts: 0,
            max_retries: new.max_retries,
            priority: new.priority,
            version: 1,
            created_at: new.at,
            parent: new.parent.as_ref().map(|of| of.parent),
        },
        body: new.body,
        archived: false,
        note: String::new(),
        target: new.target,
        cluster: new.cluster,
        isolation: None,
        created_by: new.created_by,
        changed_at: new.at,
        kind: new.kind.to_owned(),
        parent: new.parent,
        reused: new.reused,
    }
}
