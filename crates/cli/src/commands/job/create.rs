//! `job create` and `job validate`.

use super::{parse_name, resolve, stream, view};
use crate::{
    args::{ValidateArgs, job::Create},
    commands::{Context, Session},
    failure::{Doing, Done, Failure},
    outside, spec_file,
    spec_file::{Base, SpecFile},
};
use domain::{
    JobName, names,
    spec::{CommandJob, Mistake, cannot_run, check::Spec, shape::Noun, yaml::to_yaml},
};
use serde_json::{Value, json};
use std::{fs, path::Path, process::ExitCode};

pub(super) async fn create(context: &Context, args: &Create) -> Done<ExitCode> {
    let (mut job, base) = read(&args.file, &args.set)?;
    job.name = args.name.clone().or(job.name);
    let name = job_name(job.name.as_deref())?;
    resolve::check_files(&job, &base)?;
    if args.web {
        context.output.note("notice: there is no web page to open yet; `peregrine job stream` shows the log");
    }
    let session = context.session().await?;
    let submitted = submit(&session, &mut job, &base, &name).await.doing(|| format!("cannot submit job `{name}`"))?;
    if let Some(path) = &args.save_as {
        save(path, &view::show(&submitted))?;
    }
    if args.stream {
        context.output.note(&format!("submitted job `{name}`"));
        return stream::follow(session, &name).await;
    }
    context.output.show(&view::show(&submitted))?;
    if context.output.stdout_is_terminal() {
        context.output.note(&format!("\nhint: follow it with `peregrine job stream -n {name}`"));
    }
    Ok(ExitCode::SUCCESS)
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
pub(crate) async fn submit_and_follow(session: Session<'_>, mut job: CommandJob, base: &Base) -> Done<ExitCode> {
    let name = job_name(None)?;
    submit(&session, &mut job, base, &name).await.doing(|| format!("cannot submit job `{name}`"))?;
    session.output().note(&format!("submitted job `{name}`"));
    stream::follow(session, &name).await
}

/// Uploads what is local and sends the job.
async fn submit(session: &Session<'_>, job: &mut CommandJob, base: &Base, name: &JobName) -> Done<Value> {
    let path = session.path(&format!("jobs/{name}"));
    resolve::resolve(session, job, base).await?;
    if job.experiment_name.is_none() {
        job.experiment_name = working_folder();
    }
    let body = json!({"properties": api::arm::job::body(job)});
    // A name that was chosen may be taken; a job that exists must not be changed by submitting another.
    if job.name.is_some() && session.find(&path).await?.is_some() {
        return Err(Failure::input(format!("there is already a job `{name}`"))
            .hint("choose another name with `-n`, or leave `name` out of the file"));
    }
    Ok(session.client.put(&path, &body).await?)
}

fn read(file: &Path, sets: &[String]) -> Done<(CommandJob, Base)> {
    let SpecFile { spec, base } = spec_file::read(Noun::Job, file, sets)?;
    if let Some(mistake) = cannot_run(&spec) {
        let mistake = Mistake { file: file.display().to_string(), ..mistake };
        return Err(spec_file::refuse("the file is valid, and its job cannot run yet", &[mistake]));
    }
    match spec {
        Spec::Job(job) => Ok((*job, base)),
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
        fs::write(&file, "type: pipeline\njobs: {a: {command: x, environment: 'azureml:e:1'}}\n").unwrap();
        let shown = read(&file, &[]).unwrap_err().to_string();
        assert!(shown.contains("`type: pipeline` jobs cannot run yet; command jobs can"), "{shown}");
        fs::write(&file, "type: pipeline\njobs: {a: {comand: x}}\n").unwrap();
        let shown = read(&file, &[]).unwrap_err().to_string();
        assert!(shown.contains("did you mean `command`?") && !shown.contains("cannot run yet"), "{shown}");
    }
}
