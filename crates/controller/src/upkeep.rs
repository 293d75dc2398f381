//! The upkeep loop: a copy of the database each day, the last few kept; uploads that nobody finished and what was deleted
//! long ago removed.

use crate::{Context, until};
use domain::Timestamp;
use std::{fs, path::Path, time::Duration};
use store::{Error, Freed, Store, files::Swept};
use tokio::sync::watch;

const KEEP: usize = 3;
const HOUR: Duration = Duration::from_secs(3600);

pub(crate) async fn run(cx: Context, mut stop: watch::Receiver<bool>) {
    // Starting comes first; a copy can wait a moment.
    let mut pause = Duration::from_secs(60);
    if !cx.store.is_file() {
        tracing::info!("daily backups are left out: the database is in Postgres, which `pg_dump` copies");
    }
    loop {
        // At the start too: a server that never lives for an hour must not keep every draft it ever made.
        match sweep(&cx.store, (cx.clock)()).await {
            Ok(swept) if swept == Swept::default() => {}
            Ok(swept) => tracing::info!(swept.drafts, swept.snapshots, "removed uploads that nobody finished"),
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "cannot look for old uploads"),
        }
        if !until(&mut stop, tokio::time::sleep(pause)).await {
            return;
        }
        pause = HOUR;
        free(&cx).await;
        if cx.store.is_file() {
            back_up(&cx).await;
        }
    }
}

/// Removes for good what was deleted long enough ago, and gives back the space of what is gone.
async fn free(cx: &Context) {
    let before = cx.keep_deleted.map(|kept| (cx.clock)().before(kept));
    match cx.store.free(before).await {
        Ok(freed) if freed == Freed::default() => {}
        Ok(Freed { rows, file_bytes, database_bytes }) => {
            tracing::info!(
                rows.experiments,
                rows.runs,
                rows.models,
                rows.kept,
                file_bytes,
                database_bytes,
                "removed what was deleted long ago"
            );
        }
        Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "cannot remove what was deleted"),
    }
}

/// Readings are kept for a week, also of pods that are long gone.
const KEEP_SAMPLES_MS: i64 = 7 * 24 * 3_600_000;

/// What people have used is kept for a year, which is more than any sensible half-life needs.
const KEEP_USAGE_MS: i64 = 366 * 24 * 3_600_000;

/// Removes drafts and blocks nobody came back to and snapshots nothing refers to, and takes the sums of stores anew.
pub async fn sweep(store: &Store, now: Timestamp) -> Result<Swept, Error> {
    let files = store.files().clone();
    let first = move || {
        files.recount_all();
        (files.sweep_drafts(now), files.old_snapshots(now))
    };
    let trim = store.write(move |tx| {
        tx.trim_usage(Timestamp(now.0 - KEEP_USAGE_MS))?;
        tx.drop_samples(Timestamp(now.0 - KEEP_SAMPLES_MS))
    });
    trim.await?;
    let (drafts, old) = tokio::task::spawn_blocking(first).await.map_err(|_| Error::Closed)?;
    if old.is_empty() {
        return Ok(Swept { drafts, snapshots: 0 });
    }
    let referred = store.read(|tx| tx.referred_snapshots()).await?;
    let files = store.files().clone();
    let then = tokio::task::spawn_blocking(move || files.sweep_snapshots(&old, &referred));
    Ok(Swept { drafts, snapshots: then.await.map_err(|_| Error::Closed)? })
}

async fn back_up(cx: &Context) {
    let folder = cx.store.home().join("backups");
    let day = &(cx.clock)().iso()[..10];
    let to = folder.join(format!("peregrine-{day}.db"));
    if to.exists() || fs::create_dir_all(&folder).is_err() {
        return;
    }
    match cx.store.backup(to).await {
        Ok(()) => drop_old(&folder),
        Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "the daily backup failed"),
    }
}

fn drop_old(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let daily = |name: &str| name.starts_with("peregrine-") && name.ends_with(".db");
    let mut copies: Vec<_> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.file_name().is_some_and(|n| daily(&n.to_string_lossy())))
        .collect();
    copies.sort();
    for old in copies.iter().rev().skip(KEEP) {
        let _ = fs::remove_file(old);
    }
}
