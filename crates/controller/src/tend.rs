//! The tending loop: each compute target's agent is there, or is started again.

use crate::{Context, until};
use std::time::Duration;
use tokio::sync::watch;

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
        if !until(&mut stop, tokio::time::sleep(Duration::from_secs(1))).await {
            return;
        }
    }
}
