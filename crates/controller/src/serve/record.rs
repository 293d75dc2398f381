//! Writing down what a round decided: replicas as jobs, the deployment's state, the end of the operation that waits for it.

use crate::Context;
use domain::{Job, JobEvent, JobName, Outcome, Place, Plan, Timestamp, serving::Provisioning};
use planner::scale::Step;
use store::{Error, HERE, NewJob, REPLICA, ReplicaRow, ServingRow, Tx, files::Files};

/// Replicas go before every job: someone waits for their answer.
const PRIORITY: i64 = 4;
/// How many replicas that are gone keep their logs, for whoever asks what happened.
const KEEP_GONE: usize = 3;

/// All that a round decided about one deployment.
pub(super) struct Round<'r> {
    pub(super) row: ServingRow,
    pub(super) next: ServingRow,
    pub(super) gone: Vec<&'r ReplicaRow>,
    /// It has no replica that is not gone.
    pub(super) empty: bool,
    pub(super) steps: Vec<Step>,
    pub(super) now: Timestamp,
}

/// Commits a round; `Conflict` when the deployment was changed meanwhile.
pub(super) async fn all(cx: &Context, round: Round<'_>) -> Result<(), Error> {
    let Round { row, next, gone, empty, steps, now } = round;
    let settled = row.state != next.state;
    let changed = settled || row.failures != next.failures || row.failed_at != next.failed_at;
    let over = row.state == Provisioning::Deleting && empty;
    if !changed && !over && gone.is_empty() && steps.is_empty() {
        return Ok(());
    }
    let gone: Vec<ReplicaRow> = gone.into_iter().cloned().collect();
    let files = cx.store.files().clone();
    let written = cx.store.write(move |tx| {
        if tx.serving(&row.key)?.is_none_or(|found| found.version != row.version) {
            return Err(Error::Conflict);
        }
        if over {
            tx.end_operation(&row.operation, None, now)?;
            return tx.delete_serving(&row.key);
        }
        if changed {
            put(tx, &next, settled, now)?;
        }
        for replica in &gone {
            tx.replica_is_gone(replica, KEEP_GONE, now)?;
        }
        for step in steps {
            carry_out(tx, &next, step, &files, now)?;
        }
        Ok(())
    });
    written.await
}

fn put(tx: &mut Tx<'_>, next: &ServingRow, settled: bool, now: Timestamp) -> Result<(), Error> {
    let mut next = next.clone();
    if settled {
        let failure = match &next.state {
            Provisioning::Failed(failure) => Some(failure),
            _ => None,
        };
        let told = failure.map(|failure| {
            let message = match failure.last_lines.is_empty() {
                true => failure.message.clone(),
                false => format!("{}\n{}", failure.message, failure.last_lines),
            };
            serde_json::json!({"code": failure.code, "message": message}).to_string()
        });
        tx.end_operation(&next.operation, told.as_deref(), now)?;
        next.operation.clear();
        if next.state == Provisioning::Succeeded {
            tx.serving_is_good(&next.key)?;
        }
        tracing::info!(
            "deployment `{}` of endpoint `{}` is {}",
            next.key.deployment,
            next.key.endpoint,
            next.state.status()
        );
    }
    tx.put_serving(&next, None)
}

fn carry_out(tx: &mut Tx<'_>, row: &ServingRow, step: Step, files: &Files, now: Timestamp) -> Result<(), Error> {
    match step {
        Step::Start { because } => start(tx, row, &because, files, now),
        Step::Drain { seq, because } => {
            tx.add_event(seq, now, "draining", &because)?;
            tx.drain_replica(seq, now)
        }
        Step::Stop { seq } => match tx.job_by_seq(seq)? {
            Some(job) => stop(tx, job, &row.cluster, now),
            None => Ok(()),
        },
    }
}

fn start(tx: &mut Tx<'_>, row: &ServingRow, because: &str, files: &Files, now: Timestamp) -> Result<(), Error> {
    let key = &row.key;
    let generation = row.current();
    let Some(plan) = tx.serving_plan(key, generation)? else { return Ok(()) };
    let tail = u32::from_be_bytes(tx.random());
    let name = JobName::parse(&format!("{}_{}_{tail:08x}", key.endpoint, key.deployment));
    let name = name.map_err(|bad| Error::Decode(bad.to_string()))?;
    let artifacts = Place::Folder { path: files.artifacts(&key.workspace, name.as_str()) };
    let seq = tx.insert_job(&NewJob {
        workspace: key.workspace.clone(),
        name,
        body: "{}".to_owned(),
        plan: Plan { artifacts, ..plan },
        kind: REPLICA,
        experiment: String::new(),
        target: row.target.clone(),
        cluster: row.cluster.clone(),
        priority: PRIORITY,
        max_retries: 0,
        registers: false,
        created_by: row.created_by.clone(),
        at: now,
        parent: None,
        reused: None,
    })?;
    tx.add_event(seq, now, "wanted", because)?;
    tx.insert_replica(seq, key, generation)
}

/// Asks a replica that no router uses to stop.
fn stop(tx: &mut Tx<'_>, mut job: Job, cluster: &str, now: Timestamp) -> Result<(), Error> {
    let reason = "it was drained";
    let attempt = job.state.attempt().cloned();
    if job.apply(JobEvent::StopRequested { reason: reason.to_owned() }, now).is_err() {
        return Ok(());
    }
    if let (false, Some(attempt)) = (cluster == HERE, &attempt)
        && !tx.gang(attempt)?.is_some_and(|gang| gang.begun())
    {
        // Nobody was handed it, and nobody will be: there is no end to wait for.
        let _ = job.apply(JobEvent::Over(Outcome::Canceled { reason: reason.to_owned() }), now);
        tx.drop_gang(attempt)?;
    }
    tx.put_job(&job, Some(reason), now)?;
    tx.add_event(job.seq, now, "cancel", reason)
}
