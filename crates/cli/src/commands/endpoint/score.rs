//! `peregrine batch-endpoint invoke` and `list-jobs`: data in, a job out.
//!
//! A call is written down as a file would be (`inputs`, `outputs` and a few settings), whatever of it came from flags; then
//! local paths are uploaded and the rest is put into the words of the wire.

use super::{BATCH, scoring_uri};
use crate::{
    args::record::BatchInvoke,
    commands::{
        Context,
        record::{self, Kind, Place, text},
    },
    failure::{Doing, Done, Failure},
    output::Column,
    post::Post,
    spec_file::{self, Base},
};
use api::arm::{
    reference::is_remote,
    scalar,
    tree::{entries, some, word},
};
use domain::spec::yaml;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// The header that makes a repeated call the same job.
const REQUEST: &str = "repeatability_request-id";
const JOBS: &[Column] =
    &[Column::new("NAME", |item| text(item, "name")).whole(), Column::new("STATUS", |item| text(item, "status"))];

pub(super) async fn invoke(context: &Context, at: &Place, args: &BatchInvoke) -> Done {
    let (spec, base) = spec(args)?;
    let post = Post::open(context, false).await?;
    let Some(session) = post.session() else { return Ok(()) };
    let found = record::fetch(BATCH, session, at).await?;
    let body = json!({"properties": properties(&post, &base, &spec).await?});
    let request = args.request_id.clone().unwrap_or_else(crate::outside::guid);
    let mut call = session.client.request(Method::POST, &scoring_uri(&found, at)?).json(&body).header(REQUEST, request);
    if let Some(deployment) = &args.deployment_name {
        call = call.header("azureml-model-deployment", deployment);
    }
    let answer =
        session.client.send(call).await.doing(|| format!("batch endpoint `{}` did not start a job", at.name))?;
    let made: Value = answer.json().await.map_err(|error| session.client.unreachable(error))?;
    context.output.show(&json!({"name": made["name"], "status": made["properties"]["status"], "id": made["id"]}))
}

/// The jobs of an endpoint or a deployment.
pub(in crate::commands) async fn list_jobs(context: &Context, kind: Kind, at: &Place) -> Done {
    let session = context.session().await?;
    record::fetch(kind, &session, at).await?;
    let path = format!("/mferp/managementfrontend{}/jobs", at.path);
    let found = session.client.list(&path, 1_000).await.doing(|| format!("cannot list the jobs of `{}`", at.name))?;
    let view = |job: &Value| json!({"name": job["name"], "status": job["properties"]["status"], "id": job["id"]});
    context.output.list(found.iter().map(view).collect(), JOBS)
}

/// The call as a file would say it, and where its paths start.
fn spec(args: &BatchInvoke) -> Done<(Value, Base)> {
    let (mut spec, base) = match &args.file {
        Some(file) => (spec_file::raw(file)?, Base::of_file(file)),
        None => (json!({}), Base::here()),
    };
    if !spec.is_object() {
        return Err(Failure::input("the file of a call is a map").hint("write `inputs:` and `outputs:`"));
    }
    for text in &args.set {
        let Some((path, value)) = text.split_once('=') else {
            return Err(Failure::input(format!("`--set {text}` changes nothing")).hint("write `--set key=value`"));
        };
        let value = yaml::parse("--set", value).map_or_else(|_| json!(value), |node| node.to_json());
        set(&mut spec, path, value);
    }
    if let Some(input) = &args.input {
        let key = if args.input_type == "uri_file" { "UriFile" } else { "UriFolder" };
        spec["inputs"][key] = json!({"type": args.input_type, "path": input});
    }
    if let Some(path) = &args.output_path {
        spec["outputs"]["score"] = json!({"type": "uri_folder", "path": path});
    }
    for (key, value) in [
        ("job_name", args.job_name.as_ref().map(|text| json!(text))),
        ("experiment_name", args.experiment_name.as_ref().map(|text| json!(text))),
        ("instance_count", args.instance_count.map(|count| json!(count))),
        ("mini_batch_size", args.mini_batch_size.map(|count| json!(count))),
    ] {
        if let Some(value) = value {
            spec[key] = value;
        }
    }
    Ok((spec, base))
}

/// Puts a value at `a.b.c`, making what is not there.
fn set(spec: &mut Value, path: &str, value: Value) {
    let mut at = spec;
    for part in path.split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[part];
    }
    *at = value;
}

/// The same in the words of the wire, with local data uploaded.
async fn properties(post: &Post<'_>, base: &Base, spec: &Value) -> Done<Value> {
    let mut inputs = Map::new();
    for (name, input) in entries(some(spec, "inputs").unwrap_or(&Value::Null)) {
        inputs.insert(name.clone(), wire_input(post, base, name, input).await?);
    }
    let outputs = entries(some(spec, "outputs").unwrap_or(&Value::Null)).map(|(name, output)| {
        let kind = wire_kind(word(output, "type").unwrap_or("uri_folder"));
        (name.clone(), json!({"jobOutputType": kind, "uri": word(output, "path")}))
    });
    let mut made = json!({"inputData": inputs, "outputData": outputs.collect::<Value>()});
    for (ours, wire) in [
        ("job_name", "name"),
        ("output_file_name", "outputFileName"),
        ("mini_batch_size", "miniBatchSize"),
        ("error_threshold", "errorThreshold"),
    ] {
        if let Some(value) = some(spec, ours) {
            made[wire] = value.clone();
        }
    }
    if let Some(count) = some(spec, "instance_count") {
        made["compute"] = json!({"instanceCount": count});
    }
    if let Some(name) = some(spec, "experiment_name") {
        made["properties"] = json!({"experimentName": name});
    }
    Ok(made)
}

async fn wire_input(post: &Post<'_>, base: &Base, name: &str, input: &Value) -> Done<Value> {
    if let Some(literal) = scalar(input).or_else(|| some(input, "value").or(some(input, "default")).and_then(scalar)) {
        return Ok(json!({"jobInputType": "Literal", "value": literal}));
    }
    let Some(path) = word(input, "path") else {
        return Err(Failure::input(format!("input `{name}` has neither `path` nor a value")));
    };
    let address = match is_remote(path) {
        true => post.resolve("data", path).await?,
        false => post.data(&base.existing(&format!("inputs.{name}"), path)?, None).await?,
    };
    Ok(json!({"jobInputType": wire_kind(word(input, "type").unwrap_or("uri_folder")), "uri": address}))
}

fn wire_kind(kind: &str) -> &'static str {
    match kind {
        "uri_file" => "UriFile",
        "mltable" => "MLTable",
        "mlflow_model" => "MLFlowModel",
        "custom_model" => "CustomModel",
        "triton_model" => "TritonModel",
        _ => "UriFolder",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_where_their_path_leads() {
        let mut spec = json!({"inputs": {"a": 1}});
        set(&mut spec, "inputs.b.path", json!("x"));
        set(&mut spec, "inputs.a", json!(2));
        set(&mut spec, "output_file_name", json!("p.csv"));
        assert_eq!(spec, json!({"inputs": {"a": 2, "b": {"path": "x"}}, "output_file_name": "p.csv"}));
    }
}
