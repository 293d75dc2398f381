//! Where resources go: to the server, or onto paper with `--dry-run`.
//!
//! Whatever makes a resource asks here for what it needs from elsewhere: the id of uploaded code, the address of
//! uploaded data, the next version. Invariant: on paper nothing is sent, asked or started, and the same resources
//! come out in the same order.

use crate::{
    commands::{Context, Session, settle},
    failure::{Done, Failure},
    upload::{data_address, outline, segment, upload_code, upload_data},
};
use api::{ClientError, arm::Scope};
use serde_json::{Value, json};
use std::{cell::RefCell, path::Path};

/// The place of a workspace that nobody has asked about.
const LOCATION: &str = "local";
/// Where uploads go when nobody says otherwise.
const STORE: &str = "workspaceblobstore";

/// The way out for resources.
pub(crate) struct Post<'a> {
    pub(crate) scope: Scope,
    context: &'a Context,
    way: Way<'a>,
}

enum Way<'a> {
    Live(Box<Session<'a>>),
    Paper(RefCell<Vec<Value>>),
}

impl<'a> Post<'a> {
    /// On paper with `dry`, else to the server.
    pub(crate) async fn open(context: &'a Context, dry: bool) -> Done<Post<'a>> {
        let (scope, way) = match dry {
            true => (context.config.scope(), Way::Paper(RefCell::default())),
            false => {
                let session = context.session().await?;
                (session.scope.clone(), Way::Live(Box::new(session)))
            }
        };
        Ok(Post { scope, context, way })
    }

    /// To a server already found.
    pub(crate) fn over(session: Session<'a>) -> Post<'a> {
        Post { scope: session.scope.clone(), context: session.context, way: Way::Live(Box::new(session)) }
    }

    /// The server, unless this is on paper.
    pub(crate) fn session(&self) -> Option<&Session<'a>> {
        match &self.way {
            Way::Live(session) => Some(session),
            Way::Paper(_) => None,
        }
    }

    pub(crate) fn into_session(self) -> Option<Session<'a>> {
        match self.way {
            Way::Live(session) => Some(*session),
            Way::Paper(_) => None,
        }
    }

    /// Puts a resource of the workspace; answers it as kept.
    pub(crate) async fn put(&self, rest: &str, body: &Value) -> Done<Value> {
        self.put_at(&format!("{}/{rest}", self.scope.path()), body, true).await
    }

    /// Puts a resource anywhere, and waits until it is settled where that is wanted.
    pub(crate) async fn put_at(&self, path: &str, body: &Value, wait: bool) -> Done<Value> {
        match &self.way {
            Way::Live(session) => settle::put(session, path, body, wait).await,
            Way::Paper(sheet) => {
                sheet.borrow_mut().push(json!({"method": "PUT", "path": path, "body": masked("", body)}));
                let mut kept = body.clone();
                kept["id"] = json!(path);
                kept["name"] = json!(path.rsplit('/').next());
                Ok(kept)
            }
        }
    }

    /// The id of a code asset with this folder's content.
    pub(crate) async fn code(&self, folder: &Path) -> Done<String> {
        match &self.way {
            Way::Live(session) => upload_code(&session.uploader(), folder).await,
            Way::Paper(_) => {
                let (body, hash) = outline(folder)?;
                // The hash stands for the name that the server would have the code under.
                let made = self.put(&format!("codes/{}/versions/1", &hash[..32]), &body).await?;
                Ok(made["id"].as_str().unwrap_or_default().to_owned())
            }
        }
    }

    /// The address of this file or folder in a datastore, the default one where none is named.
    pub(crate) async fn data(&self, path: &Path, datastore: Option<&str>) -> Done<String> {
        match &self.way {
            Way::Live(session) => upload_data(&session.uploader(), path, datastore).await,
            Way::Paper(_) => {
                let name = datastore.map_or(STORE, |name| name.strip_prefix("azureml:").unwrap_or(name));
                data_address(path, name)
            }
        }
    }

