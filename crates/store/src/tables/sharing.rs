//! Who may have how much, who has it, and who has had it lately.
//!
//! Invariant: what a job used is added up in the transaction that takes it off its node.

use super::jobs::{CORE, HERE, core_of, resources_at};
use crate::{Bell, Error, Row, Tx, Value, tables::REPLICA};
use domain::{
    Job, Resources, Timestamp,
    sharing::{
        Held, Holder, Limits, Quota, Team, Whom,
        fair::{self, HOUR_MS},
    },
};

/// What jobs of one person, target and priority have together.
#[derive(Debug, Clone)]
pub struct HeldRow {
    pub held: Held,
    pub cluster: String,
    pub priority: i64,
    /// What those count as that have not begun, in thousandths of a core.
    pub pending: u64,
    /// What the others have used since they began, in core-milliseconds.
    pub busy: u64,
    /// The highest turn of those that have not begun.
    pub turn: i64,
}

/// A job that has something of a place.
#[derive(Debug, Clone)]
pub struct HolderJob {
    pub job: Job,
    pub needs: Resources,
    pub parts: u32,
    /// It is part of a deployment.
    pub serves: bool,
    pub experiment: String,
    /// Seconds that its command may run.
    pub timeout: Option<u64>,
}

impl Tx<'_> {
    /// The quotas of one workspace, or of all; those of teams with who is in them.
    pub fn quotas(&mut self, workspace: Option<&str>) -> Result<Vec<Quota>, Error> {
        let sql = "select workspace, whom, target, cpu_milli, memory_bytes, gpus, jobs from quotas \
                   where workspace = ?1 or ?1 is null order by workspace, whom, target";
        let mut quotas: Vec<Quota> =
            self.fetch(sql, &[workspace.into()])?.into_iter().map(quota_of).collect::<Result<_, _>>()?;
        if quotas.iter().any(|quota| matches!(quota.whom, Whom::Team { .. })) {
            let teams = self.teams(workspace)?;
            for Quota { workspace, whom, .. } in &mut quotas {
                let Whom::Team { name, people } = whom else { continue };
                let same = |team: &&Team| team.workspace == *workspace && team.name.as_str() == name;
                *people = teams.iter().find(same).map(|team| team.people.clone()).unwrap_or_default();
            }
        }
        Ok(quotas)
    }

    pub fn put_quota(&mut self, quota: &Quota, by: &str, now: Timestamp) -> Result<(), Error> {
        let limit = |limit: Option<u64>| Value::from(limit.map(|n| i64::try_from(n).unwrap_or(i64::MAX)));
        let Limits { cpu_milli, memory_bytes, gpus, jobs } = quota.limits;
        self.exec(
            "insert into quotas (workspace, whom, target, cpu_milli, memory_bytes, gpus, jobs, changed_by, changed_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) on conflict (workspace, whom, target) do update set \
             cpu_milli = ?4, memory_bytes = ?5, gpus = ?6, jobs = ?7, changed_by = ?8, changed_at = ?9",
            &[
                quota.workspace.as_str().into(),
                quota.whom.kept().into(),
                quota.target.as_deref().unwrap_or_default().into(),
                limit(cpu_milli),
                limit(memory_bytes),
                limit(gpus),
                limit(jobs),
                by.into(),
                now.into(),
            ],
        )?;
        self.ring(Bell::Queue);
        Ok(())
    }

    /// Whether there was one.
    pub fn delete_quota(&mut self, workspace: &str, whom: &Whom, target: Option<&str>) -> Result<bool, Error> {
        let gone = self.exec(
            "delete from quotas where workspace = ?1 and whom = ?2 and target = ?3",
            &[workspace.into(), whom.kept().into(), target.unwrap_or_default().into()],
        )?;
        self.ring(Bell::Queue);
        Ok(gone > 0)
    }

    /// What is with nodes and clusters, by whose it is.
    pub fn held(&mut self, now: Timestamp) -> Result<Vec<HeldRow>, Error> {
        let rows = self.fetch(
            "select workspace, created_by, target, cluster, priority, count(*), \
             cast(sum(cpu_milli) as bigint), cast(sum(memory_bytes) as bigint), cast(sum(gpus) as bigint), \
             cast(sum(case when phase = 'placed' then weight else 0 end) as bigint), \
             cast(sum(case when busy_since is null then 0 else weight * (?1 - busy_since) / 1000 end) as bigint), \
             max(case when phase = 'placed' then turn else 0 end) from jobs \
             where phase in ('placed', 'preparing', 'running', 'finalizing', 'stopping') \
             group by workspace, created_by, target, cluster, priority",
            &[now.into()],
        )?;
        rows.into_iter().map(held_of).collect()
    }

    /// Whose jobs wait in a cluster's queue.
    pub fn waiting_holders(&mut self, cluster: &str) -> Result<Vec<Holder>, Error> {
        // One seek each, however many jobs they have.
        let next = "select workspace, created_by from jobs where phase = 'queued' and cluster = ?1 \
                    and (workspace, created_by) > (?2, ?3) order by workspace, created_by limit 1";
        let mut all: Vec<Holder> = Vec::new();
        loop {
            let (workspace, person) = all.last().map_or(("", ""), |last| (&last.workspace, &last.person));
            let Some(mut row) = self.fetch_one(next, &[cluster.into(), workspace.into(), person.into()])? else {
                return Ok(all);
            };
            all.push(Holder { workspace: row.text(0)?, person: row.text(1)? });
        }
    }

    /// What someone's ended jobs have used, as it counts now, in core-milliseconds.
    pub fn used(&mut self, holder: &Holder, now: Timestamp, half_life_ms: i64) -> Result<f64, Error> {
        let from = (now.0 - fair::HALF_LIVES * half_life_ms) / HOUR_MS;
        let rows = self.fetch(
            "select hour, used from usage_hours where workspace = ?1 and person = ?2 and hour >= ?3",
            &[holder.workspace.as_str().into(), holder.person.as_str().into(), from.into()],
        )?;
        let hours = rows.into_iter().map(|mut row| Ok((Timestamp(row.int(0)? * HOUR_MS), row.int(1)?)));
        Ok(fair::decayed(hours.collect::<Result<Vec<_>, Error>>()?, now, half_life_ms))
    }

    /// What everyone has used since an hour, in core-milliseconds; of one workspace, or of all.
    pub fn used_since(&mut self, workspace: Option<&str>, from: Timestamp) -> Result<Vec<(Holder, i64)>, Error> {
        let rows = self.fetch(
            "select workspace, person, cast(sum(used) as bigint) from usage_hours \
             where (workspace = ?1 or ?1 is null) and hour >= ?2 group by workspace, person order by workspace, person",
            &[workspace.into(), (from.0 / HOUR_MS).into()],
        )?;
        rows.into_iter()
            .map(|mut row| Ok((Holder { workspace: row.text(0)?, person: row.text(1)? }, row.int(2)?)))
            .collect()
    }

    pub fn trim_usage(&mut self, before: Timestamp) -> Result<(), Error> {
        self.exec("delete from usage_hours where hour < ?1", &[(before.0 / HOUR_MS).into()]).map(drop)
    }

    /// Adds up what a job has used that leaves its node.
    pub(super) fn charge(&mut self, seq: i64, now: Timestamp) -> Result<(), Error> {
        self.exec(
            "insert into usage_hours (workspace, person, hour, used) \
             select workspace, created_by, cast(?2 as bigint), weight * (?3 - busy_since) / 1000 from jobs \
             where seq = ?1 and busy_since is not null and busy_since < ?3 \
             on conflict (workspace, person, hour) do update set used = usage_hours.used + excluded.used",
            &[seq.into(), (now.0 / HOUR_MS).into(), now.into()],
        )
        .map(drop)
    }

    /// Where a job stands among those of its priority that its node's agent holds.
    pub fn put_turn(&mut self, seq: i64, turn: i64) -> Result<(), Error> {
        self.exec("update jobs set turn = ?2 where seq = ?1", &[seq.into(), turn.into()]).map(drop)
    }

    pub fn turn(&mut self, seq: i64) -> Result<i64, Error> {
        let row = self.fetch_one("select turn from jobs where seq = ?1", &[seq.into()])?;
        row.map_or(Ok(0), |mut row| row.int(0))
    }

    /// Which of the jobs that this machine's agent holds begins next.
    pub fn first_in_line(&mut self) -> Result<Option<(Job, Resources)>, Error> {
        let sql = format!(
            "select {CORE}, cpu_milli, memory_bytes, gpus from jobs where phase = 'placed' and cluster = ?1 \
             order by priority desc, turn, seq limit 1"
        );
        let row = self.fetch_one(&sql, &[HERE.into()])?;
        row.map(|mut row| Ok((core_of(&mut row)?, resources_at(&mut row, 10)?))).transpose()
    }

    /// Places that are reached from here on which someone was sent before then, and has not begun.
    pub fn sites_waited_for(&mut self, before: Timestamp) -> Result<Vec<String>, Error> {
        let sql = "select distinct cluster from jobs where phase = 'placed' and changed_at <= ?1 and cluster like '@%' \
                   order by cluster";
        self.fetch(sql, &[before.into()])?.into_iter().map(|mut row| row.text(0)).collect()
    }

    /// Jobs that have something of this machine, or of another place.
    pub fn holders(&mut self, cluster: &str) -> Result<Vec<HolderJob>, Error> {
        let sql = format!(
            "select {CORE}, cpu_milli, memory_bytes, gpus, kind, experiment, plan from jobs \
             where phase in ('preparing', 'running', 'finalizing', 'stopping') and cluster = ?1 order by seq"
        );
        let one = |mut row: Row| {
            let plan: domain::Plan = row.json(15)?;
            Ok(HolderJob {
                job: core_of(&mut row)?,
                needs: resources_at(&mut row, 10)?,
                parts: plan.parts(),
                serves: row.text(13)? == REPLICA,
                experiment: row.text(14)?,
                timeout: plan.timeout_seconds,
            })
        };
        self.fetch(&sql, &[cluster.into()])?.into_iter().map(one).collect()
    }

    /// How long jobs of an experiment ran that completed lately: the middle one, in milliseconds.
    pub fn usual_length(&mut self, workspace: &str, experiment: &str) -> Result<Option<i64>, Error> {
        let sql = format!(
            "select {CORE} from jobs where workspace = ?1 and experiment = ?2 and status = 'Completed' \
             order by seq desc limit 21"
        );
        let rows = self.fetch(&sql, &[workspace.into(), experiment.into()])?;
        let jobs = rows.into_iter().map(|mut row| core_of(&mut row)).collect::<Result<Vec<_>, _>>()?;
        let length = |job: &Job| match (job.as_run(), job.state.started_at()) {
            ((_, _, Some(end)), Some(start)) => Some(end.0 - start.0),
            _ => None,
        };
        let mut lengths: Vec<i64> = jobs.iter().filter_map(length).collect();
        lengths.sort_unstable();
        Ok(lengths.get(lengths.len() / 2).copied())
    }

    /// Asks a job to make way for another; whether it will.
    pub fn preempt_job(&mut self, seq: i64, reason: &str, now: Timestamp) -> Result<bool, Error> {
        let Some(mut job) = self.job_by_seq(seq)? else { return Ok(false) };
        if job.apply(domain::JobEvent::Preempted { reason: reason.to_owned() }, now).is_err() {
            return Ok(false);
        }
        self.add_event(seq, now, "preempted", reason)?;
        self.put_job(&job, Some(reason), now)?;
        Ok(true)
    }
}

fn quota_of(mut row: Row) -> Result<Quota, Error> {
    let mut limit = |at| Ok::<_, Error>(row.maybe_int(at)?.map(i64::unsigned_abs));
    let limits = Limits { cpu_milli: limit(3)?, memory_bytes: limit(4)?, gpus: limit(5)?, jobs: limit(6)? };
    let target = row.text(2)?;
    Ok(Quota {
        workspace: row.text(0)?,
        whom: Whom::parse(&row.text(1)?),
        target: (!target.is_empty()).then_some(target),
        limits,
    })
}

fn held_of(mut row: Row) -> Result<HeldRow, Error> {
    Ok(HeldRow {
        held: Held {
            holder: Holder { workspace: row.text(0)?, person: row.text(1)? },
            target: row.text(2)?,
            resources: resources_at(&mut row, 6)?,
            jobs: row.int(5)?.unsigned_abs(),
        },
        cluster: row.text(3)?,
        priority: row.int(4)?,
        pending: row.int(9)?.unsigned_abs(),
        busy: u64::try_from(row.int(10)?).unwrap_or(0),
        turn: row.int(11)?,
    })
}
