//! `peregrine server …`: the process itself is `roles`, finding it is `local`.

use super::{Context, wait};
use crate::{
    args::machine::{Backup, ServerVerb},
    failure::{Done, Exit, Failure},
    local, roles,
};
use serde_json::json;
use std::process::ExitCode;

pub(super) fn run(context: &Context, verb: ServerVerb) -> Done<ExitCode> {
    match verb {
        ServerVerb::Start(args) if args.foreground || args.detached => {
            return roles::server_foreground(&context.config, args.detached);
        }
        ServerVerb::Start(_) => wait(start(context))?,
        ServerVerb::Stop => wait(stop(context))?,
        ServerVerb::Status => return status(context),
        ServerVerb::Backup(args) => wait(backup(context, &args))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn start(context: &Context) -> Done {
    if let Some(running) = local::status(&context.config.home) {
        context.output.note(&format!("a server already runs at {}", running.url));
    } else {
        local::start_detached(&context.config).await?;
    }
    match local::status(&context.config.home) {
        Some(running) => context.output.show(&view(&running)),
        None => Err(Failure::new(Exit::Unreachable, "the server started and went away")
            .hint("run `peregrine server start --foreground` to see why")),
    }
}

async fn stop(context: &Context) -> Done {
    let Some(running) = local::status(&context.config.home) else {
        context.output.note("no server runs");
        return Ok(());
    };
    local::stop(&context.config.home).await?;
    context.output.note(&format!(
        "stopped the server at {}; running jobs go on and are found again at the next start",
        running.url
    ));
    Ok(())
}

fn status(context: &Context) -> Done<ExitCode> {
    match local::status(&context.config.home) {
        Some(running) => {
            context.output.show(&view(&running))?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            context.output.note(&format!("no server runs for `{}`", context.config.home.display()));
            context.output.note("hint: `peregrine server start` starts one, and so does any command that needs one");
            Ok(ExitCode::from(Exit::Unreachable as u8))
        }
    }
}

async fn backup(context: &Context, args: &Backup) -> Done {
    let to = std::path::absolute(&args.to)?;
    if to.exists() {
        return Err(Failure::input(format!("`{}` already exists", to.display())).hint("choose another name"));
    }
    local::backup(&context.config, &to).await?;
    context
        .output
        .note(&format!("wrote `{}`; to restore, stop the server and put it in place of its database", to.display()));
    Ok(())
}

fn view(running: &local::Running) -> serde_json::Value {
    json!({"status": "running", "pid": running.pid, "url": running.url, "version": running.version, "home": running.home})
}
