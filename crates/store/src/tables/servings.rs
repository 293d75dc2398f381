//! Online deployments that serve: what each is to run, how many of it, and how far it has come.
//!
//! Invariant: a row changes only from the version its writer saw; the server writes what is asked for, the controller what
//! became of it.

use crate::{Bell, Error, Row, Tx, Value, tables::jobs::json};
use domain::{
    Plan, Timestamp,
    serving::{Provisioning, ServingSettings},
};

/// Which deployment of which endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServingKey {
    pub workspace: String,
    pub endpoint: String,
    pub deployment: String,
}

#[derive(Debug, Clone)]
pub struct ServingRow {
    pub key: ServingKey,
    /// Counts the changes of its plan.
    pub generation: i64,
    /// The last generation that was seen to answer.
    pub good_generation: Option<i64>,
    pub settings: ServingSettings,
    pub target: String,
    /// The cluster of its target; [`crate::HERE`] for this machine.
    pub cluster: String,
    pub state: Provisioning,
    /// What waits for that state to settle; empty when nothing does.
    pub operation: String,
    pub begun_at: Timestamp,
    /// Replicas that ended by themselves, one after the other, and when the last did.
    pub failures: u32,
    pub failed_at: Timestamp,
    pub created_by: String,
    pub version: i64,
}

const ROW: &str = "workspace, endpoint, deployment, generation, good_generation, settings, target, cluster, state, operation, \
                   begun_at, failures, failed_at, created_by, version";

impl ServingKey {
    pub(super) fn values(&self) -> [Value; 3] {
        [&self.workspace, &self.endpoint, &self.deployment].map(|text| text.as_str().into())
    }
}

impl ServingRow {
    /// The generation its replicas are to be of: the last good one where the newest does not work.
    pub fn current(&self) -> i64 {
        match (&self.state, self.good_generation) {
            (Provisioning::Failed(_), Some(good)) => good,
            _ => self.generation,
        }
    }
}

impl Tx<'_> {
    /// Every deployment that serves, or is to, or is on its way out.
    pub fn servings(&mut self) -> Result<Vec<ServingRow>, Error> {
        let sql = format!("select {ROW} from servings order by workspace, endpoint, deployment");
        self.fetch(&sql, &[])?.into_iter().map(row_of).collect()
    }

    pub fn servings_of(&mut self, workspace: &str, endpoint: &str) -> Result<Vec<ServingRow>, Error> {
        let sql = format!("select {ROW} from servings where workspace = ?1 and endpoint = ?2 order by deployment");
        self.fetch(&sql, &[workspace.into(), endpoint.into()])?.into_iter().map(row_of).collect()
    }

    pub fn serving(&mut self, key: &ServingKey) -> Result<Option<ServingRow>, Error> {
        let sql = format!("select {ROW} from servings where workspace = ?1 and endpoint = ?2 and deployment = ?3");
        self.fetch_one(&sql, &key.values())?.map(row_of).transpose()
    }

    /// What replicas of a generation run, where that is the newest or the last good one.
    pub fn serving_plan(&mut self, key: &ServingKey, generation: i64) -> Result<Option<Plan>, Error> {
        let [workspace, endpoint, deployment] = key.values();
        let sql = "select case when generation = ?4 then plan else good_plan end from servings \
                   where workspace = ?1 and endpoint = ?2 and deployment = ?3 and (generation = ?4 or good_generation = ?4)";
        let row = self.fetch_one(sql, &[workspace, endpoint, deployment, generation.into()])?;
        row.map(|mut row| row.json(0)).transpose()
    }

    /// Adds a deployment with its plan; `Exists` when it is there.
    pub fn insert_serving(&mut self, row: &ServingRow, plan: &Plan) -> Result<(), Error> {
        let [workspace, endpoint, deployment] = row.key.values();
        self.exec(
            "insert into servings (workspace, endpoint, deployment, generation, plan, settings, target, cluster, state, \
             operation, begun_at, created_by) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            &[
                workspace,
                endpoint,
                deployment,
                row.generation.into(),
                json(plan)?.into(),
                json(&row.settings)?.into(),
                row.target.as_str().into(),
                row.cluster.as_str().into(),
                json(&row.state)?.into(),
                row.operation.as_str().into(),
                row.begun_at.into(),
                row.created_by.as_str().into(),
            ],
        )?;
        self.ring(Bell::Serving);
        Ok(())
    }

    /// Writes a deployment over the version it was read at, with a new plan where there is one.
    pub fn put_serving(&mut self, row: &ServingRow, plan: Option<&Plan>) -> Result<(), Error> {
        let [workspace, endpoint, deployment] = row.key.values();
        let changed = self.exec(
            "update servings set generation = ?4, plan = coalesce(?5, plan), settings = ?6, target = ?7, cluster = ?8, \
             state = ?9, operation = ?10, begun_at = ?11, failures = ?12, failed_at = ?13, version = version + 1 \
             where workspace = ?1 and endpoint = ?2 and deployment = ?3 and version = ?14",
            &[
                workspace,
                endpoint,
                deployment,
                row.generation.into(),
                plan.map(json).transpose()?.into(),
                json(&row.settings)?.into(),
                row.target.as_str().into(),
                row.cluster.as_str().into(),
                json(&row.state)?.into(),
                row.operation.as_str().into(),
                row.begun_at.into(),
                i64::from(row.failures).into(),
                row.failed_at.into(),
                row.version.into(),
            ],
        )?;
        if changed == 0 {
            return Err(Error::Conflict);
        }
        self.ring(Bell::Serving);
        Ok(())
    }

    /// Its newest plan is the one to fall back on from now on.
    pub fn serving_is_good(&mut self, key: &ServingKey) -> Result<(), Error> {
        self.exec(
            "update servings set good_generation = generation, good_plan = plan \
             where workspace = ?1 and endpoint = ?2 and deployment = ?3",
            &key.values(),
        )?;
        Ok(())
    }

    /// Forgets a deployment that has no replica any more, and the logs of those it had.
    pub fn delete_serving(&mut self, key: &ServingKey) -> Result<(), Error> {
        self.drop_replicas(key, 0)?;
        self.exec("delete from servings where workspace = ?1 and endpoint = ?2 and deployment = ?3", &key.values())?;
        self.ring(Bell::Serving);
        Ok(())
    }
}

fn row_of(mut row: Row) -> Result<ServingRow, Error> {
    Ok(ServingRow {
        key: ServingKey { workspace: row.text(0)?, endpoint: row.text(1)?, deployment: row.text(2)? },
        generation: row.int(3)?,
        good_generation: row.maybe_int(4)?,
        settings: row.json(5)?,
        target: row.text(6)?,
        cluster: row.text(7)?,
        state: row.json(8)?,
        operation: row.text(9)?,
        begun_at: Timestamp(row.int(10)?),
        failures: u32::try_from(row.int(11)?).unwrap_or(u32::MAX),
        failed_at: Timestamp(row.int(12)?),
        created_by: row.text(13)?,
        version: row.int(14)?,
    })
}
