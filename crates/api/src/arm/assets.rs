//! Environments, data and models: bodies to send, and resources as `show` prints them.

use super::{put, text, texts, tree::camel_deep};
use domain::spec::{Data, Environment, Model};
use serde_json::{Map, Value, json};

/// The body of an environment whose conda file is text and whose build context is uploaded.
pub fn environment_body(spec: &Environment, conda: Option<&str>, context_uri: Option<&str>, anonymous: bool) -> Value {
    let mut p = common(&spec.description, &spec.tags, &spec.properties, anonymous);
    for key in ["tags", "properties"] {
        if p.get(key).is_some_and(|labels| *labels == json!({})) {
            p.shift_remove(key);
        }
    }
    put(&mut p, "image", spec.image.clone().map(Value::from));
    put(&mut p, "condaFile", conda.map(Value::from));
    if let Some(build) = &spec.build {
        let mut made = Map::new();
        put(&mut made, "contextUri", context_uri.or(build.path.as_deref()).map(Value::from));
        put(&mut made, "dockerfilePath", build.dockerfile_path.clone().map(Value::from));
        put(&mut p, "build", Value::Object(made));
    }
    put(&mut p, "inferenceConfig", spec.inference_config.as_ref().map(camel_deep));
    let os = spec.os_type.as_deref();
    put(&mut p, "osType", os.map(|os| json!(if os.eq_ignore_ascii_case("windows") { "Windows" } else { "Linux" })));
    Value::Object(p)
}

/// The body of a data asset; `referred` is what a table's own file points at.
pub fn data_body(spec: &Data, uri: &str, referred: Option<Value>) -> Value {
    let mut p = common(&spec.description, &spec.tags, &spec.properties, false);
    put(&mut p, "dataType", json!(spec.kind.as_str()));
    put(&mut p, "dataUri", json!(uri));
    put(&mut p, "referencedUris", referred);
    put(&mut p, "autoDeleteSetting", spec.auto_delete_setting.clone());
    Value::Object(p)
}

pub fn model_body(spec: &Model, uri: &str, anonymous: bool) -> Value {
    let mut p = common(&spec.description, &spec.tags, &spec.properties, anonymous);
    put(&mut p, "modelType", json!(spec.kind.as_deref().unwrap_or("custom_model")));
    put(&mut p, "modelUri", json!(uri));
    put(&mut p, "flavors", spec.flavors.clone());
    put(&mut p, "stage", spec.stage.clone().map(Value::from));
    put(&mut p, "jobName", spec.job_name.clone().map(Value::from));
    Value::Object(p)
}

/// A resource in the words of the YAML file, plus what the server added. Works for every asset kind
/// and for the containers in lists.
pub fn show(kind: &str, resource: &Value) -> Value {
    let p = resource.get("properties").unwrap_or(&Value::Null);
    let id = text(resource, "id").unwrap_or_default();
    let parts: Vec<&str> = id.split('/').collect();
    let versioned = parts.len() >= 2 && parts[parts.len() - 2] == "versions";
    let name = if versioned { parts.get(parts.len() - 3) } else { parts.last() }.map(|name| json!(name));
    let mut out = Map::new();
    put(&mut out, "name", name);
    if versioned {
        put(&mut out, "version", text(resource, "name").map(Value::from));
    } else {
        put(&mut out, "latest_version", text(p, "latestVersion").map(Value::from));
    }
    for (wire, ours) in [
        ("dataType", "type"),
        ("modelType", "type"),
        ("dataUri", "path"),
        ("modelUri", "path"),
        ("codeUri", "path"),
        ("image", "image"),
        ("condaFile", "conda_file"),
        ("osType", "os_type"),
        ("inferenceConfig", "inference_config"),
        ("stage", "stage"),
        ("jobName", "job_name"),
        ("description", "description"),
    ] {
        put(&mut out, ours, p.get(wire).filter(|v| !v.is_null()).cloned());
    }
    put(&mut out, "kept_on", resource.get("keptOn").cloned());
    if let Some(build) = p.get("build").filter(|b| b.is_object()) {
        put(
            &mut out,
            "build",
            json!({"path": build.get("contextUri"), "dockerfile_path": build.get("dockerfilePath")}),
        );
    }
    if let Some(Value::Object(spec)) = p.get("componentSpec") {
        let own = ["name", "version", "description", "tags", "$schema"];
        let shown = spec.iter().filter(|(key, _)| !own.contains(&key.as_str()) && !key.starts_with('_'));
        out.extend(shown.map(|(key, value)| (key.clone(), value.clone())));
    }
    if kind == "models" {
        put(&mut out, "flavors", p.get("flavors").cloned());
    }
    put(&mut out, "tags", json!(texts(p, "tags")));
    put(&mut out, "properties", json!(texts(p, "properties")));
    put(&mut out, "archived", p.get("isArchived").filter(|a| **a == json!(true)).cloned());
    put(&mut out, "id", json!(id));
    put(&mut out, "creation_context", resource.get("systemData").map(creation_context));
    Value::Object(out)
}

/// `systemData` under its YAML name.
pub fn creation_context(system: &Value) -> Value {
    json!({
        "created_at": system.get("createdAt"), "created_by": system.get("createdBy"),
        "created_by_type": system.get("createdByType"), "last_modified_at": system.get("lastModifiedAt"),
    })
}

fn common(
    description: &Option<String>,
    tags: &domain::spec::Tags,
    properties: &domain::spec::Tags,
    anonymous: bool,
) -> Map<String, Value> {
    let mut p = Map::new();
    put(&mut p, "description", description.clone().map(Value::from));
    put(&mut p, "tags", json!(tags));
    put(&mut p, "properties", json!(properties));
    put(&mut p, "isAnonymous", json!(anonymous));
    put(&mut p, "isArchived", json!(false));
    p
}
