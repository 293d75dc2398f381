//! Turning a job's references into a plan: what exactly an agent is to run.
//!
//! Everything is looked up once, when the job is accepted, so a job runs what its names meant at that moment. A name
//! that does not exist is a mistake that lists those that do.

mod cluster;
mod data;
mod environment;
mod pipeline;
mod pool;
mod reach;
mod serving;
mod sweep;

pub(crate) use serving::{Deployment, Served, serving};

pub(crate) use pipeline::{Woven, weave};
pub(crate) use pool::{Pooled, placed, settings as pool_settings};
pub(crate) use sweep::search;

use crate::{app::App, http::computes};
use api::arm::{self, AssetRef, VersionRef};
use domain::{
    InstanceType, JobName, Place, Plan, PlannedInput, PlannedOutput, Resources,
    assignment::{DistributionKind, InputMode, OutputMode, PlannedDistribution, RayCluster},
    resources::{DEFAULT_INSTANCE_TYPE, parse_bytes},
    sizes,
    spec::{CommandJob, DataType, Distribution, Input, Mistake, expression, expression::Reference},
};
use serde_json::Value;
use std::collections::BTreeMap;
use store::{AssetRow, DatastoreRow, TargetRow, Tx, WorkspaceRow};

/// A plan and where it goes.
pub(crate) struct Resolved {
    pub(crate) plan: Plan,
    pub(crate) target: String,
    /// The cluster of the target; `HERE` for this machine.
    pub(crate) cluster: String,
    pub(crate) max_retries: u32,
}

/// Where a job goes.
struct Target {
    name: String,
    /// What it lies on, where that is a cluster.
    on: Option<TargetRow>,
}

/// What resolving looks things up in.
pub(crate) struct Lookup<'t, 'c> {
    app: &'t App,
    workspace: &'t WorkspaceRow,
    tx: &'t mut Tx<'c>,
    /// Whether what is found will be copied for others: then it must be the workspace's own.
    to_share: bool,
    /// Where outputs go that say nothing of it; the workspace's own where there is none.
    datastore: Option<String>,
    bad: Vec<Mistake>,
}

/// Where the files at an address lie that a workspace is to share, or why they cannot be found or shared.
pub(crate) fn place_to_share(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    uri: &str,
) -> Result<Result<Place, Vec<Mistake>>, store::Error> {
    let mut lookup = Lookup { app, workspace, tx, to_share: true, datastore: None, bad: Vec::new() };
    let found = lookup.place("path", uri, 0)?;
    Ok(found.ok_or(lookup.bad))
}

/// Where an asset's files lie; nothing where its address leads nowhere.
pub(crate) fn place_of(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    uri: &str,
) -> Result<Option<Place>, store::Error> {
    Lookup { app, workspace, tx, to_share: false, datastore: None, bad: Vec::new() }.place("path", uri, 0)
}

/// Whether a model says itself how it is asked.
pub(crate) fn is_mlflow(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    model: &str,
) -> Result<bool, store::Error> {
    let mut lookup = Lookup { app, workspace, tx, to_share: false, datastore: None, bad: Vec::new() };
    if let Some(reference) = AssetRef::parse("models", model).filter(|_| !model.starts_with("azureml://datastores/"))
        && let Some(row) = lookup.referred("models", &reference)?
        && body_text(&row, "modelType").is_some_and(|kind| kind == "mlflow_model")
    {
        return Ok(true);
    }
    let place = lookup.place("model", model, 0)?;
    Ok(matches!(place, Some(Place::Folder { path }) if path.join("MLmodel").is_file()))
}

