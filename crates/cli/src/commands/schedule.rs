//! `peregrine schedule …`.

use super::{
    Context,
    record::{self, Kind, Place, state, text},
    settle,
};
use crate::{
    args::record::{Create, ScheduleVerb, Update},
    assemble,
    failure::{Doing, Done, Failure},
    output::Column,
    post::Post,
};
use api::arm::tree::word;
use domain::spec::shape::Noun;
use serde_json::{Value, json};
use std::process::ExitCode;

const KIND: Kind = Kind {
    noun: Noun::Schedule,
    word: "schedule",
    columns: &[
        Column::new("NAME", |item| text(item, "name")).whole(),
        Column::new("TRIGGER", |item| trigger(&item["trigger"])),
        Column::new(
            "ENABLED",
            |item| if item["is_enabled"] == json!(false) { "no".to_owned() } else { "yes".to_owned() },
        ),
        Column::new("NEXT", |item| item["peregrine"]["next"][0].as_str().unwrap_or_default().to_owned()),
        Column::new("STATE", state),
        Column::new("DESCRIPTION", |item| text(item, "description")),
    ],
    open: &[("display_name", "displayName"), ("description", "description")],
};
const PATH: &str = "schedules";

pub(super) async fn run(context: &Context, verb: ScheduleVerb) -> Done<ExitCode> {
    let at = |name: &str| Place::new(&context.config.scope(), PATH, name);
    match verb {
        ScheduleVerb::Create(args) => create(context, &args).await?,
        ScheduleVerb::Show(args) => record::show_one(context, KIND, &context.session().await?, &at(&args.name)).await?,
        ScheduleVerb::List(args) => record::list(context, KIND, PATH, &args).await?,
        ScheduleVerb::Update(args) => update(context, args).await?,
        ScheduleVerb::Enable(args) => switch(context, &at(&args.name), !args.no_wait, true).await?,
        ScheduleVerb::Disable(args) => switch(context, &at(&args.name), !args.no_wait, false).await?,
        ScheduleVerb::Trigger(args) => trigger_now(context, &at(&args.name)).await?,
        ScheduleVerb::Delete(args) => record::delete(context, KIND, &at(&args.name), &args, "").await?,
        ScheduleVerb::Validate(args) => record::validate(context, KIND, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(context: &Context, args: &Create) -> Done {
    let (spec, base) = record::read(KIND, &args.file)?;
    let name = record::named(KIND, args.name.as_deref(), &spec)?;
    if spec.get("trigger").is_none() {
        return Err(Failure::input("a schedule is described by a file").hint("name it with `-f FILE`"));
    }
    let post = Post::open(context, args.dry_run).await?;
    let body = assemble::schedule(&post, &base, &spec).await?;
    record::put(context, KIND, &post, &Place::new(&post.scope, PATH, &name), &body, !args.no_wait).await
}

async fn update(context: &Context, args: Update) -> Done {
    let Some(file) = args.file else {
        let name = record::named(KIND, args.name.as_deref(), &Value::Null)?;
        let at = Place::new(&context.config.scope(), PATH, &name);
        return record::edit(context, KIND, &at, !args.no_wait, |found| record::apply(KIND, found, &args.change)).await;
    };
    let file = crate::args::FileArgs { file: Some(file), set: args.change.set };
    create(context, &Create { file, name: args.name, no_wait: args.no_wait, dry_run: false }).await
}

async fn switch(context: &Context, at: &Place, wait: bool, on: bool) -> Done {
    record::edit(context, KIND, at, wait, |found| {
        found["properties"]["isEnabled"] = json!(on);
        Ok(())
    })
    .await
}

/// Starts what the schedule starts, and prints its name.
async fn trigger_now(context: &Context, at: &Place) -> Done {
    let session = context.session().await?;
    let path = format!("{}/trigger", at.path);
    let doing = || format!("cannot start schedule `{}`", at.name);
    let made = settle::post(&session, &path, &json!({}), false).await.doing(doing)?;
    let made = json!({"job_name": made["submissionId"], "schedule_action_type": made["scheduleActionType"]});
    context.output.show(&made)
}

fn trigger(value: &Value) -> String {
    match word(value, "type") {
        Some("cron") => word(value, "expression").unwrap_or_default().to_owned(),
        Some("event") => format!("{} {}", text(value, "on"), word(value, "name").unwrap_or("…")),
        Some(_) => format!("every {} {}", text(value, "interval"), text(value, "frequency")),
        None => String::new(),
    }
}
