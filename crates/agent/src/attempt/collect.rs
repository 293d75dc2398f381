//! Collecting: what the command left is put where the plan wants it, and is on disk before anyone hears of it.

use super::{logs::Logs, stage};
use crate::{context::Context, data};
use domain::{Assignment, Place, assignment::OutputMode, job::Failure};
use std::{fs, path::Path};

pub(super) async fn collect(cx: &Context, assignment: &Assignment, logs: &Logs) -> Result<(), Failure> {
    let folder = cx.folder(&assignment.attempt);
    let captured = folder.join("work").join("outputs");
    if !is_empty(&captured) {
        let to = Place::Folder { path: logs.root().join("outputs") };
        let sent = cx.data.send(&captured, &to, &assignment.secrets).await;
        note(logs, sent.map_err(|error| failed("the folder `outputs`", &error))?);
    }
    for (name, output) in &assignment.plan.outputs {
        let from = stage::written_to(output, name, &folder);
        let in_place = matches!((&output.place, output.mode), (Place::Folder { path }, _) if *path == from);
        if output.mode == OutputMode::Direct || in_place || !from.exists() {
            continue;
        }
        let sent = cx.data.send(&from, &output.place, &assignment.secrets).await;
        note(logs, sent.map_err(|error| failed(&format!("output `{name}`"), &error))?);
    }
    let ranks = super::ranks(assignment);
    let logs: Vec<_> = (0..ranks).map(|rank| logs.user(rank)).collect();
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
