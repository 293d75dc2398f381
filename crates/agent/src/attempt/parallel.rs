//! Work in mini-batches: an attempt whose command is a script of ours around the user's.
//!
//! Here is what it needs beyond any other command: the input as files that can be listed, the script (`parallel.py`) with
//! its settings in the working folder, the model where scripts look for it, and a place for its many logs. Every part of
//! the attempt gets the same; which of them deals out the work follows from its rank.

use super::{
    disk,
    logs::Logs,
    serve::model::{self, Model},
    stage::data_failure,
};
use crate::{context::Context, data::Eval};
use domain::{
    Assignment, EnvironmentPlan, Parallel, PlannedInput,
    job::Failure,
    parallel::Task,
    spec::{
        expression::{self, Reference},
        yaml,
    },
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
};

/// The script, and the folder of the working folder that it lies in.
const SCRIPT: &str = include_str!("parallel/parallel.py");
const FOLDER: &str = ".peregrine";
/// Finds a Python by either name, in whatever image.
const PYTHON: &str = "exec \"$(command -v python || command -v python3 || echo python3)\" \"$@\"";
/// The folder of logs, beside those that every attempt has.
pub(super) const LOGS: &str = "logs";

/// Mini-batches on their way.
pub(super) struct Batches<'a> {
    parallel: &'a Parallel,
    assignment: &'a Assignment,
    model: Option<Model>,
    pub(super) argv: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
    /// What a container has to see beside inputs and outputs.
    pub(super) mounts: Vec<PathBuf>,
}

/// What staging has made so far.
pub(super) struct Staged<'a> {
    pub(super) folder: &'a Path,
    pub(super) inputs: &'a BTreeMap<String, String>,
    pub(super) outputs: &'a BTreeMap<String, String>,
    pub(super) logs: &'a Logs,
}

impl<'a> Batches<'a> {
    /// What a plan asks for, written into the working folder.
    pub(super) async fn of(
        cx: &Context,
        assignment: &'a Assignment,
        staged: &Staged<'_>,
    ) -> Result<Option<Batches<'a>>, Failure> {
        let Some(parallel) = &assignment.plan.parallel else { return Ok(None) };
        let work = staged.folder.join("work");
        check_entry(parallel, &work)?;
        let logs = staged.logs.root().join(LOGS);
        fs::create_dir_all(&logs).map_err(disk)?;
        let mut mounts = vec![logs.clone()];
        let mut inputs = Vec::new();
        for name in &parallel.inputs {
            let source = source(cx, assignment, staged, name).await?;
            mounts.extend(source["path"].as_str().map(PathBuf::from));
            inputs.push(source);
        }
        let model = parallel.model.as_ref().map(|name| model_of(assignment, staged, name)).transpose()?.flatten();
        let mut variables = BTreeMap::new();
        if let Some(model) = &model {
            variables.insert("AZUREML_MODEL_DIR".to_owned(), model.folder(false));
            mounts.extend([staged.folder.join("azureml-models"), fs::canonicalize(model.mount().0).map_err(disk)?]);
            let output = parallel.append_row_to.as_ref().and_then(|name| staged.outputs.get(name));
            let output = output.or_else(|| staged.outputs.values().next());
            variables.extend(output.map(|path| ("AZUREML_BI_OUTPUT_PATH".to_owned(), path.clone())));
        }
        let folder = work.join(FOLDER);
        let (script, settings) = (folder.join("parallel.py"), folder.join("parallel.json"));
        let argv = ["/bin/sh", "-c", PYTHON, "sh", &script.to_string_lossy(), "node", &settings.to_string_lossy()];
        let argv = argv.map(str::to_owned).to_vec();
        let batches = Batches { parallel, assignment, model, argv, variables, mounts };
        let told = batches.settings(staged, inputs, &logs)?;
        fs::create_dir_all(&folder).map_err(disk)?;
        fs::write(script, SCRIPT).map_err(disk)?;
        fs::write(settings, told.to_string()).map_err(disk)?;
        Ok(Some(batches))
    }

    /// The software it needs: what the plan says, or what a model without code says of itself.
    pub(super) fn environment(&self) -> Result<EnvironmentPlan, Failure> {
        let mut environment = self.assignment.plan.environment.clone();
        let asks = environment.image.is_some() || environment.build.is_some() || environment.conda.is_some();
        if self.parallel.task == Task::MlflowModel && !asks && environment.pip.is_empty() {
            environment.label = "of the model".to_owned();
            model::environment(&mut environment, &self.mlflow_folder()?).map_err(disk)?;
            super::serve::add(&mut environment, "mlflow");
        }
        Ok(environment)
    }

    fn settings(&self, staged: &Staged<'_>, inputs: Vec<Value>, logs: &Path) -> Result<Value, Failure> {
        let Parallel { task, append_row_to, append_file, .. } = self.parallel;
        let (entry, mlflow) = match task {
            Task::Script { entry } => (Some(entry), None),
            Task::MlflowModel => (None, Some(self.mlflow_folder()?)),
        };
        let is_file = |name: &String| self.assignment.plan.outputs.get(name).is_some_and(|output| output.file);
        let append_to = append_row_to.as_ref().and_then(|name| {
            let path = Path::new(staged.outputs.get(name)?);
            Some(if is_file(name) { path.to_owned() } else { path.join(append_file) })
        });
        let one_a_node = self.assignment.plan.requests.gpus > 0;
        Ok(json!({
            "entry": entry, "mlflow": mlflow, "arguments": self.arguments(staged)?, "inputs": inputs,
            "rows": self.parallel.rows, "mini_batch_size": self.parallel.mini_batch_size,
            "partition_keys": self.parallel.partition_keys,
            "concurrency": self.parallel.max_concurrency_per_instance.or(one_a_node.then_some(1)),
            "max_retries": self.parallel.max_retries, "timeout": self.parallel.timeout_seconds,
            "mini_batch_error_threshold": self.parallel.mini_batch_error_threshold,
            "error_threshold": self.parallel.error_threshold, "logging_level": self.parallel.logging_level,
            "append_to": append_to, "logs": logs,
        }))
    }

    /// The script's arguments with values in the place of expressions, quoted where they have to be.
    fn arguments(&self, staged: &Staged<'_>) -> Result<String, Failure> {
        let lookup = |reference: &Reference| match reference {
            Reference::Input(name) => staged.inputs.get(name).map(|value| quoted(value)),
            Reference::Output(name) => staged.outputs.get(name).map(|value| quoted(value)),
            _ => None,
        };
        expression::expand(&self.parallel.arguments, &lookup)
            .map_err(|error| Failure::new("UserError.Expression", error.to_string()))
    }

    fn mlflow_folder(&self) -> Result<PathBuf, Failure> {
        self.model.as_ref().and_then(Model::mlflow_folder).ok_or_else(|| {
            let text = "there is no `MLmodel` file in the model (next step: register the folder that `mlflow` saved, or add a scoring script)";
            Failure::new("UserError.NotAnMlflowModel", text)
        })
    }
}

