//! What environments, data and models have in common: versions, lists, tags, archive marks, files to check.

use super::{Context, Session, change, registry, settle};
use crate::{
    args::{
        FileArgs,
        asset::{Create, List, Share, Show, Update, Which},
    },
    failure::{Doing, Done, Failure},
    output::{Column, ago},
    outside,
    post::Post,
    spec_file,
    spec_file::{Base, SpecFile},
    upload::segment,
};
use api::{ClientError, arm::assets::show};
use domain::{
    names::{AssetName, Version},
    spec::{check::Spec, shape::Noun},
};
use serde_json::{Value, json};

/// A kind of asset: its noun and its word in paths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub(super) noun: &'static str,
    pub(super) path: &'static str,
}

pub(super) const ENVIRONMENTS: Kind = Kind { noun: "environment", path: "environments" };
pub(super) const DATA: Kind = Kind { noun: "data", path: "data" };
pub(super) const MODELS: Kind = Kind { noun: "model", path: "models" };
pub(super) const COMPONENTS: Kind = Kind { noun: "component", path: "components" };

const NAMES: &[Column] = &[
    Column::new("NAME", |item| text(item, "name")).whole(),
    Column::new("LATEST", |item| text(item, "latest_version")),
    Column::new("TYPE", |item| text(item, "type")),
    Column::new("DESCRIPTION", |item| text(item, "description")),
    Column::new("CREATED", |item| ago(&item["creation_context"]["created_at"], outside::now())),
];
const VERSIONS: &[Column] = &[
    Column::new("NAME", |item| text(item, "name")).whole(),
    Column::new("VERSION", |item| text(item, "version")).whole(),
    Column::new("TYPE", |item| text(item, "type")),
    Column::new("DESCRIPTION", |item| text(item, "description")),
    Column::new("CREATED", |item| ago(&item["creation_context"]["created_at"], outside::now())),
];

/// The spec in the file, if one was named, and where its paths start.
pub(super) fn from_file(noun: Noun, args: &FileArgs) -> Done<Option<(Spec, Base)>> {
    match &args.file {
        Some(file) => {
            let SpecFile { spec, base } = spec_file::read(noun, file, &args.set)?;
            Ok(Some((spec, base)))
        }
        None if !args.set.is_empty() => {
            Err(Failure::input("`--set` changes a file, and there is none").hint("name one with `-f`"))
        }
        None => Ok(None),
    }
}

/// Overlays what every asset takes as flags.
pub(super) fn overlay(
    args: &Create,
    name: &mut Option<String>,
    version: &mut Option<String>,
    description: &mut Option<String>,
    tags: &mut domain::spec::Tags,
) -> Done {
    *name = args.name.clone().or(name.take());
    *version = args.version.clone().or(version.take());
    *description = args.description.clone().or(description.take());
    tags.extend(change::tags(&args.tags)?);
    Ok(())
}

/// The name, which must be there and valid.
pub(super) fn named(kind: Kind, name: Option<&str>) -> Done<AssetName> {
    match name {
        Some(name) => AssetName::parse(name).map_err(|error| Failure::input(error.to_string())),
        None => {
            Err(Failure::input(format!("the {} has no name", kind.noun))
                .hint("set `name` in the file, or add `-n NAME`"))
        }
    }
}

/// Puts a version: the one named, or the next. An environment that is the same as the latest stays that one.
pub(super) async fn put(
    post: &Post<'_>,
    kind: Kind,
    name: &AssetName,
    version: Option<&str>,
    properties: &Value,
) -> Done<Value> {
    let body = json!({"properties": properties});
    let place = |version: &str| format!("{}/{name}/versions/{version}", kind.path);
    if let Some(version) = version {
        let version = Version::parse(version).map_err(|error| Failure::input(error.to_string()))?;
        return post.put(&place(version.as_str()), &body).await;
    }
    let Some(session) = post.session() else { return post.put(&place("1"), &body).await };
    let at = |version: &str| session.path(&place(version));
    let container = session.find(&session.path(&format!("{}/{name}", kind.path))).await?;
    let known = |key: &str| container.as_ref().and_then(|c| api::arm::text(&c["properties"], key));
    if let Some(latest) = known("latestVersion").filter(|_| kind.path == ENVIRONMENTS.path) {
        match session.client.put(&at(&latest), &body).await {
            Err(ClientError::Refused { status: 409, .. }) => {}
            answer => return Ok(answer?),
        }
    }
    Ok(session.client.put(&at(&known("nextVersion").unwrap_or_else(|| "1".to_owned())), &body).await?)
}

/// Puts a version and prints it.
pub(super) async fn create(
    context: &Context,
    kind: Kind,
    post: &Post<'_>,
    name: &AssetName,
    version: Option<&str>,
    properties: &Value,
) -> Done {
    let made =
        put(post, kind, name, version, properties).await.doing(|| format!("cannot register {} `{name}`", kind.noun))?;
    if post.shown()? {
        return Ok(());
    }
    context.output.show(&show(kind.path, &made))
}

pub(super) async fn show_one(context: &Context, kind: Kind, args: &Show) -> Done {
    let session = context.session().await?;
    let home = home(&session, args.registry.as_deref());
    context.output.show(&show(kind.path, &find_in(&session, &home, kind, &args.which).await?))
}

pub(super) async fn list(context: &Context, kind: Kind, args: &List) -> Done {
    let session = context.session().await?;
    let home = home(&session, args.registry.as_deref());
    let view = match (args.archived_only, args.include_archived) {
        (true, _) => "ArchivedOnly",
        (_, true) => "All",
        _ => "ActiveOnly",
    };
    let (path, columns) = match &args.name {
        Some(name) => (format!("{}/{}/versions", kind.path, named(kind, Some(name))?), VERSIONS),
        None => (kind.path.to_owned(), NAMES),
    };
    let path = format!("{home}/{path}?listViewType={view}&$top={}", args.max_results.min(1_000));
    let found = session.client.list(&path, args.max_results).await.doing(|| format!("cannot list {}", kind.path))?;
    context.output.list(found.iter().map(|item| show(kind.path, item)).collect(), columns)
}

