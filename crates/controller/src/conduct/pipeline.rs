//! A pipeline's conductor: its steps become jobs when what they need is there.

use super::{
    Conductor, Parent,
    left::{listed, says_yes, text_at},
    reuse,
    traces::Traces,
};
use domain::{
    Job, JobEvent, JobName, JobState, Outcome, Place, Plan, PlannedInput, Timestamp,
    job::Failure,
    pipeline::{Condition, Each, End, Graph, ITEMS, Step, StepPlace},
};
use planner::pipeline::{Decision, Ended, Ending, Filled, Progress};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};
use store::{Child, ChildOf, Choice, Error, NewJob, Tx};

const NOTE_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Pipeline {
    graph: Graph,
    progress: Progress,
    /// The step of each name.
    steps: HashMap<String, usize>,
    /// The job of each step that has one.
    jobs: HashMap<usize, i64>,
    /// Outputs whose content decides whether other steps run.
    asked: BTreeSet<(usize, String)>,
    /// What is wrong with steps that completed and did not leave what others depend on.
    faults: HashMap<usize, String>,
    /// When it was last said how far it is, and whether that still holds.
    noted: (Timestamp, bool),
}

impl Pipeline {
    /// From what is on record.
    pub(super) fn load(tx: &mut Tx<'_>, job: &Job) -> Result<Pipeline, Error> {
        let graph: Graph = tx
            .conductor(job.seq)?
            .ok_or_else(|| Error::Decode(format!("pipeline `{}` has no graph on record", job.name)))?;
        let mut pipeline = Pipeline {
            progress: Progress::of(&graph),
            steps: graph.steps.iter().enumerate().map(|(at, step)| (step.name.clone(), at)).collect(),
            jobs: HashMap::new(),
            asked: asked(&graph),
            faults: HashMap::new(),
            noted: (Timestamp(0), false),
            graph,
        };
        for child in tx.children(job.seq)? {
            let Some(step) = pipeline.steps.get(&child.step).copied() else { continue };
            pipeline.jobs.insert(step, child.job.seq);
            let stopping = matches!(child.job.state, JobState::Stopping { .. } | JobState::Halting { .. });
            pipeline.progress.began(&pipeline.graph, step, stopping);
            pipeline.hear(tx, &child)?;
        }
        Ok(pipeline)
    }

    /// Takes in the end of a child, if it has one.
    fn hear(&mut self, tx: &mut Tx<'_>, child: &Child) -> Result<(), Error> {
        let Some(step) = self.steps.get(&child.step).copied() else { return Ok(()) };
        let JobState::Ended { outcome, at, .. } = &child.job.state else { return Ok(()) };
        let mut how = match outcome {
            Outcome::Completed => End::Completed,
            Outcome::Failed(_) => End::Failed,
            Outcome::Canceled { .. } => End::Canceled,
        };
        let outputs: Vec<String> = self
            .asked
            .range((step, String::new())..(step + 1, String::new()))
            .map(|(_, output)| output.clone())
            .collect();
        let mut said = Vec::new();
        if how == End::Completed && !outputs.is_empty() {
            let plan = tx.plan(child.job.seq)?.unwrap_or_default();
            for output in outputs {
                let none = || Err("the step has no such output".to_owned());
                match plan.outputs.get(&output).map_or_else(none, |planned| says_yes(&planned.place)) {
                    Ok(says) => said.push((output, says)),
                    Err(why) => {
                        self.faults.insert(step, format!("its output `{output}` says what runs next: {why}"));
                        how = End::Failed;
                    }
                }
            }
        }
        self.progress.ended(&self.graph, Ended { step, how, at: *at, said });
        Ok(())
    }

