//! Local data for jobs, data assets and models: sent to a datastore under the hash of its content.

use super::{
    Uploader,
    blob::Store,
    code::folder_name,
    snapshot::{Snapshot, walk},
};
use crate::failure::{Doing, Done, Failure};
use api::blob::{Item, content_hash};
use std::path::Path;

/// Sends a file or folder to the default datastore, or the one named; answers its `azureml://` address.
pub(crate) async fn upload_data(up: &Uploader<'_>, path: &Path, datastore: Option<&str>) -> Done<String> {
    let cannot = || format!("cannot upload `{}`", path.display());
    let (Snapshot { items, notices }, prefix, tail) = list(path)?;
    for notice in notices {
        up.output.note(&format!("notice: {notice}"));
    }
    let hash = content_hash(&items).map_err(|error| Failure::file(cannot(), &error))?;
    let store = Store::open(up, datastore).await.doing(cannot)?;
    let prefix = format!("LocalUpload/{hash}{prefix}");
    let Some(first) = items.first().map(|item| format!("{prefix}/{}", item.name)) else {
        return Err(Failure::input(cannot()));
    };
    if !store.is_complete(up, &first).await? {
        store.put_all(up, &prefix, &items).await?;
        store.mark_complete(up, &first).await.doing(cannot)?;
    }
    Ok(format!("azureml://datastores/{}/paths/LocalUpload/{hash}/{tail}", store.name))
}

/// The address that a file or folder would have in a datastore. Nothing is sent.
pub(crate) fn data_address(path: &Path, datastore: &str) -> Done<String> {
    let (Snapshot { items, .. }, _, tail) = list(path)?;
    let hash =
        content_hash(&items).map_err(|error| Failure::file(format!("cannot read `{}`", path.display()), &error))?;
    Ok(format!("azureml://datastores/{datastore}/paths/LocalUpload/{hash}/{tail}"))
}

/// The files, the prefix below the hash, and the rest of the address.
fn list(path: &Path) -> Done<(Snapshot, String, String)> {
    let unreadable = |error| Failure::file(format!("cannot read `{}`", path.display()), &error);
    let facts = path.metadata().map_err(unreadable)?;
    if facts.is_dir() {
        let name = folder_name(path);
        let tail = format!("{name}/");
        return Ok((walk(path, true)?, format!("/{name}"), tail));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    std::fs::File::open(path).map_err(unreadable)?;
    let item = Item { name: name.clone(), path: path.to_owned(), bytes: facts.len() };
    Ok((Snapshot { items: vec![item], notices: Vec::new() }, String::new(), name))
}
