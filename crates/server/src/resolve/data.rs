//! Data: where an input's bytes lie and an output's bytes go.

use super::{Lookup, body_text};
use crate::http::datastores;
use api::arm::{
    self, AssetRef,
    reference::{DataUri, data_uri},
};
use domain::Place;
use std::{collections::BTreeMap, path::Path};

/// Assets may point at assets, but not in circles.
const DEEPEST: usize = 8;

impl Lookup<'_, '_> {
    /// Where an input lies; `None` after a mistake was noted.
    pub(super) fn place(&mut self, key: &str, path: &str, depth: usize) -> Result<Option<Place>, store::Error> {
        if depth > DEEPEST {
            self.mistake(key, format!("`{path}` refers to itself in a circle"), "point the asset at its data");
            return Ok(None);
        }
        if let Some(place) = self.blob(key, path)? {
            let found = self.reached(key, path, place);
            return Ok(found.and_then(|place| self.there(key, path, place)));
        }
        let place = match data_uri(path) {
            DataUri::Datastore { workspace, .. } if self.leads_away(key, path, workspace.as_deref()) => None,
            DataUri::Datastore { datastore, path: inside, .. } => {
                let place = self.in_datastore(key, &datastore, &inside)?;
                place.and_then(|place| self.there(key, path, place))
            }
            DataUri::JobOutput { job, output, path: inside } => self.in_job(key, &job, &output, &inside)?,
            // An asset was looked at where its own address was.
            DataUri::Other(uri) => self.elsewhere(key, &uri, depth)?,
        };
        Ok(place.and_then(|place| self.reached(key, path, Some(place))))
    }

    /// Where an output goes; it need not exist yet.
    pub(super) fn output_place(&mut self, key: &str, uri: &str) -> Result<Option<Place>, store::Error> {
        let place = match data_uri(uri) {
            DataUri::Datastore { workspace, .. } if self.leads_away(key, uri, workspace.as_deref()) => None,
            DataUri::Datastore { datastore, path, .. } => self.in_datastore(key, &datastore, &path)?,
            DataUri::JobOutput { .. } => {
                self.mistake(key, "an output cannot be written into another job", "write to a datastore path");
                None
            }
            DataUri::Other(uri) => self.direct(key, &uri),
        };
        Ok(place.and_then(|place| self.reached(key, uri, Some(place))))
    }

    fn in_datastore(&mut self, key: &str, name: &str, inside: &str) -> Result<Option<Place>, store::Error> {
        let inside = inside.trim_end_matches('/');
        let Some(row) = self.tx.datastore(&self.workspace.name, name)? else {
            let names: Vec<String> =
                self.tx.datastores(&self.workspace.name)?.into_iter().map(|row| row.name).collect();
            self.mistake(
                key,
                format!("there is no datastore `{name}` (there are: {})", names.join(", ")),
                "create it with `peregrine datastore create`",
            );
            return Ok(None);
        };
        if self.leaves(key, inside, "datastore") {
            return Ok(None);
        }
        if datastores::is_built_in(name) {
            let container = datastores::container_of(self.workspace, name);
            let path = self.app.files.container(&self.workspace.name, &container).join(inside);
            return Ok(Some(Place::Folder { path }));
        }
        let body = serde_json::from_str(&row.body).unwrap_or_default();
        match arm::datastore::place(name, &body, inside) {
            Ok(place) => Ok(Some(place)),
            Err(why) => {
                self.mistake(key, why, "see `peregrine datastore show`");
                Ok(None)
            }
        }
    }

    /// Whether a path leads out of the thing it should lie in, which is a mistake.
    fn leaves(&mut self, key: &str, inside: &str, place: &str) -> bool {
        let leaves = Path::new(inside).components().any(|part| !matches!(part, std::path::Component::Normal(_)));
        if leaves {
            self.mistake(
                key,
                format!("`{inside}` leaves its {place}"),
                "write a path without `..` and without a leading `/`",
            );
        }
        leaves
    }