    fn start(
        &mut self,
        tx: &mut Tx<'_>,
        parent: &Parent,
        (at, inputs): (usize, &[Filled]),
        traces: &mut Traces,
    ) -> Result<(), Error> {
        let step = &self.graph.steps[at];
        if let Some(each) = &step.each {
            return self.spread(tx, parent, at, each.as_ref().clone(), inputs);
        }
        let mut search = step.search.clone();
        // What other steps made goes to whoever runs: the step's own job, or the trials of its sweep.
        let runs = search.as_ref().map_or(&step.job, |search| &search.trial);
        let (mut plan, mut body) = (runs.plan.clone(), runs.body.clone());
        let mut wrong = None;
        for filled in inputs {
            let made = match &filled.from {
                Some((maker, output)) => self.made(tx, *maker, output)?,
                None => None,
            };
            wrong = fill(&mut plan, &mut body, &filled.input, made).err().or(wrong);
        }
        let kind = if search.is_some() { "Sweep" } else { "Command" };
        if let Some(search) = &mut search {
            let mut whole = step.job.body.clone();
            whole["inputs"] = body["inputs"].clone();
            (search.trial.plan, search.trial.body) = (plan, body);
            // It has no outputs before one of its trials is the best.
            (plan, body) = (Plan { artifacts: step.job.plan.artifacts.clone(), ..Plan::default() }, whole);
        }
        let mut new = new_job(tx, parent, step, kind, plan)?;
        if let Some(why) = wrong {
            new.body = body.to_string();
            let seq = refused(tx, parent, &new, Failure::new("UserError.BadInput", why))?;
            self.jobs.insert(at, seq);
            return Ok(());
        }
        let seq = match step.job.reuse {
            true => reuse::begin(tx, &mut new, body, traces)?,
            false => {
                new.body = body.to_string();
                tx.insert_job(&new)?
            }
        };
        if new.reused.is_none() {
            may_go_to(tx, seq, &step.job.places, &new.plan)?;
        }
        if let Some(search) = &search {
            tx.put_conductor(seq, search)?;
        }
        self.jobs.insert(at, seq);
        Ok(())
    }

    /// A loop over what another step made: its job is a pipeline of all turns, or says what is wrong with the items.
    fn spread(
        &mut self,
        tx: &mut Tx<'_>,
        parent: &Parent,
        at: usize,
        mut each: Each,
        inputs: &[Filled],
    ) -> Result<(), Error> {
        let mut items = Err("the step that makes the items left none".to_owned());
        let mut wrong = None;
        for filled in inputs {
            let made = match &filled.from {
                Some((maker, output)) => self.made(tx, *maker, output)?,
                None => None,
            };
            if let Some((inner, input)) = each.fed.get(&filled.input) {
                let inner = &mut each.turn[*inner];
                let runs = inner.search.as_mut().map_or(&mut inner.job, |search| &mut search.trial);
                if let Err(why) = fill(&mut runs.plan, &mut runs.body, input, made) {
                    wrong = Some(why);
                }
            } else if let Some((place, _)) = made.filter(|_| filled.input == ITEMS) {
                items = listed(&place);
            }
        }
        let items = wrong.map_or(items, Err);
        let graph = items.and_then(|items| each.written_out(items, self.graph.settings.clone()));
        let step = &self.graph.steps[at];
        let mut new = new_job(tx, parent, step, "Pipeline", step.job.plan.clone())?;
        new.body = step.job.body.to_string();
        let seq = match graph {
            Ok(graph) => {
                let seq = tx.insert_job(&new)?;
                tx.put_conductor(seq, &graph)?;
                seq
            }
            Err(why) => {
                let failure = Failure::new("UserError.BadItems", format!("the loop cannot begin: {why}"));
                refused(tx, parent, &new, failure)?
            }
        };
        self.jobs.insert(at, seq);
        Ok(())
    }

    /// Says of a loop whose last turn has ended that it would have gone on.
    fn tell_of_limit(&self, tx: &mut Tx<'_>, parent: &Parent, step: &str) -> Result<(), Error> {
        let Some(at) = self.steps.get(step).copied() else { return Ok(()) };
        for limited in self.graph.limited.iter().filter(|limited| limited.source.steps.last() == Some(&at)) {
            if self.progress.says(at, &limited.source.output) != Some(true) {
                continue;
            }
            let text = format!(
                "loop `{}` has gone round {} times, as often as `max_iteration_count` lets it; its condition still holds",
                limited.name, limited.turns
            );
            tx.add_event(parent.job.seq, parent.now, "limit", &text)?;
        }
        Ok(())
    }

    fn may_be_reused(&self, step: &str) -> bool {
        self.steps.get(step).is_some_and(|at| self.graph.steps[*at].job.reuse)
    }

    /// Where the output of a step lies, and its address.
    fn made(&self, tx: &mut Tx<'_>, step: usize, output: &str) -> Result<Option<(Place, String)>, Error> {
        let Some(seq) = self.jobs.get(&step) else { return Ok(None) };
        let plan = tx.plan(*seq)?.unwrap_or_default();
        if output == "artifacts" && !plan.outputs.contains_key(output) {
            let name = tx.job_by_seq(*seq)?.map(|job| job.name.to_string()).unwrap_or_default();
            return Ok(Some((plan.artifacts, format!("azureml://jobs/{name}/outputs/artifacts"))));
        }
        Ok(plan.outputs.get(output).map(|made| (made.place.clone(), made.uri.clone())))
    }

