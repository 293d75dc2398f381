//! A step: the command job that a node with its component stands for, and its plan.

use super::{
    super::{
        Resolved,
        pool::step_places,
        sweep::{self, Sought},
    },
    Feed, Known, MOST, Made, Scope, Turn, Weaver, unknown,
};
use api::{
    arm::{
        job,
        pipeline::{
            parallel,
            read::{self, Port},
        },
        tree::{entries, some, word},
    },
    blob::sha256,
};
use domain::{
    JobName, Parallel, Place, Plan, PlannedInput, Search,
    assignment::InputMode,
    parallel::Task,
    pipeline::{Source, Step, StepJob},
    spec::{CommandJob, DataType, Input, Mistake, Sweep, check},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::{Error, NOWHERE};

/// Switches off, for one step, that an earlier job stands for it.
const REUSE: &str = "peregrine.reuse";
/// The longest name a step's job gets as it stands; a longer one ends in a digest.
const NAME_BYTES: usize = 200;

/// An input that is not there yet when the pipeline is accepted.
struct Late {
    place: Place,
    uri: String,
}

impl Weaver<'_, '_> {
    /// Makes one step; its outputs.
    pub(super) fn leaf(
        &mut self,
        scope: &Scope<'_>,
        known: &mut Known,
        node: &Value,
        component: &Value,
        fed: &BTreeMap<String, Feed>,
        turn: &Turn,
    ) -> Result<BTreeMap<String, Made>, Error> {
        let at = self.graph.steps.len();
        if at >= MOST {
            self.stop = true;
            self.lookup.mistake("jobs", format!("there are more than {MOST} steps"), "make several pipelines of it");
            return Ok(BTreeMap::new());
        }
        let name = job_name(self.job, &turn.path);
        let (is_sweep, is_parallel) =
            (word(node, "type") == Some("sweep"), word(component, "type") == Some("parallel"));
        let mut body = match (is_sweep, is_parallel) {
            (true, _) => read::sweep(node, component),
            (_, true) => parallel::body(node, component),
            _ => read::command(node, component),
        };
        self.place_of_work(scope, &mut body, &turn.path);
        let mut step =
            Step { name: turn.path.clone(), when: turn.tie.when.clone(), group: turn.tie.group, ..Step::default() };
        let mut late = BTreeMap::new();
        let mut inputs = Map::new();
        let ports = read::ports(component, "inputs");
        for (name, feed) in fed {
            let port = ports.get(name).cloned().unwrap_or_default();
            inputs.insert(name.clone(), self.input(&mut step, &mut late, name, feed, &port)?);
        }
        body.insert("inputs".into(), Value::Object(inputs));
        let mut outputs = read::ports(component, "outputs");
        if !word(component, "command").is_some_and(|command| command.contains("outputs.artifacts")) {
            // All that a step leaves behind, whether it is declared or not.
            outputs.remove("artifacts");
        }
        body.insert("outputs".into(), self.outputs_of(scope, node, &outputs, turn)?);
        let before = std::mem::take(&mut self.lookup.bad);
        let body = Value::Object(body);
        let spread = is_parallel.then(|| parallel::parallel(node, component)).transpose();
        let resolved = match spread {
            Ok(_) if is_sweep => self.searched(&name, body, &late)?.map(|(job, search)| (job, Some(Box::new(search)))),
            Ok(spread) => {
                let of = spread.map_or(Of::Command, |spread| Of::Parallel(Box::new(spread)));
                self.planned(&name, body, &late, of)?.map(|job| (job, None))
            }
            Err(mistakes) => {
                self.lookup.bad.extend(mistakes);
                None
            }
        };
        self.lookup.bad =
            before.into_iter().chain(self.lookup.bad.drain(..).map(|bad| placed(bad, &turn.path))).collect();
        let Some((job, search)) = resolved else {
            self.graph.steps.push(step);
            return Ok(made(at, &outputs));
        };
        let deterministic = some(component, "is_deterministic").is_none_or(|flag| flag != &json!(false));
        let reuse = job.reuse && deterministic && !turn.tie.fresh && !self.graph.settings.force_rerun;
        (step.job, step.search) = (StepJob { reuse, ..job }, search);
        self.graph.steps.push(step);
        let made = made(at, &outputs);
        if !turn.looped {
            self.promote_all(scope, known, node, &turn.path, &made);
        }
        Ok(made)
    }

    /// Where it runs, and under which name it is shown.
    fn place_of_work(&self, scope: &Scope<'_>, body: &mut Map<String, Value>, path: &str) {
        let own = body.remove("computeId").and_then(|id| self.compute(scope, id.as_str()?));
        if let Some(id) = own.or_else(|| scope.compute.clone()) {
            body.insert("computeId".into(), json!(id));
        }
        body.entry("displayName").or_insert_with(|| json!(path));
        body.insert("experimentName".into(), json!(self.experiment));
    }

    /// An input in the words of jobs. What another step makes is noted in the step.
    fn input(
        &mut self,
        step: &mut Step,
        late: &mut BTreeMap<String, Late>,
        name: &str,
        feed: &Feed,
        port: &Port,
    ) -> Result<Value, Error> {
        let (made, mode) = match feed {
            Feed::Literal(text) => return Ok(json!({"jobInputType": "literal", "value": text})),
            Feed::Unknown => return Ok(json!({"jobInputType": "literal", "value": ""})),
            Feed::Data(data) => {
                let mut data = data.clone();
                if let Some(mode) = &port.mode {
                    data.entry("mode").or_insert_with(|| json!(mode));
                }
                return Ok(Value::Object(data));
            }
            Feed::Made(made, mode) => (made, mode),
        };
        let found = self.expected(&step.name, made)?;
        match &made.folder {
            Some(_) => step.after.extend(&made.source.steps),
            None => {
                let source = Source { optional: port.optional, ..made.source.clone() };
                step.bound.insert(name.to_owned(), source);
            }
        }
        if port.is_literal() {
            return Ok(json!({"jobInputType": "literal", "value": ""}));
        }
        let kind = if port.kind == "uri_file" || DATA.contains(&port.kind.as_str()) { &port.kind } else { &made.kind };
        let mut input = json!({"jobInputType": kind, "uri": found.uri});
        if let Some(mode) = mode.as_ref().or(port.mode.as_ref()) {
            input["mode"] = json!(mode);
        }
        late.insert(name.to_owned(), found);
        Ok(input)
    }

    /// Where an output of a step is expected.
    fn expected(&mut self, path: &str, made: &Made) -> Result<Late, Error> {
        if let Some(uri) = &made.folder {
            let place = self.lookup.output_place(&format!("jobs.{path}.inputs"), uri)?.unwrap_or_default();
            return Ok(Late { place, uri: uri.clone() });
        }
        let maker = made.source.steps.last().and_then(|at| self.graph.steps.get(*at));
        let plan = maker.map(|step| &step.job.plan);
        let output = plan.and_then(|plan| plan.outputs.get(&made.source.output));
        Ok(match (output, plan) {
            (Some(output), _) => Late { place: output.place.clone(), uri: output.uri.clone() },
            (None, Some(plan)) => {
                let name = maker.and_then(|step| step.job.name.as_ref()).map(ToString::to_string).unwrap_or_default();
                Late { place: plan.artifacts.clone(), uri: format!("azureml://jobs/{name}/outputs/artifacts") }
            }
            (None, None) => Late { place: Place::default(), uri: String::new() },
        })
    }

    fn outputs_of(
        &mut self,
        scope: &Scope<'_>,
        node: &Value,
        declared: &BTreeMap<String, Port>,
        turn: &Turn,
    ) -> Result<Value, Error> {
        let named: Vec<String> =
            entries(some(node, "outputs").unwrap_or(&Value::Null)).map(|(name, _)| name.clone()).collect();
        for name in unknown(named.iter().filter(|name| *name != "artifacts"), declared) {
            let message = format!("the component of step `{}` has no output `{name}`", turn.path);
            let names: Vec<&str> = declared.keys().map(String::as_str).collect();
            let fix = if names.is_empty() { "remove it".to_owned() } else { format!("it has: {}", names.join(", ")) };
            self.lookup.mistake(format!("jobs.{}.outputs.{name}", turn.path), message, fix);
        }
        let mut outputs = Map::new();
        for (name, port) in declared {
            let mut settings = self.wanted(scope, node, name).settings;
            settings.insert("jobOutputType".into(), json!(file_kind(&port.kind)));
            if let Some(uri) = self.gathered_at(turn, name)? {
                settings.insert("uri".into(), json!(uri));
            }
            outputs.insert(name.clone(), Value::Object(settings));
        }
        Ok(Value::Object(outputs))
    }

    /// Where an output of a turn goes, if those of all turns lie together.
    pub(super) fn gathered_at(&mut self, turn: &Turn, output: &str) -> Result<Option<String>, Error> {
        let (Some(item), Some((folder, _))) = (&turn.gathered, turn.path.rsplit_once('.')) else { return Ok(None) };
        Ok(Some(format!("{}{item}/", self.gathered(folder, output)?)))
    }

    /// The address of the folder in which an output of all turns of a loop lies.
    pub(super) fn gathered(&mut self, path: &str, output: &str) -> Result<String, Error> {
        let datastore = self.lookup.default_datastore()?;
        let folder = path.replace('.', "-");
        Ok(format!("azureml://datastores/{datastore}/paths/azureml/{}/{folder}/{output}/", self.job))
    }

    /// The job of a step, or of a trial of this sweep; `None` after mistakes were noted.
    fn planned(
        &mut self,
        name: &JobName,
        body: Value,
        late: &BTreeMap<String, Late>,
        of: Of<'_>,
    ) -> Result<Option<StepJob>, Error> {
        let mut spec = match job::spec(&body) {
            Ok(spec) => spec,
            Err(mistakes) => {
                self.lookup.bad.extend(mistakes);
                return Ok(None);
            }
        };
        let mut spread = None;
        self.lookup.bad.extend(match of {
            Of::Trial(sweep) => sweep::mistakes_of(sweep, &spec),
            Of::Command => check::command_job(&spec),
            Of::Parallel(given) => {
                // A model without code says itself what software it needs.
                let brings_its_own = given.task == Task::MlflowModel;
                let mut wrong = check::command_job(&spec);
                wrong.retain(|bad| !(brings_its_own && bad.key == "environment"));
                spread = Some(Parallel { rows: are_rows(&spec, &given), ..*given });
                wrong
            }
        });
        let bound: Vec<(String, Input)> = late.keys().filter_map(|input| spec.inputs.remove_entry(input)).collect();
        let (mut resolved, pooled) = self.lookup.placed(name, &spec)?;
        for (input, was) in bound {
            let Input::Data(data) = &was else { continue };
            let Some(Late { place, uri }) = late.get(&input) else { continue };
            let planned = PlannedInput::Data {
                place: place.clone(),
                mode: data.mode.unwrap_or(InputMode::RoMount),
                uri: uri.clone(),
                file: data.kind == DataType::UriFile,
            };
            resolved.plan.inputs.insert(input, planned);
        }
        resolved.plan.parallel = spread;
        if !self.lookup.bad.is_empty() {
            return Ok(None);
        }
        let switched_off = spec.properties.get(REUSE).is_some_and(|word| word.eq_ignore_ascii_case("false"));
        let Resolved { plan, target, cluster, max_retries } = resolved;
        let registers = sweep::registers(&body);
        let (name, places, reuse) = (Some(name.clone()), step_places(pooled), !switched_off);
        let priority = spec.queue_settings.priority.map(|priority| priority as i64 + 1);
        Ok(Some(StepJob { name, body, plan, target, cluster, max_retries, priority, registers, places, reuse }))
    }

    /// The job of a step that is a sweep, and what leads it; `None` after mistakes were noted.
    fn searched(
        &mut self,
        name: &JobName,
        body: Value,
        late: &BTreeMap<String, Late>,
    ) -> Result<Option<(StepJob, Search)>, Error> {
        let (workspace, app) = (self.lookup.workspace, self.lookup.app);
        let Sought { sweep, seed, earlier, anybody } = match sweep::sought(workspace, self.lookup.tx, name, &body)? {
            Ok(sought) => sought,
            Err(mistakes) => {
                self.lookup.bad.extend(mistakes);
                return Ok(None);
            }
        };
        let Some(trial) = self.planned(&anybody, sweep::trial_body(&body), late, Of::Trial(&sweep))? else {
            return Ok(None);
        };
        let artifacts = Place::Folder { path: app.files.artifacts(&workspace.name, name.as_str()) };
        // Where a trial's outputs lie stands for where the best trial's will.
        let plan = Plan { artifacts, outputs: trial.plan.outputs.clone(), ..Plan::default() };
        let (name, registers, cluster) = (Some(name.clone()), sweep::registers(&body), NOWHERE.to_owned());
        let job = StepJob { name, body, plan, cluster, registers, priority: trial.priority, ..StepJob::default() };
        Ok(Some((job, Search { sweep, seed, trial, earlier })))
    }
}

/// What a plan is made for.
enum Of<'a> {
    Command,
    Parallel(Box<Parallel>),
    /// A trial of this sweep.
    Trial(&'a Sweep),
}

/// Whether mini-batches are rows: of tables that the step is not given as files.
fn are_rows(spec: &CommandJob, spread: &Parallel) -> bool {
    let is_table = |input: &Input| match input {
        Input::Data(data) => data.kind == DataType::MlTable && data.mode == Some(InputMode::Direct),
        Input::Literal(_) => false,
    };
    spread.inputs.iter().any(|name| spec.inputs.get(name).is_some_and(is_table))
}

/// Types of files that jobs have a word for.
const DATA: [&str; 5] = ["uri_folder", "mltable", "mlflow_model", "custom_model", "triton_model"];

/// The type of files that an output of a declared type is: values are written into a file.
fn file_kind(kind: &str) -> &str {
    match kind {
        "uri_file" => "uri_file",
        kind if DATA.contains(&kind) => kind,
        kind if read::is_literal(kind) => "uri_file",
        _ => "uri_folder",
    }
}

/// The outputs of a step, and all that it leaves behind under the name `artifacts`.
fn made(at: usize, declared: &BTreeMap<String, Port>) -> BTreeMap<String, Made> {
    let one = |output: &str, kind: &str| Made {
        source: Source { steps: vec![at], output: output.to_owned(), optional: false },
        kind: kind.to_owned(),
        folder: None,
    };
    let mut all = BTreeMap::from([("artifacts".to_owned(), one("artifacts", "uri_folder"))]);
    all.extend(declared.iter().map(|(name, port)| (name.clone(), one(name, &port.kind))));
    all
}

/// The name of a step's job: its pipeline's name and its path, in which a `-` stands for each `.`.
pub(super) fn job_name(pipeline: &JobName, path: &str) -> JobName {
    let whole = format!("{pipeline}_{}", path.replace('.', "-"));
    let kept = match whole.len() > NAME_BYTES || !whole.is_ascii() {
        true => {
            let head: String = whole.chars().filter(char::is_ascii).take(NAME_BYTES - 13).collect();
            format!("{head}_{}", &sha256(whole.as_bytes())[..12])
        }
        false => whole,
    };
    JobName::parse(&kept).unwrap_or_else(|_| pipeline.clone())
}

fn placed(mut mistake: Mistake, path: &str) -> Mistake {
    mistake.key = format!("jobs.{path}.{}", mistake.key).trim_end_matches('.').to_owned();
    mistake
}
