//! `peregrine server …`: the process itself is `roles`, finding it is `local`.

use super::{Context, wait};
use crate::{
    args::machine::{Backup, ServerVerb},
    failure::{Done, Exit, Failure},
    local,
    output::Column,
    roles,
};
use serde_json::json;
use std::{process::ExitCode, time::Duration};

pub(super) fn run(context: &Context, verb: ServerVerb) -> Done<ExitCode> {
    match verb {
        ServerVerb::Start(args) if args.foreground || args.detached => {
            return roles::server_foreground(&context.config, args.detached);
        }
        ServerVerb::Start(_) => wait(start(context))?,
        ServerVerb::Stop => wait(stop(context))?,
        ServerVerb::Status => return status(context),
        ServerVerb::Backup(args) => wait(backup(context, &args))?,
        ServerVerb::Audit(args) => wait(audit(context, args.max_results))?,
        ServerVerb::Gc(args) => wait(free(context, args.older_than))?,
        ServerVerb::RotateKeys => wait(rotate_keys(context))?,
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
    if let Some(address) = &context.config.postgres {
        let home = context.config.home.display();
        return Err(Failure::input(format!("cannot copy the database `{address}`"))
            .because("it is kept by Postgres, whose own tools copy it")
            .hint(format!("run `pg_dump --format=custom --file={} {address}`", to.display()))
            .hint(format!("keys and files are beside it: copy `{home}/keys` and `{home}/blobs` as well")));
    }
    local::backup(&context.config, &to).await?;
    context
        .output
        .note(&format!("wrote `{}`; to restore, stop the server and put it in place of its database", to.display()));
    Ok(())
}

async fn free(context: &Context, older_than: Option<Duration>) -> Done {
    let session = context.session().await?;
    let asked = json!({"older_than_seconds": older_than.map(|time| time.as_secs())});
    let freed: serde_json::Value = session.client.post("/admin/v1/free", &asked).await?;
    if freed["kept"] != 0 {
        let kept = &freed["kept"];
        context.output.note(&format!("{kept} of what was deleted stay: models or data assets refer to their files"));
    }
    context.output.show(&freed)
}

async fn audit(context: &Context, limit: usize) -> Done {
    let session = context.session().await?;
    let lines = session.client.list(&format!("/admin/v1/audit?$top={}", limit.clamp(1, 1000)), limit).await?;
    context.output.list(lines, AUDIT)
}

async fn rotate_keys(context: &Context) -> Done {
    let session = context.session().await?;
    let made: serde_json::Value = session.client.post("/admin/v1/keys/rotate", &json!({})).await?;
    context.output.note("tokens are signed with a new key; those given out before end within the hour");
    context.output.show(&made)
}

const AUDIT: &[Column] = &[
    Column::new("WHEN", |item| text(item, "at")).whole(),
    Column::new("WHO", |item| text(item, "caller")),
    Column::new("WORKSPACE", |item| text(item, "workspace")),
    Column::new("OPERATION", |item| text(item, "operation")),
    Column::new("RESULT", |item| text(item, "result")),
    Column::new("PATH", |item| text(item, "path")),
];

fn text(item: &serde_json::Value, key: &str) -> String {
    api::arm::text(item, key).unwrap_or_default()
}

fn view(running: &local::Running) -> serde_json::Value {
    json!({"status": "running", "pid": running.pid, "url": running.url, "version": running.version, "home": running.home})
}
