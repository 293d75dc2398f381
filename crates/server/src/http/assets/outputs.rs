//! Outputs of jobs that become assets.

use api::arm;
use domain::{Job, Timestamp};
use serde_json::{Value, json};
use store::{AssetKey, Error, Tx};

/// Outputs that carry a name become assets the moment their job completes.
pub fn register_outputs(tx: &mut Tx<'_>, job: &Job, now: Timestamp) -> Result<(), Error> {
    let Some((body, plan)) = tx.registering_body(job.seq)? else { return Ok(()) };
    let body: Value = serde_json::from_str(&body).map_err(|error| Error::Decode(error.to_string()))?;
    for (output, planned) in &plan.outputs {
        let asked = body.get("outputs").and_then(|all| all.get(output)).unwrap_or(&Value::Null);
        let Some(name) = arm::text(asked, "assetName") else { continue };
        let data_type = arm::text(asked, "jobOutputType").unwrap_or_else(|| "uri_folder".into());
        let model = data_type.ends_with("_model");
        let kind = if model { "models" } else { "data" };
        let version = match arm::text(asked, "assetVersion") {
            Some(version) => version,
            None => tx.next_version(&job.workspace, kind, &name)?.to_string(),
        };
        let fields = if model { ("modelType", "modelUri") } else { ("dataType", "dataUri") };
        let mut properties = json!({
            "description": asked.get("description"), "tags": arm::texts(asked, "tags"), "isAnonymous": false,
            "properties": {"peregrine.job": job.name, "peregrine.output": output}, "jobName": job.name,
        });
        properties[fields.0] = json!(data_type);
        properties[fields.1] = json!(planned.uri);
        let key = AssetKey {
            workspace: job.workspace.clone(),
            kind: kind.into(),
            name: name.clone(),
            version: version.clone(),
        };
        let text = match tx.asset(&key)? {
            Some(_) => format!("output `{output}` was not registered: {kind} `{name}:{version}` exists already"),
            None => {
                super::insert(tx, &key, &properties, job.name.as_str(), now)?;
                format!("output `{output}` registered as {kind} `{name}:{version}`")
            }
        };
        tx.add_event(job.seq, now, "registered", &text)?;
    }
    Ok(())
}