    /// A resource, or `None`; on paper there is none.
    pub(crate) async fn find(&self, rest: &str) -> Done<Option<Value>> {
        match &self.way {
            Way::Live(session) => session.find(&session.path(rest)).await,
            Way::Paper(_) => Ok(None),
        }
    }

    /// A reference to an asset as the id it stands for; of a label, the version that has it now.
    pub(crate) async fn resolve(&self, kind: &str, text: &str) -> Done<String> {
        let resolved = self.scope.resolve(kind, text);
        let label = text.strip_prefix("azureml:").and_then(|rest| rest.strip_suffix("@latest"));
        let Some(name) = label.filter(|name| !name.contains('/')) else { return Ok(resolved) };
        let container = self.find(&format!("{kind}/{}", segment(name))).await?;
        let latest = container.and_then(|found| api::arm::text(&found["properties"], "latestVersion"));
        // What is not here may be one of the curated ones, which the server knows by their label.
        Ok(latest.map_or(resolved, |version| self.scope.asset(kind, name, &version)))
    }

    /// The version after the last of this asset.
    pub(crate) async fn next_version(&self, kind: &str, name: &str) -> Done<String> {
        let container = self.find(&format!("{kind}/{name}")).await?;
        let next = container.and_then(|found| api::arm::text(&found["properties"], "nextVersion"));
        Ok(next.unwrap_or_else(|| "1".to_owned()))
    }

    /// Where the workspace is.
    pub(crate) async fn location(&self) -> Done<String> {
        match &self.way {
            Way::Live(session) => {
                let workspace: Result<Value, ClientError> = session.client.get(&session.scope.path()).await;
                Ok(workspace?["location"].as_str().unwrap_or(LOCATION).to_owned())
            }
            Way::Paper(_) => Ok(LOCATION.to_owned()),
        }
    }

    /// Prints what is on paper: every resource with its path, in the order in which it would be sent.
    pub(crate) fn shown(&self) -> Done<bool> {
        match &self.way {
            Way::Live(_) => Ok(false),
            Way::Paper(sheet) => {
                self.context.output.sheet(Value::Array(sheet.borrow().clone()))?;
                Ok(true)
            }
        }
    }
}

/// Keys whose values are nobody's to see, not even on the screen of whoever wrote them down.
const SECRETS: &[&str] = &[
    "adminUserPassword",
    "password",
    "privateKeyData",
    "key",
    "sasToken",
    "clientSecret",
    "certificate",
    "secretAccessKey",
    "accessKeyId",
    "serviceAccountKey",
];

/// The body without its secrets.
fn masked(key: &str, value: &Value) -> Value {
    match value {
        Value::Object(map) if key == "secrets" => {
            map.keys().map(|key| (key.clone(), json!(if key == "secretsType" { "" } else { "(not shown)" }))).collect()
        }
        Value::Object(map) => map.iter().map(|(key, inner)| (key.clone(), masked(key, inner))).collect(),
        Value::Array(items) => items.iter().map(|item| masked("", item)).collect(),
        Value::String(_) if SECRETS.contains(&key) => json!("(not shown)"),
        other => other.clone(),
    }
}

/// A reference that should have been made before.
pub(crate) fn missing(what: &str) -> Failure {
    Failure::input(format!("the file has no `{what}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_put_on_paper() {
        let body = json!({"properties": {
            "credentials": {"credentialsType": "AccountKey", "secrets": {"key": "s3cr3t"}},
            "userAccountCredentials": {"adminUserName": "me", "adminUserPassword": "s3cr3t"},
        }});
        let shown = masked("", &body);
        assert!(!shown.to_string().contains("s3cr3t"), "{shown}");
        assert_eq!(shown["properties"]["userAccountCredentials"]["adminUserName"], "me");
    }
}
