//! Registries: assets that workspaces share.
//!
//! A registry owns assets and files as a workspace does, under its name with `@` before it, which no workspace can have.
//! Invariants: the registry `azureml` is shipped, always there and never changed; what is shared is a copy of its own.

mod resources;
mod share;

pub(crate) use resources::{delete, discovery, list, patch, put, show};
pub(crate) use share::import;

use super::At;
use crate::{app::App, problem::Problem};
use domain::Timestamp;
use serde_json::Value;
use store::{RecordKey, RecordRow, WorkspaceRow};

/// The registry of the environments that are shipped.
pub(crate) const SHIPPED: &str = "azureml";
const KIND: &str = "registries";
/// Stands in an address before a registry and one of its containers, in one part: clients take the first part of an
/// address for the container.
const FILES: &str = "blobs~";

/// The owner under which a registry's assets are kept; no workspace can have such a name.
pub(crate) fn owner(registry: &str) -> String {
    format!("@{registry}")
}

/// A registry as what owns assets.
pub(crate) async fn as_owner(app: &App, registry: &str) -> Result<WorkspaceRow, Problem> {
    let wanted = registry.to_owned();
    let (row, names) =
        app.store.read(move |tx| Ok((tx.record(&key(&wanted))?, tx.record_names("", KIND, "")?))).await?;
    match row {
        Some(row) => Ok(owner_of(app, &row)),
        None if registry == SHIPPED => Ok(owner_of(app, &shipped())),
        None => Err(Problem::missing("registry", registry, &[names, vec![SHIPPED.to_owned()]].concat())),
    }
}

fn owner_of(app: &App, row: &RecordRow) -> WorkspaceRow {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let word = |key: &str, usual: &str| body["peregrine"][key].as_str().unwrap_or(usual).to_owned();
    WorkspaceRow {
        name: owner(&row.key.name),
        id: word("id", "00000000-0000-4000-a000-000000000000"),
        subscription: word("subscription", &app.settings.subscription),
        resource_group: word("group", &app.settings.resource_group),
        body: row.body.clone(),
        created_at: row.created_at,
        changed_at: row.changed_at,
    }
}

/// Whether what an address names may be changed: what is shipped may not.
pub(crate) fn may_change(at: &At) -> Result<(), Problem> {
    match at.registry == SHIPPED {
        true => Err(Problem::conflict(format!(
            "registry `{SHIPPED}` is shipped with the server and stays as it is; make a registry of your own"
        ))),
        false => Ok(()),
    }
}

/// The path of a container of a registry.
pub(crate) fn container_path(registry: &str, container: &str) -> String {
    format!("/{FILES}{registry}~{container}")
}

/// The container that an address in a registry's files names.
pub(crate) fn container_in(app: &App, registry: &str, uri: &str) -> Option<String> {
    let path = [&app.outside, app.url.as_str()].iter().find_map(|url| uri.strip_prefix(*url))?;
    let rest = path.strip_prefix(&format!("/{FILES}{registry}~"))?;
    let container = rest.split(['/', '?']).next().unwrap_or(rest);
    (!container.is_empty()).then(|| container.to_owned())
}

/// The path of a blob in the form all blobs have, from the form registries give their clients.
pub(crate) fn long_path(path: &str) -> Option<String> {
    let rest = path.strip_prefix('/')?.strip_prefix(FILES)?;
    let (first, tail) = rest.split_once('/').map_or((rest, ""), |(first, tail)| (first, tail));
    let (registry, container) = first.split_once('~')?;
    let slash = if tail.is_empty() && !rest.ends_with('/') { "" } else { "/" };
    Some(format!("/blob/@{registry}.blob.{}/{container}{slash}{tail}", super::blobs::ENDPOINT))
}

fn key(name: &str) -> RecordKey {
    RecordKey { workspace: String::new(), kind: KIND.into(), parent: String::new(), name: name.into() }
}

fn shipped() -> RecordRow {
    RecordRow {
        key: key(SHIPPED),
        body: r#"{"properties": {"description": "environments that are shipped with the server"}}"#.into(),
        archived: false,
        created_by: "peregrine".into(),
        created_at: Timestamp(0),
        changed_at: Timestamp(0),
        version: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registrys_address_is_a_blobs_address_in_one_part() {
        for (short, long) in [
            ("/blobs~r~snap-1/a/b.txt", "/blob/@r.blob.core.peregrine.local/snap-1/a/b.txt"),
            ("/blobs~r_1~c", "/blob/@r_1.blob.core.peregrine.local/c"),
        ] {
            let endpoint = crate::http::blobs::ENDPOINT;
            assert_eq!(long_path(short), Some(long.replace("core.peregrine.local", endpoint)));
        }
        for other in ["/blob/x/y", "/blob/w.blob.peregrine.local/c/d/blobs~a~b/file.txt", "/x/blobs~a~b"] {
            assert_eq!(long_path(other), None, "{other}");
        }
    }
}
