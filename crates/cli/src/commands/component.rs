//! `peregrine component …`.

use super::{
    Context,
    asset::{self, COMPONENTS},
};
use crate::{
    args::{
        ValidateArgs,
        asset::{ComponentCreate, ComponentVerb},
    },
    assemble,
    failure::{Doing, Done, Failure},
    post::Post,
    spec_file::{self, Base},
};
use api::arm::{
    reference::is_remote,
    tree::{some, word},
};
use domain::spec::shape::Noun;
use serde_json::{Value, json};
use std::process::ExitCode;

pub(super) async fn run(context: &Context, verb: ComponentVerb) -> Done<ExitCode> {
    match verb {
        ComponentVerb::Create(args) => create(context, &args).await?,
        ComponentVerb::Show(args) => asset::show_one(context, COMPONENTS, &args).await?,
        ComponentVerb::List(args) => asset::list(context, COMPONENTS, &args).await?,
        ComponentVerb::Update(args) => {
            asset::update(context, COMPONENTS, &args, &[("description", "description")]).await?
        }
        ComponentVerb::Archive(which) => asset::archive(context, COMPONENTS, &which, true).await?,
        ComponentVerb::Restore(which) => asset::archive(context, COMPONENTS, &which, false).await?,
        ComponentVerb::Share(args) => asset::share(context, COMPONENTS, &args).await?,
        ComponentVerb::Validate(args) => validate(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(context: &Context, args: &ComponentCreate) -> Done {
    let common = &args.common;
    let Some(file) = &common.file.file else {
        return Err(Failure::input("a component is described by a file").hint("name it with `-f FILE`"));
    };
    let (mut spec, base) = spec_file::tree(Noun::Component, file, &common.file.set)?;
    overlay(&mut spec, common)?;
    let name = asset::named(COMPONENTS, word(&spec, "name"))?;
    check_files(&spec, &base)?;
    let version = some(&spec, "version").and_then(api::arm::tree::python);
    let post = Post::open(context, common.dry_run).await?;
    let body =
        assemble::component(&post, &base, &spec).await.doing(|| format!("cannot register component `{name}`"))?;
    asset::create(context, COMPONENTS, &post, &name, version.as_deref(), &body["properties"]).await
}

/// What every asset takes as flags.
fn overlay(spec: &mut Value, args: &crate::args::asset::Create) -> Done {
    for (key, value) in [("name", &args.name), ("version", &args.version), ("description", &args.description)] {
        if let Some(value) = value {
            spec[key] = json!(value);
        }
    }
    for (key, value) in super::change::tags(&args.tags)? {
        spec["tags"][key] = json!(value);
    }
    Ok(())
}

fn validate(context: &Context, args: &ValidateArgs) -> Done {
    let (spec, base) = spec_file::tree(Noun::Component, &args.file, &args.set)?;
    if !args.spec_only {
        check_files(&spec, &base)?;
    }
    context.output.note(&format!("`{}` is a valid component file", args.file.display()));
    Ok(())
}

/// The code must be there before anything is sent.
fn check_files(spec: &Value, base: &Base) -> Done {
    match word(spec, "code").filter(|code| !is_remote(code)) {
        Some(code) => base.existing("code", code).map(drop),
        None => Ok(()),
    }
}
