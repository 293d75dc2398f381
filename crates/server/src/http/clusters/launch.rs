//! One attempt as an operator is told of it: how many pods, of which shape, from which image.

use crate::{app::App, auth::attempt_token};
use domain::{
    AttemptId,
    cluster::{Launch, ReplicaPod},
};
use serde_json::Value;
use store::{Error, TargetRow, Tx};

/// A job that has run for longer than it may, by this much, is ended by the cluster: its own agent should have done so.
const GRACE_SECONDS: u64 = 3_600;

/// What an operator is to launch, without what differs from server to server; `None` if the job has moved on meanwhile.
pub(crate) fn of(tx: &mut Tx<'_>, attempt: AttemptId, targets: &[TargetRow]) -> Result<Option<Launch>, Error> {
    let Some((seq, number)) = attempt.parts() else { return Ok(None) };
    let Some(row) = tx.jobs_by_seq(&[seq])?.pop() else { return Ok(None) };
    let on = |target: &&TargetRow| target.workspace == row.job.workspace && target.target.compute == row.target;
    let Some(target) = targets.iter().find(on) else { return Ok(None) };
    let plan = tx.plan(seq)?.unwrap_or_default();
    let replica = plan.serve.as_ref().map(|serve| ReplicaPod {
        endpoint: serve.endpoint.clone(),
        deployment: serve.deployment.clone(),
        port: serve.own_port(),
        readiness: serve.readiness.clone(),
        requests: plan.requests,
        limits: plan.limits.unwrap_or_default(),
    });
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    Ok(Some(Launch {
        attempt,
        number,
        target: target.target.clone(),
        display_name: api::arm::text(&body, "displayName").unwrap_or_else(|| row.job.name.to_string()),
        job: row.job.name,
        parent: row.parent.map(|parent| parent.name),
        user: row.created_by,
        priority: row.job.priority,
        turn: tx.turn(seq)?,
        timeout_seconds: plan.timeout_seconds,
        parts: plan.parts(),
        instance_type: plan.instance_type.unwrap_or_default(),
        image: plan.environment.image.or_else(|| default_image(target).map(str::to_owned)).unwrap_or_default(),
        shm_bytes: plan.shm_bytes,
        deadline_seconds: plan.timeout_seconds.map(|limit| limit.saturating_add(GRACE_SECONDS)),
        server: String::new(),
        authority: String::new(),
        token: String::new(),
        labels: Default::default(),
        replica,
    }))
}

/// The image of work whose environment names none.
pub(crate) fn default_image(on: &TargetRow) -> Option<&str> {
    on.target.settings.get("default_image").map(String::as_str).filter(|image| !image.is_empty())
}

/// Adds where the agent inside finds this server, and its token.
pub(crate) fn complete(app: &App, launch: &mut Launch, url: &str) {
    launch.server = url.to_owned();
    launch.authority.clone_from(&app.authority);
    launch.token = attempt_token(app.store.keyring(), &launch.attempt);
}
