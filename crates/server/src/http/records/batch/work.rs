//! The job that a call of a batch endpoint stands for, as its client could have sent it.
//!
//! A model deployment is a pipeline of one parallel step, `batchscoring`, whose component follows from deployment and
//! call; a pipeline deployment is its component with the call's inputs. Clients spell keys in either case. Nothing here
//! asks the store: references are looked up where jobs are accepted.

use api::arm::{
    component::ANONYMOUS,
    scalar,
    tree::{entries, some},
};
use domain::{spec::Mistake, time::parse_iso_duration};
use serde_json::{Map, Value, json};

/// The step of a model deployment, and its output.
const STEP: &str = "batchscoring";
const OUTPUT: &str = "score";
/// The input that is the model.
const MODEL: &str = "azureml_model";

/// A call of a deployment.
pub(super) struct Call<'c> {
    pub(super) endpoint: &'c str,
    pub(super) deployment: &'c str,
    /// The `properties` of the deployment's record.
    pub(super) record: &'c Value,
    /// The `properties` of the call.
    pub(super) sent: &'c Value,
    /// The model brings its own way to be asked.
    pub(super) is_mlflow: bool,
}

/// A job, and the component of its step where that follows from the call.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) job: Value,
    pub(super) component: Option<Value>,
}

/// What stands under a key, however it is spelled.
pub(super) fn field<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    entries(value).find(|(name, inner)| name.eq_ignore_ascii_case(key) && !inner.is_null()).map(|(_, inner)| inner)
}

fn words<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    field(value, key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Where the model of a deployment lies, in the words of job inputs.
pub(super) fn model(record: &Value) -> Option<String> {
    let model = field(record, "model")?;
    if let (Some(store), Some(path)) = (words(model, "datastoreId"), words(model, "path")) {
        let store = api::arm::reference::compute_name(store);
        return Some(format!("azureml://datastores/{store}/paths/{}", path.trim_start_matches('/')));
    }
    if let (Some(job), Some(path)) = (words(model, "jobId"), words(model, "path")) {
        let job = api::arm::reference::compute_name(job);
        return Some(format!("azureml://jobs/{job}/outputs/artifacts/paths/{}", path.trim_start_matches('/')));
    }
    words(model, "assetId").map(str::to_owned)
}

/// The job of a call, or all that is wrong with it.
pub(super) fn work(call: &Call<'_>) -> Result<Work, Vec<Mistake>> {
    let mut bad = Vec::new();
    let inputs = inputs(call.sent, &mut bad);
    let component = field(call.record, "deploymentConfiguration");
    let made = match component {
        Some(configuration) => pipeline(call, configuration, inputs),
        None => scoring(call, inputs, &mut bad),
    };
    if bad.is_empty() { Ok(made) } else { Err(bad) }
}

/// The inputs of a call in the words of jobs.
fn inputs(sent: &Value, bad: &mut Vec<Mistake>) -> Map<String, Value> {
    let mut made = Map::new();
    for (name, value) in entries(field(sent, "inputData").unwrap_or(&Value::Null)) {
        let key = format!("properties.inputData.{name}");
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            bad.push(Mistake::new(key, "is no name of an input", "use letters, digits and `_`"));
            continue;
        }
        let kind = words(value, "jobInputType").unwrap_or("UriFolder");
        let input = match kind.to_ascii_lowercase().as_str() {
            "literal" => {
                field(value, "value").and_then(scalar).map(|text| json!({"jobInputType": "literal", "value": text}))
            }
            _ => words(value, "uri").map(|uri| json!({"jobInputType": file_kind(kind), "uri": uri})),
        };
        match input {
            Some(input) => drop(made.insert(name.clone(), input)),
            None => bad.push(Mistake::new(key, "has no value", "give it `uri`, or `value` where it is a literal")),
        }
    }
    made
}

fn file_kind(kind: &str) -> &'static str {
    match kind.to_ascii_lowercase().replace('_', "").as_str() {
        "urifile" => "uri_file",
        "mltable" => "mltable",
        "mlflowmodel" => "mlflow_model",
        "custommodel" => "custom_model",
        "tritonmodel" => "triton_model",
        _ => "uri_folder",
    }
}

