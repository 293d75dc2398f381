//! Deployments: the model, code and environment behind an endpoint.

use super::{Source, code_in, compute_in, environment_in, id_of, model, pipeline::component};
use crate::{failure::Done, post::Post, spec_file::Base};
use api::arm::{
    endpoint,
    tree::{some, word},
};
use serde_json::{Value, json};

/// The resource of an online deployment.
pub(crate) async fn online_deployment(post: &Post<'_>, base: &Base, spec: &Value) -> Done<Value> {
    let mut spec = spec.clone();
    refer(post, base, &mut spec).await?;
    Ok(endpoint::online_deployment(&spec, &post.location().await?))
}

/// The resource of a batch deployment: of a model, or of a pipeline component.
pub(crate) async fn batch_deployment(post: &Post<'_>, base: &Base, spec: &Value) -> Done<Value> {
    let mut spec = spec.clone();
    let location = post.location().await?;
    if word(&spec, "type") == Some("pipeline") || some(&spec, "component").is_some() {
        let id = match Source::of(post, base, some(&spec, "component"))? {
            Source::Registered { id, .. } => id,
            Source::Defined { spec, base } => register(post, &base, &spec).await?,
            Source::Itself => word(&spec, "job_definition").map_or_else(String::new, |job| post.scope.named("jobs", job)),
        };
        return Ok(endpoint::batch_pipeline(&spec, &id, &location));
    }
    compute_in(post, &mut spec);
    refer(post, base, &mut spec).await?;
    Ok(endpoint::batch_deployment(&spec, &location))
}

/// A pipeline component under its own name; its id.
async fn register(post: &Post<'_>, base: &Base, spec: &Value) -> Done<String> {
    let body = component(post, base, spec).await?;
    let name = word(spec, "name").unwrap_or_default().to_owned();
    let version = match some(spec, "version").and_then(api::arm::tree::python) {
        Some(version) => version,
        None => post.next_version("components", &name).await?,
    };
    Ok(id_of(&post.put(&format!("components/{name}/versions/{version}"), &body).await?))
}

async fn refer(post: &Post<'_>, base: &Base, spec: &mut Value) -> Done {
    if let Some(configuration) = spec.get_mut("code_configuration").filter(|one| one.is_object()) {
        code_in(post, base, configuration).await?;
    }
    environment_in(post, base, spec).await?;
    if let Some(value) = some(spec, "model").cloned() {
        spec["model"] = json!(model(post, base, &value).await?);
    }
    Ok(())
}
