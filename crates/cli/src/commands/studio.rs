//! `peregrine studio`, and what `--web` does: a link that signs a browser in once, opened where there is a browser.

use super::{Context, Session};
use crate::{args::machine::Studio, failure::Done};
use serde_json::{Value, json};
use std::{
    io::IsTerminal,
    process::{Command, ExitCode, Stdio},
};

pub(super) async fn run(context: &Context, args: &Studio) -> Done<ExitCode> {
    let session = context.session().await?;
    let link = link(&session, args.name.as_deref()).await?;
    if args.print || !std::io::stdout().is_terminal() || !opens(&link) {
        context.output.note("this link signs one browser in, once, within two minutes");
        context.output.text(&format!("{link}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows a job in a browser, or says where it could be seen.
pub(super) async fn show(session: &Session<'_>, job: &str) -> Done {
    let link = link(session, Some(job)).await?;
    if !std::io::stderr().is_terminal() || !opens(&link) {
        session.output().note(&format!("see it at {link} (works once, within two minutes)"));
    }
    Ok(())
}

async fn link(session: &Session<'_>, job: Option<&str>) -> Done<String> {
    let made: Value = session.client.post("/admin/v1/studio/links", &json!({})).await?;
    let url = made["url"].as_str().unwrap_or_default();
    let workspace = &session.scope.workspace;
    let view = job.map_or_else(|| workspace.clone(), |job| format!("{workspace}/jobs/{job}"));
    Ok(url.replacen("/studio/#", &format!("/studio/{view}#"), 1))
}

/// Whether this machine has a browser and a screen to show it on.
fn opens(link: &str) -> bool {
    let screen =
        cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut open = Command::new(program);
    open.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    screen && open.status().is_ok_and(|status| status.success())
}
