//! Pipelines: a graph of nodes and components becomes one flat list of steps, each with its plan.
//!
//! Everything is looked up when the pipeline is accepted, so `@latest` means what it meant then. What a step takes from
//! another lies where that step's plan says; it is looked at again when the step begins, because an earlier run may
//! stand for its maker by then. Mistakes name the step by its path.

mod each;
mod feed;
mod flow;
mod leaf;
mod order;

use super::Lookup;
use crate::{app::App, http::jobs::DEFAULT_EXPERIMENT};
use api::arm::{
    self, AssetRef,
    pipeline::read::{self, Wanted},
    reference::compute_name,
    tree::{entries, some, word},
};
use domain::{
    JobName, Place, Plan,
    pipeline::{Condition, Graph, Settings, Source},
    spec::Mistake,
};
use feed::Feed;
use serde::Serialize;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};
use store::{Error, Tx, WorkspaceRow};

/// The most steps a pipeline may have once everything in it is written out.
const MOST: usize = 30_000;
/// How deep pipelines may stand in pipelines.
const DEEPEST: usize = 32;

/// A pipeline ready to be led; its graph is what leads it.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Woven {
    pub(crate) graph: Graph,
    /// Nothing to run; where its outputs will lie.
    #[serde(skip)]
    pub(crate) plan: Plan,
    #[serde(skip)]
    pub(crate) experiment: String,
    /// The labels of the workspace's components that it is made of, those inside of others included.
    #[serde(skip)]
    pub(crate) components: BTreeSet<String>,
}

/// The graph of a pipeline, or all its mistakes.
pub(crate) fn weave(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    name: &JobName,
    body: &Value,
) -> Result<Result<Woven, Vec<Mistake>>, Error> {
    let lookup = Lookup { app, workspace, tx, to_share: false, datastore: None, bad: Vec::new() };
    let experiment = arm::text(body, "experimentName").unwrap_or_else(|| DEFAULT_EXPERIMENT.to_owned());
    let mut weaver = Weaver {
        lookup,
        job: name,
        experiment: experiment.clone(),
        graph: Graph::default(),
        components: HashMap::new(),
        used: BTreeSet::new(),
        stop: false,
    };
    let plan = weaver.whole(body)?;
    let Weaver { lookup, graph, used, .. } = weaver;
    Ok(match lookup.bad.is_empty() {
        true => Ok(Woven { graph, plan, experiment, components: used }),
        false => Err(lookup.bad),
    })
}

struct Weaver<'t, 'c> {
    lookup: Lookup<'t, 'c>,
    job: &'t JobName,
    experiment: String,
    graph: Graph,
    /// Components by reference.
    components: HashMap<String, Option<Arc<Value>>>,
    /// The labels of those that have a name in this workspace.
    used: BTreeSet<String>,
    /// There are too many steps already; no more are made.
    stop: bool,
}

/// One pipeline, the job itself or one that stands in it.
struct Scope<'s> {
    /// The path of what stands in it begins with this.
    path: String,
    nodes: &'s Map<String, Value>,
    inputs: BTreeMap<String, Feed>,
    /// What is wanted of its outputs.
    wanted: BTreeMap<String, Wanted>,
    compute: Option<String>,
    /// How its steps are tied to a branch or loop around it.
    tie: Tie,
    depth: usize,
}

/// How steps are tied to a branch or loop.
#[derive(Debug, Clone, Default)]
struct Tie {
    when: Vec<Condition>,
    group: Option<usize>,
    /// Its outputs lie together with those of others, where no earlier job has put them.
    fresh: bool,
}

/// An output that a step makes.
#[derive(Debug, Clone)]
struct Made {
    source: Source,
    kind: String,
    /// The address of the folder that the outputs of all of its steps lie in, where it is that folder.
    folder: Option<String>,
}

