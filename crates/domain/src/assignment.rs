//! What an agent is given: everything needed to run one attempt, with every reference resolved.
//!
//! The server makes a [`Plan`] when it accepts a job, so `@latest` means what it meant at that moment and
//! every retry runs the same thing. Invariant: a plan holds no secret. Credentials are named by their
//! datastore and added only when the assignment is handed to the agent that runs it.

use crate::{AttemptId, JobName, Parallel, Resources, Serving};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};

/// One attempt, or one [`Part`] of it, handed to one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    pub attempt: AttemptId,
    pub number: u32,
    pub workspace: String,
    pub job: JobName,
    pub priority: i64,
    /// Where it stands among those of its priority; lower goes first.
    #[serde(default)]
    pub turn: i64,
    pub plan: Plan,
    /// Which share of the ranks this agent runs; absent when it runs them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Datastore name to the connection options that hold its credentials.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, BTreeMap<String, String>>,
    /// Variables that only the server knows, such as the run's token.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_variables: BTreeMap<String, String>,
}

/// One of several agents that run an attempt together, each on a node of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Counts from 0; the first is where the others meet.
    pub index: u32,
    /// Where every part can be reached, in order of index. Handed out only when all of them are there, so that no
    /// process of a gang starts before its whole gang is placed.
    pub addresses: Vec<String>,
}

/// What to run, decided when the job was accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The user's command with `${{...}}` still in it: paths are known only on the node.
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Place>,
    #[serde(default)]
    pub environment: EnvironmentPlan,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, PlannedInput>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, PlannedOutput>,
    /// Where logs and captured `./outputs` go.
    pub artifacts: Place,
    /// Per rank.
    pub requests: Resources,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Resources>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<PlannedDistribution>,
    /// The target demands a container; without an engine the job fails instead of running on the host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolation_required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shm_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub docker_args: Vec<String>,
    /// The named shape the requests came from, where the target makes something of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Set where it is a replica of a deployment: it answers requests until it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serve: Option<Serving>,
    /// Set where it works through an input in mini-batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<Parallel>,
}

impl Plan {
    /// What all nodes of the gang need together.
    pub fn needs(&self) -> Resources {
        self.requests.times(self.nodes())
    }

    /// Every place it reads from or, where the mark is set, writes to.
    pub fn places(&self) -> impl Iterator<Item = (&Place, bool)> {
        let inputs = self.inputs.values().filter_map(|input| match input {
            PlannedInput::Data { place, .. } => Some(place),
            PlannedInput::Literal { .. } => None,
        });
        let build = self.environment.build.iter().map(|(place, _)| place);
        let read = inputs.chain(self.code.iter()).chain(build).map(|place| (place, false));
        read.chain(self.outputs.values().map(|output| (&output.place, true))).chain([(&self.artifacts, true)])
    }

    /// The same places, to be replaced by others that lead to the same bytes.
    pub fn places_mut(&mut self) -> impl Iterator<Item = &mut Place> {
        let inputs = self.inputs.values_mut().filter_map(|input| match input {
            PlannedInput::Data { place, .. } => Some(place),
            PlannedInput::Literal { .. } => None,
        });
        let build = self.environment.build.iter_mut().map(|(place, _)| place);
        let outputs = self.outputs.values_mut().map(|output| &mut output.place);
        inputs.chain(self.code.iter_mut()).chain(build).chain(outputs).chain([&mut self.artifacts])
    }

    /// How many nodes it runs on at once.
    pub fn nodes(&self) -> u32 {
        self.distribution.as_ref().map_or(1, |d| d.nodes)
    }

    /// How many agents it has where every node has its own: parameter servers get one each there, and share nodes here.
    pub fn parts(&self) -> u32 {
        self.nodes() + self.distribution.as_ref().map_or(0, |d| d.parameter_servers)
    }
}

/// How a command is spread over ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedDistribution {
    pub kind: DistributionKind,
    pub nodes: u32,
    pub processes_per_node: u32,
    #[serde(default)]
    pub parameter_servers: u32,
    /// Set where the nodes become a Ray cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray: Option<RayCluster>,
}

/// What a Ray cluster is started with: one process a node, the first of which leads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RayCluster {
    /// Where the first node listens; any port when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// More arguments of `ray start` on the first node, and on the others.
    #[serde(default)]
    pub head: Vec<String>,
    #[serde(default)]
    pub worker: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DistributionKind {
    PyTorch,
    TensorFlow,
    Mpi,
    Ray,
}

/// Somewhere bytes lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Place {
    /// A file or folder on a disk this node can see.
    Folder { path: PathBuf },
    /// An object or prefix in an object store: `s3://bucket/key`, `az://container/key`, `gs://bucket/key`.
    /// `options` are connection settings without secrets; `datastore` names the credentials.
    Object { url: String, datastore: String, options: BTreeMap<String, String> },
    /// A plain `http(s)` address.
    Http { url: String },
}

impl Default for Place {
    fn default() -> Self {
        Place::Folder { path: PathBuf::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PlannedInput {
    Literal { value: String },
    Data { place: Place, mode: InputMode, uri: String, file: bool },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedOutput {
    pub place: Place,
    pub mode: OutputMode,
    pub uri: String,
    /// The output is one file, not a folder.
    #[serde(default)]
    pub file: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputMode {
    RoMount,
    RwMount,
    Download,
    Direct,
    EvalMount,
    EvalDownload,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputMode {
    RwMount,
    Upload,
    Direct,
}

/// The software a command needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EnvironmentPlan {
    /// `name:version`, for people.
    #[serde(default)]
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The text of a conda file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conda: Option<String>,
    /// Lines of a pip requirements file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pip: Vec<String>,
    /// The Python to make, such as `3.10`; the host's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// A Docker build context and the Dockerfile in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<(Place, String)>,
}
