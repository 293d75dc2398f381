//! Files of runs as Azure's plugin reads and writes them: it asks run history for links, and goes to the blobs itself.
//!
//! A logged model is asked for like a run, by its own id. Invariant: a link opens the file it was asked for, for a time.

use super::{
    artifacts,
    call::{Asker, Call},
    fault::{Fault, read},
    logged,
};
use crate::{app::App, auth::sign_folder_link, http::blobs};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::files::{ARTIFACT_CONTAINER, Found, Spot};

const LINK_LIFE_MS: i64 = 24 * 3_600_000;
/// What a path in an address may hold as it is.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

#[derive(Deserialize)]
pub(super) struct At {
    name: String,
}

/// The folder of what is asked for, if the asker may see it, or with `write` change it.
async fn folder(app: &App, by: &Asker, name: &str, write: bool) -> Result<String, Fault> {
    let (by, name) = (by.clone(), name.to_owned());
    read(app, move |tx| {
        if tx.run(by.workspace(), &name)?.is_none() && tx.logged_model(by.workspace(), &name)?.is_some() {
            if write {
                logged::writable(tx, &by, &name)?;
            }
            return Ok(artifacts::model_folder(&name));
        }
        by.run(tx, &name)?;
        Ok(artifacts::folder_of(&name))
    })
    .await
}

/// All files of a run.
pub(super) async fn files(State(app): State<App>, Path(at): Path<At>, call: Call) -> super::Answer {
    let folder = folder(&app, &call.by, &at.name, false).await?;
    let (files, workspace, prefix) = (app.files.clone(), call.by.workspace().to_owned(), format!("{folder}/"));
    let found =
        tokio::task::spawn_blocking(move || files.list(&workspace, ARTIFACT_CONTAINER, &prefix, "", usize::MAX));
    let found = found.await.map_err(|_| store::Error::Closed)?.map_err(crate::problem::Problem::from)?;
    let value: Vec<Value> = found.iter().map(|file| described(&at.name, &folder, file)).collect();
    Ok(Json(json!({"value": value, "continuationToken": null, "nextLink": null})))
}

fn described(name: &str, folder: &str, file: &Found) -> Value {
    let path = file.path.strip_prefix(folder).unwrap_or(&file.path).trim_start_matches('/');
    json!({
        "artifactId": file.path, "origin": "ExperimentRun", "container": format!("dcid.{name}"), "path": path,
        "etag": format!("0x{:X}", file.modified_ns), "createdTime": file.modified.iso(),
    })
}

/// Where to read one file.
pub(super) async fn link(State(app): State<App>, Path(at): Path<At>, call: Call) -> super::Answer {
    let path = call.need("path")?;
    let folder = folder(&app, &call.by, &at.name, false).await?;
    Ok(Json(content(&app, &call.by, (&at.name, &folder), &path, false)?))
}

/// Where to write some files.
pub(super) async fn links(State(app): State<App>, Path(at): Path<At>, call: Call) -> super::Answer {
    let folder = folder(&app, &call.by, &at.name, true).await?;
    let (mut known, mut links) = (Map::new(), Map::new());
    for asked in call.list("paths")? {
        let path = asked.get("path").and_then(Value::as_str).ok_or_else(|| Fault::required("paths.path"))?;
        let link = content(&app, &call.by, (&at.name, &folder), path, true)?;
        let created = json!({
            "artifactId": format!("{folder}/{path}"), "origin": "ExperimentRun", "container": link["container"],
            "path": path, "etag": "", "createdTime": app.now().iso(),
        });
        known.insert(path.to_owned(), created);
        links.insert(path.to_owned(), link);
    }
    Ok(Json(json!({"artifacts": known, "artifactContentInformation": links, "errors": {}})))
}

fn content(app: &App, by: &Asker, (name, folder): (&str, &str), path: &str, write: bool) -> Result<Value, Fault> {
    let spot = Spot::parse(by.workspace(), ARTIFACT_CONTAINER, &format!("{folder}/{path}"))?;
    let expires = Timestamp(app.now().0 + LINK_LIFE_MS);
    let link = sign_folder_link(app.store.keyring(), spot.workspace(), spot.container(), spot.path(), write, expires);
    let container = blobs::container_url(app, spot.workspace(), spot.container());
    let uri = format!("{container}/{}?{link}", utf8_percent_encode(spot.path(), &PLAIN));
    let container = format!("dcid.{name}");
    Ok(json!({"contentUri": uri, "origin": "ExperimentRun", "container": container, "path": path, "tags": {}}))
}
