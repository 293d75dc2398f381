//! Looking: `status`, `health-check`, and the same check before anything is changed.

use super::{connect, failed, record, running_server};
use crate::{
    args::extension::ClusterArgs,
    commands::Context,
    failure::{Done, Exit, Failure},
    output::{Column, instant},
};
use kubernetes::{
    certificate,
    connect::Cluster,
    health::{self, CertificateSeen, Health, ServerSeen, Stage, State},
    install::{self as kube, Installed},
    manifests::Install,
    settings::{self, Certificate, Settings},
};
use serde_json::{Value, json};
use std::process::ExitCode;

const CHECKS: &[Column] = &[
    Column::new("CODE", |item| super::text(item, "code")).whole(),
    Column::new("CHECK", |item| super::text(item, "name")).whole(),
    Column::new("STATE", |item| super::text(item, "state")).whole(),
    Column::new("SEEN", |item| super::text(item, "detail")),
];

/// Checks a cluster before something is changed; what must stop it is a failure.
pub(super) async fn before(cluster: &Cluster, wanted: &Install, stage: Stage, adopt: bool) -> Done<Vec<Health>> {
    let mut seen = kube::look(cluster, &wanted.namespace, &wanted.settings, stage).await.map_err(failed)?;
    if let Some(given) = given_certificate(wanted) {
        seen.certificate = given;
    }
    let silent = Some("nothing has changed yet".into());
    let server = ServerSeen { url: wanted.server.clone(), silent, ..ServerSeen::default() };
    let all = health::judge(&seen, &server, &wanted.settings, stage);
    let stops: Vec<&Health> = all.iter().filter(|one| one.stops() && !(adopt && one.code == "P40103")).collect();
    let Some(first) = stops.first() else { return Ok(all) };
    let exit = if first.code == "P40101" { Exit::NotAllowed } else { Exit::Input };
    let failure = Failure::new(exit, "the extension cannot be installed here as it is");
    let told = |failure: Failure, one: &&Health| {
        failure.because(format!("{} {}: {}", one.code, one.name, one.detail)).hint(&one.next)
    };
    Err(stops.iter().fold(failure, told))
}

/// The certificate among protected settings that are not in the cluster yet.
fn given_certificate(wanted: &Install) -> Option<CertificateSeen> {
    let inference = wanted.settings.inference.as_ref().filter(|one| one.certificate == Certificate::Protected)?;
    let given = |name: &str| wanted.protected.as_ref().and_then(|all| all.get(name));
    let (chain, key) = (given("sslCertPemFile")?, given("sslKeyPemFile").or_else(|| given("sslCertKeyFile"))?);
    Some(certificate::judge(chain.as_bytes(), key.as_bytes(), &inference.host))
}

/// What is worth knowing and stops nothing. How the operator is, is not known before it is there.
pub(super) fn warn(context: &Context, all: &[Health]) {
    let tells = |one: &&Health| one.state == State::Failed && one.code != "E45001" && one.code != "P40103";
    for one in all.iter().filter(tells) {
        context.output.note(&format!("warning: {} {}: {}\nhint: {}", one.code, one.name, one.detail, one.next));
    }
}

pub(super) async fn health_check(context: &Context, args: &ClusterArgs) -> Done<ExitCode> {
    let cluster = connect(&args.reach).await?;
    let installed = kube::installed(&cluster, &args.namespace).await.map_err(failed)?;
    let settings = installed.as_ref().map(settings_of).unwrap_or_default();
    let server = server_side(context, installed.as_ref()).await;
    let all = match kube::look(&cluster, &args.namespace, &settings, Stage::Test).await {
        Ok(seen) => health::judge(&seen, &server, &settings, Stage::Test),
        Err(error) => vec![health::unknown(format!("{error}: {}", error.reasons().join("; ")))],
    };
    if installed.is_some()
        && let Err(error) = kube::report(&cluster, &args.namespace, Stage::Test, &all).await
    {
        context.output.note(&format!("notice: the report was not kept in the cluster: {error}"));
    }
    let failing: Vec<&Health> = all.iter().filter(|one| one.state == State::Failed).collect();
    for one in &failing {
        context.output.note(&format!("{} {}: {}\nhint: {}", one.code, one.name, one.detail, one.next));
    }
    let good = failing.is_empty();
    context.output.list(all.iter().map(|one| json!(one)).collect(), CHECKS)?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(Exit::JobFailed as u8) })
}

pub(super) async fn status(context: &Context, args: &ClusterArgs) -> Done {
    let cluster = connect(&args.reach).await?;
    let Some(installed) = kube::installed(&cluster, &args.namespace).await.map_err(failed)? else {
        return Err(Failure::input(format!("the extension is not installed in namespace `{}`", args.namespace))
            .hint("install it with `peregrine extension install`, or name its `--namespace`"));
    };
    let server = server_side(context, Some(&installed)).await;
    let running = kube::running_attempts(&cluster).await.map_err(failed)?;
    context.output.show(&json!({
        "cluster": installed.cluster,
        "namespace": args.namespace,
        "api_server": cluster.url,
        "server": installed.server,
        "image": installed.image,
        "ready": format!("{}/{}", installed.ready, installed.wanted),
        "installed_by": installed.helm.map_or("peregrine".to_owned(), |release| format!("Helm release {release}")),
        "heard": heard_words(&server, &kube::uid(&cluster).await.map_err(failed)?),
        "running_attempts": running.len(),
        "instance_types": kube::instance_types(&cluster).await.map_err(failed)?,
        "settings": installed.plain,
    }))
}

fn heard_words(server: &ServerSeen, uid: &str) -> String {
    match (server.heard, &server.silent) {
        _ if server.mistakes(uid) => server.mistake(uid),
        (Some(seconds), _) => format!("{seconds} s ago"),
        (None, Some(why)) => format!("unknown: {why}"),
        (None, None) => "never".to_owned(),
    }
}

fn settings_of(installed: &Installed) -> Settings {
    settings::installed(&installed.plain).unwrap_or_default()
}

/// What the server knows of the cluster, if it can be asked.
async fn server_side(context: &Context, installed: Option<&Installed>) -> ServerSeen {
    let Some(Installed { cluster, server: url, .. }) = installed else { return ServerSeen::default() };
    let seen = ServerSeen { url: url.clone(), ..ServerSeen::default() };
    let asked: Done<Option<Value>> = match running_server(context).await {
        Ok(client) => client.find(&record(cluster)).await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    match asked {
        Ok(Some(found)) => {
            let heard = instant(&found["seenAt"]).map(|at| server::clock::now().since(at).as_secs());
            ServerSeen { heard, uid: super::text(&found, "uid"), ..seen }
        }
        Ok(None) => ServerSeen { silent: Some(format!("it does not know the cluster `{cluster}`")), ..seen },
        Err(failure) => {
            ServerSeen { silent: Some(failure.to_string().trim_start_matches("error: ").to_owned()), ..seen }
        }
    }
}
