//! Kubernetes clusters and the compute targets that lie on them.
//!
//! Invariants: a cluster's token is good for one generation; a target is called good only by a check that was made of it
//! as it is now; of a cluster that is heard of there is one sample a minute.

use crate::{Bell, Error, Row, Tx, tables::jobs::json};
use domain::{
    Timestamp,
    cluster::{ClusterFacts, ClusterSample, ClusterTarget, Finding},
};
use std::time::Duration;

/// A cluster, without the facts, which are many where it is large.
#[derive(Debug, Clone)]
pub struct ClusterRow {
    pub name: String,
    pub generation: i64,
    /// What the operator calls the facts it last told.
    pub digest: String,
    /// `None` before it was first heard of.
    pub seen_at: Option<Timestamp>,
    /// How far its clock is ahead of the server's.
    pub skew_ms: i64,
    pub created_at: Timestamp,
}

/// A compute target on a cluster.
#[derive(Debug, Clone)]
pub struct TargetRow {
    pub workspace: String,
    pub cluster: String,
    pub target: ClusterTarget,
    pub state: TargetState,
    pub findings: Vec<Finding>,
    pub check_id: String,
    /// What a client asks after while the check is made.
    pub operation: String,
    pub checked_at: Timestamp,
}

/// What became of a target's checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetState {
    Creating,
    Succeeded,
    Failed,
}

/// Samples of a cluster are this far apart.
const SAMPLE_MS: i64 = 60_000;

const CLUSTER: &str = "name, generation, digest, seen_at, skew_ms, created_at";
const TARGET: &str = "workspace, cluster, body, state, findings, check_id, operation, checked_at";

/// The name under which a place is known that a steward looks after; no cluster can be called so.
pub fn site_name(workspace: &str, compute: &str) -> String {
    format!("@{workspace}/{compute}")
}

impl ClusterRow {
    /// Whether this is one target that a steward looks after, and no cluster that somebody registered.
    pub fn is_site(&self) -> bool {
        self.name.starts_with('@')
    }

    /// The workspace of such a target.
    pub fn workspace(&self) -> Option<&str> {
        self.name.strip_prefix('@')?.split('/').next()
    }

    /// Its name for people: of a place, the target's.
    pub fn shown(&self) -> &str {
        match self.is_site() {
            true => self.name.rsplit('/').next().unwrap_or(&self.name),
            false => &self.name,
        }
    }

    /// Whether it was heard of in the last `silent_ms`.
    pub fn answers(&self, now: Timestamp, silent_ms: i64) -> bool {
        self.seen_at.is_some_and(|seen| now.0 - seen.0 < silent_ms)
    }

    /// When it was last heard of, in words.
    pub fn last_heard(&self, now: Timestamp) -> String {
        let what = if self.is_site() { "machine" } else { "cluster" };
        let name = self.shown();
        match self.seen_at {
            Some(seen) => format!("{what} `{name}` was last heard of {} ago", about(now.since(seen))),
            None => format!("{what} `{name}` was never heard of"),
        }
    }
}

impl TargetState {
    pub fn as_str(self) -> &'static str {
        match self {
            TargetState::Creating => "Creating",
            TargetState::Succeeded => "Succeeded",
            TargetState::Failed => "Failed",
        }
    }

    fn parse(text: &str) -> Result<TargetState, Error> {
        let all = [TargetState::Creating, TargetState::Succeeded, TargetState::Failed];
        let found = all.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| Error::Decode(format!("`{text}` is not the state of a target")))
    }
}

impl TargetRow {
    /// What stands in the way, in one line; empty when every check passed.
    pub fn complaints(&self) -> String {
        let failed = self.findings.iter().filter(|finding| !finding.passed);
        failed.map(|finding| format!("{}: {}", finding.check, finding.detail)).collect::<Vec<_>>().join("; ")
    }
}

