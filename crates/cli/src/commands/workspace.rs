//! `peregrine workspace …`.

mod quota;
mod team;

use super::{Context, Session, change, confirm, settle};
use crate::{
    args::{
        ValidateArgs,
        place::{Delete, List, OptionalName, Update, WorkspaceCreate, WorkspaceVerb},
    },
    failure::{Doing, Done, Failure},
    output::Column,
    post::Post,
    spec_file,
    spec_file::SpecFile,
};
use api::arm::{PROVIDER, assets::creation_context};
use domain::{
    names::WorkspaceName,
    spec::{Workspace, check::Spec, shape::Noun},
};
use serde_json::{Value, json};
use std::process::ExitCode;

const COLUMNS: &[Column] = &[
    Column::new("NAME", |item| text(item, "name")).whole(),
    Column::new("DISPLAY NAME", |item| text(item, "display_name")),
    Column::new("DESCRIPTION", |item| text(item, "description")),
    Column::new("RESOURCE GROUP", |item| text(item, "resource_group")),
];

pub(super) async fn run(context: &Context, verb: WorkspaceVerb) -> Done<ExitCode> {
    match verb {
        WorkspaceVerb::Create(args) => create(context, &args).await?,
        WorkspaceVerb::Show(args) => show_one(context, &args).await?,
        WorkspaceVerb::List(args) => list(context, &args).await?,
        WorkspaceVerb::Update(args) => update(context, &args).await?,
        WorkspaceVerb::Delete(args) => delete(context, &args).await?,
        WorkspaceVerb::Quota(args) => quota::run(context, &args).await?,
        WorkspaceVerb::Team(args) => team::run(context, &args).await?,
        WorkspaceVerb::Validate(args) => validate(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(context: &Context, args: &WorkspaceCreate) -> Done {
    let mut spec = match &args.common.file.file {
        Some(file) => read(file, &args.common.file.set)?,
        None => Workspace::default(),
    };
    spec.name = args.common.name.clone().or(spec.name);
    spec.display_name = args.display_name.clone().or(spec.display_name);
    spec.description = args.description.clone().or(spec.description);
    spec.location = args.location.clone().or(spec.location);
    let name = named(spec.name.as_deref())?;
    let post = Post::open(context, args.common.dry_run).await?;
    let path = api::arm::Scope { workspace: name.to_string(), ..post.scope.clone() }.path();
    let made = post.put_at(&path, &body(&spec), true).await;
    let made = made.doing(|| format!("cannot create workspace `{name}`"))?;
    if post.shown()? {
        return Ok(());
    }
    context.output.show(&view(&made))
}

async fn show_one(context: &Context, args: &OptionalName) -> Done {
    let name = named(Some(args.name.as_deref().unwrap_or(&context.config.workspace)))?;
    let session = context.session().await?;
    context.output.show(&view(&fetch(&session, &name).await?))
}

async fn list(context: &Context, args: &List) -> Done {
    let session = context.session().await?;
    let path = format!("/subscriptions/{}/providers/{PROVIDER}/workspaces", session.scope.subscription);
    let found = session.client.list(&path, args.max_results).await.doing(|| "cannot list workspaces".to_owned())?;
    context.output.list(found.iter().map(view).collect(), COLUMNS)
}

async fn update(context: &Context, args: &Update) -> Done {
    let name = named(Some(&args.name))?;
    let session = context.session().await?;
    let found = fetch(&session, &name).await?;
    let properties = &found["properties"];
    let mut open = json!({"tags": found["tags"], "friendlyName": properties["friendlyName"], "description": properties["description"]});
    change::apply(&mut open, &args.change, &[("display_name", "friendlyName"), ("description", "description")])?;
    // An empty text stands for nothing: the server keeps what an update leaves out.
    let or_empty = |value: &Value| if value.is_null() { json!("") } else { value.clone() };
    let request = json!({"location": found["location"], "tags": open["tags"], "properties": {
        "friendlyName": or_empty(&open["friendlyName"]), "description": or_empty(&open["description"]),
    }});
    let changed: Value = session
        .client
        .put(&at(&session, &name), &request)
        .await
        .doing(|| format!("cannot change workspace `{name}`"))?;
    context.output.show(&view(&changed))
}

async fn delete(context: &Context, args: &Delete) -> Done {
    let name = named(Some(&args.name))?;
    let session = context.session().await?;
    fetch(&session, &name).await?;
    confirm(context, &format!("deleting workspace `{name}` with its jobs and assets"), args.yes)?;
    let gone = settle::delete(&session, &at(&session, &name), !args.no_wait).await;
    gone.doing(|| format!("cannot delete workspace `{name}`"))?;
    context.output.note(&format!("deleted workspace `{name}`"));
    Ok(())
}

fn validate(context: &Context, args: &ValidateArgs) -> Done {
    read(&args.file, &args.set)?;
    context.output.note(&format!("`{}` is a valid workspace file", args.file.display()));
    Ok(())
}

fn read(file: &std::path::Path, sets: &[String]) -> Done<Workspace> {
    match spec_file::read(Noun::Workspace, file, sets)? {
        SpecFile { spec: Spec::Workspace(spec), .. } => Ok(spec),
        _ => Err(Failure::input(format!("`{}` is not a workspace file", file.display()))),
    }
}

fn body(spec: &Workspace) -> Value {
    let mut tree = serde_json::to_value(spec).expect("a spec is plain data");
    if let Some(map) = tree.as_object_mut() {
        map.shift_remove("resource_group");
    }
    api::arm::place::workspace(&tree)
}

fn view(resource: &Value) -> Value {
    let properties = &resource["properties"];
    let id = text(resource, "id");
    let parts: Vec<&str> = id.split('/').collect();
    let group =
        parts.iter().position(|part| part.eq_ignore_ascii_case("resourceGroups")).and_then(|at| parts.get(at + 1));
    let mut out = json!({
        "name": resource["name"], "display_name": properties["friendlyName"], "description": properties["description"],
        "location": resource["location"], "resource_group": group, "tags": resource["tags"], "workspace_id": properties["workspaceId"],
        "discovery_url": properties["discoveryUrl"], "mlflow_tracking_uri": properties["mlFlowTrackingUri"], "id": id,
        "creation_context": creation_context(&resource["systemData"]),
    });
    if let Some(out) = out.as_object_mut() {
        out.retain(|_, value| !value.is_null());
    }
    out
}

async fn fetch(session: &Session<'_>, name: &WorkspaceName) -> Done<Value> {
    let found = session.client.find(&at(session, name)).await?;
    found
        .ok_or_else(|| Failure::input(format!("there is no workspace `{name}`")).hint("run `peregrine workspace list`"))
}

fn at(session: &Session<'_>, name: &WorkspaceName) -> String {
    api::arm::Scope { workspace: name.to_string(), ..session.scope.clone() }.path()
}

fn named(name: Option<&str>) -> Done<WorkspaceName> {
    match name {
        Some(name) => WorkspaceName::parse(name).map_err(|error| Failure::input(error.to_string())),
        None => Err(Failure::input("the workspace has no name").hint("set `name` in the file, or add `-n NAME`")),
    }
}

fn text(item: &Value, key: &str) -> String {
    api::arm::text(item, key).unwrap_or_default()
}