/// Why it failed, in the words of the script that dealt out the work.
pub(super) fn explain(failure: Failure, log: &str) -> Failure {
    match log.lines().rev().find_map(|line| line.strip_prefix("error: ")) {
        Some(line) => Failure { code: "UserError.MiniBatches".to_owned(), message: line.to_owned(), ..failure },
        None => failure,
    }
}

/// A script that is not there is found out before anything is built for it.
fn check_entry(parallel: &Parallel, work: &Path) -> Result<(), Failure> {
    let Task::Script { entry } = &parallel.task else { return Ok(()) };
    let plain = Path::new(entry).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if plain && work.join(entry).is_file() {
        return Ok(());
    }
    let text = format!(
        "the script `{entry}` is not in the code folder (next step: correct `entry_script` or `code` of the task)"
    );
    Err(Failure::new("UserScriptNotFound", text))
}

/// An input to cut up: its files, and what an MLTable says about reading them.
async fn source(cx: &Context, assignment: &Assignment, staged: &Staged<'_>, name: &str) -> Result<Value, Failure> {
    let failed = |error: &crate::data::Error| data_failure(&format!("input `{name}`"), error);
    let path = staged.inputs.get(name).cloned().unwrap_or_default();
    let table = Path::new(&path).join("MLTable");
    if !table.is_file() {
        return Ok(json!({"name": name, "path": path}));
    }
    let to = staged.folder.join("inputs").join(format!("{name}-files"));
    let eval = Eval { copies: false, secrets: &assignment.secrets, holder: assignment.attempt.as_str() };
    let evaluated = cx.data.mltable(Path::new(&path), &to, &eval).await.map_err(|error| failed(&error))?;
    let text = fs::read_to_string(&table).map_err(disk)?;
    let steps = yaml::parse("MLTable", &text).map(|node| node.to_json()["transformations"].clone()).unwrap_or_default();
    Ok(json!({"name": name, "path": evaluated.folder, "transformations": steps}))
}

fn model_of(assignment: &Assignment, staged: &Staged<'_>, name: &str) -> Result<Option<Model>, Failure> {
    let (Some(PlannedInput::Data { place, .. }), Some(path)) =
        (assignment.plan.inputs.get(name), staged.inputs.get(name))
    else {
        return Ok(None);
    };
    Model::put(staged.folder, place, Path::new(path), None).map(Some).map_err(disk)
}

fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./=:,+@%-".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', "'\"'\"'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_one_argument() {
        assert_eq!(quoted("/a/b-1.csv"), "/a/b-1.csv");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\"'\"'s'");
        assert_eq!(quoted(""), "''");
    }
}