    fn in_job(&mut self, key: &str, job: &str, output: &str, inside: &str) -> Result<Option<Place>, store::Error> {
        if self.leaves(key, inside, "job") {
            return Ok(None);
        }
        let Some(row) = self.tx.job(&self.workspace.name, job)? else {
            self.mistake(key, format!("there is no job `{job}`"), "see `peregrine job list`");
            return Ok(None);
        };
        if output == "default" || output == "artifacts" {
            let path = self.app.files.artifacts(&self.workspace.name, job).join(inside);
            return Ok(self.there(key, inside, Place::Folder { path }));
        }
        let plan = self.tx.plan(row.job.seq)?.unwrap_or_default();
        let Some(found) = plan.outputs.get(output) else {
            let names: Vec<&str> = plan.outputs.keys().map(String::as_str).collect();
            self.mistake(
                key,
                format!("job `{job}` has no output `{output}` (it has: {})", names.join(", ")),
                "name one of these",
            );
            return Ok(None);
        };
        Ok(Some(match found.place.clone() {
            Place::Folder { path } if !inside.is_empty() => Place::Folder { path: path.join(inside) },
            Place::Object { url, datastore, options } if !inside.is_empty() => {
                Place::Object { url: format!("{}/{inside}", url.trim_end_matches('/')), datastore, options }
            }
            place => place,
        }))
    }

    /// An asset by reference, or an address of the outside world.
    fn elsewhere(&mut self, key: &str, uri: &str, depth: usize) -> Result<Option<Place>, store::Error> {
        if let Some(rest) = uri.strip_prefix("runs:/") {
            let (run, inside) = rest.trim_start_matches('/').split_once('/').unwrap_or((rest, ""));
            return self.in_job(key, run, "artifacts", inside);
        }
        if uri.contains("://") && !uri.starts_with("azureml://registries/") {
            return Ok(self.direct(key, uri));
        }
        for (kind, field) in [("data", "dataUri"), ("models", "modelUri")] {
            let Some(reference) = AssetRef::parse(kind, uri) else { continue };
            if self.strays(key, uri, &reference) {
                return Ok(None);
            }
            if let Some(row) = self.referred(kind, &reference)? {
                let target = body_text(&row, field).unwrap_or_default();
                return self.place(key, &target, depth + 1);
            }
        }
        let mut names = self.tx.asset_names(&self.workspace.name, "data")?;
        names.extend(self.tx.asset_names(&self.workspace.name, "models")?);
        let known = if names.is_empty() { String::new() } else { format!(" (there are: {})", names.join(", ")) };
        // An id is long, and its end is all that the user wrote.
        let named = ["data", "models"].into_iter().find_map(|kind| AssetRef::parse(kind, uri));
        let shown = named.map_or_else(|| uri.to_owned(), |reference| reference.to_string());
        self.mistake(
            key,
            format!("there is no data asset or model `{shown}`{known}"),
            "create it with `peregrine data create`",
        );
        Ok(None)
    }

    /// An address that needs no datastore.
    fn direct(&mut self, key: &str, uri: &str) -> Option<Place> {
        let scheme = uri.split("://").next().unwrap_or_default();
        match scheme {
            "http" | "https" => Some(Place::Http { url: uri.to_owned() }),
            "wasb" | "wasbs" if blob_url(uri).is_some() => blob_url(uri).map(|url| Place::Http { url }),
            "s3" | "gs" | "az" => {
                Some(Place::Object { url: uri.to_owned(), datastore: String::new(), options: BTreeMap::new() })
            }
            "file" if self.to_share => {
                let message = format!("`{uri}` is a file of the server's machine, which a registry does not take");
                self.mistake(key, message, "upload it to a datastore of the workspace, and share what is there");
                None
            }
            "file" => self.there(key, uri, Place::Folder { path: uri.trim_start_matches("file://").into() }),
            _ => {
                self.mistake(
                    key,
                    format!("`{uri}` is not an address that can be read here"),
                    "use a datastore path, an asset, `https://`, `s3://`, `gs://` or `file://`",
                );
                None
            }
        }
    }

    /// A place, if it is not a folder of this machine where nothing is.
    fn there(&mut self, key: &str, shown: &str, place: Place) -> Option<Place> {
        if !matches!(&place, Place::Folder { path } if !path.exists()) {
            return Some(place);
        }
        self.mistake(key, format!("nothing is stored at `{shown}`"), "upload it first, or correct the path");
        None
    }
}

/// `wasbs://container@account/path` as the address that anybody may read where the container is public.
fn blob_url(uri: &str) -> Option<String> {
    let (container, rest) = uri.split_once("://")?.1.split_once('@')?;
    let (account, path) = rest.split_once('/')?;
    (!container.is_empty() && !path.is_empty()).then(|| format!("https://{account}/{container}/{path}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_address_of_a_public_container_is_one_of_the_web() {
        let read = super::blob_url("wasbs://datasets@examples.blob.core.windows.net/iris/a.csv");
        assert_eq!(read.as_deref(), Some("https://examples.blob.core.windows.net/datasets/iris/a.csv"));
        assert_eq!(super::blob_url("wasbs://nobody"), None);
    }
}
