//! Installing and upgrading: check everything first, then apply, then wait; take it back when it does not become ready.

use super::{connect, failed, record, register, settings, settings::Typed, sight};
use crate::{
    args::extension::{ClusterArgs, Install as Args, Manifests, Patience, Shape, Upgrade},
    commands::Context,
    failure::{Done, Failure},
    local, spec_file,
};
use domain::spec::yaml::to_yaml;
use kubernetes::{
    connect::Cluster,
    health::Stage,
    install::{self as kube, Applied, Installed},
    manifests::{self, Install, PROTECTED_SECRET},
    settings::{Checked, Unsafe, keys::is_namespace, merged, unsafe_while_running},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, time::Duration};

pub(super) async fn install(context: &Context, args: &Args) -> Done {
    let typed = settings::typed(&args.shape.settings)?;
    let checked = noticed(context, settings::check(&typed)?);
    let ClusterArgs { reach, namespace } = &args.cluster;
    valid_namespace(namespace)?;
    let cluster = connect(reach).await?;
    let before = kube::installed(&cluster, namespace).await.map_err(failed)?;
    not_helm_s(before.as_ref(), namespace)?;
    let session = context.session().await?;
    let url = local::outside(&context.config).unwrap_or_else(|| session.client.url().to_owned());
    let place = Place { cluster: &args.cluster_name, namespace, url: &url };
    let mut wanted = sheet(context, &place, &args.shape, &typed, checked)?;
    let health = sight::before(&cluster, &wanted, Stage::Install, args.adopt).await?;
    sight::warn(context, &health);
    let known = session.client.find(&record(&args.cluster_name)).await?.is_some();
    // A new token ends the old one, and what is installed already could not be put back without it.
    if !known || before.is_none_or(|before| before.cluster != args.cluster_name) {
        wanted.token = Some(register(&session.client, &args.cluster_name).await?);
    }
    let done = carry_out(context, &cluster, &wanted, args.patience).await;
    if done.is_err() && !known && !args.patience.no_rollback {
        // A cluster that was not installed is not one the server should wait for.
        let _ = session.client.delete(&record(&args.cluster_name)).await;
    }
    let applied = done?;
    leave_report(context, &cluster, namespace, Stage::Install, &health).await;
    context.output.note(&format!(
        "installed; next: `peregrine compute attach --type kubernetes -n {} --namespace default`",
        args.cluster_name
    ));
    show(context, &wanted, &applied)
}

pub(super) async fn upgrade(context: &Context, args: &Upgrade) -> Done {
    let ClusterArgs { reach, namespace } = &args.cluster;
    let cluster = connect(reach).await?;
    let before = kube::installed(&cluster, namespace).await.map_err(failed)?;
    not_helm_s(before.as_ref(), namespace)?;
    let Some(before) = before else {
        return Err(Failure::input(format!("the extension is not installed in namespace `{namespace}`"))
            .hint("install it with `peregrine extension install`, or name its `--namespace`"));
    };
    let mut typed = settings::typed(&args.shape.settings)?;
    typed.plain = merged(&before.plain, &typed.plain);
    let checked = noticed(context, settings::check(&typed)?);
    let place = Place { cluster: &before.cluster, namespace, url: &before.server };
    let mut wanted = sheet(context, &place, &args.shape, &typed, checked)?;
    wanted.image = args.shape.image.clone().unwrap_or_else(|| this_version(&before.image));
    wanted.proxy = std::array::from_fn(|at| match wanted.proxy[at].as_str() {
        "" => before.proxy[at].clone(),
        given => given.to_owned(),
    });
    refuse_unsafe(&cluster, &before, &wanted, args.force).await?;
    let health = sight::before(&cluster, &wanted, Stage::Upgrade, false).await?;
    sight::warn(context, &health);
    if args.rotate_token {
        wanted.token = Some(register(&context.session().await?.client, &before.cluster).await?);
    }
    let applied = carry_out(context, &cluster, &wanted, args.patience).await?;
    if typed.protected.is_empty() {
        let gone = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": PROTECTED_SECRET, "namespace": namespace}});
        kube::remove_one(&cluster, &gone).await.map_err(failed)?;
    }
    for object in manifests::obsolete(&before.plain, &wanted) {
        kube::remove_one(&cluster, &object).await.map_err(failed)?;
    }
    if !wanted.settings.memory_reservation {
        kube::release_memory(&cluster, namespace).await.map_err(failed)?;
    }
    leave_report(context, &cluster, namespace, Stage::Upgrade, &health).await;
    show(context, &wanted, &applied)
}

