//! `peregrine online-deployment …` and `peregrine batch-deployment …`.

mod logs;
mod progress;
mod rollout;

use super::{
    Context, Session,
    endpoint::{BATCH as BATCH_ENDPOINT, ONLINE as ONLINE_ENDPOINT, score::list_jobs},
    record::{self, Kind, Place, short, state, text},
    settle,
};
use crate::{
    args::{
        FileArgs,
        record::{
            BatchDeploymentCreate, BatchDeploymentVerb, Create, Deployment, DeploymentCreate, DeploymentUpdate,
            OnlineDeploymentVerb,
        },
    },
    assemble,
    failure::{Doing, Done, Failure},
    output::Column,
    post::Post,
    upload::segment,
};
use api::arm::{Scope, show, tree::word};
use domain::spec::shape::Noun;
use serde_json::{Value, json};
use std::process::ExitCode;

const COLUMNS: &[Column] = &[
    Column::new("NAME", |item| text(item, "name")).whole(),
    Column::new("ENDPOINT", |item| text(item, "endpoint_name")),
    Column::new("MODEL", |item| short(&text(item, "model"))),
    Column::new("INSTANCES", |item| text(item, "instance_count")),
    Column::new("STATE", state),
];
const OPEN: &[super::change::Allowed] = &[("description", "description"), ("instance_type", "instanceType")];
const ONLINE: Kind = Kind { noun: Noun::OnlineDeployment, word: "online deployment", columns: COLUMNS, open: OPEN };
const BATCH: Kind = Kind { noun: Noun::BatchDeployment, word: "batch deployment", columns: COLUMNS, open: OPEN };

