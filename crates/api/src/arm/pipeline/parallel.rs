//! Reading a parallel node: what it says itself, and of the rest what its component says.
//!
//! Numbers come as texts and texts as JSON in some clients; all forms are read. Mistakes carry the keys of files.

use super::read::{self, Binding};
use crate::arm::{
    put, scalar,
    tree::{some, word},
};
use domain::{
    Parallel,
    parallel::Task,
    spec::{Mistake, expression},
};
use serde_json::{Map, Value, json};

/// The longest a try at a mini-batch may take.
const LONGEST: u64 = 259_200;
/// What `task.type` may say.
const TASKS: [&str; 3] = ["run_function", "function", "model"];

/// How the input of a node with a component is worked through, or all mistakes in that.
pub fn parallel(node: &Value, component: &Value) -> Result<Parallel, Vec<Mistake>> {
    let mut reader = Reader { node, component, bad: Vec::new() };
    let made = reader.whole();
    if reader.bad.is_empty() { Ok(made) } else { Err(reader.bad) }
}

/// The body of the job that such a node stands for, as for [`read::command`]. Its command is for people.
pub fn body(node: &Value, component: &Value) -> Map<String, Value> {
    let task = either(node, component, "task").cloned().unwrap_or_default();
    let mut p = read::command(node, component);
    let text = |key: &str| word(&task, key).unwrap_or_default();
    put(&mut p, "command", json!(format!("{} {}", text("entry_script"), text("program_arguments")).trim()));
    if p["command"] == json!("") {
        put(&mut p, "command", json!("mlflow"));
    }
    put(&mut p, "codeId", word(&task, "code").map(|text| json!(read::reference(text))));
    let environment = word(&task, "environment").or_else(|| either(node, component, "environment")?.as_str());
    put(&mut p, "environmentId", environment.map(|text| json!(read::reference(text))));
    p.remove("distribution");
    p
}

fn either<'v>(node: &'v Value, component: &'v Value, key: &str) -> Option<&'v Value> {
    some(node, key).or_else(|| some(component, key))
}

struct Reader<'v> {
    node: &'v Value,
    component: &'v Value,
    bad: Vec<Mistake>,
}

impl<'v> Reader<'v> {
    fn whole(&mut self) -> Parallel {
        let usual = Parallel::default();
        let task = self.find("task").cloned().unwrap_or_default();
        let retry = self.find("retry_settings").cloned().unwrap_or_default();
        let keys = self.keys();
        let input = self.find("input_data").cloned();
        Parallel {
            task: self.task(&task),
            arguments: word(&task, "program_arguments").unwrap_or_default().to_owned(),
            inputs: self.inputs(input.as_ref()),
            rows: false,
            mini_batch_size: self.size(keys.is_empty()),
            partition_keys: keys,
            max_concurrency_per_instance: self
                .number("max_concurrency_per_instance", self.find("max_concurrency_per_instance"), (1, 1000))
                .map(|n| n as u32),
            max_retries: self
                .number("retry_settings.max_retries", some(&retry, "max_retries"), (0, 10_000))
                .map_or(usual.max_retries, |n| n as u32),
            timeout_seconds: self
                .number("retry_settings.timeout", some(&retry, "timeout"), (1, LONGEST as i64))
                .map_or(usual.timeout_seconds, |n| n as u64),
            mini_batch_error_threshold: self.threshold("mini_batch_error_threshold"),
            error_threshold: self.threshold("error_threshold"),
            logging_level: self.find("logging_level").and_then(Value::as_str).unwrap_or("INFO").to_owned(),
            append_row_to: self.output(&task),
            append_file: word(&task, "append_file").map_or(usual.append_file, str::to_owned),
            model: word(&task, "model").and_then(|text| self.input("task.model", text)),
        }
    }

