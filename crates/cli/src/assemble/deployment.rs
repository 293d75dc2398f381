//! Deployments: the model, code and environment behind an endpoint.

use super::{Source, code_in, compute_in, environment_in, id_of, model, pipeline::anonymous};
use crate::{failure::Done, post::Post, spec_file::Base};
use api::{
    arm::{
        component::ANONYMOUS,
        endpoint,
        tree::{entries, python, some, word},
    },
    blob::sha256,
};
use serde_json::{Value, json};

/// The resource of an online deployment.
pub(crate) async fn online_deployment(post: &Post<'_>, base: &Base, spec: &Value) -> Done<Value> {
    let mut spec = spec.clone();
    refer(post, base, &mut spec).await?;
    collect(post, &mut spec).await?;
    Ok(endpoint::online_deployment(&spec, &post.location().await?))
}

/// The resource of a batch deployment: of a model, or of a pipeline component.
pub(crate) async fn batch_deployment(post: &Post<'_>, base: &Base, spec: &Value) -> Done<Value> {
    let mut spec = spec.clone();
    let location = post.location().await?;
    if word(&spec, "type") == Some("pipeline") || some(&spec, "component").is_some() {
        let (id, defined) = match Source::of(post, base, some(&spec, "component")).await? {
            Source::Registered { id, .. } => (id, None),
            Source::Defined { spec, base, .. } => (anonymous(post, &base, &spec).await?, Some(spec)),
            Source::Itself => (of_job(post, word(&spec, "job_definition").unwrap_or_default()).await?, None),
        };
        return Ok(endpoint::batch_pipeline(&spec, &id, defined.as_deref(), &location));
    }
    compute_in(post, &mut spec);
    refer(post, base, &mut spec).await?;
    Ok(endpoint::batch_deployment(&spec, &location))
}

/// The component that a job which ran stands for; its id.
async fn of_job(post: &Post<'_>, job: &str) -> Done<String> {
    let job = job.strip_prefix("azureml:").unwrap_or(job);
    let spec = json!({
        "name": ANONYMOUS, "version": "1", "type": "pipeline", "jobs": {}, "source_job_id": job, "sourceJobId": job,
        "_source": "CLASS",
    });
    let body = json!({"properties": {"componentSpec": spec, "isAnonymous": true, "properties": {}, "tags": {}}});
    let version = sha256(job.as_bytes());
    Ok(id_of(&post.put(&format!("components/{ANONYMOUS}/versions/{version}"), &body).await?))
}

/// What is collected from requests is kept as data; each collection names where.
async fn collect(post: &Post<'_>, spec: &mut Value) -> Done {
    let Some(all) = some(spec, "data_collector").and_then(|one| some(one, "collections")).cloned() else {
        return Ok(());
    };
    let text = |key: &str| word(spec, key).unwrap_or_default().to_owned();
    let (endpoint, deployment) = (text("endpoint_name"), text("name"));
    for (name, one) in entries(&all).filter(|(_, one)| some(one, "data").is_none()) {
        let on = some(one, "enabled").and_then(python).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        if !on {
            continue;
        }
        let uri =
            format!("azureml://datastores/workspaceblobstore/paths/modelDataCollector/{endpoint}/{deployment}/{name}");
        let body = json!({"properties": {
            "dataType": "uri_folder", "dataUri": uri, "isAnonymous": false, "isArchived": false, "tags": {}, "properties": {},
        }});
        let made = post.put(&format!("data/{endpoint}-{deployment}-{name}/versions/1"), &body).await?;
        spec["data_collector"]["collections"][name]["data"] = json!(id_of(&made));
    }
    Ok(())
}

async fn refer(post: &Post<'_>, base: &Base, spec: &mut Value) -> Done {
    if let Some(configuration) = spec.get_mut("code_configuration").filter(|one| one.is_object()) {
        code_in(post, base, configuration).await?;
    }
    environment_in(post, base, spec, true).await?;
    if let Some(value) = some(spec, "model").cloned() {
        spec["model"] = json!(model(post, base, &value).await?);
    }
    Ok(())
}