/// What every job of an endpoint has.
fn common(call: &Call<'_>) -> Value {
    let settings = field(call.sent, "properties").unwrap_or(&Value::Null);
    let mut properties: Map<String, Value> =
        entries(settings).filter_map(|(name, value)| Some((name.clone(), json!(scalar(value)?)))).collect();
    let experiment = properties.remove("experimentName").unwrap_or_else(|| json!(call.endpoint));
    let mut tags: Map<String, Value> = entries(field(call.sent, "tags").unwrap_or(&Value::Null))
        .filter_map(|(name, value)| Some((name.clone(), json!(scalar(value)?))))
        .collect();
    tags.insert("azureml.batchrun".into(), json!("true"));
    tags.insert("outputType".into(), json!("Default"));
    tags.insert(super::ENDPOINT_TAG.into(), json!(call.endpoint));
    tags.insert(super::DEPLOYMENT_TAG.into(), json!(format!("{}/{}", call.endpoint, call.deployment)));
    json!({"jobType": "Pipeline", "experimentName": experiment, "tags": tags, "properties": properties})
}

fn pipeline(call: &Call<'_>, configuration: &Value, inputs: Map<String, Value>) -> Work {
    let mut job = common(call);
    job["componentId"] = json!(field(configuration, "componentId").and_then(|id| words(id, "assetId")));
    job["inputs"] = Value::Object(inputs);
    job["settings"] = field(configuration, "settings").cloned().unwrap_or_else(|| json!({}));
    let outputs = entries(field(call.sent, "outputData").unwrap_or(&Value::Null)).map(|(name, value)| {
        let kind = file_kind(words(value, "jobOutputType").unwrap_or("UriFolder"));
        (name.clone(), json!({"jobOutputType": kind, "uri": words(value, "uri")}))
    });
    job["outputs"] = outputs.collect();
    Work { job, component: None }
}

fn scoring(call: &Call<'_>, mut inputs: Map<String, Value>, bad: &mut Vec<Mistake>) -> Work {
    let literal = inputs.iter().find(|(_, input)| input["jobInputType"] == "literal");
    if let Some((name, _)) = literal {
        let message = "a model takes data, not values";
        bad.push(Mistake::new(format!("properties.inputData.{name}"), message, "give it a `uri`"));
    }
    if inputs.is_empty() && bad.is_empty() {
        bad.push(Mistake::new("properties.inputData", "there is no data to score", "give one input with a `uri`"));
    }
    let (output, file) = output(call, bad);
    let component = component(call, &inputs, &file, bad);
    inputs.insert(MODEL.into(), json!({"jobInputType": "custom_model", "uri": model(call.record)}));
    let bound = |name: &String| {
        let text = format!("${{{{parent.inputs.{name}}}}}");
        (name.clone(), json!({"job_input_type": "literal", "value": text}))
    };
    let resources = field(call.record, "resources").unwrap_or(&Value::Null);
    let asked = field(call.sent, "compute").unwrap_or(&Value::Null);
    let count = field(asked, "instanceCount").or_else(|| field(resources, "instanceCount"));
    let mut job = common(call);
    job["jobs"][STEP] = json!({
        "name": STEP, "type": "parallel", "computeId": field(call.record, "compute"),
        "resources": {"instance_count": count.and_then(Value::as_u64).unwrap_or(1),
            "instance_type": words(resources, "instanceType")},
        "environment_variables": field(call.record, "environmentVariables").unwrap_or(&json!({})),
        "inputs": inputs.keys().map(bound).collect::<Value>(),
        "outputs": {OUTPUT: {"value": format!("${{{{parent.outputs.{OUTPUT}}}}}"), "type": "literal"}},
    });
    job["inputs"] = Value::Object(inputs);
    job["outputs"] = json!({OUTPUT: output});
    job["settings"] = json!({"continue_on_step_failure": false});
    Work { job, component: Some(component) }
}

