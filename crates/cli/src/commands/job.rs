//! `peregrine job …`.

mod compare;
mod connect;
mod create;
mod download;
mod graph;
mod metrics;
mod resolve;
mod stream;
mod view;
mod why;

pub(super) use create::submit_and_follow;
pub(super) use download::counted;
pub(super) use resolve::check_kind;
pub(crate) use resolve::resolve as resolve_command;

use super::{Context, Session, change};
use crate::{
    args::job::{Cancel, List, Name, Show, ShowServices, Update, Verb},
    failure::{Doing, Done, Failure},
};
use domain::JobName;
use serde_json::{Value, json};
use std::{process::ExitCode, time::Duration};

pub(super) async fn run(context: &Context, verb: Verb) -> Done<ExitCode> {
    match verb {
        Verb::Create(args) => return create::create(context, &args).await,
        Verb::Show(args) => show(context, &args).await?,
        Verb::List(args) => list(context, &args).await?,
        Verb::Stream(args) => {
            let name = parse_name(&args.name)?;
            let session = context.session().await?;
            return match args.all {
                true => stream::every_log(&session, &name).await,
                false => stream::follow(session, &name).await,
            };
        }
        Verb::Resubmit(args) => return create::resubmit(context, &args).await,
        Verb::Cancel(args) => cancel(context, &args).await?,
        Verb::Download(args) => download::download(context, &args).await?,
        Verb::Update(args) => update(context, &args).await?,
        Verb::Archive(name) => set_archived(context, &name, true).await?,
        Verb::Restore(name) => set_archived(context, &name, false).await?,
        Verb::Validate(args) => create::validate(context, &args)?,
        Verb::Why(name) => why::why(context, &name).await?,
        Verb::Metrics(args) => metrics::metrics(context, &args).await?,
        Verb::Compare(args) => compare::compare(context, &args).await?,
        Verb::ShowServices(args) => services(context, &args).await?,
        Verb::Connect(args) => connect::connect(context, &args).await?,
        Verb::ConnectSsh(args) => return connect::connect_ssh(context, &args).await,
    }
    Ok(ExitCode::SUCCESS)
}

/// A job that must exist, as the server keeps it.
async fn fetch(session: &Session<'_>, name: &JobName) -> Done<Value> {
    let found = session.find(&session.path(&format!("jobs/{name}"))).await;
    match found.doing(|| format!("cannot show job `{name}`"))? {
        Some(job) => Ok(job),
        None => Err(unknown(session, name)),
    }
}

fn unknown(session: &Session<'_>, name: &JobName) -> Failure {
    Failure::input(format!("there is no job `{name}`"))
        .because(format!("workspace `{}` has none of that name", session.scope.workspace))
        .hint("run `peregrine job list`, or name another workspace with `-w`")
}

fn parse_name(text: &str) -> Done<JobName> {
    JobName::parse(text).map_err(|error| Failure::input(error.to_string()))
}

async fn show(context: &Context, args: &Show) -> Done {
    let name = parse_name(&args.name)?;
    let session = context.session().await?;
    if let Some(form) = args.graph {
        return graph::show(&session, &name, form).await;
    }
    context.output.show(&view::show(&fetch(&session, &name).await?))
}

async fn list(context: &Context, args: &List) -> Done {
    let session = context.session().await?;
    let limit = if args.all_results { usize::MAX } else { args.max_results };
    let view = match (args.archived_only, args.include_archived) {
        (true, _) => "ArchivedOnly",
        (_, true) => "All",
        _ => "ActiveOnly",
    };
    let mut path = session.path(&format!("jobs?listViewType={view}&$top={}", limit.min(1_000)));
    for (key, value) in [("tag", &args.tag), ("parent", &args.parent), ("schedule", &args.schedule)] {
        let Some(value) = value else { continue };
        let value = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
        path.push_str(&format!("&{key}={value}"));
    }
    let jobs = session.client.list(&path, limit).await.doing(|| "cannot list jobs".to_owned())?;
    context.output.list(jobs.iter().map(view::show).collect(), view::COLUMNS)?;
    if jobs.is_empty() {
        context.output.note("no jobs; submit one with `peregrine job create -f job.yml`");
    } else if jobs.len() == limit && !args.all_results && context.output.stdout_is_terminal() {
        context.output.note(&format!("hint: the newest {limit} are shown; `-r COUNT` or `--all-results` shows more"));
    }
    Ok(())
}

async fn cancel(context: &Context, args: &Cancel) -> Done {
    let name = parse_name(&args.name)?;
    let session = context.session().await?;
    let job = fetch(&session, &name).await?;
    if view::is_over(&job) {
        context.output.note(&format!("job `{name}` is already {}", view::status(&job)));
        return Ok(());
    }
    let path = session.path(&format!("jobs/{name}/cancel"));
    let request = session.client.request(reqwest::Method::POST, &path).json(&json!({}));
    session.client.send(request).await.doing(|| format!("cannot cancel job `{name}`"))?;
    if args.no_wait {
        context.output.note(&format!("asked job `{name}` to stop"));
        return Ok(());
    }
    let ended = until_over(&session, &name).await?;
    context.output.note(&format!("job `{name}` is {}", view::status(&ended)));
    if context.output.format_was_chosen() { context.output.show(&view::show(&ended)) } else { Ok(()) }
}

/// Waits for the end of a job.
async fn until_over(session: &Session<'_>, name: &JobName) -> Done<Value> {
    loop {
        let job = fetch(session, name).await?;
        if view::is_over(&job) {
            return Ok(job);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn update(context: &Context, args: &Update) -> Done {
    let name = parse_name(&args.name)?;
    let session = context.session().await?;
    let mut job = fetch(&session, &name).await?;
    change::apply(
        &mut job["properties"],
        &args.change,
        &[("display_name", "displayName"), ("description", "description")],
    )?;
    put_back(&session, &name, &job).await
}

async fn set_archived(context: &Context, args: &Name, archived: bool) -> Done {
    let name = parse_name(&args.name)?;
    let session = context.session().await?;
    let mut job = fetch(&session, &name).await?;
    job["properties"]["isArchived"] = json!(archived);
    put_back(&session, &name, &job).await
}

async fn put_back(session: &Session<'_>, name: &JobName, job: &Value) -> Done {
    let body = json!({"properties": job["properties"]});
    let changed: Value = session
        .client
        .put(&session.path(&format!("jobs/{name}")), &body)
        .await
        .doing(|| format!("cannot change job `{name}`"))?;
    session.output().show(&view::show(&changed))
}

async fn services(context: &Context, args: &ShowServices) -> Done {
    let name = parse_name(&args.name)?;
    let session = context.session().await?;
    let path = format!("/history/v1.0{}/runs/{name}/serviceinstances/{}", session.scope.path(), args.node_index);
    let mut answer: Value =
        session.client.get(&path).await.doing(|| format!("cannot list the services of job `{name}`"))?;
    let shown = answer["instances"].take();
    if shown.as_object().is_none_or(|services| services.is_empty()) {
        context.output.note(&format!("job `{name}` has no services on node {}", args.node_index));
    }
    context.output.show(&shown)
}
