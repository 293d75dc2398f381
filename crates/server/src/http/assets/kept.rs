//! On which nodes an asset's files lie already.

use crate::{app::App, http::agents::places, resolve};
use domain::Place;
use serde_json::{Value, json};
use store::{AssetRow, Error, Tx, WorkspaceRow};

/// The nodes that keep it, of targets of its workspace.
pub(super) fn of(app: &App, workspace: &WorkspaceRow, tx: &mut Tx<'_>, row: &AssetRow) -> Result<Vec<Value>, Error> {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let address = match row.key.kind.as_str() {
        "data" => &body["dataUri"],
        "models" => &body["modelUri"],
        _ => return Ok(Vec::new()),
    };
    let Some(uri) = address.as_str().filter(|_| !workspace.name.starts_with('@')) else { return Ok(Vec::new()) };
    let source = match resolve::place_of(app, workspace, tx, uri)? {
        Some(Place::Folder { path }) => places::url(app, &path),
        Some(Place::Object { url, .. }) => Some(url),
        Some(Place::Http { url }) => Some(url.split(['?', '#']).next().unwrap_or_default().to_owned()),
        None => None,
    };
    let Some(source) = source else { return Ok(Vec::new()) };
    let own = store::site_name(&workspace.name, "");
    let keepers = tx.keepers_of(&source)?.into_iter();
    let shown = keepers.filter_map(|keeper| {
        let compute = keeper.cluster.strip_prefix(&own)?;
        Some(json!({"compute": compute, "node": keeper.node, "bytes": keeper.bytes}))
    });
    Ok(shown.collect())
}
