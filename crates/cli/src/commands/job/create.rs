//! `job create` and `job validate`.

use super::{parse_name, resolve, stream, view};
use crate::{
    args::{
        ValidateArgs,
        job::{Create, Resubmit},
    },
    assemble,
    commands::{Context, Session, studio},
    failure::{Doing, Done, Failure},
    outside,
    post::Post,
    spec_file,
    spec_file::{Base, SpecFile},
};
use domain::{
    JobName, names,
    spec::{CommandJob, Mistake, cannot_run, check::Spec, shape::Noun, yaml::to_yaml},
};
use serde_json::{Value, json};
use std::{fs, path::Path, process::ExitCode};

/// A checked job file: a command job has a type of its own, the others are trees.
#[derive(Debug)]
enum Described {
    Command(Box<CommandJob>),
    Other(Value),
}

impl Described {
    fn name(&self) -> Option<String> {
        match self {
            Described::Command(job) => job.name.clone(),
            Described::Other(spec) => api::arm::text(spec, "name"),
        }
    }
}

pub(super) async fn create(context: &Context, args: &Create) -> Done<ExitCode> {
    let (described, base) = read(&args.file, &args.set, args.dry_run)?;
    let given = args.name.clone().or(described.name());
    let name = job_name(given.as_deref())?;
    if let Described::Command(job) = &described {
        resolve::check_files(job, &base)?;
    }
    let post = Post::open(context, args.dry_run).await?;
    let submitted = submit(&post, described, &base, &name, given.is_some()).await;
    let submitted = submitted.doing(|| format!("cannot submit job `{name}`"))?;
    if post.shown()? {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &args.save_as {
        save(path, &view::show(&submitted))?;
    }
    let session = post.into_session();
    if let (true, Some(session)) = (args.web, &session) {
        studio::show(session, name.as_str()).await?;
    }
    if let (true, Some(session)) = (args.stream, session) {
        context.output.note(&format!("submitted job `{name}`"));
        return stream::follow(session, &name).await;
    }
    context.output.show(&view::show(&submitted))?;
    if context.output.stdout_is_terminal() {
        context.output.note(&format!("\nhint: follow it with `peregrine job stream -n {name}`"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends what a job was asked to do under another name. Whatever is the same as before is not run again.
pub(super) async fn resubmit(context: &Context, args: &Resubmit) -> Done<ExitCode> {
    let (old, name) = (parse_name(&args.name)?, job_name(args.new_name.as_deref())?);
    let session = context.session().await?;
    let mut properties = super::fetch(&session, &old).await?["properties"].take();
    if let Some(map) = properties.as_object_mut() {
        map.retain(|key, _| !["status", "services", "peregrine", "isArchived"].contains(&key.as_str()));
    }
    for (_, output) in properties["outputs"].as_object_mut().into_iter().flatten() {
        // Where it lay the last time was added by the server, unless someone chose it.
        if output["uri"].as_str().is_some_and(|uri| uri.contains(&format!("/azureml/{old}"))) {
            output.as_object_mut().map(|output| output.shift_remove("uri"));
        }
    }
    let post = Post::over(session);
    let doing = || format!("cannot submit job `{old}` again");
    if args.new_name.is_some() && post.find(&format!("jobs/{name}")).await?.is_some() {
        return Err(Failure::input(format!("there is already a job `{name}`")).hint("choose another `--new-name`"));
    }
    let submitted = post.put(&format!("jobs/{name}"), &json!({"properties": properties})).await.doing(doing)?;
    match (args.stream, post.into_session()) {
        (true, Some(session)) => {
            context.output.note(&format!("submitted job `{name}`"));
            stream::follow(session, &name).await
        }
        _ => context.output.show(&view::show(&submitted)).map(|()| ExitCode::SUCCESS),
    }
}

pub(super) fn validate(context: &Context, args: &ValidateArgs) -> Done {
    let SpecFile { spec, base } = spec_file::read(Noun::Job, &args.file, &args.set)?;
    if let Spec::Job(job) = &spec {
        if let Some(name) = &job.name {
            parse_name(name)?;
        }
        if !args.spec_only {
            resolve::check_files(job, &base)?;
        }
    }
    context.output.note(&format!("`{}` is a valid job file", args.file.display()));
    if let Some(mistake) = cannot_run(&spec) {
        context.output.note(&format!("notice: {}", mistake.message));
    }
    Ok(())
}

/// Submits a job of our own making and shows it until it ends.
pub(crate) async fn submit_and_follow(session: Session<'_>, job: CommandJob, base: &Base) -> Done<ExitCode> {
    let name = job_name(job.name.as_deref())?;
    let post = Post::over(session);
    let described = Described::Command(Box::new(job));
    submit(&post, described, base, &name, false).await.doing(|| format!("cannot submit job `{name}`"))?;
    let Some(session) = post.into_session() else { return Ok(ExitCode::SUCCESS) };
    session.output().note(&format!("submitted job `{name}`"));
    stream::follow(session, &name).await
}

/// Uploads what is local and sends the job.
async fn submit(post: &Post<'_>, described: Described, base: &Base, name: &JobName, chosen: bool) -> Done<Value> {
    let mut properties = match described {
        Described::Command(mut job) => {
            resolve::resolve(post, &mut job, base).await?;
            api::arm::job::body(&job)
        }
        Described::Other(spec) => assemble::job(post, base, &spec).await?,
    };
    if properties.get("experimentName").is_none()
        && let Some(folder) = working_folder()
    {
        properties["experimentName"] = json!(folder);
    }
    if properties.get("displayName").is_none() {
        properties["displayName"] = json!(name.to_string());
    }
    let path = format!("jobs/{name}");
    // A name that was chosen may be taken; a job that exists must not be changed by submitting another.
    if chosen && post.find(&path).await?.is_some() {
        return Err(Failure::input(format!("there is already a job `{name}`"))
            .hint("choose another name with `-n`, or leave `name` out of the file"));
    }
    post.put(&path, &json!({"properties": properties})).await
}

/// A job that cannot run is refused before anything of it is sent, unless nothing is to be sent anyway.
fn read(file: &Path, sets: &[String], dry: bool) -> Done<(Described, Base)> {
    let SpecFile { spec, base } = spec_file::read(Noun::Job, file, sets)?;
    if let Some(mistake) = cannot_run(&spec).filter(|_| !dry) {
        let mistake = Mistake { file: file.display().to_string(), ..mistake };
        return Err(spec_file::refuse("the file is valid, and its job cannot run yet", &[mistake])
            .hint("see what would be sent with `--dry-run`"));
    }
    match spec {
        Spec::Job(job) => Ok((Described::Command(job), base)),
        Spec::Tree(_, tree) => Ok((Described::Other(tree), base)),
        _ => Err(Failure::input(format!("`{}` is not a job file", file.display()))),
    }
}

fn job_name(given: Option<&str>) -> Done<JobName> {
    match given {
        Some(text) => parse_name(text),
        None => Ok(names::friendly(outside::random())),
    }
}

fn working_folder() -> Option<String> {
    let folder = std::env::current_dir().ok()?;
    Some(folder.file_name()?.to_str()?.to_owned())
}

fn save(path: &Path, job: &Value) -> Done {
    fs::write(path, to_yaml(job)).map_err(|error| Failure::file(format!("cannot write `{}`", path.display()), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_job_that_cannot_run_is_refused_before_anything_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pipeline.yml");
        fs::write(&file, "type: spark\nentry: {file: x.py}\ncode: .\n").unwrap();
        let shown = read(&file, &[], false).unwrap_err().to_string();
        assert!(shown.contains("`type: spark` jobs cannot run yet"), "{shown}");
        fs::write(&file, "type: pipeline\njobs: {a: {comand: x}}\n").unwrap();
        let shown = read(&file, &[], false).unwrap_err().to_string();
        assert!(shown.contains("did you mean `command`?") && !shown.contains("cannot run yet"), "{shown}");
    }
}
