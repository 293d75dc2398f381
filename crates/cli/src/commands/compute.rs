//! `peregrine compute …`.

mod kubernetes;
mod machine;
mod usage;

use super::{Context, Session, change, confirm, settle};
use crate::{
    args::{
        ValidateArgs,
        place::{Act, ComputeCreate, ComputeList, ComputeUpdate, ComputeVerb, Delete, Name, Preempt, UsageArgs},
    },
    failure::{Doing, Done, Failure},
    output::Column,
    post::Post,
    spec_file,
    spec_file::SpecFile,
};
use api::arm::{
    PROVIDER,
    datastore::snake,
    place::{compute, show_compute},
};
use domain::{
    names::ComputeName,
    sizes,
    spec::{Compute, check, check::Spec, shape::Noun},
};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

const COLUMNS: &[Column] = &[
    Column::new("NAME", |item| text(item, "name")).whole(),
    Column::new("TYPE", |item| text(item, "type")),
    Column::new("STATE", |item| text(item, "provisioning_state")),
    Column::new("DESCRIPTION", |item| text(item, "description")),
];
const NODES: &[Column] = &[
    Column::new("NODE", |item| text(item, "node_id")).whole(),
    Column::new("STATE", |item| text(item, "node_state")),
    Column::new("ADDRESS", |item| text(item, "private_ip_address")),
    Column::new("JOB", |item| text(item, "run_id")),
];
/// A managed cluster, as files spell it.
const MANAGED: &str = "amlcompute";

const USAGE: &[Column] = &[
    Column::new("NAME", |item| text(item, "name")).whole(),
    Column::new("IN USE", |item| text(item, "current_value")),
    Column::new("LIMIT", |item| text(item, "limit")),
];
const SIZES: &[Column] = &[
    Column::new("NAME", |item| text(item, "name")).whole(),
    Column::new("CORES", |item| text(item, "cores")),
    Column::new("MEMORY", |item| format!("{} GiB", text(item, "memory_gib"))),
    Column::new("GPUS", |item| text(item, "gpus")),
];

