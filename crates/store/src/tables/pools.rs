//! Jobs that were sent to a pool: where each may run, until one of these places is chosen.
//!
//! Invariant: a job waits in the pool's own queue and is in no other; when it has to wait again it is back there.

use super::jobs::{HERE, POOLED, amount, json, resources_at};
use crate::{Bell, Error, Tx};
use domain::{Plan, Resources, Timestamp, sharing::fair};

/// One of the places where a job may run, and what it would be there.
#[derive(Debug, Clone)]
pub struct Choice {
    pub target: String,
    /// The cluster of the target.
    pub cluster: String,
    pub plan: Plan,
}

impl Tx<'_> {
    /// Says where a job may run that was just accepted for a pool, in order.
    pub fn put_choices(&mut self, seq: i64, choices: &[Choice]) -> Result<(), Error> {
        self.exec("update jobs set pool = target where seq = ?1", &[seq.into()])?;
        for (position, choice) in (0_i64..).zip(choices) {
            self.exec(
                "insert into pool_choices (job_seq, position, target, cluster, plan) values (?1, ?2, ?3, ?4, ?5)",
                &[
                    seq.into(),
                    position.into(),
                    choice.target.as_str().into(),
                    choice.cluster.as_str().into(),
                    json(&choice.plan)?.into(),
                ],
            )?;
        }
        Ok(())
    }

    pub fn choices(&mut self, seq: i64) -> Result<Vec<Choice>, Error> {
        let sql = "select target, cluster, plan from pool_choices where job_seq = ?1 order by position";
        let rows = self.fetch(sql, &[seq.into()])?;
        rows.into_iter()
            .map(|mut row| Ok(Choice { target: row.text(0)?, cluster: row.text(1)?, plan: row.json(2)? }))
            .collect()
    }

    /// Moves a job from the pool's queue to that of one of its places; whether it still waited there.
    pub fn choose(&mut self, seq: i64, choice: &Choice, because: &str, now: Timestamp) -> Result<bool, Error> {
        let needs = choice.plan.needs();
        let moved = self.exec(
            "update jobs set target = ?2, cluster = ?3, plan = ?4, cpu_milli = ?5, memory_bytes = ?6, gpus = ?7, \
             weight = ?8, note = ?9, version = version + 1 where seq = ?1 and phase = 'queued' and cluster = ?10",
            &[
                seq.into(),
                choice.target.as_str().into(),
                choice.cluster.as_str().into(),
                json(&choice.plan)?.into(),
                amount(needs.cpu_milli),
                amount(needs.memory_bytes),
                i64::from(needs.gpus).into(),
                amount(fair::weight(&needs)),
                because.into(),
                POOLED.into(),
            ],
        )?;
        if moved > 0 {
            self.add_event(seq, now, "chosen", because)?;
            self.ring(Bell::Queue);
        }
        Ok(moved > 0)
    }

    /// The pool a job was sent to, if it was sent to one.
    pub fn pool_of(&mut self, seq: i64) -> Result<Option<String>, Error> {
        let row = self.fetch_one("select pool from jobs where seq = ?1", &[seq.into()])?;
        Ok(row.map(|mut row| row.text(0)).transpose()?.filter(|pool| !pool.is_empty()))
    }

    /// What all jobs on this machine, those that wait for it included, need together.
    pub fn claimed_here(&mut self) -> Result<Resources, Error> {
        let sql = "select cast(coalesce(sum(cpu_milli), 0) as bigint), cast(coalesce(sum(memory_bytes), 0) as bigint), \
                   cast(coalesce(sum(gpus), 0) as bigint) from jobs \
                   where phase in ('queued', 'placed', 'preparing', 'running', 'finalizing', 'stopping') and cluster = ?1";
        self.fetch_one(sql, &[HERE.into()])?.map_or(Ok(Resources::default()), |mut row| resources_at(&mut row, 0))
    }

    /// How many jobs a cluster was handed, or is to be, that have not begun.
    pub fn not_begun(&mut self, cluster: &str) -> Result<i64, Error> {
        let sql = "select count(*) from jobs where phase in ('queued', 'placed') and cluster = ?1";
        self.fetch_one(sql, &[cluster.into()])?.map_or(Ok(0), |mut row| row.int(0))
    }
}
