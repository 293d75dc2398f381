//! Jobs for a pool: what the job would be on each of the pool's targets, and which of them it may go to.
//!
//! A target that could not run it is left out; one that none could run is refused in the words of the first. A job whose
//! data are more than the pool lets travel stays where they lie: on this machine if it is in the pool, otherwise on the
//! first target.

use super::{Lookup, Resolved};
use crate::{app::App, http::computes};
use api::arm;
use domain::{
    JobName, Place, Plan, PlannedInput,
    pipeline::StepPlace,
    resources::{humane_bytes, parse_bytes},
    spec::{CommandJob, Mistake},
};
use serde_json::Value;
use std::{fs, path::Path};
use store::{Choice, ComputeRow, Error, HERE, POOLED, Tx, WorkspaceRow};

/// Looking for how much there is ends after so many files; that is more than anyone wants to send about.
const FILES: usize = 20_000;

/// Where a job for a pool may go.
pub(crate) struct Pooled {
    pub(crate) pool: String,
    pub(crate) choices: Vec<Choice>,
    pub(crate) max_retries: u32,
    /// Why some targets are left out, in words; empty where none is.
    pub(crate) notice: String,
}

/// A job, and where it may go if it names a pool.
pub(crate) type Placed = (Resolved, Option<Pooled>);

impl Pooled {
    /// Until one is chosen it is what it would be on the first.
    pub(crate) fn resolved(&self) -> Resolved {
        let plan = self.choices.first().map(|choice| choice.plan.clone()).unwrap_or_default();
        Resolved { plan, target: self.pool.clone(), cluster: POOLED.to_owned(), max_retries: self.max_retries }
    }
}

/// A job, and the places that it may go to if it names a pool; or its mistakes.
pub(crate) fn placed(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    (name, spec): (&JobName, &CommandJob),
) -> Result<Result<Placed, Vec<Mistake>>, Error> {
    let mut lookup = Lookup { app, workspace, tx, to_share: false, datastore: None, bad: Vec::new() };
    let found = lookup.placed(name, spec)?;
    Ok(if lookup.bad.is_empty() { Ok(found) } else { Err(lookup.bad) })
}

/// The places of a step or a trial.
pub(super) fn step_places(pooled: Option<Pooled>) -> Vec<StepPlace> {
    let choices = pooled.into_iter().flat_map(|pooled| pooled.choices);
    choices.map(|choice| StepPlace::of(&choice.target, &choice.cluster, &choice.plan)).collect()
}

impl Lookup<'_, '_> {
    /// A job, and the places that it may go to if it names a pool. Mistakes are noted.
    pub(super) fn placed(&mut self, name: &JobName, spec: &CommandJob) -> Result<Placed, Error> {
        let named = spec.compute.as_deref().map(arm::reference::compute_name);
        let row = named.map(|named| self.tx.compute(&self.workspace.name, &named)).transpose()?.flatten();
        let Some(row) = row.filter(computes::check::is_pool) else { return Ok((self.whole(name, spec)?, None)) };
        let pooled = self.pooled(&row, name, spec)?;
        Ok((pooled.resolved(), Some(pooled)))
    }

    fn whole(&mut self, name: &JobName, spec: &CommandJob) -> Result<Resolved, Error> {
        let resolved = self.resolve(name, spec)?;
        self.trains(&resolved)?;
        Ok(resolved)
    }