pub(super) async fn run(context: &Context, verb: ComputeVerb) -> Done<ExitCode> {
    match verb {
        ComputeVerb::Create(args) | ComputeVerb::Attach(args) => create(context, &args).await?,
        ComputeVerb::Show(args) => show_one(context, &args).await?,
        ComputeVerb::List(args) => list(context, &args).await?,
        ComputeVerb::Update(args) => update(context, &args).await?,
        ComputeVerb::Preempt(args) => preempt(context, &args).await?,
        ComputeVerb::Delete(args) => delete(context, &args, "Delete").await?,
        ComputeVerb::Detach(args) => {
            let how = if args.force { "Detach&force=true" } else { "Detach" };
            delete(context, &args.delete, how).await?;
        }
        ComputeVerb::Start(args) => act(context, &args, "start").await?,
        ComputeVerb::Stop(args) => act(context, &args, "stop").await?,
        ComputeVerb::Restart(args) => act(context, &args, "restart").await?,
        ComputeVerb::ListUsage(UsageArgs { name: Some(name), hours, .. }) => usage::over(context, &name, hours).await?,
        ComputeVerb::ListUsage(UsageArgs { by: Some(by), .. }) => usage::run(context, by).await?,
        ComputeVerb::ListUsage(_) => list_usage(context).await?,
        ComputeVerb::ListNodes(args) => list_nodes(context, &args).await?,
        ComputeVerb::ListSizes => list_sizes(context)?,
        #[cfg(feature = "kubernetes")]
        ComputeVerb::Apply(args) => super::extension::types::apply(context, &args).await?,
        #[cfg(feature = "kubernetes")]
        ComputeVerb::GenerateInstanceTypes(args) => super::extension::types::generate(context, &args).await?,
        ComputeVerb::Validate(args) => validate(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(context: &Context, args: &ComputeCreate) -> Done {
    let mut spec = match &args.common.file.file {
        Some(file) => read(file, &args.common.file.set)?,
        None => Compute::default(),
    };
    spec.name = args.common.name.clone().or(spec.name);
    spec.kind = args.kind.as_ref().map_or(spec.kind, |kind| kind.to_lowercase());
    spec.settings.extend(settings(args));
    if machine::KINDS.contains(&spec.kind.as_str()) {
        machine::complete(&mut spec, args)?;
    }
    machine::complete_provider(&mut spec, args.common.file.file.as_deref())?;
    let name = named(spec.name.as_deref())?;
    let mistakes = check::compute(&spec);
    if !mistakes.is_empty() || spec.kind.is_empty() {
        return Err(spec_file::refuse("this is not a compute target", &mistakes)
            .hint("describe it in a file and name that with `-f`"));
    }
    let post = Post::open(context, args.common.dry_run).await?;
    let body = body(&spec, &post.location().await?);
    let path = format!("{}/computes/{name}", post.scope.path());
    let on_cluster =
        [kubernetes::KIND, MANAGED].contains(&spec.kind.as_str()) || machine::KINDS.contains(&spec.kind.as_str());
    let made = post.put_at(&path, &body, !args.no_wait && !on_cluster).await;
    let made = made.doing(|| format!("cannot create compute target `{name}`"))?;
    if post.shown()? {
        return Ok(());
    }
    if let Some(session) = post.session().filter(|_| on_cluster) {
        return match spec.kind.as_str() {
            kubernetes::KIND | MANAGED => kubernetes::follow(session, &name, made, !args.no_wait).await,
            _ => machine::follow(session, &name, (body, made), !args.no_wait).await,
        };
    }
    if !["local", "pool"].contains(&spec.kind.as_str()) {
        let kind = &spec.kind;
        context.output.note(&format!(
            "notice: targets of type `{kind}` are kept but cannot run work yet; jobs run on this machine, target `local`"
        ));
    }
    context.output.show(&show_compute(&made))
}

/// What flags say, under the names a file has for it.
fn settings(args: &ComputeCreate) -> impl Iterator<Item = (String, Value)> {
    let text = |value: &Option<String>| value.as_ref().map(|value| json!(value));
    let count = |value: Option<u32>| value.map(|value| json!(value));
    let all = [
        ("size", text(&args.size)),
        ("min_instances", count(args.scale.min_instances)),
        ("max_instances", count(args.scale.max_instances)),
        ("idle_time_before_scale_down", count(args.scale.idle_time_before_scale_down)),
        ("tier", text(&args.tier)),
        ("resource_id", text(&args.resource_id)),
        ("namespace", text(&args.namespace)),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)))
}

async fn show_one(context: &Context, args: &Name) -> Done {
    let session = context.session().await?;
    let found = fetch(&session, &named(Some(&args.name))?).await?;
    match kubernetes::is_one(&found) && context.output.is_for_people() {
        true => context.output.text(&kubernetes::in_words(context, &found)),
        false => context.output.show(&show_compute(&found)),
    }
}

async fn list(context: &Context, args: &ComputeList) -> Done {
    let session = context.session().await?;
    let found = session
        .client
        .list(&session.path("computes"), args.list.max_results)
        .await
        .doing(|| "cannot list compute targets".to_owned())?;
    let wanted = |item: &Value| args.kind.as_ref().is_none_or(|kind| text(item, "type").eq_ignore_ascii_case(kind));
    context.output.list(found.iter().map(show_compute).filter(wanted).collect(), COLUMNS)
}

async fn update(context: &Context, args: &ComputeUpdate) -> Done {
    let (name, change) = (named(Some(&args.update.name))?, &args.update.change);
    let session = context.session().await?;
    let mut target = fetch(&session, &name).await?;
    let scaled = rescale(&mut target, args)?;
    let mut open = json!({"tags": target["tags"], "description": target["properties"]["description"]});
    if !(scaled && change.set.is_empty() && change.remove.is_empty()) {
        change::apply(&mut open, change, &[("description", "description")])?;
    }
    target["tags"] = open["tags"].take();
    target["properties"]["description"] = open["description"].take();
    let request = json!({"location": target["location"], "tags": target["tags"], "properties": target["properties"]});
    let changed = settle::put(&session, &at(&session, &name), &request, true).await;
    let changed = changed.doing(|| format!("cannot change compute target `{name}`"))?;
    context.output.show(&show_compute(&changed))
}

/// Changes how many nodes a cluster has; whether anything was asked for.
fn rescale(target: &mut Value, args: &ComputeUpdate) -> Done<bool> {
    let idle = args.scale.idle_time_before_scale_down.map(|seconds| json!(format!("PT{seconds}S")));
    let asked = [
        ("minNodeCount", args.scale.min_instances.map(|count| json!(count))),
        ("maxNodeCount", args.scale.max_instances.map(|count| json!(count))),
        ("nodeIdleTimeBeforeScaleDown", idle),
    ];
    if asked.iter().all(|(_, value)| value.is_none()) {
        return Ok(false);
    }
    let kind = text(&show_compute(target), "type");
    if kind != MANAGED {
        let message = format!("a compute target of type `{kind}` has the nodes it has");
        return Err(Failure::input(message).hint("only those of type `amlcompute` grow and shrink"));
    }
    let scale = &mut target["properties"]["properties"]["scaleSettings"];
    asked.into_iter().for_each(|(key, value)| value.into_iter().for_each(|value| scale[key] = value));
    Ok(true)
}

async fn preempt(context: &Context, args: &Preempt) -> Done {
    let name = named(Some(&args.name))?;
    let session = context.session().await?;
    fetch(&session, &name).await?;
    let taken: Value = session
        .client
        .post(&format!("{}/preempt", at(&session, &name)), &json!({"nodeId": args.node}))
        .await
        .doing(|| format!("cannot take back a node of `{name}`"))?;
    let node = text(&taken, "nodeId");
    context
        .output
        .note(&format!("node `{node}` is taken back: what runs there is asked to end, and tried again elsewhere"));
    Ok(())
}

/// Removes the record; `action` says what becomes of the machines behind it, and of the jobs on them.
async fn delete(context: &Context, args: &Delete, action: &str) -> Done {
    let name = named(Some(&args.name))?;
    let session = context.session().await?;
    fetch(&session, &name).await?;
    confirm(context, &format!("removing compute target `{name}`"), args.yes)?;
    let path = format!("{}?underlyingResourceAction={action}", at(&session, &name));
    let gone = settle::delete(&session, &path, !args.no_wait).await;
    let said = gone.doing(|| format!("cannot remove compute target `{name}`"))?;
    context.output.note(&format!("removed compute target `{name}`"));
    if let Some(words) = ended(&said) {
        context.output.note(&words);
    }
    Ok(())
}

/// What became of the jobs of a target that was removed under them.
fn ended(said: &Value) -> Option<String> {
    let names = said["canceled"].as_array()?.iter().filter_map(Value::as_str);
    let jobs: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let left = match said["podsGone"].as_bool() {
        Some(true) => "nothing of them is left there",
        _ => "what is left of them there goes when the place is heard of again",
    };
    (!jobs.is_empty()).then(|| format!("canceled {}; {left}", jobs.join(", ")))
}

/// Starts, stops or restarts the machines of a target.
async fn act(context: &Context, args: &Act, verb: &str) -> Done {
    let name = named(Some(&args.name))?;
    let session = context.session().await?;
    fetch(&session, &name).await?;
    let path = format!("{}/{verb}", at(&session, &name));
    let done = settle::post(&session, &path, &json!({}), !args.no_wait).await;
    done.doing(|| format!("cannot {verb} compute target `{name}`"))?;
    context.output.note(&format!("asked compute target `{name}` to {verb}"));
    Ok(())
}

async fn list_usage(context: &Context) -> Done {
    let session = context.session().await?;
    let workspace: Value = session.client.get(&session.scope.path()).await?;
    let location = workspace["location"].as_str().unwrap_or("local");
    let path =
        format!("/subscriptions/{}/providers/{PROVIDER}/locations/{location}/usages", session.scope.subscription);
    let found = session.client.list(&path, usize::MAX).await.doing(|| "cannot list usage".to_owned())?;
    let view = |item: &Value| json!({"name": item["name"]["value"], "current_value": item["currentValue"], "limit": item["limit"], "unit": item["unit"]});
    context.output.list(found.iter().map(view).collect(), USAGE)
}

async fn list_nodes(context: &Context, args: &Name) -> Done {
    let name = named(Some(&args.name))?;
    let session = context.session().await?;
    fetch(&session, &name).await?;
    let answer: Value = session
        .client
        .post(&format!("{}/listNodes", at(&session, &name)), &json!({}))
        .await
        .doing(|| format!("cannot list the nodes of `{name}`"))?;
    let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
    context.output.list(nodes.iter().map(|node| Value::Object(snaked(node))).collect(), NODES)
}

fn list_sizes(context: &Context) -> Done {
    let one = |size: &sizes::Size| json!({"name": size.name, "cores": size.cores, "memory_gib": size.memory_gib, "gpus": size.gpus});
    context.output.list(sizes::list().iter().map(one).collect(), SIZES)
}

fn validate(context: &Context, args: &ValidateArgs) -> Done {
    read(&args.file, &args.set)?;
    context.output.note(&format!("`{}` is a valid compute file", args.file.display()));
    Ok(())
}

fn read(file: &std::path::Path, sets: &[String]) -> Done<Compute> {
    match spec_file::read(Noun::Compute, file, sets)? {
        SpecFile { spec: Spec::Compute(spec), .. } => Ok(spec),
        _ => Err(Failure::input(format!("`{}` is not a compute file", file.display()))),
    }
}

fn body(spec: &Compute, location: &str) -> Value {
    let mut tree = serde_json::to_value(spec).expect("a spec is plain data");
    if let Some(map) = tree.as_object_mut().filter(|_| spec.tags.is_empty()) {
        map.shift_remove("tags");
    }
    compute(&tree, location)
}

fn snaked(value: &Value) -> Map<String, Value> {
    let entries = value.as_object().into_iter().flatten();
    entries.filter(|(_, value)| !value.is_null()).map(|(key, value)| (snake(key), value.clone())).collect()
}

async fn fetch(session: &Session<'_>, name: &ComputeName) -> Done<Value> {
    let found = session.find(&at(session, name)).await?;
    found.ok_or_else(|| {
        Failure::input(format!("there is no compute target `{name}`")).hint("run `peregrine compute list`")
    })
}

fn at(session: &Session<'_>, name: &ComputeName) -> String {
    session.path(&format!("computes/{name}"))
}

fn named(name: Option<&str>) -> Done<ComputeName> {
    match name {
        Some(name) => ComputeName::parse(name).map_err(|error| Failure::input(error.to_string())),
        None => Err(Failure::input("the compute target has no name").hint("set `name` in the file, or add `-n NAME`")),
    }
}

fn text(item: &Value, key: &str) -> String {
    api::arm::text(item, key).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_keeps_its_words_over_the_wire() {
        let mut spec = Compute { kind: "local".into(), ..Compute::default() };
        spec.settings.insert("isolation".into(), json!("required"));
        spec.settings.insert("instance_types".into(), json!({"gpu": {"resources": {}}}));
        let mut resource = body(&spec, "here");
        resource["name"] = json!("local");
        let shown = show_compute(&resource);
        assert_eq!((&shown["type"], &shown["isolation"]), (&json!("local"), &json!("required")));
        assert_eq!(shown["instance_types"], json!({"gpu": {"resources": {}}}));
    }
}
