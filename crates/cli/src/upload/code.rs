//! Code snapshots: a folder, sent once for each content.

use super::{
    Uploader,
    blob::Store,
    snapshot::{Snapshot, walk},
};
use crate::{
    failure::{Doing, Done, Failure},
    outside,
};
use api::blob::{Item, content_hash};
use serde_json::{Value, json};
use std::path::Path;

/// More files than this deserve a word about it.
const MANY: usize = 100_000;
const HASH_VERSION: u32 = 202_208;

/// Sends the folder unless the server has its content; answers the id of the code asset.
pub(crate) async fn upload_code(up: &Uploader<'_>, folder: &Path) -> Done<String> {
    let snapshot = list(folder)?;
    for notice in &snapshot.notices {
        up.output.note(&format!("notice: {notice}"));
    }
    if snapshot.items.len() > MANY {
        let count = snapshot.items.len();
        up.output.note(&format!(
            "notice: `{}` has {count} files; `.amlignore` can leave out what the job does not need",
            folder.display()
        ));
    }
    let hash = hash_of(&snapshot, folder)?;
    let codes = format!("{}/codes/{}/versions", up.scope.path(), outside::guid());
    let known = up.client.list(&format!("{codes}?hash={hash}&hashVersion={HASH_VERSION}"), 1).await?;
    if let Some(id) = known.first().and_then(|code| code["id"].as_str()) {
        return Ok(id.to_owned());
    }
    let pending: Value = up
        .client
        .post(&format!("{codes}/1/startPendingUpload"), &json!({"pendingUploadType": "TemporaryBlobReference"}))
        .await?;
    let place = &pending["blobReferenceForConsumption"];
    let signed = place["credential"]["sasUri"].as_str().unwrap_or_default();
    let (container, signature) = signed.split_once('?').unwrap_or((signed, ""));
    let store = Store { name: String::new(), container: container.to_owned(), signature: signature.to_owned() };
    let name = folder_name(folder);
    store
        .put_all(up, &name, &snapshot.items)
        .await
        .doing(|| format!("cannot upload the code in `{}`", folder.display()))?;
    let body = body(&format!("{}/{name}", place["blobUri"].as_str().unwrap_or(container)), &hash);
    let code: Value = up.client.put(&format!("{codes}/1"), &body).await?;
    Ok(code["id"].as_str().unwrap_or_default().to_owned())
}

/// A folder that goes away when it is no longer needed.
pub(crate) struct Gathered(tempfile::TempDir);

impl Gathered {
    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.0.path().join(GATHERED)
    }
}

const GATHERED: &str = "code_with_additional_includes";

/// A copy of the code with other files and folders beside it.
pub(crate) fn gathered(code: Option<&Path>, others: &[std::path::PathBuf]) -> Done<Gathered> {
    let all = Gathered(tempfile::tempdir()?);
    std::fs::create_dir(all.path())?;
    let copy = |snapshot: Snapshot, below: &Path| -> Done {
        for item in snapshot.items {
            let to = all.path().join(below).join(&item.name);
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::copy(&item.path, &to)
                .map_err(|error| Failure::file(format!("cannot read `{}`", item.path.display()), &error))?;
        }
        Ok(())
    };
    if let Some(code) = code {
        copy(list(code)?, Path::new(""))?;
    }
    for other in others {
        let below = if other.is_dir() { folder_name(other) } else { String::new() };
        copy(list(other)?, Path::new(&below))?;
    }
    Ok(all)
}

/// The code asset that a folder would become, and the hash of its content. Nothing is sent.
pub(crate) fn outline(folder: &Path) -> Done<(Value, String)> {
    let hash = hash_of(&list(folder)?, folder)?;
    Ok((body(&folder_name(folder), &hash), hash))
}

fn body(uri: &str, hash: &str) -> Value {
    json!({"properties": {
        "codeUri": uri,
        "isAnonymous": true,
        "properties": {"hash_sha256": hash, "hash_version": HASH_VERSION},
    }})
}

/// The hash under which the SDK looks for the same code: names in the order of their small letters.
fn hash_of(snapshot: &Snapshot, folder: &Path) -> Done<String> {
    let mut items = snapshot.items.clone();
    items.sort_by_cached_key(|item| item.name.to_lowercase());
    content_hash(&items).map_err(|error| Failure::file(format!("cannot read `{}`", folder.display()), &error))
}

fn list(path: &Path) -> Done<Snapshot> {
    if !path.is_file() {
        return walk(path, true);
    }
    let bytes =
        path.metadata().map_err(|error| Failure::file(format!("cannot read `{}`", path.display()), &error))?.len();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Snapshot { items: vec![Item { name, path: path.to_owned(), bytes }], notices: Vec::new() })
}

/// The last part of the real path: `.` has a name too.
pub(super) fn folder_name(folder: &Path) -> String {
    let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let named = if real.is_file() { real.parent().map(Path::to_owned).unwrap_or_default() } else { real };
    named.file_name().map_or_else(|| "code".to_owned(), |name| name.to_string_lossy().into_owned())
}