/// Prints the objects; asks neither cluster nor server.
pub(super) async fn manifests(context: &Context, args: &Manifests) -> Done {
    let typed = settings::typed(&args.shape.settings)?;
    let checked = noticed(context, settings::check(&typed)?);
    valid_namespace(&args.namespace)?;
    let url = context.config.public_url.clone().or_else(|| context.config.url.clone()).unwrap_or_default();
    let place = Place { cluster: &args.cluster_name, namespace: &args.namespace, url: &url };
    let mut wanted = sheet(context, &place, &args.shape, &typed, checked)?;
    if wanted.server.is_empty() {
        return Err(
            Failure::input("the server's address is not known").hint("name it with `--server https://ADDRESS:7423`")
        );
    }
    wanted.token = match &args.token_file {
        Some(path) => Some(spec_file::read_text(path)?.trim().to_owned()),
        None => {
            context.output.note(&format!(
                "notice: the operator's token is not part of this; make the secret `{}` with the key `token` from what \
                 `peregrine extension token --cluster-name {}` prints, or add `--token-file`",
                manifests::TOKEN_SECRET,
                args.cluster_name
            ));
            None
        }
    };
    let all = manifests::objects(&wanted);
    match context.output.format_was_chosen() {
        true => context.output.show(&json!({"apiVersion": "v1", "kind": "List", "items": all})),
        false => context.output.text(&all.iter().map(|object| format!("---\n{}", to_yaml(object))).collect::<String>()),
    }
}

/// Applies and waits; what was done is undone if it does not become ready.
async fn carry_out(context: &Context, cluster: &Cluster, wanted: &Install, patience: Patience) -> Done<Vec<Applied>> {
    let mut applied = Vec::new();
    let progress = |words: &str| context.output.note(&format!("… {words}"));
    let within = (Duration::from_secs(patience.timeout), wanted.settings.inference.is_some());
    let done = match kube::apply(cluster, &manifests::objects(wanted), &mut applied).await {
        Ok(()) => kube::until_ready(cluster, &wanted.namespace, within, &progress).await,
        failed => failed,
    };
    let Err(error) = done else { return Ok(applied) };
    let failure = failed(error);
    if patience.no_rollback {
        return Err(failure.hint("what was made is still there, because of `--no-rollback`"));
    }
    context.output.note("… taking back what was applied");
    let undone = kube::roll_back(cluster, &applied).await;
    let failure = failure.doing(match undone.is_empty() {
        true => "the extension was not installed; the cluster is as it was before",
        false => "the extension was not installed, and not everything could be taken back",
    });
    Err(undone
        .into_iter()
        .flat_map(|error| [error.to_string()].into_iter().chain(error.reasons()))
        .fold(failure, Failure::because))
}

/// Which cluster, where in it, and the server's address where no flag or setting says another.
struct Place<'a> {
    cluster: &'a str,
    namespace: &'a str,
    url: &'a str,
}

/// Everything that varies, from flags, settings and what this machine knows of the server.
fn sheet(context: &Context, place: &Place<'_>, shape: &Shape, typed: &Typed, checked: Checked) -> Done<Install> {
    let named = |value: &Option<String>| value.clone().unwrap_or_default();
    let server =
        shape.server.clone().or_else(|| context.config.public_url.clone()).unwrap_or_else(|| place.url.to_owned());
    if !server.is_empty() && !server.starts_with("https://") && !server.starts_with("http://") {
        return Err(
            Failure::input(format!("`{server}` is not an address of a server")).hint("write `https://ADDRESS:PORT`")
        );
    }
    Ok(Install {
        cluster: place.cluster.to_owned(),
        namespace: place.namespace.to_owned(),
        image: shape.image.clone().unwrap_or_else(|| format!("peregrine:{}", env!("CARGO_PKG_VERSION"))),
        server: server.trim_end_matches('/').to_owned(),
        authority: authority(context, shape)?,
        proxy: [named(&shape.proxy_https), named(&shape.proxy_http), named(&shape.proxy_skip_range)],
        plain: typed.plain.clone(),
        settings: checked.settings,
        token: None,
        protected: (!typed.protected.is_empty()).then(|| typed.protected.clone()),
    })
}