    fn end(&self, tx: &mut Tx<'_>, parent: &mut Parent, ending: Ending) -> Result<(), Error> {
        let (outcome, text) = match ending {
            Ending::Completed => {
                self.promote(tx, parent.job.seq)?;
                (Outcome::Completed, format!("completed; {} steps are over", self.graph.steps.len()))
            }
            Ending::Canceled => {
                // The reason is part of the state by now.
                (Outcome::Canceled { reason: String::new() }, "canceled; all its steps are gone".to_owned())
            }
            Ending::Failed { step, left_out } => {
                let failure = self.failure(tx, step, left_out)?;
                let text = failure.message.clone();
                (Outcome::Failed(failure), text)
            }
        };
        parent.ends(tx, outcome, &text)
    }

    /// What the first step that failed says, and its last lines.
    fn failure(&self, tx: &mut Tx<'_>, step: usize, left_out: usize) -> Result<Failure, Error> {
        let name = &self.graph.steps[step].name;
        let job = self.jobs.get(&step).map(|seq| tx.job_by_seq(*seq)).transpose()?.flatten();
        let others = match left_out {
            0 => String::new(),
            1 => "; 1 other step did not complete".to_owned(),
            n => format!("; {n} other steps did not complete"),
        };
        Ok(match job.map(|job| (job.name, job.state)) {
            Some((child, JobState::Ended { outcome: Outcome::Failed(failure), .. })) => Failure {
                message: format!("step `{name}` (job `{child}`) failed: {}{others}", failure.message),
                retryable: false,
                ..failure
            },
            Some((child, JobState::Ended { outcome: Outcome::Canceled { reason }, .. })) => {
                Failure::new("StepCanceled", format!("step `{name}` (job `{child}`) was canceled: {reason}{others}"))
            }
            Some((child, _)) if self.faults.contains_key(&step) => Failure::new(
                "UserError.BadOutput",
                format!("step `{name}` (job `{child}`) completed, and {}{others}", self.faults[&step]),
            ),
            _ => Failure::new("StepFailed", format!("step `{name}` failed{others}")),
        })
    }

    /// How far it is. The row of a long pipeline is long, so that it is not written for every step.
    fn tell(&mut self, tx: &mut Tx<'_>, parent: &Parent) -> Result<(), Error> {
        if parent.now.since(self.noted.0) < NOTE_EVERY {
            self.noted.1 = false;
            return Ok(());
        }
        self.noted = (parent.now, true);
        let (over, live, waiting) = self.progress.count();
        tx.put_note(parent.job.seq, &format!("{over} steps are over, {live} under way, {waiting} to come"))
    }

    /// The outputs of the pipeline are those of its steps, where those turned out to lie.
    fn promote(&self, tx: &mut Tx<'_>, seq: i64) -> Result<(), Error> {
        if self.graph.outputs.is_empty() {
            return Ok(());
        }
        let mut plan = tx.plan(seq)?.unwrap_or_default();
        for (output, source) in &self.graph.outputs {
            let makers = source.steps.iter().rev().filter_map(|step| self.jobs.get(step).map(|_| *step));
            let Some(maker) = makers.into_iter().next() else { continue };
            if let (Some((place, uri)), Some(planned)) =
                (self.made(tx, maker, &source.output)?, plan.outputs.get_mut(output))
            {
                (planned.place, planned.uri) = (place, uri);
            }
        }
        tx.put_plan(seq, &plan)
    }
}

impl Conductor for Pipeline {
    fn pass(&mut self, tx: &mut Tx<'_>, parent: &mut Parent, ended: &[Child]) -> Result<(), Error> {
        for child in ended {
            self.hear(tx, child)?;
            let completed = matches!(&child.job.state, JobState::Ended { outcome: Outcome::Completed, .. });
            if completed {
                self.tell_of_limit(tx, parent, &child.step)?;
            }
            if completed && child.reused.is_none() && self.may_be_reused(&child.step) {
                reuse::left_by(tx, child.job.seq)?;
            }
        }
        if let JobState::Halting { reason, .. } = &parent.job.state {
            self.progress.cancel(reason);
        }
        let mut traces = Traces::default();
        for decision in self.progress.advance(&self.graph) {
            match decision {
                Decision::Start { step, inputs } => self.start(tx, parent, (step, &inputs), &mut traces)?,
                Decision::Stop { step, because } => {
                    if let Some(seq) = self.jobs.get(&step) {
                        tx.stop_job(*seq, &because, parent.now)?;
                    }
                }
                Decision::End(ending) => return self.end(tx, parent, ending),
            }
        }
        self.tell(tx, parent)
    }

