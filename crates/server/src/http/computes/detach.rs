//! Detaching: a target on a cluster goes only when no job is there any more.

use crate::{
    app::App,
    http::{agents, change::Halt, jobs},
    problem::Problem,
};
use std::time::Duration;
use store::{Bell, Tx};
use tokio::time::Instant;

/// How long canceled jobs are waited for.
const PATIENCE: Duration = Duration::from_secs(45);
/// How many of them a message names.
const NAMED: usize = 5;

/// Whether no job of a target is still open; a refusal that names those that are.
pub(super) fn is_clear(tx: &mut Tx<'_>, workspace: &str, name: &str) -> Result<(), Halt> {
    let open = tx.open_jobs_of(workspace, name)?;
    if open.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = open.iter().take(NAMED).map(|(_, name)| format!("`{name}`")).collect();
    let more = if open.len() > NAMED { ", …" } else { "" };
    let message = format!(
        "compute target `{name}` has {} jobs that have not ended ({}{more}); wait for them, or detach with `--force` to cancel them",
        open.len(),
        names.join(", ")
    );
    Err(Problem::conflict(message).into())
}

/// Cancels every job of a target and gives them a while to go.
pub(super) async fn clear(app: &App, workspace: &str, name: &str, by: &str) -> Result<(), Problem> {
    let mut bell = app.store.changed(Bell::Jobs);
    let (key, target, now) = (workspace.to_owned(), name.to_owned(), app.now());
    let reason = format!("canceled by {by}, who detached compute target `{name}`");
    let stopped = app.store.write(move |tx| {
        let open = tx.open_jobs_of(&key, &target)?;
        open.into_iter().map(|(seq, _)| jobs::stop(tx, seq, &reason, now)).collect::<Result<Vec<_>, _>>()
    });
    for (attempt, ended, _) in stopped.await? {
        agents::count(app, ended);
        if let Some(attempt) = attempt {
            app.calls.ring(&attempt);
        }
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (key, target) = (workspace.to_owned(), name.to_owned());
        let open = app.store.read(move |tx| tx.open_jobs_of(&key, &target)).await?;
        if open.is_empty() || Instant::now() >= deadline {
            return Ok(());
        }
        let _ = tokio::time::timeout_at(deadline, bell.changed()).await;
    }
}
