//! The specs themselves. Field names are the YAML keys; absent optional keys stay absent when shown.

use crate::assignment::{InputMode, OutputMode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub type Tags = BTreeMap<String, String>;

/// A command job: `type: command`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandJob {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub kind: CommandType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub tags: Tags,
    pub properties: Tags,
    pub command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentRef>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment_variables: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute: Option<String>,
    #[serde(skip_serializing_if = "JobResources::is_default")]
    pub resources: JobResources,
    #[serde(skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Input>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Output>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, Service>,
    #[serde(skip_serializing_if = "QueueSettings::is_default")]
    pub queue_settings: QueueSettings,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandType {
    #[default]
    Command,
}

/// A registered environment by reference, or one defined on the spot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EnvironmentRef {
    /// `azureml:name:version`, `azureml:name@label`, a registry URI or a resource id.
    Named(String),
    Inline(Box<Environment>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Distribution {
    PyTorch {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process_count_per_instance: Option<u32>,
    },
    TensorFlow {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker_count: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parameter_server_count: Option<u32>,
    },
    Mpi {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process_count_per_instance: Option<u32>,
    },
    Ray {
        #[serde(flatten)]
        settings: BTreeMap<String, Value>,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobResources {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shm_size: Option<String>,
    /// A string or a list in the file; always a list here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub docker_args: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_instance_count: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
}

/// A literal, or data with a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Input {
    Data(DataInput),
    Literal(Value),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataInput {
    #[serde(rename = "type", default)]
    pub kind: DataType,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<InputMode>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Output {
    #[serde(rename = "type")]
    pub kind: DataType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<OutputMode>,
    /// Registers the result as an asset of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: Tags,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataType {
    UriFile,
    #[default]
    UriFolder,
    #[serde(rename = "mltable")]
    MlTable,
    MlflowModel,
    CustomModel,
    TritonModel,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(flatten)]
    pub settings: BTreeMap<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_tier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Low,
    Medium,
    High,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(flatten)]
    pub settings: BTreeMap<String, Value>,
}

/// `environment`: software for jobs and deployments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub tags: Tags,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: Tags,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A path or the mapping itself in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conda_file: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inference_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_type: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BuildContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dockerfile_path: Option<String>,
}

/// `data`: a versioned file, folder or table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Data {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub tags: Tags,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: Tags,
    #[serde(rename = "type")]
    pub kind: DataType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The datastore a local path is uploaded to; the workspace's default when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datastore: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_delete_setting: Option<Value>,
}

/// `model`: a versioned trained model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Model {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub tags: Tags,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: Tags,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flavors: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datastore: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
}

/// `datastore`: where data lies, and the credentials for it. Kinds of Azure's plus `s3`, `gcs`, `local` and `nfs`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Datastore {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub tags: Tags,
    /// Everything that is particular to the kind: `account_name`, `bucket`, `endpoint`, `path`, ...
    #[serde(flatten)]
    pub settings: BTreeMap<String, Value>,
    /// Never shown again once sent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<String, String>,
}

/// `compute`: a target. Only `local` can run work so far; the rest is kept as given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compute {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub tags: Tags,
    #[serde(flatten)]
    pub settings: BTreeMap<String, Value>,
}

/// `workspace`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workspace {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    pub tags: Tags,
    #[serde(flatten)]
    pub settings: BTreeMap<String, Value>,
}

impl JobResources {
    pub fn is_default(&self) -> bool {
        *self == JobResources::default()
    }
}

impl Limits {
    pub fn is_default(&self) -> bool {
        *self == Limits::default()
    }
}

impl QueueSettings {
    pub fn is_default(&self) -> bool {
        *self == QueueSettings::default()
    }
}

impl DataType {
    pub fn as_str(self) -> &'static str {
        match self {
            DataType::UriFile => "uri_file",
            DataType::UriFolder => "uri_folder",
            DataType::MlTable => "mltable",
            DataType::MlflowModel => "mlflow_model",
            DataType::CustomModel => "custom_model",
            DataType::TritonModel => "triton_model",
        }
    }
}
