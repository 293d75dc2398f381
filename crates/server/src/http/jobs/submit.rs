//! Submitting: a body is read, checked, resolved and stored in one transaction, so that what it refers to is there.

use super::update::{Labels, change};
use crate::{app::App, problem::Problem, resolve};
use api::arm;
use domain::{JobName, JobState, spec::check};
use serde_json::Value;
use store::{Error, JobRow, NewJob, Tx, WorkspaceRow};

/// The experiment of jobs that name none.
pub(crate) const DEFAULT_EXPERIMENT: &str = "Default";

/// What became of a submit.
pub(super) enum Submitted {
    Accepted(Box<JobRow>),
    /// A job of that name is there already, and has new labels now.
    Changed(Box<JobRow>),
    Refused(Problem),
}

/// Accepts a new job, or changes the labels of one that is there.
pub(super) fn submit(
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
    let refused = |mistakes: &[_]| Ok(Submitted::Refused(Problem::mistakes(&format!("job `{name}`"), mistakes)));
    let spec = match arm::job::spec(properties) {
        Ok(spec) => spec,
        Err(mistakes) => return refused(&mistakes),
    };
    let mut mistakes = check::command_job(&spec);
    let resolved = match resolve::plan(app, workspace, tx, &name, &spec)? {
        Ok(resolved) if mistakes.is_empty() => resolved,
        Ok(_) => return refused(&mistakes),
        Err(more) => {
            mistakes.extend(more);
            return refused(&mistakes);
        }
    };
    let new = NewJob {
        workspace: workspace.name.clone(),
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
        name,
    };
    let seq = tx.insert_job(&new)?;
    Ok(Submitted::Accepted(Box::new(born(seq, new))))
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
        },
        body: new.body,
        archived: false,
        note: String::new(),
        target: new.target,
        cluster: new.cluster,
        isolation: None,
        created_by: new.created_by,
        changed_at: new.at,
    }
}
