//! Places to upload an asset's files to, and to read them from: containers opened by signed links.

use crate::{
    app::{App, scope},
    auth::sign_link,
    http::{At, Body, blobs, registries, workspaces},
    problem::Problem,
};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::Timestamp;
use serde_json::{Value, json};
use store::WorkspaceRow;

/// How long an upload may take.
const UPLOAD_LIFE_MS: i64 = 6 * 3_600_000;
/// How long a link to read lives.
const READ_LIFE_MS: i64 = 3_600_000;

/// A fresh container for one asset's files, and a link that opens it for a while.
pub(crate) async fn start(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    super::check::names(&at)?;
    let owner = app.owner(&at.owner()).await?;
    registries::may_change(&at)?;
    let mut view = fresh(&app, &owner);
    view["pendingUploadId"] = json!(workspaces::guid(app.store.keyring().random()));
    view["pendingUploadType"] = json!("TemporaryBlobReference");
    Ok(Json(view))
}

/// The same in the words registries have for it. A version that is there has its files already.
pub(crate) async fn upload_link(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(body): Body<Value>,
) -> Result<Json<Value>, Problem> {
    super::check::names(&at)?;
    let owner = app.owner(&at.owner()).await?;
    registries::may_change(&at)?;
    let asset = body["assetId"].as_str().unwrap_or_default();
    if let Some(kind) = asset.split('/').rev().nth(3).map(str::to_owned) {
        let key =
            store::AssetKey { workspace: owner.name.clone(), kind, name: at.name.clone(), version: at.version.clone() };
        if app.store.read(move |tx| tx.asset(&key)).await?.is_some() {
            return Err(Problem::conflict(format!("`{}:{}` is there already, with its files", at.name, at.version)));
        }
    }
    let mut view = fresh(&app, &owner);
    view["temporaryDataReferenceId"] = json!(workspaces::guid(app.store.keyring().random()));
    view["temporaryDataReferenceType"] = json!("TemporaryBlobReference");
    Ok(Json(view))
}

/// A link to read the files of an asset of a registry.
pub(crate) async fn read_link(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(body): Body<Value>,
) -> Result<Json<Value>, Problem> {
    let owner = app.owner(&at.owner()).await?;
    let uri = body["blobUri"].as_str().unwrap_or_default();
    let Some(container) = registries::container_in(&app, &at.registry, uri) else {
        return Err(Problem::bad(format!(
            "`blobUri` of `{}:{}` is not an address in the files of registry `{}`",
            at.name, at.version, at.registry
        )));
    };
    let expires = Timestamp(app.now().0 + READ_LIFE_MS);
    Ok(Json(opened(&app, &owner, &container, false, expires)))
}

fn fresh(app: &App, owner: &WorkspaceRow) -> Value {
    let container = format!("snap-{}", store::secrets::hex(&app.store.keyring().random::<8>()));
    opened(app, owner, &container, true, Timestamp(app.now().0 + UPLOAD_LIFE_MS))
}

fn opened(app: &App, owner: &WorkspaceRow, container: &str, write: bool, expires: Timestamp) -> Value {
    let link = sign_link(app.store.keyring(), &owner.name, container, write, expires);
    let path = match owner.name.strip_prefix('@') {
        Some(registry) => registries::container_path(registry, container),
        None => blobs::container_path(&owner.name, container),
    };
    // The one is kept in the asset, for readers anywhere; the other is used at once, by whoever asks.
    json!({"blobReferenceForConsumption": {
        "blobUri": format!("{}{path}", app.outside), "storageAccountArmId": scope(owner).path(),
        "credential": {"credentialType": "SAS", "sasUri": format!("{}{path}?{link}", app.url)},
    }})
}