/// The authority pods must trust to reach the server. A certificate of your own is taken to be of one they know already,
/// unless its authority is named.
fn authority(context: &Context, shape: &Shape) -> Done<Option<String>> {
    let config = &context.config;
    match shape.server_authority.as_ref().or(config.authority_file.as_ref()) {
        Some(path) => Ok(Some(spec_file::read_text(path)?)),
        None if config.tls_cert.is_some() || config.url.is_some() => Ok(None),
        None => Ok(fs::read_to_string(agent::server::authority_file(&config.home)).ok()),
    }
}

fn noticed(context: &Context, checked: Checked) -> Checked {
    for notice in &checked.notices {
        context.output.note(&format!("notice: {notice}"));
    }
    checked
}

fn valid_namespace(namespace: &str) -> Done {
    match is_namespace(namespace) {
        true => Ok(()),
        false => Err(Failure::input(format!("`{namespace}` is not a namespace"))
            .hint("use lower-case letters, digits and `-`, at most 63")),
    }
}

fn not_helm_s(before: Option<&Installed>, namespace: &str) -> Done {
    match before.and_then(|before| before.helm.as_ref()) {
        None => Ok(()),
        Some(release) => Err(Failure::input(format!("Helm installed the extension, as release `{release}`"))
            .hint(format!("use `helm upgrade {release} -n {namespace}`"))),
    }
}

/// Some settings must not change under jobs that run.
async fn refuse_unsafe(cluster: &Cluster, before: &Installed, wanted: &Install, force: bool) -> Done {
    let was = kubernetes::settings::installed(&before.plain).unwrap_or_default();
    let changes = unsafe_while_running(&was, &wanted.settings);
    if changes == Unsafe::default() || force {
        return Ok(());
    }
    let named = |names: &[&str], what: String, hint: &str| {
        Err(Failure::input(format!("`{}` must not change while {what}", names.join("`, `"))).hint(hint))
    };
    let running = kube::running_attempts(cluster).await.map_err(failed)?;
    let served: BTreeSet<_> = running.values().flatten().collect();
    match (running.len(), served.len()) {
        (some @ 1.., _) if !changes.running.is_empty() => {
            named(&changes.running, format!("{some} jobs run"), "wait until they have ended, or add `--force`")
        }
        (_, some @ 1..) if !changes.serving.is_empty() => {
            let hint = "callers know another address than they would have to use; delete the deployments first, or add `--force`";
            named(&changes.serving, format!("{some} endpoints are served"), hint)
        }
        _ => Ok(()),
    }
}

/// The same image, of this program's version where it is tagged by one.
fn this_version(image: &str) -> String {
    match image.rsplit_once(':') {
        Some((name, tag)) if tag.split('.').count() == 3 && tag.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{name}:{}", env!("CARGO_PKG_VERSION"))
        }
        _ => image.to_owned(),
    }
}

/// The report is for later; an installation does not fail for want of it.
async fn leave_report(
    context: &Context,
    cluster: &Cluster,
    namespace: &str,
    stage: Stage,
    health: &[kubernetes::health::Health],
) {
    if let Err(error) = kube::report(cluster, namespace, stage, health).await {
        context.output.note(&format!("notice: {error}"));
    }
}

fn show(context: &Context, wanted: &Install, applied: &[Applied]) -> Done {
    let names = |made: bool| applied.iter().filter(|one| one.was_made() == made).map(Applied::name).collect::<Vec<_>>();
    let shown: Value = json!({
        "cluster": wanted.cluster, "namespace": wanted.namespace, "server": wanted.server, "image": wanted.image,
        "settings": wanted.plain, "made": names(true), "changed": names(false),
    });
    context.output.show(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upgrade_follows_the_program_s_version_and_leaves_other_tags() {
        let own = env!("CARGO_PKG_VERSION");
        for (image, expect) in [
            ("peregrine:0.0.1", format!("peregrine:{own}")),
            ("registry.example:5000/ml/peregrine:0.0.1", format!("registry.example:5000/ml/peregrine:{own}")),
            ("peregrine:test", "peregrine:test".to_owned()),
            ("registry.example:5000/peregrine", "registry.example:5000/peregrine".to_owned()),
        ] {
            assert_eq!(this_version(image), expect);
        }
    }
}