impl Tx<'_> {
    /// Registers a cluster, or gives one that is there a new token; the token's generation. What was told by whoever held
    /// the old one is forgotten, for it may have been another cluster.
    pub fn renew_cluster(&mut self, name: &str, now: Timestamp) -> Result<i64, Error> {
        let row = self.fetch_one(
            "insert into clusters (name, generation, created_at) values (?1, 1, ?2) \
             on conflict (name) do update set generation = clusters.generation + 1, digest = '', facts = '{}', seen_at = 0 \
             returning generation",
            &[name.into(), now.into()],
        )?;
        row.map_or(Err(Error::Conflict), |mut row| row.int(0))
    }

    pub fn cluster(&mut self, name: &str) -> Result<Option<ClusterRow>, Error> {
        let sql = format!("select {CLUSTER} from clusters where name = ?1");
        self.fetch_one(&sql, &[name.into()])?.map(cluster_of).transpose()
    }

    pub fn clusters(&mut self) -> Result<Vec<ClusterRow>, Error> {
        let sql = format!("select {CLUSTER} from clusters order by name");
        self.fetch(&sql, &[])?.into_iter().map(cluster_of).collect()
    }

    pub fn delete_cluster(&mut self, name: &str) -> Result<bool, Error> {
        self.exec("delete from data_kept where cluster = ?1", &[name.into()])?;
        self.exec("delete from samples where node = ?1", &[sampled_as(name).into()])?;
        Ok(self.exec("delete from clusters where name = ?1", &[name.into()])? > 0)
    }

    /// Notes that a cluster's operator was heard of.
    pub fn see_cluster(&mut self, name: &str, skew_ms: i64, now: Timestamp) -> Result<(), Error> {
        self.exec(
            "update clusters set seen_at = ?2, skew_ms = ?3 where name = ?1",
            &[name.into(), now.into(), skew_ms.into()],
        )?;
        self.sample_cluster(name, Timestamp(now.0 - now.0.rem_euclid(SAMPLE_MS)))?;
        self.ring(Bell::Queue);
        Ok(())
    }

    /// Writes down how full the cluster is, unless that was done for this minute.
    fn sample_cluster(&mut self, name: &str, at: Timestamp) -> Result<(), Error> {
        let key = sampled_as(name);
        let taken = "select 1 from samples where node = ?1 and at = ?2";
        if self.fetch_one(taken, &[key.as_str().into(), at.into()])?.is_some() {
            return Ok(());
        }
        let facts = self.facts(name)?;
        let mut jobs = |phases: &str| {
            let sql = format!("select count(*) from jobs where phase in ({phases}) and cluster = ?1");
            let count = self.fetch_one(&sql, &[name.into()])?.map_or(Ok(0), |mut row| row.int(0))?;
            Ok::<_, Error>(count.unsigned_abs())
        };
        let sample = ClusterSample {
            at,
            nodes: facts.nodes.len(),
            ready: facts.nodes.iter().filter(|node| node.ready).count(),
            room: facts.room(),
            running: jobs("'preparing', 'running', 'finalizing', 'stopping'")?,
            waiting: jobs("'queued', 'placed'")?,
        };
        self.exec(
            "insert into samples (node, at, body) values (?1, ?2, ?3) on conflict do nothing",
            &[key.into(), at.into(), json(&sample)?.into()],
        )?;
        Ok(())
    }

    /// How full a cluster was since an instant, minute by minute, oldest first.
    pub fn cluster_samples(&mut self, name: &str, from: Timestamp) -> Result<Vec<ClusterSample>, Error> {
        let sql = "select body from samples where node = ?1 and at >= ?2 order by at";
        let rows = self.fetch(sql, &[sampled_as(name).into(), from.into()])?;
        rows.into_iter().map(|mut row| row.json(0)).collect()
    }

    /// What the cluster's operator last told of it; nothing before it was first heard of.
    pub fn facts(&mut self, name: &str) -> Result<ClusterFacts, Error> {
        let sql = "select facts from clusters where name = ?1 and facts <> '{}'";
        let row = self.fetch_one(sql, &[name.into()])?;
        row.map_or(Ok(ClusterFacts::default()), |mut row| row.json(0))
    }

    pub fn put_facts(&mut self, name: &str, digest: &str, facts: &ClusterFacts) -> Result<(), Error> {
        self.exec(
            "update clusters set digest = ?2, facts = ?3 where name = ?1",
            &[name.into(), digest.into(), json(facts)?.into()],
        )?;
        Ok(())
    }

    pub fn put_target(&mut self, row: &TargetRow) -> Result<(), Error> {
        self.exec(
            "insert into cluster_targets (workspace, compute, cluster, body, state, findings, check_id, operation, checked_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) on conflict (workspace, compute) do update set \
             cluster = ?3, body = ?4, state = ?5, findings = ?6, check_id = ?7, operation = ?8, checked_at = ?9",
            &[
                row.workspace.as_str().into(),
                row.target.compute.as_str().into(),
                row.cluster.as_str().into(),
                json(&row.target)?.into(),
                row.state.as_str().into(),
                json(&row.findings)?.into(),
                row.check_id.as_str().into(),
                row.operation.as_str().into(),
                row.checked_at.into(),
            ],
        )?;
        self.ring(Bell::Clusters);
        Ok(())
    }

    pub fn target(&mut self, workspace: &str, compute: &str) -> Result<Option<TargetRow>, Error> {
        let sql = format!("select {TARGET} from cluster_targets where workspace = ?1 and lower(compute) = lower(?2)");
        self.fetch_one(&sql, &[workspace.into(), compute.into()])?.map(target_of).transpose()
    }

    /// The targets of a workspace that lie on clusters.
    pub fn targets(&mut self, workspace: &str) -> Result<Vec<TargetRow>, Error> {
        let sql = format!("select {TARGET} from cluster_targets where workspace = ?1 order by compute");
        self.fetch(&sql, &[workspace.into()])?.into_iter().map(target_of).collect()
    }

    /// The targets on a cluster, of whichever workspace.
    pub fn targets_on(&mut self, cluster: &str) -> Result<Vec<TargetRow>, Error> {
        let sql = format!("select {TARGET} from cluster_targets where cluster = ?1 order by workspace, compute");
        self.fetch(&sql, &[cluster.into()])?.into_iter().map(target_of).collect()
    }

    /// Targets whose check was asked for before an instant and is still under way.
    pub fn overdue_targets(&mut self, before: Timestamp) -> Result<Vec<TargetRow>, Error> {
        let sql = format!("select {TARGET} from cluster_targets where state = 'Creating' and checked_at < ?1");
        self.fetch(&sql, &[before.into()])?.into_iter().map(target_of).collect()
    }

    /// Writes down what a check found and, where it is `done`, what becomes of the target and of whoever waits for it.
    pub fn put_findings(
        &mut self,
        mut row: TargetRow,
        findings: Vec<Finding>,
        done: bool,
        now: Timestamp,
    ) -> Result<(), Error> {
        row.findings = findings;
        if !done {
            return self.put_target(&row);
        }
        let complaints = row.complaints();
        row.state = if complaints.is_empty() { TargetState::Succeeded } else { TargetState::Failed };
        let error = (!complaints.is_empty()).then(|| {
            let message = format!("compute target `{}` is not fit for work: {complaints}", row.target.compute);
            serde_json::json!({"code": "ChecksFailed", "message": message, "details": []}).to_string()
        });
        self.put_target(&row)?;
        self.end_operation(&row.operation, error.as_deref(), now)
    }

    /// Names of jobs of a target that have not ended, oldest first.
    pub fn open_jobs_of(&mut self, workspace: &str, target: &str) -> Result<Vec<(i64, String)>, Error> {
        let rows = self.fetch(
            "select seq, name from jobs where phase in ('queued', 'placed', 'preparing', 'running', 'finalizing', 'stopping') \
             and cluster <> '' and workspace = ?1 and lower(target) = lower(?2) order by seq",
            &[workspace.into(), target.into()],
        )?;
        rows.into_iter().map(|mut row| Ok((row.int(0)?, row.text(1)?))).collect()
    }
}