/// Where predictions go: a folder, and the file in it.
fn output(call: &Call<'_>, bad: &mut Vec<Mistake>) -> (Value, String) {
    let named = words(call.sent, "outputFileName").or_else(|| words(call.record, "outputFileName"));
    let named = named.unwrap_or("predictions.csv").to_owned();
    let plain = |name: &str| !name.contains('/') && name != "." && name != "..";
    if !plain(&named) {
        let message = format!("`{named}` is no name of a file");
        bad.push(Mistake::new("properties.outputFileName", message, "such as `predictions.csv`"));
    }
    let mut outputs = entries(field(call.sent, "outputData").unwrap_or(&Value::Null));
    let uri = outputs.next().and_then(|(_, output)| Some((words(output, "uri")?, output)));
    let Some((uri, output)) = uri else { return (json!({"jobOutputType": "uri_folder"}), named) };
    let kind = file_kind(words(output, "jobOutputType").unwrap_or("UriFolder"));
    match uri.rsplit_once('/').filter(|(_, file)| kind == "uri_file" && !file.is_empty()) {
        Some((folder, file)) => (json!({"jobOutputType": "uri_folder", "uri": format!("{folder}/")}), file.to_owned()),
        None => (json!({"jobOutputType": "uri_folder", "uri": uri}), named),
    }
}