impl Lookup<'_, '_> {
    fn resolve(&mut self, name: &JobName, spec: &CommandJob) -> Result<Resolved, store::Error> {
        let target = self.target(spec)?;
        let shape = match &target.on {
            Some(on) => self.cluster_resources(spec, on)?,
            None => self.resources(spec),
        };
        let mut plan = Plan {
            command: spec.command.clone(),
            code: self.code(spec)?,
            environment: self.environment(spec)?,
            variables: spec.environment_variables.clone(),
            inputs: self.inputs(spec)?,
            outputs: self.outputs(name, spec)?,
            artifacts: Place::Folder { path: self.app.files.artifacts(&self.workspace.name, name.as_str()) },
            requests: shape.requests,
            limits: shape.limits,
            timeout_seconds: spec.limits.timeout,
            distribution: self.distribution(spec),
            isolation_required: self.app.settings.isolation_required
                || spec.properties.get("peregrine.isolation").is_some_and(|word| word == "required"),
            shm_bytes: spec.resources.shm_size.as_deref().and_then(parse_bytes),
            docker_args: spec.resources.docker_args.clone(),
            instance_type: target.on.is_some().then_some(shape.name),
            serve: None,
            parallel: None,
        };
        if let Some(Distribution::Ray { settings }) = &spec.distribution
            && let Some(address) = text_in(settings, "address")
        {
            plan.variables.entry("RAY_ADDRESS".to_owned()).or_insert(address);
        }
        match &target.on {
            Some(on) => {
                self.fits_cluster(&plan, on)?;
                self.reaches_pods(&plan, on);
            }
            None => self.fits(&plan, &target.name),
        }
        let max_retries = self.max_retries(spec);
        let cluster = target.on.map_or_else(|| store::HERE.to_owned(), |on| on.cluster);
        Ok(Resolved { plan, target: target.name, cluster, max_retries })
    }

    fn mistake(&mut self, key: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) {
        self.bad.push(Mistake::new(key, message, fix));
    }

    fn target(&mut self, spec: &CommandJob) -> Result<Target, store::Error> {
        let here = |name: &str| Target { name: name.to_owned(), on: None };
        let name = spec.compute.as_deref().map_or_else(|| computes::LOCAL.to_owned(), arm::reference::compute_name);
        if name.eq_ignore_ascii_case(computes::LOCAL) {
            return Ok(here(computes::LOCAL));
        }
        if let Some(on) = self.tx.target(&self.workspace.name, &name)? {
            self.is_fit(&on);
            return Ok(Target { name: on.target.compute.clone(), on: Some(on) });
        }
        if let Some(row) = self.tx.compute(&self.workspace.name, &name)? {
            if computes::check::runs_here(&row) {
                return Ok(here(computes::LOCAL));
            }
            // Replicas go to the first target of a pool.
            if let Some(first) = pool_settings(&row).0.first().filter(|_| computes::check::is_pool(&row)) {
                return self.target(&CommandJob { compute: Some(first.clone()), ..spec.clone() });
            }
            let kind = computes::check::kind_of(&row);
            let message =
                format!("compute target `{name}` is of type `{kind}`, and targets of this type cannot run work yet");
            self.mistake("compute", message, "set `compute: azureml:local`, or add `--set compute=local`");
            return Ok(here(&name));
        }
        let known =
            computes::with_local(self.tx.computes(&self.workspace.name)?.into_iter().map(|row| row.name).collect());
        let message = format!("there is no compute target `{name}` (there are: {})", known.join(", "));
        self.mistake("compute", message, "set `compute: azureml:local`, or add `--set compute=local`");
        Ok(here(&name))
    }

    /// What an instance type, or an Azure size standing for one, asks for and allows.
    fn resources(&mut self, spec: &CommandJob) -> InstanceType {
        let types = self.app.instance_types();
        let wanted = spec.resources.instance_type.as_deref().unwrap_or(DEFAULT_INSTANCE_TYPE);
        if let Some(kind) = types.iter().find(|kind| kind.name.eq_ignore_ascii_case(wanted)) {
            return kind.clone();
        }
        let of = |requests| InstanceType { name: wanted.to_owned(), requests, limits: None };
        if let Some(size) = sizes::find(wanted) {
            let asked = Resources {
                cpu_milli: u64::from(size.cores) * 1000,
                memory_bytes: (size.memory_gib * 1024.0) as u64 * (1 << 20),
                gpus: size.gpus,
            };
            // A machine of that size is not here; the job gets as much of it as there is.
            let most = self.app.capacity().unwrap_or(asked);
            let capped = Resources {
                cpu_milli: asked.cpu_milli.min(most.cpu_milli),
                memory_bytes: asked.memory_bytes.min(most.memory_bytes),
                gpus: asked.gpus.min(most.gpus),
            };
            return of(capped);
        }
        let names: Vec<String> = types.into_iter().map(|kind| kind.name).collect();
        let message = format!("instance type `{wanted}` is not offered by `local` (offered: {})", names.join(", "));
        self.mistake(
            "resources.instance_type",
            message,
            "name one of these, an Azure VM size, or see `peregrine compute show -n local`",
        );
        of(Resources::default())
    }

