//! From a file's words to a resource: what is local is uploaded, what is inline is registered, what is a name
//! becomes an id. The bodies themselves are made in `api`; this room only finds what they refer to.

mod deployment;
mod job;
mod pipeline;

pub(crate) use deployment::{batch_deployment, online_deployment};
pub(crate) use job::{job, schedule};
pub(crate) use pipeline::{Source, component};

use crate::{
    commands::environment,
    failure::{Doing, Done, Failure},
    post::Post,
    spec_file::{self, Base},
};
use api::{
    arm::{
        assets::model_body,
        io::is_binding,
        reference::is_remote,
        tree::{entries, some, word},
    },
    blob::sha256,
};
use domain::spec::shape::Noun;
use domain::spec::{Environment, Model};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The id of code: uploaded where it is local.
pub(crate) async fn code(post: &Post<'_>, base: &Base, text: &str) -> Done<String> {
    match is_remote(text) {
        true => Ok(post.scope.resolve("codes", text)),
        false => post.code(&base.existing("code", text)?).await,
    }
}

/// Replaces `code` of a map by its id; `additional_includes` become part of it.
async fn code_in(post: &Post<'_>, base: &Base, spec: &mut Value) -> Done {
    let code_text = word(spec, "code").map(str::to_owned);
    let includes: Vec<String> = some(spec, "additional_includes")
        .and_then(Value::as_array)
        .map(|all| all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect())
        .unwrap_or_default();
    if !includes.is_empty() {
        let folder = code_text.filter(|text| !is_remote(text)).map(|text| base.existing("code", &text)).transpose()?;
        let mut parts = Vec::new();
        for one in &includes {
            parts.push(base.existing("additional_includes", one)?);
        }
        let whole = crate::upload::gathered(folder.as_deref(), &parts)?;
        spec["code"] = json!(post.code(&whole.path()).await?);
    } else if let Some(text) = code_text {
        spec["code"] = json!(code(post, base, &text).await?);
    }
    Ok(())
}

/// The id of an environment: by name, from a file, or registered from where it stands.
pub(crate) async fn environment(post: &Post<'_>, base: &Base, value: &Value, named: bool) -> Done<String> {
    let doing = || "cannot register the environment".to_owned();
    if let Some(text) = value.as_str() {
        if is_remote(text) || !looks_local(text) {
            return post.resolve("environments", text).await;
        }
        let path = base.existing("environment", plain(text))?;
        let (spec, base) = spec_file::tree(Noun::Environment, &path, &[])?;
        return environment::register(post, &typed(&spec, "environment")?, &base, named).await.doing(doing);
    }
    let spec: Environment = typed(value, "environment")?;
    environment::register(post, &spec, base, named).await.doing(doing)
}

async fn environment_in(post: &Post<'_>, base: &Base, spec: &mut Value, named: bool) -> Done {
    if let Some(value) = some(spec, "environment").cloned() {
        spec["environment"] = json!(environment(post, base, &value, named).await?);
    }
    Ok(())
}

/// The id of a model: by name, or registered from where it stands.
async fn model(post: &Post<'_>, base: &Base, value: &Value) -> Done<String> {
    if let Some(text) = value.as_str() {
        if is_remote(text) {
            return post.resolve("models", text).await;
        }
        return inline_model(post, base, &json!({"path": text})).await;
    }
    inline_model(post, base, value).await
}

async fn inline_model(post: &Post<'_>, base: &Base, value: &Value) -> Done<String> {
    let mut spec: Model = typed(value, "model")?;
    let path = spec.path.clone().ok_or_else(|| crate::post::missing("model.path"))?;
    let uri = match is_remote(&path) {
        true => path,
        false => {
            let found = base.existing("model.path", &path)?;
            let short = post.data(&found, spec.datastore.as_deref()).await?;
            post.scope.long_address(short.trim_end_matches('/'))
        }
    };
    let anonymous = spec.name.is_none();
    let name = spec.name.take().unwrap_or_else(|| sha256(format!("{uri}#{:?}", spec.kind).as_bytes()));
    let version = match spec.version.take() {
        Some(version) => version,
        None if anonymous => "1".to_owned(),
        None => post.next_version("models", &name).await?,
    };
    let body = json!({"properties": model_body(&spec, &uri, anonymous)});
    let made = post.put(&format!("models/{name}/versions/{version}"), &body).await?;
    Ok(id_of(&made))
}

/// Uploads what inputs name on this machine; afterwards they hold addresses and ids.
pub(crate) async fn inputs(post: &Post<'_>, base: &Base, spec: &mut Value) -> Done {
    let names: Vec<String> =
        some(spec, "inputs").map(|all| entries(all).map(|(name, _)| name.clone()).collect()).unwrap_or_default();
    for name in names {
        let input = &mut spec["inputs"][&name];
        if some(input, "path").is_none()
            && some(input, "default").is_none()
            && word(input, "type").is_some_and(is_data)
            && some(input, "optional") != Some(&json!(true))
        {
            return Err(Failure::input(format!("input `{name}` has no `path`"))
                .because("it is data, and nothing says where it lies")
                .hint(format!("set it with `--set inputs.{name}.path=…`")));
        }
        let Some(path) = word(input, "path").map(str::to_owned).filter(|path| !is_binding(path)) else { continue };
        let kind = if word(input, "type").is_some_and(|kind| kind.ends_with("_model")) { "models" } else { "data" };
        let found = match is_remote(&path) {
            true => post.resolve(kind, &path).await?,
            false => {
                let key = format!("inputs.{name}.path");
                let sent = post.data(&base.existing(&key, &path)?, None).await;
                let sent = sent.doing(|| format!("cannot send input `{name}`"))?;
                input_address(&sent, word(input, "type").unwrap_or("uri_folder")).to_owned()
            }
        };
        input["path"] = json!(found);
    }
    Ok(())
}

fn is_data(kind: &str) -> bool {
    matches!(kind, "uri_file" | "uri_folder" | "mltable") || kind.ends_with("_model")
}

/// A folder's address ends in a slash, unless what lies there is a table or a model.
pub(crate) fn input_address<'a>(address: &'a str, kind: &str) -> &'a str {
    if kind == "uri_folder" { address } else { address.trim_end_matches('/') }
}

/// Replaces the name of a compute target by its id.
fn compute_in(post: &Post<'_>, spec: &mut Value) {
    if let Some(name) = word(spec, "compute") {
        spec["compute"] = json!(post.scope.named("computes", name));
    }
}

/// A part of a file as one of the typed specs; what its keys may be was checked before.
fn typed<T: DeserializeOwned>(value: &Value, what: &str) -> Done<T> {
    let mut value = value.clone();
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, inner| !inner.is_null() && key != "$schema");
        for key in ["name", "version"] {
            if let Some(text) = map.get(key).and_then(api::arm::tree::python) {
                map.insert(key.to_owned(), json!(text));
            }
        }
    }
    serde_json::from_value(value)
        .map_err(|error| Failure::input(format!("the {what} cannot be understood")).because(error.to_string()))
}

fn id_of(resource: &Value) -> String {
    resource["id"].as_str().unwrap_or_default().to_owned()
}

/// `file:./x` without its prefix.
fn plain(text: &str) -> &str {
    text.strip_prefix("file:").unwrap_or(text)
}

/// Whether a word names a file rather than something registered.
fn looks_local(text: &str) -> bool {
    text.starts_with("file:") || text.starts_with('.') || text.ends_with(".yml") || text.ends_with(".yaml")
}
