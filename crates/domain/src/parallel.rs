//! Work that goes through an input in mini-batches: what a plan says beyond a command.
//!
//! It is one gang. Each node keeps some worker processes with the user's script in them, and the first node deals out
//! mini-batches, tries those that fail again and collects what comes back. A plan's command is shown to people; what is
//! carried out stands here.

use serde::{Deserialize, Serialize};

/// How an input is worked through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parallel {
    pub task: Task,
    /// For the script, with `${{...}}` still in it.
    #[serde(default)]
    pub arguments: String,
    /// Names of the inputs that are cut up.
    pub inputs: Vec<String>,
    /// Mini-batches are rows of a table, not files.
    #[serde(default)]
    pub rows: bool,
    /// Files, or bytes where they are rows.
    pub mini_batch_size: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_keys: Vec<String>,
    /// Worker processes on each node; one a core, or one in all where there are GPUs, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency_per_instance: Option<u32>,
    pub max_retries: u32,
    /// For one try at one mini-batch.
    pub timeout_seconds: u64,
    /// Failed mini-batches that are put up with; -1 for any number.
    pub mini_batch_error_threshold: i64,
    /// Failed items that are put up with; -1 for any number.
    pub error_threshold: i64,
    pub logging_level: String,
    /// The output that collects what comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_row_to: Option<String>,
    /// The file in that output, where it is a folder.
    #[serde(default = "default_file")]
    pub append_file: String,
    /// The input that is the model, where a script looks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Who works on a mini-batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Task {
    /// A Python file of the plan's code with `init`, `run` and `shutdown`.
    Script { entry: String },
    /// An MLflow model without code.
    MlflowModel,
}

impl Default for Parallel {
    fn default() -> Self {
        Parallel {
            task: Task::MlflowModel,
            arguments: String::new(),
            inputs: Vec::new(),
            rows: false,
            mini_batch_size: 1,
            partition_keys: Vec::new(),
            max_concurrency_per_instance: None,
            max_retries: 2,
            timeout_seconds: 60,
            mini_batch_error_threshold: -1,
            error_threshold: -1,
            logging_level: "INFO".to_owned(),
            append_row_to: None,
            append_file: default_file(),
            model: None,
        }
    }
}

fn default_file() -> String {
    "parallel_run_step.txt".to_owned()
}
