//! Applying objects one after the other, remembering how things were.

use super::kinds::Kind;
use crate::{
    connect::{Cluster, Error},
    names::PRODUCT,
};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long what is taken back may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(45);

/// An object that was applied, and what was there before.
#[derive(Debug, Clone)]
pub struct Applied {
    object: Value,
    before: Option<DynamicObject>,
}

impl Applied {
    /// `Deployment peregrine/peregrine-operator`.
    pub fn name(&self) -> String {
        name(&self.object)
    }

    pub fn was_made(&self) -> bool {
        self.before.is_none()
    }
}

/// Applies in order. What was applied until a failure stands in `applied`, for [`roll_back`].
pub async fn apply(cluster: &Cluster, objects: &[Value], applied: &mut Vec<Applied>) -> Result<(), Error> {
    for object in objects {
        let (api, id) = address(cluster, object);
        let told = |error| cluster.told(format!("apply {}", name(object)), error);
        let before = api.get_opt(&id).await.map_err(told)?;
        applied.push(Applied { object: object.clone(), before });
        api.patch(&id, &PatchParams::apply(PRODUCT).force(), &Patch::Apply(object)).await.map_err(told)?;
    }
    Ok(())
}

/// Puts everything back, last first, and waits until what was made is gone. Failures on the way are told and do not stop it.
pub async fn roll_back(cluster: &Cluster, applied: &[Applied]) -> Vec<Error> {
    let mut failed = Vec::new();
    for Applied { object, before } in applied.iter().rev() {
        let (api, id) = address(cluster, object);
        let undone = match before {
            None => api.delete(&id, &DeleteParams::background()).await.map(drop),
            Some(before) => {
                let mut before = json!(before);
                before["metadata"].as_object_mut().into_iter().for_each(|metadata| {
                    metadata.retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&key.as_str()));
                });
                before.as_object_mut().into_iter().for_each(|object| drop(object.shift_remove("status")));
                api.patch(&id, &PatchParams::apply(PRODUCT).force(), &Patch::Apply(&before)).await.map(drop)
            }
        };
        match undone {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => failed.push(cluster.told(format!("undo {}", name(object)), error)),
            Ok(()) => {}
        }
    }
    for Applied { object, .. } in applied.iter().filter(|one| one.was_made()) {
        gone(cluster, object).await;
    }
    failed
}

/// Waits a while until an object is gone: a namespace takes its time, and until then nothing can be installed there.
async fn gone(cluster: &Cluster, object: &Value) {
    let (api, id) = address(cluster, object);
    let deadline = Instant::now() + GONE_WITHIN;
    while Instant::now() < deadline && matches!(api.get_metadata_opt(&id).await, Ok(Some(_))) {
        sleep(Duration::from_millis(300)).await;
    }
}

/// Removes one object of the extension; one that is not there is as good.
pub async fn remove_one(cluster: &Cluster, object: &Value) -> Result<(), Error> {
    let (api, id) = address(cluster, object);
    match api.delete(&id, &DeleteParams::background()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop).map_err(|error| cluster.told(format!("remove {}", name(object)), error)),
    }
}

fn address(cluster: &Cluster, object: &Value) -> (kube::Api<DynamicObject>, String) {
    let metadata = &object["metadata"];
    let api = Kind::of(object).api(&cluster.client, metadata["namespace"].as_str());
    (api, metadata["name"].as_str().unwrap_or_default().to_owned())
}

fn name(object: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{} {namespace}/{}", word(&object["kind"]), word(&metadata["name"])),
        None => format!("{} {}", word(&object["kind"]), word(&metadata["name"])),
    }
}
