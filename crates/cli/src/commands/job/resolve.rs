//! Local things in a job file, made into references the server knows: code, environment, inputs.

use crate::{
    assemble,
    commands::environment,
    failure::{Doing, Done, Failure},
    post::Post,
    spec_file::Base,
};
use api::arm::{io::is_binding, reference::is_remote};
use domain::spec::{CommandJob, DataType, EnvironmentRef, Input};
use std::path::Path;

/// Whether everything the file names on this machine is there and of the right kind. No network.
pub(super) fn check_files(job: &CommandJob, base: &Base) -> Done {
    if let Some(code) = job.code.as_deref().filter(|code| !is_remote(code)) {
        base.existing("code", code)?;
    }
    if let Some(EnvironmentRef::Inline(environment)) = &job.environment {
        environment::check_files(environment, base, "environment.")?;
    }
    for (name, input) in &job.inputs {
        if let Input::Data(data) = input
            && !is_remote(&data.path)
        {
            let key = format!("inputs.{name}.path");
            check_kind(&key, data.kind, &base.existing(&key, &data.path)?)?;
        }
    }
    Ok(())
}

/// Uploads what is local; afterwards the job holds references only.
pub(crate) async fn resolve(post: &Post<'_>, job: &mut CommandJob, base: &Base) -> Done {
    if let Some(code) = job.code.take() {
        job.code = Some(match is_remote(&code) {
            true => post.scope.resolve("codes", &code),
            false => post.code(&base.path(&code)).await?,
        });
    }
    let id = match &job.environment {
        Some(EnvironmentRef::Inline(inline)) => Some(
            environment::register(post, inline, base, false)
                .await
                .doing(|| "cannot register the environment".to_owned())?,
        ),
        Some(EnvironmentRef::Named(name)) => {
            Some(assemble::environment(post, base, &name.as_str().into(), false).await?)
        }
        None => None,
    };
    job.environment = id.map(EnvironmentRef::Named);
    job.compute = job.compute.take().map(|compute| post.scope.named("computes", &compute));
    for (name, input) in &mut job.inputs {
        let Input::Data(data) = input else { continue };
        // A schedule's job gets it from what starts it.
        if is_binding(&data.path) {
            continue;
        }
        let kind = if data.kind.as_str().ends_with("_model") { "models" } else { "data" };
        data.path = match is_remote(&data.path) {
            true => post.scope.resolve(kind, &data.path),
            false => {
                let sent = post.data(&base.path(&data.path), None).await;
                let sent = sent.doing(|| format!("cannot send input `{name}`"))?;
                assemble::input_address(&sent, data.kind.as_str()).to_owned()
            }
        };
    }
    Ok(())
}

/// A file where a folder is meant, and the reverse, are told before anything is sent.
pub(crate) fn check_kind(key: &str, kind: DataType, path: &Path) -> Done {
    let is = if path.is_dir() { "a folder" } else { "a file" };
    let wanted = match kind {
        DataType::UriFile => "a file",
        DataType::UriFolder | DataType::MlTable => "a folder",
        DataType::MlflowModel | DataType::CustomModel | DataType::TritonModel => return Ok(()),
    };
    if is != wanted {
        let fix = if is == "a file" { "uri_file" } else { "uri_folder" };
        return Err(Failure::input(format!("`{key}` is of type `{}`, which must be {wanted}", kind.as_str()))
            .because(format!("`{}` is {is}", path.display()))
            .hint(format!("set the type to `{fix}`, or name {wanted}")));
    }
    if kind == DataType::MlTable && !path.join("MLTable").is_file() {
        return Err(Failure::input(format!("`{key}` is of type `mltable`, which must hold a file `MLTable`"))
            .because(format!("there is none in `{}`", path.display())));
    }
    Ok(())
}
