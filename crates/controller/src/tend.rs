//! The tending loop: each compute target's agent is there, or is started again; a check that no operator answers ends.

use crate::{Context, until};
use domain::{Timestamp, cluster::Finding};
use std::time::Duration;
use store::{Error, Store};
use tokio::sync::watch;

/// How long an operator may take for the checks of a target.
const CHECK_MS: i64 = 120_000;
/// How long a cluster that was not heard of has until its target is called unfit: an operator that was just installed has to
/// start and to take its lease.
const HELLO_MS: i64 = 30_000;

pub(crate) async fn run(cx: Context, mut stop: watch::Receiver<bool>) {
    loop {
        let drivers = std::sync::Arc::clone(&cx.drivers);
        let tended = tokio::task::spawn_blocking(move || {
            for driver in drivers.iter() {
                if let Err(error) = driver.tend() {
                    let target = driver.target();
                    tracing::error!(error = &error as &dyn std::error::Error, "cannot tend compute target `{target}`");
                }
            }
        });
        let _ = tended.await;
        if let Err(error) = give_up_checks(&cx.store, (cx.clock)()).await {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot look after checks of compute targets");
        }
        if !until(&mut stop, tokio::time::sleep(Duration::from_secs(1))).await {
            return;
        }
    }
}

/// Ends checks that were asked for long ago, so that whoever waits for them learns of it.
pub async fn give_up_checks(store: &Store, now: Timestamp) -> Result<(), Error> {
    let before = Timestamp(now.0 - HELLO_MS);
    if store.read(move |tx| tx.overdue_targets(before)).await?.is_empty() {
        return Ok(());
    }
    let given_up = store.write(move |tx| {
        for row in tx.overdue_targets(before)? {
            let silent = tx.cluster(&row.cluster)?.is_none_or(|cluster| !cluster.answers(now, HELLO_MS));
            // The server has said already that it was not heard of.
            if silent && !row.complaints().is_empty() {
                let findings = row.findings.clone();
                tx.put_findings(row, findings, true, now)?;
                continue;
            }
            if now.0 - row.checked_at.0 < CHECK_MS {
                continue;
            }
            let detail = format!(
                "the operator of cluster `{}` did not finish its checks in {} s; see its log, then attach again",
                row.cluster,
                CHECK_MS / 1000
            );
            let mut findings = row.findings.clone();
            findings.push(Finding { check: "operator".to_owned(), passed: false, detail });
            tx.put_findings(row, findings, true, now)?;
        }
        Ok(())
    });
    given_up.await
}