pub(super) async fn update(context: &Context, kind: Kind, args: &Update, allowed: &[change::Allowed]) -> Done {
    let session = context.session().await?;
    let mut asset = find(&session, kind, &args.which).await?;
    change::apply(&mut asset["properties"], &args.change, allowed)?;
    let changed = put_back(&session, kind, &args.which.name, &asset).await?;
    context.output.show(&show(kind.path, &changed))
}

/// Marks one version, or every version where none is named.
pub(super) async fn archive(context: &Context, kind: Kind, which: &Which, archived: bool) -> Done {
    let session = context.session().await?;
    let name = named(kind, Some(&which.name))?;
    let mut all = match which.version.is_some() || which.label.is_some() {
        true => vec![find(&session, kind, which).await?],
        false => {
            session
                .client
                .list(&session.path(&format!("{}/{name}/versions?listViewType=All", kind.path)), usize::MAX)
                .await?
        }
    };
    if all.is_empty() {
        return Err(unknown(&session, kind, which));
    }
    for asset in &mut all {
        asset["properties"]["isArchived"] = json!(archived);
        put_back(&session, kind, &which.name, asset).await?;
    }
    let word = if archived { "archived" } else { "restored" };
    context.output.note(&format!("{word} {} of {} `{name}`", versions(all.len()), kind.noun));
    Ok(())
}

/// Copies a version into a registry, for other workspaces to use.
pub(super) async fn share(context: &Context, kind: Kind, args: &Share) -> Done {
    let session = context.session().await?;
    let which = Which { name: args.name.clone(), version: Some(args.version.clone()), label: None };
    find(&session, kind, &which).await?;
    let doing = || format!("cannot share {} `{}:{}`", kind.noun, args.name, args.version);
    let workspace: Value = session.client.get(&session.scope.path()).await?;
    let place = |key: &Value| key.as_str().unwrap_or("local").to_owned();
    let (location, id) = (place(&workspace["location"]), place(&workspace["properties"]["workspaceId"]));
    let source =
        format!("azureml://locations/{location}/workspaces/{id}/{}/{}/versions/{}", kind.path, args.name, args.version);
    let (name, version) = (
        args.share_with_name.as_deref().unwrap_or(&args.name),
        args.share_with_version.as_deref().unwrap_or(&args.version),
    );
    let body = json!({"properties": {
        "referenceType": "Id", "destinationName": name, "destinationVersion": version, "sourceAssetId": source,
    }});
    let registry = registry::path(&session.scope, &args.registry_name);
    settle::post(&session, &format!("{registry}/import"), &body, true).await.doing(doing)?;
    let path = format!("{registry}/{}/{}/versions/{}", kind.path, segment(name), segment(version));
    let shared: Value = session.client.get(&path).await.doing(doing)?;
    context.output.show(&show(kind.path, &shared))
}

/// A version that must exist; the latest where none is named.
pub(super) async fn find(session: &Session<'_>, kind: Kind, which: &Which) -> Done<Value> {
    find_in(session, &session.scope.path(), kind, which).await
}

/// The path of the registry named, else of the workspace.
fn home(session: &Session<'_>, registry: Option<&str>) -> String {
    registry.map_or_else(|| session.scope.path(), |name| registry::path(&session.scope, name))
}

async fn find_in(session: &Session<'_>, home: &str, kind: Kind, which: &Which) -> Done<Value> {
    let name = named(kind, Some(&which.name))?;
    let container = format!("{home}/{}/{name}", kind.path);
    let version = match (&which.version, which.label.as_deref()) {
        (Some(version), _) => {
            Version::parse(version).map(String::from).map_err(|error| Failure::input(error.to_string()))?
        }
        (None, None | Some("latest")) => match session.find(&container).await? {
            Some(found) => api::arm::text(&found["properties"], "latestVersion").unwrap_or_else(|| "1".to_owned()),
            None => return Err(unknown(session, kind, which)),
        },
        (None, Some(other)) => {
            return Err(Failure::input(format!("`{other}` is not a label known here"))
                .hint("use `--label latest`, or `-v VERSION`"));
        }
    };
    let found = session.find(&format!("{container}/versions/{version}")).await?;
    found.ok_or_else(|| unknown(session, kind, which))
}

async fn put_back(session: &Session<'_>, kind: Kind, name: &str, asset: &Value) -> Done<Value> {
    let version = asset["name"].as_str().unwrap_or_default();
    let path = session.path(&format!("{}/{name}/versions/{version}", kind.path));
    let body = json!({"properties": asset["properties"]});
    session.client.put(&path, &body).await.doing(|| format!("cannot change {} `{name}:{version}`", kind.noun))
}

fn unknown(session: &Session<'_>, kind: Kind, which: &Which) -> Failure {
    let shown = match &which.version {
        Some(version) => format!("{}:{version}", which.name),
        None => which.name.clone(),
    };
    Failure::input(format!("there is no {} `{shown}`", kind.noun))
        .because(format!("workspace `{}` has none of that name", session.scope.workspace))
        .hint(format!("run `peregrine {} list`", kind.noun))
}

fn versions(count: usize) -> String {
    if count == 1 { "1 version".to_owned() } else { format!("{count} versions") }
}

fn text(item: &Value, key: &str) -> String {
    api::arm::text(item, key).unwrap_or_default()
}