pub(super) async fn online(context: &Context, verb: OnlineDeploymentVerb) -> Done<ExitCode> {
    let scope = context.config.scope();
    let at = |which: &Deployment| at(&scope, "onlineEndpoints", &which.endpoint_name, &which.name);
    match verb {
        OnlineDeploymentVerb::Create(args) => create_online(context, &args).await?,
        OnlineDeploymentVerb::Show(args) => {
            record::show_one(context, ONLINE, &context.session().await?, &at(&args)).await?
        }
        OnlineDeploymentVerb::List(args) => {
            let path = format!("onlineEndpoints/{}/deployments", segment(&args.endpoint_name));
            record::list(context, ONLINE, &path, &args.list).await?;
        }
        OnlineDeploymentVerb::Update(args) => update_online(context, args).await?,
        OnlineDeploymentVerb::Delete(args) => {
            let place = self::at(&scope, "onlineEndpoints", &args.endpoint_name, &args.delete.name);
            record::delete(context, ONLINE, &place, &args.delete, "").await?;
        }
        OnlineDeploymentVerb::GetLogs(args) => logs::print(context, &at(&args.which), &args).await?,
        OnlineDeploymentVerb::Rollout(args) => {
            let endpoint = Place::new(&scope, "onlineEndpoints", &args.which.endpoint_name);
            return rollout::run(context, &endpoint, &at(&args.which), &args).await;
        }
        OnlineDeploymentVerb::Validate(args) => record::validate(context, ONLINE, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn batch(context: &Context, verb: BatchDeploymentVerb) -> Done<ExitCode> {
    let scope = context.config.scope();
    match verb {
        BatchDeploymentVerb::Create(args) => create_batch(context, &args).await?,
        BatchDeploymentVerb::Show(args) => {
            let place = at(&scope, "batchEndpoints", &args.endpoint_name, &args.name);
            record::show_one(context, BATCH, &context.session().await?, &place).await?;
        }
        BatchDeploymentVerb::List(args) => {
            let path = format!("batchEndpoints/{}/deployments", segment(&args.endpoint_name));
            record::list(context, BATCH, &path, &args.list).await?;
        }
        BatchDeploymentVerb::Update(args) => update_batch(context, args).await?,
        BatchDeploymentVerb::Delete(args) => {
            let place = at(&scope, "batchEndpoints", &args.endpoint_name, &args.delete.name);
            record::delete(context, BATCH, &place, &args.delete, "").await?;
        }
        BatchDeploymentVerb::ListJobs(args) => {
            list_jobs(context, BATCH, &at(&scope, "batchEndpoints", &args.endpoint_name, &args.name)).await?;
        }
        BatchDeploymentVerb::Validate(args) => record::validate(context, BATCH, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create_online(context: &Context, args: &DeploymentCreate) -> Done {
    let common = &args.common;
    let (spec, base, endpoint) = read(ONLINE, &common.file, args.endpoint_name.as_deref())?;
    let name = record::named(ONLINE, common.name.as_deref(), &spec)?;
    let post = Post::open(context, common.dry_run).await?;
    let body = assemble::online_deployment(&post, &base, &spec).await?;
    let place = at(&post.scope, "onlineEndpoints", &endpoint, &name);
    let Some(session) = post.session().filter(|_| !common.no_wait || args.all_traffic) else {
        return record::put(context, ONLINE, &post, &place, &body, false).await;
    };
    let made = bring_up(session, &place, &body).await?;
    if args.all_traffic {
        let at = Place::new(&post.scope, "onlineEndpoints", &endpoint);
        let set = |found: &mut Value| {
            found["properties"]["traffic"] = json!({name.as_str(): 100});
            Ok(())
        };
        let body = record::edited(ONLINE_ENDPOINT, session, &at, set).await?;
        let sent = settle::put(session, &at.path, &body, true).await;
        sent.doing(|| format!("cannot send the traffic of `{endpoint}` to `{name}`"))?;
        context.output.note(&format!("all traffic of online endpoint `{endpoint}` goes to `{name}`"));
    }
    context.output.show(&made)
}

/// Puts a deployment, shows how it comes up, and answers it as it is then.
async fn bring_up(session: &Session<'_>, place: &Place, body: &Value) -> Done<Value> {
    let doing = || format!("cannot deploy `{}`", place.name);
    let (_, operation) = settle::begin(session, &place.path, body).await.doing(doing)?;
    progress::follow(session, place, operation).await.doing(doing)?;
    Ok(show::record(&record::fetch(ONLINE, session, place).await?))
}

async fn create_batch(context: &Context, args: &BatchDeploymentCreate) -> Done {
    let common = &args.common;
    let (spec, base, endpoint) = read(BATCH, &common.file, args.endpoint_name.as_deref())?;
    let name = record::named(BATCH, common.name.as_deref(), &spec)?;
    let post = Post::open(context, common.dry_run).await?;
    let body = assemble::batch_deployment(&post, &base, &spec).await?;
    let place = at(&post.scope, "batchEndpoints", &endpoint, &name);
    record::put(context, BATCH, &post, &place, &body, !common.no_wait).await?;
    if let (true, Some(session)) = (args.set_default, post.session()) {
        let at = Place::new(&post.scope, "batchEndpoints", &endpoint);
        let set = |found: &mut Value| {
            found["properties"]["defaults"] = json!({"deploymentName": name});
            Ok(())
        };
        let body = record::edited(BATCH_ENDPOINT, session, &at, set).await?;
        let sent = settle::put(session, &at.path, &body, true).await;
        sent.doing(|| format!("cannot make it the default of `{endpoint}`"))?;
        context.output.note(&format!("batch endpoint `{endpoint}` uses `{name}` by default"));
    }
    Ok(())
}

async fn update_online(context: &Context, args: DeploymentUpdate) -> Done {
    let update = args.update;
    if let Some(file) = update.file {
        let file = FileArgs { file: Some(file), set: update.change.set };
        let common = Create { file, name: update.name, no_wait: update.no_wait, dry_run: false };
        let create = DeploymentCreate {
            common,
            endpoint_name: args.endpoint_name,
            all_traffic: false,
            _skip_script_validation: true,
        };
        return create_online(context, &create).await;
    }
    let name = record::named(ONLINE, update.name.as_deref(), &Value::Null)?;
    let place = at(&context.config.scope(), "onlineEndpoints", &needed(args.endpoint_name)?, &name);
    let edit = |found: &mut Value| change(ONLINE, found, &update.change);
    if update.no_wait {
        return record::edit(context, ONLINE, &place, false, edit).await;
    }
    let session = context.session().await?;
    let body = record::edited(ONLINE, &session, &place, edit).await?;
    context.output.show(&bring_up(&session, &place, &body).await?)
}

async fn update_batch(context: &Context, args: DeploymentUpdate) -> Done {
    let update = args.update;
    if let Some(file) = update.file {
        let file = FileArgs { file: Some(file), set: update.change.set };
        let common = Create { file, name: update.name, no_wait: update.no_wait, dry_run: false };
        let create = BatchDeploymentCreate { common, endpoint_name: args.endpoint_name, set_default: false };
        return create_batch(context, &create).await;
    }
    let name = record::named(BATCH, update.name.as_deref(), &Value::Null)?;
    let place = at(&context.config.scope(), "batchEndpoints", &needed(args.endpoint_name)?, &name);
    record::edit(context, BATCH, &place, !update.no_wait, |found| change(BATCH, found, &update.change)).await
}

/// The number of instances stands apart from all else.
fn change(kind: Kind, found: &mut Value, change: &crate::args::ChangeArgs) -> Done {
    let mut rest = change.clone();
    if let Some(at) = rest.set.iter().position(|text| text.starts_with("instance_count=")) {
        let text = rest.set.remove(at);
        let count = text.split_once('=').and_then(|(_, count)| count.trim().parse::<u32>().ok());
        let Some(count) = count else {
            return Err(
                Failure::input(format!("`--set {text}` is not a number")).hint("write `--set instance_count=3`")
            );
        };
        found["sku"]["capacity"] = json!(count);
        if rest.set.is_empty() && rest.remove.is_empty() {
            return Ok(());
        }
    }
    record::apply(kind, found, &rest)
}

fn read(kind: Kind, file: &FileArgs, endpoint: Option<&str>) -> Done<(Value, crate::spec_file::Base, String)> {
    let mut args = file.clone();
    if let Some(endpoint) = endpoint {
        args.set.push(format!("endpoint_name={endpoint}"));
    }
    if args.file.is_none() {
        return Err(Failure::input(format!("the {} is described by a file", kind.word)).hint("name it with `-f FILE`"));
    }
    let (spec, base) = record::read(kind, &args)?;
    let endpoint = needed(word(&spec, "endpoint_name").map(str::to_owned))?;
    Ok((spec, base, endpoint))
}

fn needed(endpoint: Option<String>) -> Done<String> {
    endpoint.filter(|name| !name.is_empty()).ok_or_else(|| {
        Failure::input("the endpoint is not named").hint("add `-e ENDPOINT`, or set `endpoint_name` in the file")
    })
}

fn at(scope: &Scope, collection: &str, endpoint: &str, name: &str) -> Place {
    Place::new(scope, &format!("{collection}/{}/deployments", segment(endpoint)), name)
}
