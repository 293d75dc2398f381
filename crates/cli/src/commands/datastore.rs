//! `peregrine datastore …`.

use super::{Context, Session, change, confirm, job};
use crate::{
    args::{
        ValidateArgs,
        place::{Create, DatastoreVerb, Delete, List, MountTest, Name, Update},
    },
    failure::{Doing, Done, Failure},
    output::Column,
    post::Post,
    spec_file,
    spec_file::{Base, SpecFile},
};
use api::arm::datastore::{body, show};
use domain::{
    names::DatastoreName,
    spec::{CommandJob, DataInput, DataType, Datastore, Environment, EnvironmentRef, Input, check::Spec, shape::Noun},
};
use serde_json::{Value, json};
use std::process::ExitCode;

const COLUMNS: &[Column] = &[
    Column::new("NAME", |item| text(item, "name")).whole(),
    Column::new("TYPE", |item| text(item, "type")),
    Column::new("DEFAULT", |item| if item["is_default"] == json!(true) { "yes".to_owned() } else { String::new() }),
    Column::new("CREDENTIALS", |item| text(&item["credentials"], "type")),
    Column::new("DESCRIPTION", |item| text(item, "description")),
];

pub(super) async fn run(context: &Context, verb: DatastoreVerb) -> Done<ExitCode> {
    match verb {
        DatastoreVerb::Create(args) => create(context, &args).await?,
        DatastoreVerb::Show(args) => show_one(context, &args).await?,
        DatastoreVerb::List(args) => list(context, &args).await?,
        DatastoreVerb::Update(args) => update(context, &args).await?,
        DatastoreVerb::Delete(args) => delete(context, &args).await?,
        DatastoreVerb::MountTest(args) => return mount_test(context, &args).await,
        DatastoreVerb::Validate(args) => validate(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(context: &Context, args: &Create) -> Done {
    let Some(file) = &args.file.file else {
        return Err(Failure::input("a datastore is described by a file").hint("name it with `-f FILE`"));
    };
    let mut spec = read(file, &args.file.set)?;
    spec.name = args.name.clone().or(spec.name);
    let name = named(spec.name.as_deref())?;
    let post = Post::open(context, args.dry_run).await?;
    let request = json!({"properties": body(&spec)});
    let made = post.put(&format!("datastores/{name}"), &request).await;
    let made = made.doing(|| format!("cannot create datastore `{name}`"))?;
    if post.shown()? {
        return Ok(());
    }
    context.output.show(&show(&made))
}

async fn show_one(context: &Context, args: &Name) -> Done {
    let name = named(Some(&args.name))?;
    let session = context.session().await?;
    context.output.show(&show(&fetch(&session, &name).await?))
}

async fn list(context: &Context, args: &List) -> Done {
    let session = context.session().await?;
    let found = session
        .client
        .list(&session.path("datastores"), args.max_results)
        .await
        .doing(|| "cannot list datastores".to_owned())?;
    context.output.list(found.iter().map(show).collect(), COLUMNS)
}

async fn update(context: &Context, args: &Update) -> Done {
    let name = named(Some(&args.name))?;
    let session = context.session().await?;
    let mut store = fetch(&session, &name).await?;
    change::apply(&mut store["properties"], &args.change, &[("description", "description")])?;
    let request = json!({"properties": store["properties"]});
    let changed: Value = session
        .client
        .put(&at(&session, &name), &request)
        .await
        .doing(|| format!("cannot change datastore `{name}`"))?;
    context.output.show(&show(&changed))
}

async fn delete(context: &Context, args: &Delete) -> Done {
    let name = named(Some(&args.name))?;
    let session = context.session().await?;
    fetch(&session, &name).await?;
    confirm(context, &format!("removing datastore `{name}` (the data in it stays)"), args.yes)?;
    session.client.delete(&at(&session, &name)).await.doing(|| format!("cannot remove datastore `{name}`"))?;
    context.output.note(&format!("removed datastore `{name}`"));
    Ok(())
}

/// Reads the datastore the only way that proves anything: as a job.
async fn mount_test(context: &Context, args: &MountTest) -> Done<ExitCode> {
    let name = named(Some(&args.name))?;
    let session = context.session().await?;
    fetch(&session, &name).await?;
    let path = format!("azureml://datastores/{name}/paths/{}", args.path.trim_start_matches('/'));
    let input = Input::Data(DataInput { kind: DataType::UriFolder, path, mode: None });
    let conda = json!({"name": "mount-test", "dependencies": ["python"]});
    let environment = Environment { conda_file: Some(conda), ..Environment::default() };
    let job = CommandJob {
        display_name: Some(format!("mount test of {name}")),
        experiment_name: Some("mount-test".to_owned()),
        command: "ls -lA \"${{inputs.store}}\" | head -n 50".to_owned(),
        environment: Some(EnvironmentRef::Inline(Box::new(environment))),
        inputs: [("store".to_owned(), input)].into(),
        ..CommandJob::default()
    };
    job::submit_and_follow(session, job, &Base::here()).await
}

fn validate(context: &Context, args: &ValidateArgs) -> Done {
    read(&args.file, &args.set)?;
    context.output.note(&format!("`{}` is a valid datastore file", args.file.display()));
    Ok(())
}

fn read(file: &std::path::Path, sets: &[String]) -> Done<Datastore> {
    match spec_file::read(Noun::Datastore, file, sets)? {
        SpecFile { spec: Spec::Datastore(spec), .. } => Ok(spec),
        _ => Err(Failure::input(format!("`{}` is not a datastore file", file.display()))),
    }
}

async fn fetch(session: &Session<'_>, name: &DatastoreName) -> Done<Value> {
    let found = session.find(&at(session, name)).await?;
    found
        .ok_or_else(|| Failure::input(format!("there is no datastore `{name}`")).hint("run `peregrine datastore list`"))
}

fn at(session: &Session<'_>, name: &DatastoreName) -> String {
    session.path(&format!("datastores/{name}"))
}

fn named(name: Option<&str>) -> Done<DatastoreName> {
    match name {
        Some(name) => DatastoreName::parse(name).map_err(|error| Failure::input(error.to_string())),
        None => Err(Failure::input("the datastore has no name").hint("set `name` in the file, or add `-n NAME`")),
    }
}

fn text(item: &Value, key: &str) -> String {
    api::arm::text(item, key).unwrap_or_default()
}
