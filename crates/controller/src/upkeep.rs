//! The upkeep loop: a copy of the database each day, the last few kept.

use crate::{Context, until};
use std::{fs, path::Path, time::Duration};
use tokio::sync::watch;

const KEEP: usize = 3;
const HOUR: Duration = Duration::from_secs(3600);

pub(crate) async fn run(cx: Context, mut stop: watch::Receiver<bool>) {
    // Starting comes first; a copy can wait a moment.
    let mut pause = Duration::from_secs(60);
    while until(&mut stop, tokio::time::sleep(pause)).await {
        pause = HOUR;
        let folder = cx.store.home().join("backups");
        let day = &(cx.clock)().iso()[..10];
        let to = folder.join(format!("peregrine-{day}.db"));
        if to.exists() || fs::create_dir_all(&folder).is_err() {
            continue;
        }
        match cx.store.backup(to).await {
            Ok(()) => drop_old(&folder),
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "the daily backup failed"),
        }
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
