//! `peregrine extension …`.

mod install;
mod settings;
mod sight;
pub(super) mod types;

use super::{Context, confirm};
use crate::{
    args::extension::{ClusterArgs, ExtensionVerb, Reach, Token, Uninstall},
    failure::{Done, Exit, Failure},
    local,
    output::Column,
};
use api::Client;
use kubernetes::{
    connect::{Cluster, Error},
    install::{self as kube, Removal},
    settings::keys::{Effect, KEYS},
};
use serde_json::{Value, json};
use std::{process::ExitCode, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

const SETTINGS: &[Column] = &[
    Column::new("SETTING", |item| text(item, "name")).whole(),
    Column::new("DEFAULT", |item| text(item, "default")),
    Column::new("HERE", |item| text(item, "here")),
    Column::new("ABOUT", |item| text(item, "about")),
];

pub(super) async fn run(context: &Context, verb: ExtensionVerb) -> Done<ExitCode> {
    match verb {
        ExtensionVerb::Install(args) => install::install(context, &args).await?,
        ExtensionVerb::Upgrade(args) => install::upgrade(context, &args).await?,
        ExtensionVerb::Manifests(args) => install::manifests(context, &args).await?,
        ExtensionVerb::Uninstall(args) => uninstall(context, &args).await?,
        ExtensionVerb::Status(args) => sight::status(context, &args).await?,
        ExtensionVerb::HealthCheck(args) => return sight::health_check(context, &args).await,
        ExtensionVerb::Token(args) => token(context, &args).await?,
        ExtensionVerb::Settings => list_settings(context)?,
        ExtensionVerb::Hold => hold().await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A cluster, reached as the flags say.
async fn connect(reach: &Reach) -> Done<Cluster> {
    Cluster::connect(reach.kubeconfig.as_deref(), reach.context.as_deref()).await.map_err(failed)
}

/// What went wrong on a cluster, with whose fault it is.
fn failed(error: Error) -> Failure {
    let exit = match &error {
        Error::Kubeconfig(_) | Error::NotPortable { .. } | Error::NotInside(_) => Exit::Input,
        Error::Credentials(_) | Error::Unauthorized { .. } | Error::Forbidden { .. } => Exit::NotAllowed,
        Error::Unreachable { .. } => Exit::Unreachable,
        Error::Refused { code, .. } if *code >= 500 => Exit::Unreachable,
        Error::Refused { .. } => Exit::Input,
        Error::NotReady { .. } => Exit::Unreachable,
    };
    let failure = Failure::new(exit, error.to_string());
    error.reasons().into_iter().fold(failure, Failure::because).hint(error.next_step())
}

/// Where the server keeps what it knows of a cluster.
fn record(name: &str) -> String {
    format!("/clusters/{name}")
}

/// The server, if one can be reached without starting any.
async fn running_server(context: &Context) -> Done<Client> {
    local::connect(&context.config, false).await
}

/// Makes the server know a cluster; the token its operator shows.
async fn register(client: &Client, name: &str) -> Done<String> {
    let made: Value = client
        .put(&record(name), &json!({}))
        .await
        .map_err(|error| Failure::from(error).doing(format!("cannot make the server know the cluster `{name}`")))?;
    made["token"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(Exit::Ours, format!("the server gave no token for the cluster `{name}`")))
}

async fn token(context: &Context, args: &Token) -> Done {
    let session = context.session().await?;
    let token = register(&session.client, &args.cluster_name).await?;
    match context.output.format_was_chosen() {
        true => context.output.show(&json!({"cluster": args.cluster_name, "token": token})),
        false => context.output.text(&format!("{token}\n")),
    }
}

fn list_settings(context: &Context) -> Done {
    let one = |key: &kubernetes::settings::keys::Key| {
        let here = match key.effect {
            Effect::Used => "used",
            Effect::Instead(_) => "accepted, not needed",
        };
        json!({"name": key.name, "aliases": key.aliases, "default": key.default, "here": here, "about": key.about})
    };
    context.output.list(KEYS.iter().map(one).collect(), SETTINGS)
}

async fn uninstall(context: &Context, args: &Uninstall) -> Done {
    let ClusterArgs { reach, namespace } = &args.cluster;
    let cluster = connect(reach).await?;
    let before = kube::installed(&cluster, namespace).await.map_err(failed)?;
    if let Some(release) = before.as_ref().and_then(|before| before.helm.as_ref()) {
        return Err(Failure::input(format!("Helm installed the extension, as release `{release}`"))
            .hint(format!("run `helm uninstall {release} -n {namespace}` first, then this again for what jobs left")));
    }
    let found = kube::leftovers(&cluster, namespace).await.map_err(failed)?;
    if found.is_empty() {
        context.output.note("nothing of the extension is in the cluster");
    } else {
        confirm(context, &question(&cluster, args).await?, args.yes)?;
        let within = Duration::from_secs(args.timeout);
        let removal = kube::remove(&cluster, namespace, args.keep_instance_types, within).await.map_err(failed)?;
        tell(context, &removal)?;
        if args.keep_instance_types {
            context.output.note("kept instance types and their definition, as asked");
        }
    }
    if let Some(before) = before {
        forget(context, &before.cluster).await;
    }
    Ok(())
}

/// What would be lost.
async fn question(cluster: &Cluster, args: &Uninstall) -> Done<String> {
    let running = kube::running_attempts(cluster).await.map_err(failed)?.len();
    let types = kube::instance_types(cluster).await.map_err(failed)?;
    let mut parts = vec!["removing the extension".to_owned()];
    if running > 0 {
        parts.push(format!("ending {running} running jobs"));
    }
    if !args.keep_instance_types && !types.is_empty() {
        parts.push(format!("removing the instance types `{}`", types.join("`, `")));
    }
    Ok(parts.join(" and "))
}

/// Lists what went, and proves that nothing stayed.
fn tell(context: &Context, removal: &Removal) -> Done {
    let names = |all: &[kube::Left]| all.iter().map(kube::Left::name).collect::<Vec<_>>();
    let (removed, left) = (names(&removal.removed), names(&removal.left));
    for name in &removed {
        context.output.note(&format!("removed {name}"));
    }
    if let Some(namespace) = &removal.kept_namespace {
        context.output.note(&format!("kept namespace `{namespace}`: it holds things that are not the extension's"));
    }
    if !left.is_empty() {
        let failure = Failure::new(Exit::Unreachable, format!("{} objects are not gone yet", left.len()));
        return Err(left
            .into_iter()
            .fold(failure, Failure::because)
            .hint("run it again, or see what holds them with `kubectl describe`"));
    }
    context.output.note("listed everything again: nothing of the extension and of its jobs is left");
    match context.output.format_was_chosen() {
        true => {
            context.output.show(&json!({"removed": removed, "left": left, "kept_namespace": removal.kept_namespace}))
        }
        false => Ok(()),
    }
}

/// Makes the server forget a cluster, if it can be asked.
async fn forget(context: &Context, name: &str) {
    let asked = match running_server(context).await {
        Ok(client) => client.delete(&record(name)).await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    match asked {
        Ok(()) => context.output.note(&format!("the server forgot the cluster `{name}`")),
        Err(failure) => context.output.note(&format!("notice: the server still knows the cluster `{name}`\n{failure}")),
    }
}

/// Does nothing until it is told to stop. A first process has no such manners by itself.
async fn hold() -> Done {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    Ok(())
}

fn text(item: &Value, key: &str) -> String {
    api::arm::text(item, key).unwrap_or_default()
}
