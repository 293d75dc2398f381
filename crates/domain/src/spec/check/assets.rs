//! Whether environments, data and models make sense.

use super::names::Found;
use crate::{
    names::DatastoreName,
    spec::{Data, DataType, Environment, Mistake, Model},
};
use serde_json::Value;

/// What makes no sense in an environment, registered or inline.
pub fn environment(environment: &Environment) -> Vec<Mistake> {
    let mut found = Found::default();
    found.asset(environment.name.as_deref(), environment.version.as_deref());
    found.labels("tags", &environment.tags);
    found.labels("properties", &environment.properties);
    found.filled("image", environment.image.as_deref(), "the image");
    let Environment { image, build, conda_file, .. } = environment;
    if image.is_none() && build.is_none() && conda_file.is_none() {
        let fix = "give `image`, `conda_file`, both, or `build`";
        found.say("image", "the environment says nothing about its software", fix);
    }
    if image.is_some() && build.is_some() {
        found.say("build", "`image` and `build` exclude each other", "keep one; a Dockerfile names its own base image");
    }
    if conda_file.is_some() && build.is_some() {
        found.say(
            "conda_file",
            "`conda_file` and `build` exclude each other",
            "install the packages in the Dockerfile",
        );
    }
    if let Some(build) = build {
        found.filled("build.path", Some(build.path.as_deref().unwrap_or("")), "the build folder");
    }
    if image.as_deref().is_some_and(|image| image.trim().contains(char::is_whitespace)) {
        found.say("image", "an image's name has no blanks", "write one name, such as `python:3.12`");
    }
    conda(&mut found, conda_file.as_ref());
    found.0
}

fn conda(found: &mut Found, conda: Option<&Value>) {
    match conda {
        Some(Value::String(path)) => found.filled("conda_file", Some(path), "the path"),
        Some(Value::Object(map)) if !matches!(map.get("dependencies"), Some(Value::Array(_))) => {
            found.say("conda_file.dependencies", "a conda file has a list of `dependencies`", "add `dependencies:`");
        }
        _ => {}
    }
}

/// What makes no sense in a data asset.
pub fn data(data: &Data) -> Vec<Mistake> {
    let mut found = Found::default();
    found.asset(data.name.as_deref(), data.version.as_deref());
    found.labels("tags", &data.tags);
    found.labels("properties", &data.properties);
    path(&mut found, data.path.as_deref());
    store(&mut found, data.datastore.as_deref());
    if !matches!(data.kind, DataType::UriFile | DataType::UriFolder | DataType::MlTable) {
        let message = format!("`{}` is a kind of model, not of data", data.kind.as_str());
        found.say("type", message, "use `uri_file`, `uri_folder` or `mltable`, or register a model");
    }
    found.0
}

/// What makes no sense in a model.
pub fn model(model: &Model) -> Vec<Mistake> {
    let mut found = Found::default();
    found.asset(model.name.as_deref(), model.version.as_deref());
    found.labels("tags", &model.tags);
    found.labels("properties", &model.properties);
    path(&mut found, model.path.as_deref());
    store(&mut found, model.datastore.as_deref());
    found.0
}

fn path(found: &mut Found, path: Option<&str>) {
    match path {
        None => found.say("path", "`path` is required", "add `path:` with a local path or a URI"),
        path => found.filled("path", path, "the path"),
    }
}

fn store(found: &mut Found, store: Option<&str>) {
    if let Some(name) = store {
        found.name("datastore", name.strip_prefix("azureml:").unwrap_or(name), DatastoreName::parse);
    }
}
