//! Workspaces, and what each holds that has no versions: datastores, compute targets, notes on blobs.

use crate::{Error, Row, Tx};
use domain::Timestamp;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub struct WorkspaceRow {
    pub name: String,
    /// A GUID, stable for the workspace's life.
    pub id: String,
    pub subscription: String,
    pub resource_group: String,
    pub body: String,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct DatastoreRow {
    pub name: String,
    pub body: String,
    pub is_default: bool,
    pub has_secret: bool,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct ComputeRow {
    pub name: String,
    pub body: String,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
}

impl Tx<'_> {
    pub fn workspace(&mut self, name: &str) -> Result<Option<WorkspaceRow>, Error> {
        let sql = "select name, id, subscription, resource_group, body, created_at, changed_at from workspaces where lower(name) = lower(?1)";
        self.fetch_one(sql, &[name.into()])?.map(workspace_of).transpose()
    }

    pub fn workspaces(&mut self) -> Result<Vec<WorkspaceRow>, Error> {
        let sql =
            "select name, id, subscription, resource_group, body, created_at, changed_at from workspaces order by name";
        self.fetch(sql, &[])?.into_iter().map(workspace_of).collect()
    }

    pub fn put_workspace(&mut self, row: &WorkspaceRow) -> Result<(), Error> {
        self.exec(
            "insert into workspaces (name, id, subscription, resource_group, body, created_at, changed_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7) on conflict (name) do update set body = ?5, changed_at = ?7",
            &[
                row.name.as_str().into(),
                row.id.as_str().into(),
                row.subscription.as_str().into(),
                row.resource_group.as_str().into(),
                row.body.as_str().into(),
                row.created_at.into(),
                row.changed_at.into(),
            ],
        )?;
        self.experiment_named(&row.name, super::DEFAULT_EXPERIMENT, row.created_at)?;
        Ok(())
    }

    /// Removes a workspace that holds no job that has not ended; its records go with it.
    pub fn delete_workspace(&mut self, name: &str) -> Result<(), Error> {
        let open = "select 1 from jobs where workspace = ?1 and phase <> 'ended' limit 1";
        if self.fetch_one(open, &[name.into()])?.is_some() {
            return Err(Error::Conflict);
        }
        for table in ["events", "job_labels", "conductors", "likenesses"] {
            let sql = format!("delete from {table} where job_seq in (select seq from jobs where workspace = ?1)");
            self.exec(&sql, &[name.into()])?;
        }
        self.purge_tracking(name)?;
        for table in OWNED {
            self.exec(&format!("delete from {table} where workspace = ?1"), &[name.into()])?;
        }
        self.exec("delete from workspaces where name = ?1", &[name.into()])?;
        Ok(())
    }

    pub fn datastore(&mut self, workspace: &str, name: &str) -> Result<Option<DatastoreRow>, Error> {
        let sql = format!("select {DATASTORE} from datastores where workspace = ?1 and name = ?2");
        self.fetch_one(&sql, &[workspace.into(), name.into()])?.map(datastore_of).transpose()
    }

    pub fn datastores(&mut self, workspace: &str) -> Result<Vec<DatastoreRow>, Error> {
        let sql = format!("select {DATASTORE} from datastores where workspace = ?1 order by is_default desc, name");
        self.fetch(&sql, &[workspace.into()])?.into_iter().map(datastore_of).collect()
    }

    /// Writes a datastore. `secret` replaces the kept credentials when given; otherwise they stay.
    pub fn put_datastore(
        &mut self,
        workspace: &str,
        row: &DatastoreRow,
        secret: Option<&BTreeMap<String, String>>,
    ) -> Result<(), Error> {
        let sealed = match secret {
            Some(secret) => {
                let text = super::jobs::json(secret)?;
                Some(self.keyring.seal(&format!("{workspace}/{}", row.name), text.as_bytes())?)
            }
            None => None,
        };
        if row.is_default {
            self.exec("update datastores set is_default = 0 where workspace = ?1", &[workspace.into()])?;
        }
        self.exec(
            "insert into datastores (workspace, name, body, secret, is_default, created_at, changed_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7) on conflict (workspace, name) \
             do update set body = ?3, secret = coalesce(?4, datastores.secret), is_default = ?5, changed_at = ?7",
            &[
                workspace.into(),
                row.name.as_str().into(),
                row.body.as_str().into(),
                sealed.map_or(crate::Value::Null, crate::Value::Blob),
                row.is_default.into(),
                row.created_at.into(),
                row.changed_at.into(),
            ],
        )?;
        Ok(())
    }

    pub fn delete_datastore(&mut self, workspace: &str, name: &str) -> Result<bool, Error> {
        let gone =
            self.exec("delete from datastores where workspace = ?1 and name = ?2", &[workspace.into(), name.into()])?;
        Ok(gone > 0)
    }

    /// The credentials of a datastore, opened. For those who may: the agent that runs a job with it.
    pub fn datastore_secret(&mut self, workspace: &str, name: &str) -> Result<BTreeMap<String, String>, Error> {
        let sql = "select secret from datastores where workspace = ?1 and name = ?2 and secret is not null";
        let Some(mut row) = self.fetch_one(sql, &[workspace.into(), name.into()])? else {
            return Ok(BTreeMap::new());
        };
        let open = self.keyring.open(&format!("{workspace}/{name}"), &row.blob(0)?)?;
        serde_json::from_slice(&open).map_err(|error| Error::Decode(error.to_string()))
    }

    pub fn compute(&mut self, workspace: &str, name: &str) -> Result<Option<ComputeRow>, Error> {
        let sql =
            "select name, body, created_at, changed_at from computes where workspace = ?1 and lower(name) = lower(?2)";
        self.fetch_one(sql, &[workspace.into(), name.into()])?.map(compute_of).transpose()
    }

    pub fn computes(&mut self, workspace: &str) -> Result<Vec<ComputeRow>, Error> {
        let sql = "select name, body, created_at, changed_at from computes where workspace = ?1 order by name";
        self.fetch(sql, &[workspace.into()])?.into_iter().map(compute_of).collect()
    }

    /// Writes a compute target. `secret` replaces the kept credentials when given; otherwise they stay.
    pub fn put_compute(
        &mut self,
        workspace: &str,
        row: &ComputeRow,
        secret: Option<&BTreeMap<String, String>>,
    ) -> Result<(), Error> {
        let sealed = match secret {
            Some(secret) => {
                let text = super::jobs::json(secret)?;
                Some(self.keyring.seal(&format!("{workspace}/computes/{}", row.name), text.as_bytes())?)
            }
            None => None,
        };
        self.exec(
            "insert into computes (workspace, name, body, secret, created_at, changed_at) values (?1, ?2, ?3, ?4, ?5, ?6) \
             on conflict (workspace, name) do update set body = ?3, secret = coalesce(?4, computes.secret), changed_at = ?6",
            &[
                workspace.into(),
                row.name.as_str().into(),
                row.body.as_str().into(),
                sealed.map_or(crate::Value::Null, crate::Value::Blob),
                row.created_at.into(),
                row.changed_at.into(),
            ],
        )?;
        self.ring(crate::Bell::Queue);
        Ok(())
    }

    /// The credentials of an attached machine, opened. For those who may: the driver that reaches it.
    pub fn compute_secret(&mut self, workspace: &str, name: &str) -> Result<BTreeMap<String, String>, Error> {
        let sql = "select secret from computes where workspace = ?1 and name = ?2 and secret is not null";
        let Some(mut row) = self.fetch_one(sql, &[workspace.into(), name.into()])? else {
            return Ok(BTreeMap::new());
        };
        let open = self.keyring.open(&format!("{workspace}/computes/{name}"), &row.blob(0)?)?;
        serde_json::from_slice(&open).map_err(|error| Error::Decode(error.to_string()))
    }

    pub fn delete_compute(&mut self, workspace: &str, name: &str) -> Result<bool, Error> {
        self.exec(
            "delete from cluster_targets where workspace = ?1 and compute = ?2",
            &[workspace.into(), name.into()],
        )?;
        Ok(self.exec("delete from computes where workspace = ?1 and name = ?2", &[workspace.into(), name.into()])? > 0)
    }

    pub fn blob_metadata(
        &mut self,
        workspace: &str,
        container: &str,
        path: &str,
    ) -> Result<BTreeMap<String, String>, Error> {
        let sql = "select body from blob_metadata where workspace = ?1 and container = ?2 and path = ?3";
        let row = self.fetch_one(sql, &[workspace.into(), container.into(), path.into()])?;
        row.map_or(Ok(BTreeMap::new()), |mut row| row.json(0))
    }

    pub fn put_blob_metadata(
        &mut self,
        workspace: &str,
        container: &str,
        path: &str,
        metadata: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let body = super::jobs::json(metadata)?;
        self.exec(
            "insert into blob_metadata (workspace, container, path, body) values (?1, ?2, ?3, ?4) \
             on conflict (workspace, container, path) do update set body = ?4",
            &[workspace.into(), container.into(), path.into(), body.into()],
        )?;
        Ok(())
    }
}

/// Tables whose rows go with their workspace and need no more than that.
const OWNED: [&str; 19] = [
    "schedules",
    "schedule_events",
    "schedule_runs",
    "jobs",
    "assets",
    "datastores",
    "computes",
    "cluster_targets",
    "records",
    "servings",
    "replicas",
    "operations",
    "roles",
    "blob_metadata",
    "deliveries",
    "leftovers",
    "spent_numbers",
    "quotas",
    "usage_hours",
];

const DATASTORE: &str = "name, body, is_default, secret is not null, created_at, changed_at";

fn workspace_of(mut row: Row) -> Result<WorkspaceRow, Error> {
    Ok(WorkspaceRow {
        name: row.text(0)?,
        id: row.text(1)?,
        subscription: row.text(2)?,
        resource_group: row.text(3)?,
        body: row.text(4)?,
        created_at: Timestamp(row.int(5)?),
        changed_at: Timestamp(row.int(6)?),
    })
}

fn datastore_of(mut row: Row) -> Result<DatastoreRow, Error> {
    Ok(DatastoreRow {
        name: row.text(0)?,
        body: row.text(1)?,
        is_default: row.int(2)? != 0,
        has_secret: row.int(3)? != 0,
        created_at: Timestamp(row.int(4)?),
        changed_at: Timestamp(row.int(5)?),
    })
}

fn compute_of(mut row: Row) -> Result<ComputeRow, Error> {
    Ok(ComputeRow {
        name: row.text(0)?,
        body: row.text(1)?,
        created_at: Timestamp(row.int(2)?),
        changed_at: Timestamp(row.int(3)?),
    })
}