    /// Work that no node will ever have room for is refused now, not left to wait for ever.
    fn fits(&mut self, plan: &Plan, target: &str) {
        let needs = plan.needs();
        if let Some(capacity) = self.app.capacity()
            && !needs.fits_in(&capacity)
        {
            let message = format!("needs {}, but `{target}` has {}", needs.humane(), capacity.humane());
            self.mistake("resources", message, "ask for less, or for fewer instances");
        }
    }

    fn distribution(&mut self, spec: &CommandJob) -> Option<PlannedDistribution> {
        let nodes = spec.resources.instance_count.unwrap_or(1).max(1);
        let planned = |kind, nodes, per_node: Option<u32>, parameter_servers| PlannedDistribution {
            kind,
            nodes,
            processes_per_node: per_node.unwrap_or(1).max(1),
            parameter_servers,
            ray: None,
        };
        match &spec.distribution {
            Some(Distribution::PyTorch { process_count_per_instance: n }) => {
                Some(planned(DistributionKind::PyTorch, nodes, *n, 0))
            }
            Some(Distribution::Mpi { process_count_per_instance: n }) => {
                Some(planned(DistributionKind::Mpi, nodes, *n, 0))
            }
            Some(Distribution::TensorFlow { worker_count, parameter_server_count }) => {
                let workers = worker_count.unwrap_or(nodes).max(1);
                Some(planned(DistributionKind::TensorFlow, workers, None, parameter_server_count.unwrap_or(0)))
            }
            Some(Distribution::Ray { settings }) if text_in(settings, "address").is_some() => {
                if nodes > 1 {
                    let message =
                        "the command runs on one node, because `address` names a cluster that is there already";
                    self.mistake("distribution.address", message, "leave `address` out, or ask for one instance");
                }
                None
            }
            Some(Distribution::Ray { settings }) => {
                Some(PlannedDistribution { ray: Some(ray(settings)), ..planned(DistributionKind::Ray, nodes, None, 0) })
            }
            // Without a framework the command runs once on each instance, told apart by its rank.
            None if nodes > 1 => Some(planned(DistributionKind::PyTorch, nodes, Some(1), 0)),
            None => None,
        }
    }

    fn max_retries(&mut self, spec: &CommandJob) -> u32 {
        let Some(text) = spec.properties.get("peregrine.max_retries") else { return self.app.settings.max_retries };
        match text.parse::<u32>() {
            Ok(n) if n <= 100 => n,
            _ => {
                self.mistake(
                    "properties.peregrine.max_retries",
                    format!("`{text}` is not a number from 0 to 100"),
                    "write it like `\"2\"`",
                );
                0
            }
        }
    }

    fn code(&mut self, spec: &CommandJob) -> Result<Option<Place>, store::Error> {
        let Some(reference) = &spec.code else { return Ok(None) };
        if let Some(place) = self.blob("code", reference)? {
            return Ok(self.reached("code", reference, place));
        }
        let found = match AssetRef::parse("codes", reference) {
            Some(found) if self.strays("code", reference, &found) => return Ok(None),
            Some(found) => self.referred("codes", &found)?,
            None => None,
        };
        if let Some(uri) = found.and_then(|row| body_text(&row, "codeUri"))
            && let Some(place) = self.blob("code", &uri)?
        {
            return Ok(self.reached("code", &uri, place));
        }
        self.mistake(
            "code",
            format!("there is no code snapshot `{reference}`"),
            "upload the folder again: submit with the CLI or the SDK",
        );
        Ok(None)
    }

    fn inputs(&mut self, spec: &CommandJob) -> Result<BTreeMap<String, PlannedInput>, store::Error> {
        let mut planned = BTreeMap::new();
        for (name, input) in &spec.inputs {
            let input = match input {
                Input::Literal(value) => PlannedInput::Literal { value: arm::scalar(value).unwrap_or_default() },
                Input::Data(data) => {
                    let Some(place) = self.place(&format!("inputs.{name}"), &data.path, 0)? else { continue };
                    let mode = data.mode.unwrap_or(InputMode::RoMount);
                    PlannedInput::Data { place, mode, uri: data.path.clone(), file: data.kind == DataType::UriFile }
                }
            };
            planned.insert(name.clone(), input);
        }
        Ok(planned)
    }