/// What is known of the nodes of a scope that come earlier.
#[derive(Default)]
struct Known {
    made: HashMap<String, BTreeMap<String, Made>>,
    fed: HashMap<String, BTreeMap<String, Feed>>,
    /// Outputs of the scope, each made once.
    promoted: BTreeMap<String, Made>,
}

/// One run of a node: as it stands, or as a turn of a loop.
#[derive(Default)]
struct Turn {
    /// The path of the step.
    path: String,
    /// Inputs that the loop gives.
    given: BTreeMap<String, Feed>,
    /// A turn of a loop: its outputs are the loop's to pass on.
    looped: bool,
    /// The end of the address of each output, where those of all turns lie together.
    gathered: Option<String>,
    tie: Tie,
}

/// What a node leaves, by name, and what it was given.
type NodeEnds = (BTreeMap<String, Made>, BTreeMap<String, Feed>);

impl Weaver<'_, '_> {
    fn whole(&mut self, body: &Value) -> Result<Plan, Error> {
        self.settings(some(body, "settings").unwrap_or(&Value::Null));
        let artifacts =
            Place::Folder { path: self.lookup.app.files.artifacts(&self.lookup.workspace.name, self.job.as_str()) };
        let mut plan = Plan { artifacts, ..Plan::default() };
        let mut inputs = BTreeMap::new();
        for (name, value) in entries(some(body, "inputs").unwrap_or(&Value::Null)) {
            match read::given(value) {
                Some((read::Given::Literal(text), _)) => drop(inputs.insert(name.clone(), Feed::Literal(text))),
                Some((read::Given::Data(data), _)) => drop(inputs.insert(name.clone(), Feed::Data(data))),
                Some((read::Given::Bound(_), _)) => {
                    let key = format!("inputs.{name}");
                    self.lookup.mistake(key, "an input of the pipeline is bound to nothing", "give it a value");
                }
                None => {}
            }
        }
        let component = match word(body, "componentId") {
            Some(reference) => self.component("componentId", reference)?,
            None => None,
        };
        let empty = Map::new();
        let nodes = match &component {
            Some(component) => component.get("jobs").and_then(Value::as_object).unwrap_or(&empty),
            None => body.get("jobs").and_then(Value::as_object).unwrap_or(&empty),
        };
        if let Some(component) = &component {
            let given = std::mem::take(&mut inputs);
            inputs = self.checked("", component, given, "inputs");
        }
        if nodes.is_empty() && self.lookup.bad.is_empty() {
            self.lookup.mistake("jobs", "a pipeline has at least one step", "add one under `jobs`");
        }
        let mut wanted: BTreeMap<String, Wanted> = component
            .iter()
            .flat_map(|component| read::ports(component, "outputs"))
            .map(|(name, _)| (name, Wanted::default()))
            .collect();
        let outputs = entries(some(body, "outputs").unwrap_or(&Value::Null));
        wanted.extend(outputs.map(|(name, value)| (name.clone(), read::wanted(value))));
        let settings_compute = some(body, "settings").and_then(|settings| word(settings, "default_compute"));
        let scope = Scope {
            path: String::new(),
            nodes,
            inputs,
            wanted,
            compute: [settings_compute, word(body, "computeId")]
                .into_iter()
                .flatten()
                .find(names_a_target)
                .map(str::to_owned),
            tie: Tie::default(),
            depth: 0,
        };
        for (name, made) in self.scope(&scope)? {
            if let Some(uri) = &made.folder {
                plan.outputs.extend(self.folder(uri)?.map(|planned| (name, planned)));
                continue;
            }
            let maker = made.source.steps.last().and_then(|at| self.graph.steps.get(*at));
            if let Some(planned) = maker.and_then(|step| step.job.plan.outputs.get(&made.source.output)) {
                plan.outputs.insert(name.clone(), planned.clone());
            }
            self.graph.outputs.insert(name, made.source);
        }
        Ok(plan)
    }