    fn is_restless(&self) -> bool {
        !self.noted.1
    }
}

/// Every output that some condition asks about.
fn asked(graph: &Graph) -> BTreeSet<(usize, String)> {
    let sources = graph.steps.iter().flat_map(|step| step.when.iter().filter_map(Condition::source));
    let sources = sources.chain(graph.limited.iter().map(|limited| &limited.source));
    sources.flat_map(|source| source.steps.iter().map(|step| (*step, source.output.clone()))).collect()
}

/// The job of a step, but for its body.
fn new_job(tx: &mut Tx<'_>, parent: &Parent, step: &Step, kind: &'static str, plan: Plan) -> Result<NewJob, Error> {
    let name = free_name(tx, parent, step.job.name.as_ref(), &step.name)?;
    let part = ChildOf { parent: parent.job.seq, name: parent.job.name.to_string(), step: step.name.clone() };
    Ok(NewJob {
        workspace: parent.job.workspace.clone(),
        name,
        body: String::new(),
        plan,
        kind,
        experiment: parent.experiment.clone(),
        target: step.job.target.clone(),
        cluster: step.job.cluster.clone(),
        priority: step.job.priority.unwrap_or(parent.job.priority),
        max_retries: step.job.max_retries,
        registers: step.job.registers,
        created_by: parent.created_by.clone(),
        at: parent.now,
        parent: Some(part),
        reused: None,
    })
}

/// Accepts the job of a step that cannot begin, and ends it with the reason.
fn refused(tx: &mut Tx<'_>, parent: &Parent, new: &NewJob, failure: Failure) -> Result<i64, Error> {
    let seq = tx.insert_job(new)?;
    let job = tx.job_by_seq(seq)?.ok_or_else(|| Error::Decode(format!("job {seq} is gone")))?;
    let mut own = Parent { job, ..parent.clone() };
    own.happens(tx, JobEvent::Conducted, "conducting", "what other steps made is looked at")?;
    own.ends(tx, Outcome::Failed(failure.clone()), &failure.message)?;
    Ok(seq)
}

/// Puts what was made into an input, or takes the input away where nothing was; the reason where it cannot be read.
fn fill(plan: &mut Plan, body: &mut Value, input: &str, made: Option<(Place, String)>) -> Result<(), String> {
    let Some((place, uri)) = made else {
        plan.inputs.remove(input);
        if let Some(inputs) = body["inputs"].as_object_mut() {
            inputs.remove(input);
        }
        return Ok(());
    };
    match plan.inputs.get_mut(input) {
        Some(PlannedInput::Data { place: old, uri: shown, .. }) => {
            body["inputs"][input]["uri"] = json!(uri);
            (*old, *shown) = (place, uri);
        }
        // A value that a step wrote down.
        Some(PlannedInput::Literal { value }) => {
            *value = text_at(&place).map_err(|why| format!("the value of input `{input}` cannot be read: {why}"))?;
            body["inputs"][input]["value"] = json!(value);
        }
        None => {}
    }
    Ok(())
}

/// Says where a part of another job may run, if its target is a pool.
pub(super) fn may_go_to(tx: &mut Tx<'_>, seq: i64, places: &[StepPlace], plan: &Plan) -> Result<(), Error> {
    let choice = |place: &StepPlace| {
        let StepPlace { target, cluster, .. } = place.clone();
        Choice { target, cluster, plan: place.plan(plan) }
    };
    let choices: Vec<Choice> = places.iter().map(choice).collect();
    if choices.is_empty() { Ok(()) } else { tx.put_choices(seq, &choices) }
}

/// The name a step's job was to have, or one like it where somebody took that.
pub(super) fn free_name(
    tx: &mut Tx<'_>,
    parent: &Parent,
    wanted: Option<&JobName>,
    step: &str,
) -> Result<JobName, Error> {
    let wanted = wanted.map_or_else(|| format!("{}_{step}", parent.job.name), ToString::to_string);
    let (mut text, mut n) = (wanted.clone(), 1);
    while tx.has_job(&parent.job.workspace, &text)? {
        n += 1;
        text = format!("{wanted}_{n}");
    }
    JobName::parse(&text).map_err(|bad| Error::Decode(bad.to_string()))
}
