//! The kinds of records: their words in addresses, tables and messages.

use crate::{http::At, problem::Problem};
use domain::names::{DeploymentName, EndpointName, ScheduleName};
use store::RecordKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Schedule,
    OnlineEndpoint,
    OnlineDeployment,
    BatchEndpoint,
    BatchDeployment,
}

impl Kind {
    /// Its name in the table.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Kind::Schedule => "schedules",
            Kind::OnlineEndpoint => "onlineEndpoints",
            Kind::OnlineDeployment => "onlineDeployments",
            Kind::BatchEndpoint => "batchEndpoints",
            Kind::BatchDeployment => "batchDeployments",
        }
    }

    /// Its path below the workspace.
    pub(super) fn path(self, key: &RecordKey) -> String {
        match self.parent() {
            Some(parent) => format!("{}/{}/deployments/{}", parent.table(), key.parent, key.name),
            None => format!("{}/{}", self.table(), key.name),
        }
    }

    /// Its resource type, without the provider.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Kind::Schedule => "workspaces/schedules",
            Kind::OnlineEndpoint => "workspaces/onlineEndpoints",
            Kind::OnlineDeployment => "workspaces/onlineEndpoints/deployments",
            Kind::BatchEndpoint => "workspaces/batchEndpoints",
            Kind::BatchDeployment => "workspaces/batchEndpoints/deployments",
        }
    }

    pub(crate) fn noun(self) -> &'static str {
        match self {
            Kind::Schedule => "schedule",
            Kind::OnlineEndpoint => "online endpoint",
            Kind::OnlineDeployment => "online deployment",
            Kind::BatchEndpoint => "batch endpoint",
            Kind::BatchDeployment => "batch deployment",
        }
    }

    pub(super) fn called(self, key: &RecordKey) -> String {
        format!("{} `{}`", self.noun(), key.name)
    }

    pub(super) fn parent(self) -> Option<Kind> {
        match self {
            Kind::OnlineDeployment => Some(Kind::OnlineEndpoint),
            Kind::BatchDeployment => Some(Kind::BatchEndpoint),
            _ => None,
        }
    }

    pub(super) fn child(self) -> Option<Kind> {
        match self {
            Kind::OnlineEndpoint => Some(Kind::OnlineDeployment),
            Kind::BatchEndpoint => Some(Kind::BatchDeployment),
            _ => None,
        }
    }

    /// The key an address names.
    pub(crate) fn key(self, workspace: &str, at: &At) -> RecordKey {
        let (parent, name) = match self.parent() {
            Some(_) => (at.name.clone(), at.deployment.clone()),
            None => (String::new(), at.name.clone()),
        };
        RecordKey { workspace: workspace.to_owned(), kind: self.table().to_owned(), parent, name }
    }

    /// The key of the endpoint that a deployment's key stands under.
    pub(super) fn above(self, child: &RecordKey) -> RecordKey {
        RecordKey {
            workspace: child.workspace.clone(),
            kind: self.table().to_owned(),
            parent: String::new(),
            name: child.parent.clone(),
        }
    }

    pub(super) fn check_name(self, key: &RecordKey) -> Result<(), Problem> {
        let checked = match self {
            Kind::Schedule => ScheduleName::parse(&key.name).map(drop),
            Kind::OnlineEndpoint | Kind::BatchEndpoint => EndpointName::parse(&key.name).map(drop),
            Kind::OnlineDeployment | Kind::BatchDeployment => DeploymentName::parse(&key.name).map(drop),
        };
        checked.map_err(|bad| Problem::bad(bad.to_string()))
    }
}
