//! Outputs of runs: the ids a run hands out for them, and where an id leads.
//!
//! An output has an id whether or not it is registered as an asset. Ids of registered data and models lead
//! somewhere too.

use super::{long_uri, run::Spelling};
use crate::{
    app::{App, is_here},
    http::{At, Body},
    problem::Problem,
};
use api::arm::{self, AssetRef, VersionRef};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use domain::{Plan, spec::DataType};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::{AssetKey, JobRow, Tx, WorkspaceRow};

/// The most ids one call resolves.
const MOST: usize = 1000;

/// Two families of ids: data and models, which clients resolve at different addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Data,
    Models,
}

impl Family {
    fn of(kind: DataType) -> Family {
        match kind {
            DataType::MlflowModel | DataType::CustomModel | DataType::TritonModel => Family::Models,
            _ => Family::Data,
        }
    }

    fn kind(self) -> &'static str {
        if self == Family::Data { "data" } else { "models" }
    }

    /// What stands between the run and the output in the name of an id.
    fn mark(self) -> &'static str {
        if self == Family::Data { "_output_data_" } else { "_output_model_" }
    }
}

/// The outputs of a run, each with its id and type.
pub(super) fn ids(workspace: &WorkspaceRow, row: &JobRow, plan: &Plan, spelling: Spelling) -> Value {
    let outputs = plan.outputs.keys().map(|name| {
        let kind = kind_of(row, name);
        let family = Family::of(kind);
        let id = format!(
            "azureml://locations/{}/workspaces/{}/{}/azureml_{}{}{name}/versions/1",
            "local",
            workspace.id,
            family.kind(),
            row.job.name,
            family.mark()
        );
        (name.clone(), json!({"assetId": id, "type": type_word(kind, spelling)}))
    });
    Value::Object(outputs.collect())
}

/// The type an output was asked for with; a folder where nothing was said.
fn kind_of(row: &JobRow, output: &str) -> DataType {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let word = body["outputs"][output]["jobOutputType"].as_str().unwrap_or("uri_folder").to_lowercase();
    serde_json::from_value(json!(word)).unwrap_or(DataType::UriFolder)
}

/// Models have one spelling, data has two.
fn type_word(kind: DataType, spelling: Spelling) -> &'static str {
    match (kind, spelling) {
        (DataType::UriFile, Spelling::New) => "uri_file",
        (DataType::UriFolder, Spelling::New) => "uri_folder",
        (DataType::MlTable, Spelling::New) => "mltable",
        (DataType::UriFile, Spelling::Old) => "UriFile",
        (DataType::UriFolder, Spelling::Old) => "UriFolder",
        (DataType::MlTable, Spelling::Old) => "MLTable",
        (DataType::CustomModel, _) => "CustomModel",
        (DataType::MlflowModel, _) => "MLFlowModel",
        (DataType::TritonModel, _) => "TritonModel",
    }
}

/// Where ids of data lead.
pub(crate) async fn resolve_data(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(body): Body<Value>,
) -> Result<Json<Value>, Problem> {
    let found = resolve(&app, &at, &body, Family::Data).await?;
    let shown =
        |(id, uri, kind): (String, String, DataType)| (id, json!({"uri": uri, "type": type_word(kind, Spelling::Old)}));
    Ok(Json(json!({"values": found.into_iter().map(shown).collect::<Map<_, _>>()})))
}

/// Where ids of models lead.
pub(crate) async fn resolve_models(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(body): Body<Value>,
) -> Result<Json<Value>, Problem> {
    let found = resolve(&app, &at, &body, Family::Models).await?;
    let shown = |(id, uri, _): (String, String, DataType)| (id, json!({"path": uri}));
    Ok(Json(json!({"values": found.into_iter().map(shown).collect::<Map<_, _>>()})))
}

async fn resolve(app: &App, at: &At, body: &Value, family: Family) -> Result<Vec<(String, String, DataType)>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let ids = wanted(body)?;
    let place = Arc::clone(&workspace);
    let found = app.store.read(move |tx| {
        let mut all = Vec::with_capacity(ids.len());
        for id in ids {
            let led = lead(tx, &place, &id, family)?;
            all.push((id, led));
        }
        Ok(all)
    });
    let lost = |id: &str| {
        let message = format!("there is no {} `{id}` in workspace `{}`", family.kind(), workspace.name);
        Problem::new(StatusCode::NOT_FOUND, "ResourceNotFound", message)
    };
    let checked = found.await?.into_iter().map(|(id, led)| match led {
        Some((uri, kind)) => Ok((id, long_uri(&workspace, &uri), kind)),
        None => Err(lost(&id)),
    });
    checked.collect()
}

fn wanted(body: &Value) -> Result<Vec<String>, Problem> {
    let wrong = || Problem::bad("`values` must be a list of asset ids");
    let values = body.get("values").and_then(Value::as_array).ok_or_else(wrong)?;
    if values.len() > MOST {
        return Err(Problem::bad(format!("{} ids are too many for one call; send at most {MOST}", values.len())));
    }
    values.iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

/// Where one id leads: an asset of that name, or an output of a run.
fn lead(
    tx: &mut Tx<'_>,
    workspace: &WorkspaceRow,
    id: &str,
    family: Family,
) -> Result<Option<(String, DataType)>, store::Error> {
    let (name, version) = match AssetRef::parse(family.kind(), id) {
        Some(AssetRef::Here { workspace: named, name, version }) if is_here(workspace, named.as_deref()) => {
            (name, version)
        }
        _ => return Ok(None),
    };
    let asset = match version {
        VersionRef::Version(version) => {
            let kind = family.kind().to_owned();
            tx.asset(&AssetKey { workspace: workspace.name.clone(), kind, name: name.clone(), version })?
        }
        VersionRef::Label(_) => tx.latest_asset(&workspace.name, family.kind(), &name)?,
    };
    if let Some(asset) = asset {
        let body: Value = serde_json::from_str(&asset.body).unwrap_or_default();
        let (address, kind) = if family == Family::Data { ("dataUri", "dataType") } else { ("modelUri", "modelType") };
        let kind = serde_json::from_value(body[kind].clone()).unwrap_or(DataType::UriFolder);
        return Ok(arm::text(&body, address).map(|uri| (uri, kind)));
    }
    let Some(rest) = name.strip_prefix("azureml_") else { return Ok(None) };
    // Both names may hold the mark, so each place it stands at may be the one.
    for (at, mark) in rest.match_indices(family.mark()) {
        let (job, output) = (&rest[..at], &rest[at + mark.len()..]);
        let Some(row) = tx.job(&workspace.name, job)? else { continue };
        let plan = tx.plan(row.job.seq)?.unwrap_or_default();
        if let Some(planned) = plan.outputs.get(output) {
            return Ok(Some((planned.uri.clone(), kind_of(&row, output))));
        }
    }
    Ok(None)
}
