//! The role of a cluster's operator: what its Deployment tells it, checked whole, and the loop started.

use crate::{
    args::machine::Operator as Args,
    failure::{Done, Exit, Failure},
    roles::{log_to, provide_crypto, small_runtime, until_told},
};
use kubernetes::{
    operator::{self, Operator, Server},
    settings::{self, Settings},
};
use serde_json::Value;
use std::process::ExitCode;
use tokio::sync::watch;

/// Runs the operator until it is told to stop.
pub(crate) fn run(args: Args) -> Done<ExitCode> {
    log_to(None)?;
    provide_crypto();
    let operator = read(args, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
    tracing::info!(server = operator.server.url, namespace = operator.namespace, "starting");
    let (stop_sender, stop) = watch::channel(false);
    let work = async {
        tokio::select! { ended = operator::run(operator, stop) => ended, () = told(stop_sender) => Ok(()) }
    };
    // One thread is enough, and keeps it small.
    small_runtime()?.block_on(work).map_err(|error| {
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let failure = Failure::new(Exit::Unreachable, "the operator stopped");
        causes.fold(failure, |failure, cause| failure.because(cause.to_string()))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Passes a polite signal on, and leaves the rest to the operator.
async fn told(stop: watch::Sender<bool>) {
    until_told(stop).await;
    std::future::pending::<()>().await;
}

/// Flags before variables; everything that is missing at once.
fn read(args: Args, variable: &dyn Fn(&str) -> Option<String>) -> Done<Operator> {
    let mut missing = Vec::new();
    let mut needed = |given: Option<String>, name: &str| {
        let value = given.or_else(|| variable(name));
        if value.is_none() {
            missing.push(format!("`{name}` is not set"));
        }
        value.unwrap_or_default()
    };
    let text = |path: Option<std::path::PathBuf>| path.map(|path| path.display().to_string());
    let server = needed(args.server, "PEREGRINE_SERVER");
    let token_file = needed(text(args.token_file), "PEREGRINE_TOKEN_FILE").into();
    let image = needed(args.image, "PEREGRINE_IMAGE");
    let namespace = needed(args.namespace, "PEREGRINE_NAMESPACE");
    let settings = match read_settings(args.settings.or_else(|| variable("PEREGRINE_SETTINGS"))) {
        Ok(settings) => settings,
        Err(mistakes) => {
            missing.extend(mistakes);
            Settings::default()
        }
    };
    if !missing.is_empty() {
        let failure = Failure::input("the operator cannot start");
        let failure = missing.into_iter().fold(failure, Failure::because);
        return Err(failure.hint("`peregrine extension install` makes a Deployment that sets all of it"));
    }
    Ok(Operator {
        server: Server {
            url: server,
            token_file,
            authority_file: args.ca_file.or_else(|| variable("PEREGRINE_CA_FILE").map(Into::into)),
        },
        settings,
        image,
        namespace,
        identity: args.identity.or_else(|| variable("POD_NAME")).unwrap_or_else(|| "operator".to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        listen: args.listen,
        kubeconfig: args.kubeconfig,
        proxy: kubernetes::operator::proxy(variable),
        clock: server::clock::now,
    })
}

fn read_settings(json: Option<String>) -> Result<Settings, Vec<String>> {
    let Some(json) = json else { return Ok(Settings::default()) };
    let tree: Value =
        serde_json::from_str(&json).map_err(|error| vec![format!("`PEREGRINE_SETTINGS` is not JSON: {error}")])?;
    let say = |mistake: &domain::spec::Mistake| format!("setting `{}`: {}", mistake.key, mistake.message);
    let raw = settings::from_json(&tree).map_err(|mistake| vec![say(&mistake)])?;
    settings::installed(&raw).map_err(|all| all.iter().map(say).collect::<Vec<_>>())
}