    fn find(&self, key: &str) -> Option<&'v Value> {
        either(self.node, self.component, key)
    }

    fn mistake(&mut self, key: &str, message: impl Into<String>, fix: &str) {
        self.bad.push(Mistake::new(key, message, fix));
    }

    fn task(&mut self, task: &Value) -> Task {
        let kind = word(task, "type").unwrap_or("run_function");
        if !TASKS.contains(&kind) {
            self.mistake("task.type", format!("`{kind}` is no kind of task"), "set `run_function`");
        }
        match word(task, "entry_script") {
            Some(entry) => Task::Script { entry: entry.to_owned() },
            None if kind == "model" && word(task, "model").is_some() => Task::MlflowModel,
            None => {
                self.mistake("task.entry_script", "no script is named", "name the file with `init` and `run`");
                Task::MlflowModel
            }
        }
    }

    /// `${{inputs.x}}`, or several of them with a space between.
    fn inputs(&mut self, value: Option<&Value>) -> Vec<String> {
        let text = value.and_then(Value::as_str).unwrap_or_default();
        let mut found = Vec::new();
        for one in expression::inner(text) {
            found.extend(self.input("input_data", &format!("${{{{{one}}}}}")));
        }
        if found.is_empty() && self.bad.iter().all(|bad| bad.key != "input_data") {
            self.mistake("input_data", "it names no input", "write `input_data: ${{inputs.name}}`");
        }
        found
    }

    fn input(&mut self, key: &str, text: &str) -> Option<String> {
        let known = read::ports(self.component, "inputs");
        match read::binding(text) {
            Some(Binding::Input(name)) if known.contains_key(&name) => Some(name),
            _ => {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                let message = format!("`{text}` names no input; there are: {}", names.join(", "));
                self.mistake(key, message, "write `${{inputs.name}}`");
                None
            }
        }
    }

    fn output(&mut self, task: &Value) -> Option<String> {
        let text = word(task, "append_row_to")?;
        let known = read::ports(self.component, "outputs");
        match read::binding(text) {
            Some(Binding::Output(name)) if known.contains_key(&name) => Some(name),
            _ => {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                let message = format!("`{text}` names no output; there are: {}", names.join(", "));
                self.mistake("task.append_row_to", message, "write `${{outputs.name}}`");
                None
            }
        }
    }

    fn keys(&mut self) -> Vec<String> {
        let list = match self.find("partition_keys") {
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!([text])),
            Some(list) => list.clone(),
            None => return Vec::new(),
        };
        let keys: Vec<String> = list.as_array().into_iter().flatten().filter_map(scalar).collect();
        if keys.iter().any(|key| key.trim().is_empty()) {
            self.mistake("partition_keys", "a key is empty", "name columns, or parts of the files' paths");
        }
        keys
    }

    fn size(&mut self, needed: bool) -> u64 {
        let Some(sent) = self.find("mini_batch_size") else { return 1 };
        match super::bytes_of(sent).as_i64() {
            Some(size) if size >= 1 => size as u64,
            _ if !needed => 1,
            _ => {
                let shown = scalar(sent).unwrap_or_default();
                let message = format!("`{shown}` is no size of a mini-batch");
                self.mistake("mini_batch_size", message, "write a number of files, or a size such as `10kb`");
                1
            }
        }
    }

    fn threshold(&mut self, key: &str) -> i64 {
        self.number(key, self.find(key), (-1, i64::MAX)).unwrap_or(-1)
    }

    fn number(&mut self, key: &str, value: Option<&Value>, (least, most): (i64, i64)) -> Option<i64> {
        let text = value.and_then(scalar)?;
        let found = text.trim().parse::<i64>().ok().filter(|n| (least..=most).contains(n));
        if found.is_none() {
            let range = if most == i64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
            self.mistake(key, format!("`{text}` is not {range}"), "write a whole number within these bounds");
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component() -> Value {
        json!({"type": "parallel", "inputs": {"d": {"type": "uri_folder"}}, "outputs": {"o": {"type": "uri_file"}},
            "input_data": "${{inputs.d}}", "mini_batch_size": "10240", "retry_settings": {"timeout": 5, "max_retries": "1"},
            "task": {"type": "run_function", "code": "azureml:/c", "entry_script": "s.py",
                "program_arguments": "--x 1", "append_row_to": "${{outputs.o}}", "environment": "azureml:e:1"}})
    }

    #[test]
    fn a_node_says_it_or_its_component_does() {
        let node = json!({"mini_batch_size": 3, "partition_keys": "[\"a\", \"b\"]", "error_threshold": 0});
        let made = parallel(&node, &component()).unwrap();
        assert_eq!((made.mini_batch_size, made.timeout_seconds, made.max_retries), (3, 5, 1));
        assert_eq!((made.error_threshold, made.mini_batch_error_threshold), (0, -1));
        assert_eq!((made.inputs, made.append_row_to.as_deref()), (vec!["d".to_owned()], Some("o")));
        assert_eq!(made.partition_keys, ["a", "b"]);
        assert_eq!(made.task, Task::Script { entry: "s.py".into() });
        let body = body(&node, &component());
        assert_eq!((&body["command"], &body["codeId"]), (&json!("s.py --x 1"), &json!("/c")));
        assert_eq!(body["environmentId"], "azureml:e:1");
    }

    #[test]
    fn every_mistake_is_told_with_its_key() {
        for (node, key) in [
            (json!({"input_data": "${{inputs.e}}"}), "input_data"),
            (json!({"input_data": "d"}), "input_data"),
            (json!({"mini_batch_size": "many"}), "mini_batch_size"),
            (json!({"mini_batch_size": 0}), "mini_batch_size"),
            (json!({"error_threshold": -2}), "error_threshold"),
            (json!({"mini_batch_error_threshold": "x"}), "mini_batch_error_threshold"),
            (json!({"retry_settings": {"timeout": 0}}), "retry_settings.timeout"),
            (json!({"retry_settings": {"timeout": 259_201}}), "retry_settings.timeout"),
            (json!({"max_concurrency_per_instance": 0}), "max_concurrency_per_instance"),
            (json!({"task": {"type": "run_function"}}), "task.entry_script"),
            (json!({"task": {"type": "dance", "entry_script": "s.py"}}), "task.type"),
            (json!({"task": {"entry_script": "s.py", "append_row_to": "${{outputs.p}}"}}), "task.append_row_to"),
        ] {
            let bad = parallel(&node, &component()).unwrap_err();
            assert_eq!(bad.iter().map(|bad| bad.key.as_str()).collect::<Vec<_>>(), [key], "{node}");
        }
    }
}
