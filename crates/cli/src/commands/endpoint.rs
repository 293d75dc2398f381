//! `peregrine online-endpoint …` and `peregrine batch-endpoint …`.

pub(super) mod call;
pub(super) mod load;
pub(super) mod score;

use super::{
    Context,
    record::{self, Kind, Place, state, text},
    settle,
};
use crate::{
    args::record::{
        BatchEndpointVerb, Create, EndpointCreate, OnlineEndpointVerb, RegenerateKeys, TrafficUpdate, Update,
    },
    failure::{Doing, Done, Failure},
    output::Column,
    post::Post,
};
use api::arm::{
    endpoint,
    tree::{entries, word},
};
use domain::spec::shape::Noun;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

pub(super) const ONLINE: Kind = Kind {
    noun: Noun::OnlineEndpoint,
    word: "online endpoint",
    columns: &[
        Column::new("NAME", |item| text(item, "name")).whole(),
        Column::new("AUTH", |item| text(item, "auth_mode")),
        Column::new("TRAFFIC", |item| shares(&item["traffic"])),
        Column::new("STATE", state),
        Column::new("DESCRIPTION", |item| text(item, "description")),
    ],
    open: &[("description", "description")],
};
pub(super) const BATCH: Kind = Kind {
    noun: Noun::BatchEndpoint,
    word: "batch endpoint",
    columns: &[
        Column::new("NAME", |item| text(item, "name")).whole(),
        Column::new("DEFAULT", |item| text(&item["defaults"], "deployment_name")),
        Column::new("STATE", state),
        Column::new("DESCRIPTION", |item| text(item, "description")),
    ],
    open: &[("description", "description")],
};
pub(super) async fn online(context: &Context, verb: OnlineEndpointVerb) -> Done<ExitCode> {
    let at = |name: &str| Place::new(&context.config.scope(), "onlineEndpoints", name);
    match verb {
        OnlineEndpointVerb::Create(args) => create_online(context, &args).await?,
        OnlineEndpointVerb::Show(args) => {
            record::show_one(context, ONLINE, &context.session().await?, &at(&args.name)).await?;
        }
        OnlineEndpointVerb::List(args) => record::list(context, ONLINE, "onlineEndpoints", &args).await?,
        OnlineEndpointVerb::Update(args) => update_online(context, args).await?,
        OnlineEndpointVerb::Delete(args) => {
            record::delete(context, ONLINE, &at(&args.name), &args, " with its deployments").await?;
        }
        OnlineEndpointVerb::Invoke(args) => {
            call::invoke(context, &at(&args.name), &args.request_file, args.deployment_name.as_deref()).await?;
        }
        OnlineEndpointVerb::Test(args) => return load::test(context, &at(&args.name), &args).await,
        OnlineEndpointVerb::GetCredentials(args) => credentials(context, &at(&args.name)).await?,
        OnlineEndpointVerb::RegenerateKeys(args) => regenerate(context, &at(&args.name), &args).await?,
        OnlineEndpointVerb::Validate(args) => record::validate(context, ONLINE, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn batch(context: &Context, verb: BatchEndpointVerb) -> Done<ExitCode> {
    let at = |name: &str| Place::new(&context.config.scope(), "batchEndpoints", name);
    match verb {
        BatchEndpointVerb::Create(args) => create_batch(context, &args).await?,
        BatchEndpointVerb::Show(args) => {
            record::show_one(context, BATCH, &context.session().await?, &at(&args.name)).await?;
        }
        BatchEndpointVerb::List(args) => record::list(context, BATCH, "batchEndpoints", &args).await?,
        BatchEndpointVerb::Update(args) => update_batch(context, args).await?,
        BatchEndpointVerb::Delete(args) => {
            record::delete(context, BATCH, &at(&args.name), &args, " with its deployments").await?;
        }
        BatchEndpointVerb::Invoke(args) => score::invoke(context, &at(&args.name), &args).await?,
        BatchEndpointVerb::ListJobs(args) => score::list_jobs(context, BATCH, &at(&args.name)).await?,
        BatchEndpointVerb::Validate(args) => record::validate(context, BATCH, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create_online(context: &Context, args: &EndpointCreate) -> Done {
    let common = &args.common;
    let (mut spec, _) = record::read(ONLINE, &common.file)?;
    let name = record::named(ONLINE, common.name.as_deref(), &spec)?;
    if let Some(mode) = &args.auth_mode {
        spec["auth_mode"] = json!(mode);
    }
    let post = Post::open(context, common.dry_run).await?;
    if let Some(compute) = word(&spec, "compute") {
        spec["compute"] = json!(post.scope.named("computes", compute));
    }
    let body = endpoint::online(&spec, &post.location().await?);
    record::put(context, ONLINE, &post, &Place::new(&post.scope, "onlineEndpoints", &name), &body, !common.no_wait)
        .await
}

async fn create_batch(context: &Context, args: &Create) -> Done {
    let (spec, _) = record::read(BATCH, &args.file)?;
    let name = record::named(BATCH, args.name.as_deref(), &spec)?;
    let post = Post::open(context, args.dry_run).await?;
    let body = endpoint::batch(&spec, &post.location().await?);
    record::put(context, BATCH, &post, &Place::new(&post.scope, "batchEndpoints", &name), &body, !args.no_wait).await
}

async fn update_online(context: &Context, args: TrafficUpdate) -> Done {
    let update = args.update;
    if let Some(file) = update.file {
        let file = crate::args::FileArgs { file: Some(file), set: update.change.set };
        let common = Create { file, name: update.name, no_wait: update.no_wait, dry_run: false };
        return create_online(context, &EndpointCreate { common, auth_mode: None }).await;
    }
    let name = record::named(ONLINE, update.name.as_deref(), &Value::Null)?;
    let at = Place::new(&context.config.scope(), "onlineEndpoints", &name);
    let [traffic, mirror] = [percentages(&args.traffic)?, percentages(&args.mirror_traffic)?];
    record::edit(context, ONLINE, &at, !update.no_wait, |found| {
        let shares = [("traffic", traffic), ("mirrorTraffic", mirror)];
        let plain = shares.iter().all(|(_, shares)| shares.is_none());
        for (key, shares) in shares {
            if let Some(shares) = shares {
                found["properties"][key] = shares;
            }
        }
        let changes = !update.change.set.is_empty() || !update.change.remove.is_empty();
        if changes || plain { record::apply(ONLINE, found, &update.change) } else { Ok(()) }
    })
    .await
}

async fn update_batch(context: &Context, args: Update) -> Done {
    if let Some(file) = args.file {
        let file = crate::args::FileArgs { file: Some(file), set: args.change.set };
        return create_batch(context, &Create { file, name: args.name, no_wait: args.no_wait, dry_run: false }).await;
    }
    let name = record::named(BATCH, args.name.as_deref(), &Value::Null)?;
    let at = Place::new(&context.config.scope(), "batchEndpoints", &name);
    record::edit(context, BATCH, &at, !args.no_wait, |found| {
        let mut change = args.change.clone();
        let default = change.set.iter().position(|text| text.starts_with("defaults.deployment_name="));
        if let Some((_, deployment)) =
            default.map(|at| change.set.remove(at)).as_deref().and_then(|t| t.split_once('='))
        {
            found["properties"]["defaults"] = json!({"deploymentName": deployment});
            if change.set.is_empty() && change.remove.is_empty() {
                return Ok(());
            }
        }
        record::apply(BATCH, found, &change)
    })
    .await
}

async fn credentials(context: &Context, at: &Place) -> Done {
    let session = context.session().await?;
    let found = record::fetch(ONLINE, &session, at).await?;
    context.output.show(&call::credentials(&session, at, &found).await?)
}

async fn regenerate(context: &Context, at: &Place, args: &RegenerateKeys) -> Done {
    let session = context.session().await?;
    record::fetch(ONLINE, &session, at).await?;
    let kind = if args.key_type == "secondary" { "Secondary" } else { "Primary" };
    let path = format!("{}/regenerateKeys", at.path);
    let doing = || format!("cannot replace a key of `{}`", at.name);
    settle::post(&session, &path, &json!({"keyType": kind}), !args.no_wait).await.doing(doing)?;
    context.output.note(&format!("replaced the {} key of online endpoint `{}`", args.key_type, at.name));
    Ok(())
}

fn scoring_uri(found: &Value, at: &Place) -> Done<String> {
    word(&found["properties"], "scoringUri")
        .map(str::to_owned)
        .ok_or_else(|| Failure::input(format!("endpoint `{}` has no address to send requests to", at.name)))
}

/// `blue=90 green=10`, in one text or several; `None` where nothing was said.
pub(super) fn percentages(texts: &[String]) -> Done<Option<Value>> {
    let mut out = Map::new();
    for text in texts.iter().flat_map(|text| text.split([' ', ','])).filter(|text| !text.is_empty()) {
        let share = text.split_once('=').and_then(|(name, share)| Some((name, share.parse::<u8>().ok()?)));
        let Some((name, share)) = share.filter(|(name, share)| !name.is_empty() && *share <= 100) else {
            return Err(Failure::input(format!("`{text}` is not a share of the traffic"))
                .hint("write shares as `blue=90 green=10`"));
        };
        out.insert(name.to_owned(), json!(share));
    }
    Ok((!texts.is_empty()).then_some(Value::Object(out)))
}

pub(super) fn shares(traffic: &Value) -> String {
    let share = |(name, share): (&String, &Value)| format!("{name}={share}");
    entries(traffic).map(share).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_in_one_text_or_several() {
        let read = |texts: &[&str]| percentages(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&["blue=90 green=10"]).unwrap(), Some(json!({"blue": 90, "green": 10})));
        assert_eq!(read(&["blue=90", "green=10"]).unwrap(), Some(json!({"blue": 90, "green": 10})));
        assert_eq!(read(&[]).unwrap(), None);
        for bad in ["blue", "blue=101", "=5", "blue=x"] {
            assert!(read(&[bad]).is_err(), "{bad}");
        }
    }
}