    fn outputs(&mut self, job: &JobName, spec: &CommandJob) -> Result<BTreeMap<String, PlannedOutput>, store::Error> {
        let mut planned = BTreeMap::new();
        if spec.outputs.is_empty() {
            return Ok(planned);
        }
        let default = self.default_datastore()?;
        for (name, output) in &spec.outputs {
            let file = output.kind == DataType::UriFile;
            let usual =
                format!("azureml://datastores/{default}/paths/azureml/{job}/{name}{}", if file { "" } else { "/" });
            let asked = output.path.clone().unwrap_or(usual);
            let known = |reference: &Reference| match reference {
                Reference::Other(word) if word == "name" => Some(job.to_string()),
                Reference::Other(word) if word == "output_name" => Some(name.clone()),
                Reference::Other(word) if word == "default_datastore" => Some(default.clone()),
                _ => None,
            };
            let uri = match expression::expand(&asked, &known) {
                Ok(uri) => uri,
                Err(error) => {
                    self.mistake(
                        format!("outputs.{name}.path"),
                        error.to_string(),
                        "use `${{name}}`, `${{output_name}}` or `${{default_datastore}}`",
                    );
                    continue;
                }
            };
            let Some(place) = self.output_place(&format!("outputs.{name}"), &uri)? else { continue };
            planned.insert(
                name.clone(),
                PlannedOutput { place, mode: output.mode.unwrap_or(OutputMode::RwMount), uri, file },
            );
        }
        Ok(planned)
    }

    fn default_datastore(&mut self) -> Result<String, store::Error> {
        if let Some(named) = &self.datastore {
            return Ok(named.clone());
        }
        let all: Vec<DatastoreRow> = self.tx.datastores(&self.workspace.name)?;
        let found = all.into_iter().find(|row| row.is_default).map(|row| row.name);
        Ok(found.unwrap_or_else(|| crate::http::workspaces::BLOB_STORE.to_owned()))
    }

    /// The asset of a reference: of this workspace, or of the registry it names.
    fn referred(&mut self, kind: &str, reference: &AssetRef) -> Result<Option<AssetRow>, store::Error> {
        match reference {
            AssetRef::Here { name, version, .. } => self.asset(&self.workspace.name.clone(), kind, name, version),
            AssetRef::Registry { registry, name, version } => {
                self.asset(&crate::http::registries::owner(registry), kind, name, version)
            }
        }
    }

    /// A version of an asset; a label other than `latest` means a tag of the same name.
    fn asset(
        &mut self,
        owner: &str,
        kind: &str,
        name: &str,
        version: &VersionRef,
    ) -> Result<Option<AssetRow>, store::Error> {
        match version {
            VersionRef::Version(version) => self.tx.asset(&store::AssetKey {
                workspace: owner.to_owned(),
                kind: kind.to_owned(),
                name: name.to_owned(),
                version: version.clone(),
            }),
            VersionRef::Label(_) => self.tx.latest_asset(owner, kind, name),
        }
    }
}

/// A text field of an asset's body.
fn body_text(row: &AssetRow, key: &str) -> Option<String> {
    arm::text(&serde_json::from_str(&row.body).ok()?, key)
}

/// A setting as text.
fn text_in(settings: &BTreeMap<String, Value>, key: &str) -> Option<String> {
    settings.get(key).and_then(arm::scalar).filter(|text| !text.is_empty())
}

/// What a Ray cluster is started with.
fn ray(settings: &BTreeMap<String, Value>) -> RayCluster {
    let words = |key: &str| -> Vec<String> {
        text_in(settings, key).iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()
    };
    let mut head = Vec::new();
    if let Some(wanted) = settings.get("include_dashboard").and_then(Value::as_bool) {
        head.push(format!("--include-dashboard={wanted}"));
    }
    if let Some(port) = text_in(settings, "dashboard_port") {
        head.push(format!("--dashboard-port={port}"));
    }
    head.extend(words("head_node_additional_args"));
    let port = text_in(settings, "port").and_then(|port| port.parse().ok());
    RayCluster { port, head, worker: words("worker_node_additional_args") }
}
