//! Where a version of an asset is used: by jobs as an input or environment, by pipelines as a component, by deployments
//! as their model.

use super::{At, key, noun};
use crate::{app::App, http::change, problem::Problem, resolve};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::{Place, PlannedInput};
use serde_json::{Value, json};
use store::{Tx, Used, UserRow};

/// How many jobs are shown.
const SHOWN: i64 = 50;

pub(crate) async fn uses(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = key(&workspace.name, &at)?;
    let then = app.clone();
    let (jobs, deployments) = change::look(&app, move |tx| {
        let label = format!("{}:{}", key.name, key.version);
        let Some(row) = tx.asset(&key)? else { return Err(Problem::not_found(noun(&key.kind), &label).into()) };
        let by_label = match key.kind.as_str() {
            "environments" => Some(Used::Environment(&label)),
            "components" => Some(Used::Component(&label)),
            _ => None,
        };
        if let Some(used) = by_label {
            return Ok((tx.users_of(&workspace.name, used, SHOWN)?, Vec::new()));
        }
        let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
        let uri = ["dataUri", "modelUri"].iter().find_map(|field| body[*field].as_str()).unwrap_or_default();
        let Some(place) = resolve::place_of(&then, &workspace, tx, uri)? else { return Ok((Vec::new(), Vec::new())) };
        let jobs = tx.users_of(&workspace.name, Used::Data(&place), SHOWN)?;
        Ok((jobs, if key.kind == "models" { serving(tx, &workspace.name, &place)? } else { Vec::new() }))
    })
    .await?;
    let job =
        |row: &UserRow| json!({"name": row.job, "displayName": row.shown, "status": row.status, "input": row.input});
    Ok(Json(json!({"jobs": jobs.iter().map(job).collect::<Vec<_>>(), "deployments": deployments})))
}

/// The deployments of a workspace whose replicas have the model that lies there.
fn serving(tx: &mut Tx<'_>, workspace: &str, place: &Place) -> Result<Vec<Value>, store::Error> {
    let mut found = Vec::new();
    for row in tx.servings()?.into_iter().filter(|row| row.key.workspace == workspace) {
        let plan = tx.serving_plan(&row.key, row.current())?;
        let model = plan.and_then(|mut plan| plan.inputs.remove("model"));
        if matches!(model, Some(PlannedInput::Data { place: own, .. }) if own == *place) {
            found.push(json!({"endpoint": row.key.endpoint, "name": row.key.deployment, "state": row.state.status()}));
        }
    }
    Ok(found)
}