    fn pooled(&mut self, row: &ComputeRow, name: &JobName, spec: &CommandJob) -> Result<Pooled, Error> {
        let (targets, max_data) = settings(row);
        let mut pooled = Pooled { pool: row.name.clone(), choices: Vec::new(), max_retries: 0, notice: String::new() };
        let mut refused: Vec<(String, Vec<Mistake>)> = Vec::new();
        let before = std::mem::take(&mut self.bad);
        for target in targets {
            let there = CommandJob { compute: Some(target.clone()), ..spec.clone() };
            let Resolved { plan, target: name, cluster, max_retries } = self.whole(name, &there)?;
            match std::mem::take(&mut self.bad) {
                mistakes if mistakes.is_empty() => {
                    pooled.max_retries = max_retries;
                    pooled.choices.push(Choice { target: name, cluster, plan });
                }
                mistakes => refused.push((target, mistakes)),
            }
        }
        self.bad = before;
        if pooled.choices.is_empty() {
            self.bad.extend(refused.into_iter().next().map(|(_, mistakes)| mistakes).unwrap_or_default());
            return Ok(pooled);
        }
        let first = |mistakes: &[Mistake]| mistakes.first().map(|mistake| mistake.message.clone()).unwrap_or_default();
        let mut notices: Vec<String> =
            refused.iter().map(|(target, mistakes)| format!("cannot go to `{target}`: {}", first(mistakes))).collect();
        notices.extend(max_data.and_then(|most| keep_near(&mut pooled.choices, most)));
        pooled.notice = notices.join("; ");
        Ok(pooled)
    }
}

/// The targets of a pool, and the most data that may travel.
pub(crate) fn settings(row: &ComputeRow) -> (Vec<String>, Option<u64>) {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let inner = &body["properties"]["properties"];
    let targets = inner["targets"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names = targets.map(arm::reference::compute_name).collect();
    (names, inner["maxData"].as_str().and_then(parse_bytes))
}

/// Leaves only the place where the data lie if they are more than may travel; then says so.
fn keep_near(choices: &mut Vec<Choice>, most: u64) -> Option<String> {
    let folders = |plan: &Plan| -> Vec<_> {
        let place = |input: &PlannedInput| match input {
            PlannedInput::Data { place: Place::Folder { path }, .. } => Some(path.clone()),
            _ => None,
        };
        plan.inputs.values().filter_map(place).collect()
    };
    let mut files = FILES;
    let mut bytes = 0;
    for folder in folders(&choices.first()?.plan) {
        add_up(&folder, &mut bytes, &mut files, most);
    }
    if bytes <= most && files > 0 {
        return None;
    }
    let near = choices.iter().position(|choice| choice.cluster == HERE).unwrap_or(0);
    let kept = choices.swap_remove(near);
    let notice = format!(
        "its inputs are more than the {} that may travel, so it stays on `{}`",
        humane_bytes(most),
        kept.target
    );
    *choices = vec![kept];
    Some(notice)
}

/// Adds up the sizes of files until it is known that they are too many or too much.
fn add_up(path: &Path, bytes: &mut u64, files: &mut usize, most: u64) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    if !found.is_dir() {
        *bytes += found.len();
        *files = files.saturating_sub(1);
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if *bytes > most || *files == 0 {
            return;
        }
        add_up(&entry.path(), bytes, files, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::assignment::InputMode;

    #[test]
    fn what_is_too_much_to_travel_stays_where_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        fs::write(folder.path().join("in/a"), [0; 600]).unwrap();
        fs::write(folder.path().join("b"), [0; 600]).unwrap();
        let input = PlannedInput::Data {
            place: Place::Folder { path: folder.path().to_owned() },
            mode: InputMode::RoMount,
            uri: String::new(),
            file: false,
        };
        let plan = Plan { inputs: [("d".to_owned(), input)].into(), ..Plan::default() };
        let choice =
            |target: &str, cluster: &str| Choice { target: target.into(), cluster: cluster.into(), plan: plan.clone() };
        for (most, expect) in [(2000, vec!["lab", "local"]), (1000, vec!["local"])] {
            let mut choices = vec![choice("lab", "lab"), choice("local", HERE)];
            let notice = keep_near(&mut choices, most);
            assert_eq!(choices.iter().map(|one| one.target.as_str()).collect::<Vec<_>>(), expect);
            assert_eq!(notice.is_some(), most == 1000);
        }
        let mut away = vec![choice("lab", "lab"), choice("cloud", "cloud")];
        assert!(keep_near(&mut away, 1).unwrap().ends_with("stays on `lab`"));
    }
}