    fn settings(&mut self, settings: &Value) {
        let flag = |key: &str| match some(settings, key) {
            Some(Value::Bool(flag)) => Some(*flag),
            Some(Value::String(text)) => Some(text.eq_ignore_ascii_case("true")),
            _ => None,
        };
        self.graph.settings = Settings {
            continue_on_step_failure: flag("continue_on_step_failure").unwrap_or(false),
            force_rerun: flag("force_rerun").unwrap_or(false),
            continue_run_on_failed_optional_input: flag("continue_run_on_failed_optional_input").unwrap_or(true),
        };
        self.lookup.datastore = word(settings, "default_datastore").map(compute_name);
    }

    /// Makes the steps of one pipeline; what its outputs are.
    fn scope(&mut self, scope: &Scope<'_>) -> Result<BTreeMap<String, Made>, Error> {
        let mut known = Known::default();
        let flow = self.flow(scope);
        let order = match order::order(scope.nodes, &flow) {
            Ok(order) => order,
            Err(circle) => {
                let shown = circle.iter().map(|name| format!("`{}{name}`", scope.path)).collect::<Vec<_>>();
                let message = format!("the steps wait for each other: {}", shown.join(" waits for "));
                self.lookup.mistake(
                    format!("jobs.{}{}", scope.path, circle[0]),
                    message,
                    "take one of these bindings away",
                );
                return Ok(BTreeMap::new());
            }
        };
        for name in order {
            if self.stop {
                break;
            }
            let node = &scope.nodes[name];
            if flow::is_control(node) {
                self.control(scope, &mut known, &flow, name)?;
                continue;
            }
            let tie = self.tie(scope, &known, &flow, name);
            let turn = Turn { path: format!("{}{name}", scope.path), tie, ..Turn::default() };
            let (made, fed) = self.node(scope, &mut known, node, &turn)?;
            known.made.insert(name.to_owned(), made);
            known.fed.insert(name.to_owned(), fed);
        }
        Ok(known.promoted)
    }

    /// One node: a step, or a pipeline that stands in this one.
    fn node(&mut self, scope: &Scope<'_>, known: &mut Known, node: &Value, turn: &Turn) -> Result<NodeEnds, Error> {
        let key = format!("jobs.{}", turn.path);
        let nothing = (BTreeMap::new(), BTreeMap::new());
        let Some(reference) = read::component(node) else {
            let message = match word(node, "type").unwrap_or("command") {
                "command" | "pipeline" | "sweep" => "the step names no component".to_owned(),
                kind => format!("`{kind}` steps cannot run yet"),
            };
            self.lookup.mistake(key, message, flow::REFUSED);
            return Ok(nothing);
        };
        let Some(mut component) = self.component(&key, reference)? else { return Ok(nothing) };
        let kind = word(&component, "type").unwrap_or("command").to_owned();
        let shown = word(node, "type").unwrap_or(&kind);
        if shown == "sweep" {
            component = Arc::new(read::trial_of(node, &component));
        }
        let given = self.fed(scope, known, node, turn);
        let fed = self.checked(&turn.path, &component, given, &format!("{key}.inputs"));
        match (shown, kind.as_str()) {
            ("command" | "sweep", "command" | "commandcomponent" | "CommandComponent") | ("parallel", "parallel") => {
                let made = self.leaf(scope, known, node, &component, &fed, turn)?;
                Ok((made, fed))
            }
            ("pipeline" | "pipeline_component", _) => {
                let made = self.nested(scope, known, node, &component, &fed, turn)?;
                Ok((made, fed))
            }
            _ => {
                self.lookup.mistake(key, format!("`{shown}` steps cannot run yet"), flow::REFUSED);
                Ok(nothing)
            }
        }
    }

