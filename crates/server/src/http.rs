//! One file a noun; each handler in four steps: who, may they, do it, show it.

pub(crate) mod agents;
pub(crate) mod artifacts;
pub(crate) mod assets;
pub(crate) mod blobs;
pub(crate) mod change;
pub(crate) mod clusters;
pub(crate) mod computes;
pub(crate) mod datastores;
pub(crate) mod history;
pub(crate) mod identity;
pub(crate) mod jobs;
pub(crate) mod machines;
pub(crate) mod meta;
pub(crate) mod metrics;
pub(crate) mod mlflow;
pub(crate) mod operations;
pub(crate) mod paging;
pub(crate) mod principals;
pub(crate) mod records;
pub(crate) mod registries;
pub(crate) mod routers;
pub(crate) mod services;
pub(crate) mod sharing;
pub(crate) mod studio;
pub(crate) mod views;
pub(crate) mod workspaces;

use crate::problem::Problem;
use axum::{
    extract::{FromRequest, Request},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use std::collections::HashMap;

/// The names in a path.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct At {
    #[serde(default)]
    pub(crate) subscription: String,
    #[serde(default)]
    pub(crate) group: String,
    #[serde(default)]
    pub(crate) workspace: String,
    #[serde(default)]
    pub(crate) registry: String,
    #[serde(default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) path: String,
    /// A deployment below an endpoint.
    #[serde(default)]
    pub(crate) deployment: String,
    /// An operation, or a tunnel.
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) experiment: String,
    #[serde(default)]
    pub(crate) node: String,
    #[serde(default)]
    pub(crate) attempt: String,
    #[serde(default)]
    pub(crate) service: String,
}

impl At {
    /// Whose assets: the workspace of the address, or its registry.
    pub(crate) fn owner(&self) -> String {
        if self.registry.is_empty() { self.workspace.clone() } else { registries::owner(&self.registry) }
    }

    /// The same subscription and group, and nothing more.
    pub(crate) fn place(&self) -> At {
        At { subscription: self.subscription.clone(), group: self.group.clone(), ..At::default() }
    }
}

/// Query parameters, however spelled.
pub(crate) type Asked = axum::extract::Query<HashMap<String, String>>;

/// `listViewType` as an archive filter.
pub(crate) fn archived(asked: &HashMap<String, String>) -> Option<bool> {
    match asked.get("listViewType").map(String::as_str) {
        Some("All") => None,
        Some("ArchivedOnly") => Some(true),
        _ => Some(false),
    }
}

/// A JSON body; a broken one is told in the envelope every other error has.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: serde::de::DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let bytes = axum::body::Bytes::from_request(request, state).await.map_err(|rejected| {
            let status = rejected.status();
            Problem::new(status, "BadBody", format!("the body cannot be read: {}", rejected.body_text()))
                .into_response()
        })?;
        // Every body here is an object; a list would pass for one that says nothing.
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|first| *first != b'{') {
            return Err(Problem::bad("the body is not a JSON object").into_response());
        }
        serde_json::from_slice(&bytes).map(Body).map_err(|error| {
            Problem::bad(format!("the body is not the JSON that is wanted here: {error}")).into_response()
        })
    }
}