/// The parallel component that scores with the deployment's model.
fn component(call: &Call<'_>, inputs: &Map<String, Value>, file: &str, bad: &mut Vec<Mistake>) -> Value {
    let (record, sent) = (call.record, call.sent);
    let either = |key: &str| field(sent, key).or_else(|| field(record, key));
    let code = field(record, "codeConfiguration").unwrap_or(&Value::Null);
    let script = words(code, "scoringScript");
    if script.is_none() && !call.is_mlflow {
        let fix = "give it `code_configuration` with a scoring script, or an MLflow model";
        bad.push(Mistake::new("properties.codeConfiguration", "nothing says how the model is asked", fix));
    }
    let retry = either("retrySettings").unwrap_or(&Value::Null);
    let seconds = words(retry, "timeout").and_then(parse_iso_duration).map_or(30, |span| span.as_secs().max(1));
    let collects = !words(record, "outputAction").is_some_and(|action| action.eq_ignore_ascii_case("SummaryOnly"));
    let mut task = json!({"type": "model", "model": format!("${{{{inputs.{MODEL}}}}}"), "append_file": file});
    for (key, value) in [
        ("code", words(code, "codeId")),
        ("entry_script", script),
        ("environment", words(record, "environmentId")),
        ("append_row_to", collects.then_some("${{outputs.score}}")),
    ] {
        if let Some(value) = value {
            task[key] = json!(value);
        }
    }
    let cut: Vec<String> = inputs.keys().map(|name| format!("${{{{inputs.{name}}}}}")).collect();
    let mut ports: Map<String, Value> =
        inputs.iter().map(|(name, input)| (name.clone(), json!({"type": input["jobInputType"]}))).collect();
    ports.insert(MODEL.into(), json!({"type": "custom_model"}));
    json!({
        "name": ANONYMOUS, "version": "1", "type": "parallel", "is_deterministic": false,
        "inputs": ports, "outputs": {OUTPUT: {"type": "uri_folder"}},
        "input_data": cut.join(" "), "task": task,
        "mini_batch_size": either("miniBatchSize").and_then(scalar).unwrap_or_else(|| "10".to_owned()),
        "max_concurrency_per_instance": some(record, "maxConcurrencyPerInstance").unwrap_or(&json!(1)),
        "retry_settings": {"max_retries": field(retry, "maxRetries").unwrap_or(&json!(3)), "timeout": seconds},
        "error_threshold": either("errorThreshold").unwrap_or(&json!(-1)), "mini_batch_error_threshold": -1,
        "logging_level": words(record, "loggingLevel").unwrap_or("INFO").to_uppercase(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(record: Value, sent: Value) -> Result<Work, String> {
        let call = Call { endpoint: "be", deployment: "bd", record: &record, sent: &sent, is_mlflow: false };
        work(&call).map_err(|bad| bad.into_iter().map(|bad| bad.key).collect::<Vec<_>>().join(" "))
    }

    fn record() -> Value {
        json!({"model": {"assetId": "/m"}, "codeConfiguration": {"codeId": "/c", "scoringScript": "s.py"},
            "compute": "/computes/local", "miniBatchSize": 4, "retrySettings": {"maxRetries": 1, "timeout": "PT1M"}})
    }

    #[test]
    fn a_call_is_a_pipeline_of_one_step_with_the_deployments_settings() {
        let sent = json!({"InputData": {"heart": {"JobInputType": "UriFolder", "Uri": "azureml:d:1"}},
            "properties": {"experimentName": "e"}, "compute": {"instanceCount": 3}, "errorThreshold": 5});
        let Work { job, component } = made(record(), sent).unwrap();
        let component = component.unwrap();
        assert_eq!((&job["experimentName"], &job["tags"]["azureml.batchrun"]), (&json!("e"), &json!("true")));
        assert_eq!(job["inputs"]["heart"], json!({"jobInputType": "uri_folder", "uri": "azureml:d:1"}));
        assert_eq!(job["jobs"][STEP]["resources"]["instance_count"], 3);
        assert_eq!((&component["mini_batch_size"], &component["error_threshold"]), (&json!("4"), &json!(5)));
        assert_eq!(component["retry_settings"], json!({"max_retries": 1, "timeout": 60}));
        assert_eq!(component["input_data"], "${{inputs.heart}}");
        assert_eq!(component["task"]["append_file"], "predictions.csv");
    }

    #[test]
    fn predictions_go_where_the_call_says() {
        let data = json!({"d": {"jobInputType": "UriFile", "uri": "https://x/y"}});
        let to = |output: Value| json!({"inputData": data, "outputData": {"score": output}});
        let file =
            made(record(), to(json!({"jobOutputType": "UriFile", "uri": "azureml://datastores/w/paths/a/b.csv"})));
        let file = file.unwrap();
        assert_eq!(file.job["outputs"]["score"]["uri"], "azureml://datastores/w/paths/a/");
        assert_eq!(file.component.unwrap()["task"]["append_file"], "b.csv");
        let folder = made(record(), to(json!({"uri": "azureml://datastores/w/paths/a/"}))).unwrap();
        assert_eq!(folder.job["outputs"]["score"]["uri"], "azureml://datastores/w/paths/a/");
    }

    #[test]
    fn a_pipeline_takes_values_as_well() {
        let record =
            json!({"deploymentConfiguration": {"componentId": {"assetId": "/p"}, "settings": {"force_rerun": true}}});
        let sent = json!({"inputData": {"n": {"jobInputType": "Literal", "value": 3}}});
        let Work { job, component } = made(record, sent).unwrap();
        assert!(component.is_none());
        assert_eq!((&job["componentId"], &job["inputs"]["n"]["value"]), (&json!("/p"), &json!("3")));
        assert_eq!(job["settings"]["force_rerun"], true);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let data = |input: Value| json!({"inputData": {"d": input}});
        for (record, sent, keys) in [
            (record(), json!({}), "properties.inputData"),
            (record(), data(json!({"jobInputType": "UriFolder"})), "properties.inputData.d"),
            (record(), data(json!({"jobInputType": "Literal", "value": 1})), "properties.inputData.d"),
            (record(), json!({"inputData": {"a b": {"uri": "x"}}}), "properties.inputData.a b"),
            (json!({"model": {"assetId": "/m"}}), data(json!({"uri": "x"})), "properties.codeConfiguration"),
            (
                record(),
                json!({"inputData": {"d": {"uri": "x"}}, "outputFileName": "../x"}),
                "properties.outputFileName",
            ),
        ] {
            assert_eq!(made(record, sent.clone()).unwrap_err(), keys, "{sent}");
        }
    }
}