/// The name that samples of a cluster are kept under; no machine and no attempt has one like it.
fn sampled_as(cluster: &str) -> String {
    format!("cluster:{cluster}")
}

/// About how long, so that what is said of it does not change all the time.
fn about(duration: Duration) -> String {
    match duration.as_secs() / 60 {
        0 => "less than a minute".to_owned(),
        minutes if minutes < 120 => format!("{minutes} min"),
        minutes => format!("{} h", minutes / 60),
    }
}

fn cluster_of(mut row: Row) -> Result<ClusterRow, Error> {
    let seen_at = row.int(3)?;
    Ok(ClusterRow {
        name: row.text(0)?,
        generation: row.int(1)?,
        digest: row.text(2)?,
        seen_at: (seen_at > 0).then_some(Timestamp(seen_at)),
        skew_ms: row.int(4)?,
        created_at: Timestamp(row.int(5)?),
    })
}

fn target_of(mut row: Row) -> Result<TargetRow, Error> {
    Ok(TargetRow {
        workspace: row.text(0)?,
        cluster: row.text(1)?,
        target: row.json(2)?,
        state: TargetState::parse(&row.text(3)?)?,
        findings: row.json(4)?,
        check_id: row.text(5)?,
        operation: row.text(6)?,
        checked_at: Timestamp(row.int(7)?),
    })
}