    /// A pipeline component that a node runs.
    fn nested(
        &mut self,
        scope: &Scope<'_>,
        known: &mut Known,
        node: &Value,
        component: &Value,
        fed: &BTreeMap<String, Feed>,
        turn: &Turn,
    ) -> Result<BTreeMap<String, Made>, Error> {
        if scope.depth >= DEEPEST {
            let message = format!("pipelines stand in pipelines more than {DEEPEST} deep");
            self.lookup.mistake(format!("jobs.{}", turn.path), message, "is one a part of itself?");
            return Ok(BTreeMap::new());
        }
        let empty = Map::new();
        let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
        for name in read::ports(component, "outputs").keys() {
            let mut of_this = self.wanted(scope, node, name);
            if let Some(uri) = self.gathered_at(turn, name)? {
                of_this.settings.insert("uri".into(), uri.into());
            }
            wanted.insert(name.clone(), of_this);
        }
        let own = word(node, "computeId").and_then(|id| self.compute(scope, id));
        let inner = Scope {
            path: format!("{}.", turn.path),
            nodes: component.get("jobs").and_then(Value::as_object).unwrap_or(&empty),
            inputs: fed.clone(),
            compute: own.or_else(|| scope.compute.clone()),
            tie: turn.tie.clone(),
            depth: scope.depth + 1,
            wanted,
        };
        let made = self.scope(&inner)?;
        if !turn.looped {
            self.promote_all(scope, known, node, &turn.path, &made);
        }
        Ok(made)
    }

    /// The target that a node names, or that a value of the pipeline names for it.
    fn compute(&self, scope: &Scope<'_>, text: &str) -> Option<String> {
        let named = match read::binding(text) {
            Some(read::Binding::Input(name)) => match scope.inputs.get(&name) {
                Some(Feed::Literal(text)) => text.as_str(),
                _ => text,
            },
            _ => text,
        };
        Some(named).filter(names_a_target).map(str::to_owned)
    }

    /// What is wanted of an output of a node: by itself, or by the output of the pipeline that it is.
    fn wanted(&self, scope: &Scope<'_>, node: &Value, output: &str) -> Wanted {
        let own = some(node, "outputs").and_then(|all| some(all, output)).map(read::wanted).unwrap_or_default();
        let above = own.bound.as_ref().and_then(|bound| scope.wanted.get(bound));
        let mut settings = above.map(|above| above.settings.clone()).unwrap_or_default();
        settings.extend(own.settings);
        Wanted { bound: own.bound, settings }
    }

    /// Notes which outputs of a node are the pipeline's.
    fn promote_all(
        &mut self,
        scope: &Scope<'_>,
        known: &mut Known,
        node: &Value,
        path: &str,
        made: &BTreeMap<String, Made>,
    ) {
        for (output, made) in made {
            self.promote(scope, known, node, path, (output, made));
        }
    }

    fn promote(
        &mut self,
        scope: &Scope<'_>,
        known: &mut Known,
        node: &Value,
        path: &str,
        (output, made): (&str, &Made),
    ) {
        let Some(bound) = self.wanted(scope, node, output).bound else { return };
        let key = format!("jobs.{path}.outputs.{output}");
        if !scope.wanted.contains_key(&bound) {
            let message = format!("the pipeline has no output `{bound}`");
            return self.lookup.mistake(key, message, "declare it under `outputs`");
        }
        if known.promoted.insert(bound.clone(), made.clone()).is_some() {
            let message = format!("two steps make the pipeline's output `{bound}`");
            self.lookup.mistake(key, message, "bind each output of the pipeline once");
        }
    }

    /// What a component says of itself; `None` after a mistake was noted.
    fn component(&mut self, key: &str, reference: &str) -> Result<Option<Arc<Value>>, Error> {
        if let Some(known) = self.components.get(reference) {
            return Ok(known.clone());
        }
        let found = self.found(key, reference)?.map(Arc::new);
        self.components.insert(reference.to_owned(), found.clone());
        Ok(found)
    }

