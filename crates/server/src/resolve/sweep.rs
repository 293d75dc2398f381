//! Sweeps: the search in a body, and the plan that every trial has but for its values and its name.

use super::{
    Resolved,
    pool::{placed, step_places},
};
use crate::app::App;
use api::{
    arm::{
        self,
        tree::{entries, word},
    },
    blob::sha256,
};
use domain::{
    JobName, Place, Plan, Search,
    pipeline::StepJob,
    spec::{
        CommandJob, Mistake, Sweep, check,
        sweep::{Policy, Sampling, Termination, Values, command},
    },
};
use serde_json::{Value, json};
use store::{Error, Tx, WorkspaceRow};

/// Our own settings of a sweep, which its file has under `properties`.
const SEED: &str = "peregrine.seed";
const WARM_START: &str = "peregrine.warm_start";
const FACTOR: &str = "peregrine.asha.reduction_factor";
const FIRST: &str = "peregrine.asha.first_rung";

/// A sweep ready to be led.
pub(crate) struct Searched {
    pub(crate) search: Search,
    /// Nothing to run.
    pub(crate) plan: Plan,
    pub(crate) experiment: Option<String>,
    pub(crate) priority: i64,
    pub(crate) registers: bool,
}

/// What a sweep searches and what its trials are, or all its mistakes.
pub(crate) fn search(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    name: &JobName,
    body: &Value,
) -> Result<Result<Searched, Vec<Mistake>>, Error> {
    let Sought { sweep, seed, earlier, anybody } = match sought(workspace, tx, name, body)? {
        Ok(sought) => sought,
        Err(mistakes) => return Ok(Err(mistakes)),
    };
    let (trial, priority) = match trial(app, workspace, tx, (&anybody, &sweep), body)? {
        Ok(trial) => trial,
        Err(mistakes) => return Ok(Err(mistakes)),
    };
    let artifacts = Place::Folder { path: app.files.artifacts(&workspace.name, name.as_str()) };
    Ok(Ok(Searched {
        search: Search { sweep, seed, trial, earlier },
        plan: Plan { artifacts, ..Plan::default() },
        experiment: arm::text(body, "experimentName"),
        priority,
        registers: registers(body),
    }))
}

/// What the body of a sweep is after.
pub(super) struct Sought {
    pub(super) sweep: Sweep,
    pub(super) seed: u64,
    pub(super) earlier: Vec<(Values, f64)>,
    /// What stands for the names of its trials.
    pub(super) anybody: JobName,
}

/// Reads the search of a sweep's body, or all its mistakes.
pub(super) fn sought(
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    name: &JobName,
    body: &Value,
) -> Result<Result<Sought, Vec<Mistake>>, Error> {
    let mut sweep = match arm::sweep::read::tree(body).and_then(|tree| Sweep::of(&tree)) {
        Ok(sweep) => sweep,
        Err(mistakes) => return Ok(Err(mistakes)),
    };
    let mut bad = Vec::new();
    if let Some(policy) = halving(body, &mut bad) {
        sweep.early_termination = Some(Termination { policy, evaluation_interval: 1, delay_evaluation: 0 });
    }
    let seed = seed(&sweep, name, body, &mut bad);
    let earlier = earlier(workspace, tx, &sweep, body, &mut bad)?;
    Ok(match Search::anybody(name) {
        Ok(anybody) if bad.is_empty() => Ok(Sought { sweep, seed, earlier, anybody }),
        Ok(_) => Err(bad),
        Err(error) => Err(vec![Mistake::new("name", error.to_string(), "choose a shorter name")]),
    })
}

/// Whether some output of a body is to become an asset.
pub(super) fn registers(body: &Value) -> bool {
    entries(&body["outputs"]).any(|(_, output)| word(output, "assetName").is_some())
}

/// The body of a trial. Trials register nothing, because there would be a version for each: the sweep does, for the best.
pub(super) fn trial_body(sweep: &Value) -> Value {
    let mut body = arm::sweep::read::trial(sweep);
    for output in body["outputs"].as_object_mut().into_iter().flatten().filter_map(|(_, output)| output.as_object_mut())
    {
        output.remove("assetName");
        output.remove("assetVersion");
    }
    body
}

/// What is wrong with the command of a trial, whatever its values.
pub(super) fn mistakes_of(sweep: &Sweep, spec: &CommandJob) -> Vec<Mistake> {
    let some: Values = sweep.search_space.keys().map(|name| (name.clone(), json!(0))).collect();
    let mut tried = spec.clone();
    tried.command = command(&spec.command, &some, |input| spec.inputs.contains_key(input)).unwrap_or(tried.command);
    check::command_job(&tried)
}

