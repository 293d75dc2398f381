//! Replicas of deployments: where they answer, and whether they may be asked. What runs them is a job that no list shows.
//!
//! Invariant: a replica is asked only while its job runs, it said that it is ready, and nobody takes it away.

use super::{ServingKey, purge::RUN_FOLDER};
use crate::{Bell, Error, Row, Tx};
use domain::{JobState, Timestamp};
use std::net::SocketAddr;

/// The kind of the jobs that run replicas.
pub const REPLICA: &str = "replica";

#[derive(Debug, Clone)]
pub struct ReplicaRow {
    /// Of its job.
    pub seq: i64,
    /// Of its job.
    pub name: String,
    pub key: ServingKey,
    pub generation: i64,
    pub address: Option<SocketAddr>,
    pub ready: bool,
    /// When it first was.
    pub ready_at: Option<Timestamp>,
    /// Since when no router is to use it.
    pub draining_at: Option<Timestamp>,
    pub gone_at: Option<Timestamp>,
    pub state: JobState,
    /// What it is busy with, in words.
    pub note: String,
    pub created_at: Timestamp,
}

const ROW: &str = "r.job_seq, j.name, r.workspace, r.endpoint, r.deployment, r.generation, r.address, r.ready, r.ready_at, \
                   r.draining_at, r.gone_at, j.state, j.note, j.created_at";

impl ReplicaRow {
    /// Where routers may send requests, if they may.
    pub fn takes_requests(&self) -> Option<SocketAddr> {
        let runs = matches!(self.state, JobState::Running { .. });
        self.address.filter(|_| self.ready && runs && self.draining_at.is_none())
    }
}

impl Tx<'_> {
    /// Every replica that is not gone, oldest first.
    pub fn replicas(&mut self) -> Result<Vec<ReplicaRow>, Error> {
        let sql = format!(
            "select {ROW} from replicas r join jobs j on j.seq = r.job_seq where r.gone_at is null order by r.job_seq"
        );
        self.fetch(&sql, &[])?.into_iter().map(row_of).collect()
    }

    /// The replicas of a deployment, newest first; the last few that are gone as well.
    pub fn replicas_of(&mut self, key: &ServingKey) -> Result<Vec<ReplicaRow>, Error> {
        let sql = format!(
            "select {ROW} from replicas r join jobs j on j.seq = r.job_seq \
             where r.workspace = ?1 and r.endpoint = ?2 and r.deployment = ?3 order by r.job_seq desc"
        );
        self.fetch(&sql, &key.values())?.into_iter().map(row_of).collect()
    }

    pub fn insert_replica(&mut self, seq: i64, key: &ServingKey, generation: i64) -> Result<(), Error> {
        let [workspace, endpoint, deployment] = key.values();
        self.exec(
            "insert into replicas (job_seq, workspace, endpoint, deployment, generation) values (?1, ?2, ?3, ?4, ?5)",
            &[seq.into(), workspace, endpoint, deployment, generation.into()],
        )?;
        self.ring(Bell::Serving);
        Ok(())
    }

    /// What a replica says of itself. A replica that says nothing of its address keeps it.
    pub fn put_ready(
        &mut self,
        seq: i64,
        address: Option<SocketAddr>,
        ready: bool,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.exec(
            "update replicas set address = coalesce(?2, address), ready = ?3, \
             ready_at = coalesce(ready_at, ?4) where job_seq = ?1",
            &[seq.into(), address.map(|address| address.to_string()).into(), ready.into(), ready.then_some(now).into()],
        )?;
        self.ring(Bell::Serving);
        Ok(())
    }

    /// No router is to use it from now on.
    pub fn drain_replica(&mut self, seq: i64, now: Timestamp) -> Result<(), Error> {
        self.exec(
            "update replicas set draining_at = coalesce(draining_at, ?2) where job_seq = ?1",
            &[seq.into(), now.into()],
        )?;
        self.ring(Bell::Serving);
        Ok(())
    }

    /// A replica has ended. So many of those that are gone keep their logs.
    pub fn replica_is_gone(&mut self, row: &ReplicaRow, keep: usize, now: Timestamp) -> Result<(), Error> {
        self.exec("update replicas set gone_at = ?2, ready = 0 where job_seq = ?1", &[row.seq.into(), now.into()])?;
        self.ring(Bell::Serving);
        self.drop_replicas(&row.key, keep)
    }

    /// Forgets all but the newest `keep` of a deployment's replicas that are gone, with their jobs and, in time, folders.
    pub(super) fn drop_replicas(&mut self, key: &ServingKey, keep: usize) -> Result<(), Error> {
        let gone: Vec<ReplicaRow> =
            self.replicas_of(key)?.into_iter().filter(|row| row.gone_at.is_some()).skip(keep).collect();
        for row in gone {
            for sql in [
                "delete from replicas where job_seq = ?1",
                "delete from events where job_seq = ?1",
                "delete from jobs where seq = ?1",
            ] {
                self.exec(sql, &[row.seq.into()])?;
            }
            self.leave(&key.workspace, &format!("{RUN_FOLDER}{}", row.name))?;
        }
        Ok(())
    }
}

fn row_of(mut row: Row) -> Result<ReplicaRow, Error> {
    let address = row.maybe_text(6)?.map(|text| text.parse().map_err(|_| Error::Decode(format!("address {text}"))));
    Ok(ReplicaRow {
        seq: row.int(0)?,
        name: row.text(1)?,
        key: ServingKey { workspace: row.text(2)?, endpoint: row.text(3)?, deployment: row.text(4)? },
        generation: row.int(5)?,
        address: address.transpose()?,
        ready: row.int(7)? != 0,
        ready_at: row.maybe_int(8)?.map(Timestamp),
        draining_at: row.maybe_int(9)?.map(Timestamp),
        gone_at: row.maybe_int(10)?.map(Timestamp),
        state: row.json(11)?,
        note: row.text(12)?,
        created_at: Timestamp(row.int(13)?),
    })
}
