//! Collecting: what the command left is put where the plan wants it, and is on disk before anyone hears of it.

use super::{logs::Logs, parallel, share, stage};
use crate::{context::Context, data};
use domain::{Assignment, Place, assignment::OutputMode, job::Failure};
use std::{fs, path::Path, time::Duration};

/// How often outputs that are mounted from a remote store are sent while the command runs.
const SYNC_EVERY: Duration = Duration::from_secs(30);

/// Sends what the command has written so far to remote stores, again and again. Never returns.
pub(super) async fn keep_synced(cx: &Context, assignment: &Assignment) {
    let folder = cx.folder(&assignment.attempt);
    loop {
        tokio::time::sleep(SYNC_EVERY).await;
        for (name, output) in &assignment.plan.outputs {
            let remote = !matches!(output.place, Place::Folder { .. }) && output.mode == OutputMode::RwMount;
            let from = stage::written_to(output, name, &folder);
            if remote && from.exists() {
                // What fails now is tried again, at the latest when the command has ended.
                let _ = cx.data.send(&from, &output.place, &assignment.secrets).await;
            }
        }
    }
}

pub(super) async fn collect(cx: &Context, assignment: &Assignment, logs: &Logs) -> Result<(), Failure> {
    logs.publish_written();
    let folder = cx.folder(&assignment.attempt);
    let captured = folder.join("work").join("outputs");
    if !is_empty(&captured) {
        let sent = cx.data.send(&captured, logs.captured(), &assignment.secrets).await;
        note(logs, sent.map_err(|error| failed("the folder `outputs`", &error))?);
    }
    let batches = logs.root().join(parallel::LOGS);
    if let (true, Some(to)) = (assignment.plan.parallel.is_some(), logs.away(parallel::LOGS)) {
        note(logs, cx.data.send(&batches, &to, &assignment.secrets).await.map_err(|error| failed("its logs", &error))?);
    }
    for (name, output) in &assignment.plan.outputs {
        let from = stage::written_to(output, name, &folder);
        if output.mode == OutputMode::Direct || !from.exists() {
            continue;
        }
        // What was written in place is not copied, but looked through like the rest: no link may lead out of it.
        let sent = cx.data.send(&from, &output.place, &assignment.secrets).await;
        note(logs, sent.map_err(|error| failed(&format!("output `{name}`"), &error))?);
    }
    let logs: Vec<_> = share::own(assignment).into_iter().map(|rank| logs.user(rank)).collect();
    // An empty log reads the same whether or not it survives a power cut.
    if logs.iter().any(|log| fs::metadata(log).is_ok_and(|meta| meta.len() > 0)) {
        let synced = tokio::task::spawn_blocking(move || {
            logs.iter().filter_map(|log| fs::File::open(log).ok()).try_for_each(|file| file.sync_data())
        });
        synced.await.unwrap_or(Ok(())).map_err(super::disk)?;
    }
    Ok(())
}

fn note(logs: &Logs, sent: data::Sent) {
    for notice in sent.notices {
        logs.system("lifecycle.log", &notice);
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

fn failed(what: &str, error: &data::Error) -> Failure {
    let failure = stage::data_failure(what, error);
    Failure { code: "OutputUploadFailed".into(), ..failure }
}