    fn found(&mut self, key: &str, reference: &str) -> Result<Option<Value>, Error> {
        let parsed = AssetRef::parse("components", reference);
        if let Some(parsed) = &parsed {
            if self.lookup.strays(key, reference, parsed) {
                return Ok(None);
            }
            if let Some(row) = self.lookup.referred("components", parsed)? {
                let body: Value = serde_json::from_str(&row.body).map_err(|error| Error::Decode(error.to_string()))?;
                let spec = body.get("componentSpec").cloned().unwrap_or_default();
                if row.key.workspace == self.lookup.workspace.name && row.key.name != arm::component::ANONYMOUS {
                    self.used.insert(format!("{}:{}", row.key.name, row.key.version));
                }
                return match word(&spec, "source_job_id").or_else(|| word(&spec, "sourceJobId")) {
                    Some(job) => self.of_job(key, job),
                    None => Ok(Some(spec)),
                };
            }
        }
        let shown = parsed.as_ref().map_or_else(|| reference.to_owned(), ToString::to_string);
        let mut fix = "create it with `peregrine component create`".to_owned();
        let mut owner = self.lookup.workspace.name.clone();
        if let Some(AssetRef::Registry { registry, .. }) = &parsed {
            fix += &format!(
                " and put it there with `peregrine component share --registry-name {registry}`; registries of other servers are not looked into"
            );
            owner = crate::http::registries::owner(registry);
        }
        let known = self.lookup.tx.asset_names(&owner, "components")?;
        let known: Vec<String> = known.into_iter().filter(|name| name != arm::component::ANONYMOUS).collect();
        let known = if known.is_empty() { String::new() } else { format!(" (there are: {})", known.join(", ")) };
        let message = format!("there is no component `{shown}`{known}");
        self.lookup.mistake(key, message, fix);
        Ok(None)
    }

    /// The component that a pipeline which was submitted stands for: its nodes or those of its component, and its inputs as defaults.
    fn of_job(&mut self, key: &str, job: &str) -> Result<Option<Value>, Error> {
        let name = compute_name(job);
        let row = self.lookup.tx.job(&self.lookup.workspace.name, &name)?;
        let body: Value = row.and_then(|row| serde_json::from_str(&row.body).ok()).unwrap_or_default();
        if some(&body, "jobs").is_none() {
            self.lookup.mistake(key, format!("there is no pipeline job `{name}`"), "name one that was submitted");
            return Ok(None);
        }
        if let Some(component) = word(&body, "componentId") {
            let Some(mut spec) = self.found(key, component)? else { return Ok(None) };
            for (name, input) in entries(&body["inputs"]) {
                if let (Some(port), Some(value)) = (spec["inputs"].get_mut(name), some(input, "value")) {
                    port["default"] = value.clone();
                }
            }
            return Ok(Some(spec));
        }
        let port = |value: &Value, side: &str| {
            let default = some(value, "value");
            let kind = word(value, side).filter(|kind| *kind != "literal").unwrap_or("string");
            serde_json::json!({"type": kind, "default": default})
        };
        let ports = |side: &str, word: &str| -> Value {
            entries(&body[side]).map(|(name, value)| (name.clone(), port(value, word))).collect()
        };
        Ok(Some(serde_json::json!({"type": "pipeline", "jobs": body["jobs"],
            "inputs": ports("inputs", "jobInputType"), "outputs": ports("outputs", "jobOutputType")})))
    }
}

/// Whether a compute reference says where to run.
fn names_a_target(text: &&str) -> bool {
    !compute_name(text).eq_ignore_ascii_case("serverless")
}

/// All outputs and inputs that a set of names does not have.
fn unknown<'n, T>(given: impl Iterator<Item = &'n String>, declared: &BTreeMap<String, T>) -> Vec<&'n String> {
    let known: HashSet<&String> = declared.keys().collect();
    given.filter(|name| !known.contains(name)).collect()
}