/// The job of a trial, and its priority.
fn trial(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    (anybody, sweep): (&JobName, &Sweep),
    body: &Value,
) -> Result<Result<(StepJob, i64), Vec<Mistake>>, Error> {
    let body = trial_body(body);
    let spec = match arm::job::spec(&body) {
        Ok(spec) => spec,
        Err(mistakes) => return Ok(Err(mistakes)),
    };
    let mut bad = mistakes_of(sweep, &spec);
    let (resolved, pooled) = match placed(app, workspace, tx, (anybody, &spec))? {
        Ok(found) if bad.is_empty() => found,
        Ok(_) => return Ok(Err(bad)),
        Err(more) => {
            bad.extend(more);
            return Ok(Err(bad));
        }
    };
    let (name, places) = (Some(anybody.clone()), step_places(pooled));
    let Resolved { plan, target, cluster, max_retries } = resolved;
    let job = StepJob { name, body, plan, target, cluster, max_retries, places, ..StepJob::default() };
    Ok(Ok((job, spec.queue_settings.priority.map_or(2, |priority| priority as i64 + 1))))
}

/// Successive halving, where the properties ask for it.
fn halving(body: &Value, bad: &mut Vec<Mistake>) -> Option<Policy> {
    let factor = number(body, FACTOR, bad).filter(|_| body["properties"].get(FACTOR).is_some())?;
    if factor < 2 {
        bad.push(Mistake::new(format!("properties.{FACTOR}"), "it must be at least 2", "write it like `\"3\"`"));
    }
    let first = number(body, FIRST, bad).unwrap_or(1);
    Some(Policy::Asha {
        factor: u32::try_from(factor).unwrap_or(u32::MAX),
        first: u32::try_from(first).unwrap_or(u32::MAX),
    })
}

fn number(body: &Value, key: &str, bad: &mut Vec<Mistake>) -> Option<u64> {
    let text = word(&body["properties"], key)?;
    let parsed = text.parse().ok();
    if parsed.is_none() {
        let message = format!("`{text}` is not a whole number");
        bad.push(Mistake::new(format!("properties.{key}"), message, "write it like `\"3\"`"));
    }
    parsed
}

/// The one given; else one that follows from the name, so that another sweep draws other values.
fn seed(sweep: &Sweep, name: &JobName, body: &Value, bad: &mut Vec<Mistake>) -> u64 {
    let given = match sweep.sampling_algorithm {
        Sampling::Random { seed, .. } => seed.map(i64::cast_unsigned),
        Sampling::Grid | Sampling::Bayesian => None,
    };
    let from_name = || u64::from_str_radix(&sha256(name.as_str().as_bytes())[..16], 16).unwrap_or(0);
    let ours = number(body, SEED, bad);
    given.or(ours).unwrap_or_else(from_name)
}

/// What the trials of the sweep to start from tried, and the best they logged of this sweep's metric.
fn earlier(
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    sweep: &Sweep,
    body: &Value,
    bad: &mut Vec<Mistake>,
) -> Result<Vec<(Values, f64)>, Error> {
    let Some(from) = word(&body["properties"], WARM_START) else { return Ok(Vec::new()) };
    let Some(row) = tx.job(&workspace.name, from)?.filter(|row| row.kind == "Sweep") else {
        let message = format!("there is no sweep `{from}`");
        bad.push(Mistake::new(format!("properties.{WARM_START}"), message, "name a sweep of this workspace"));
        return Ok(Vec::new());
    };
    let children: Vec<i64> = tx.children(row.job.seq)?.into_iter().map(|child| child.job.seq).collect();
    let mut found = Vec::new();
    for child in tx.jobs_by_seq(&children)? {
        let body: Value = serde_json::from_str(&child.body).unwrap_or_default();
        let Some(values) = Search::values_of(&body) else { continue };
        let Some(run) = tx.run(&workspace.name, child.job.name.as_str())? else { continue };
        let goal = sweep.objective.goal;
        let points = tx.history(run.seq, &sweep.objective.primary_metric)?;
        let costs = points.iter().map(|point| goal.cost(point.value)).filter(|cost| cost.is_finite());
        found.extend(costs.min_by(f64::total_cmp).map(|cost| (values, goal.cost(cost))));
    }
    Ok(found)
}
