//! `peregrine data …`.

use super::{
    Context,
    asset::{self, DATA},
    job::check_kind,
    replicate,
};
use crate::{
    args::{
        ValidateArgs,
        asset::{DataCreate, DataVerb},
    },
    failure::{Doing, Done},
    post::Post,
    spec_file,
    spec_file::{Base, SpecFile},
};
use api::arm::{assets::data_body, reference::is_remote};
use domain::spec::{Data, DataType, check, check::Spec, shape::Noun};
use serde_json::Value;
use std::process::ExitCode;

pub(super) async fn run(context: &Context, verb: DataVerb) -> Done<ExitCode> {
    match verb {
        DataVerb::Create(args) => create(context, &args).await?,
        DataVerb::Show(args) => asset::show_one(context, DATA, &args).await?,
        DataVerb::List(args) => asset::list(context, DATA, &args).await?,
        DataVerb::Update(args) => asset::update(context, DATA, &args, &[("description", "description")]).await?,
        DataVerb::Archive(which) => asset::archive(context, DATA, &which, true).await?,
        DataVerb::Restore(which) => asset::archive(context, DATA, &which, false).await?,
        DataVerb::Replicate(args) => return replicate::run(context, DATA, &args).await,
        DataVerb::Share(args) => asset::share(context, DATA, &args).await?,
        DataVerb::Validate(args) => validate(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(context: &Context, args: &DataCreate) -> Done {
    let (mut spec, mut base) = match asset::from_file(Noun::Data, &args.common.file)? {
        Some((Spec::Data(spec), base)) => (spec, base),
        _ => (Data::default(), Base::here()),
    };
    if let Some(path) = &args.path {
        (spec.path, base) = (Some(path.clone()), Base::here());
    }
    spec.kind = match args.kind.as_deref() {
        Some("uri_file") => DataType::UriFile,
        Some("mltable") => DataType::MlTable,
        Some(_) => DataType::UriFolder,
        None => spec.kind,
    };
    spec.datastore = args.datastore.clone().or(spec.datastore);
    asset::overlay(&args.common, &mut spec.name, &mut spec.version, &mut spec.description, &mut spec.tags)?;
    let name = asset::named(DATA, spec.name.as_deref())?;
    let mistakes = check::data(&spec);
    let Some(path) = spec.path.clone().filter(|_| mistakes.is_empty()) else {
        return Err(spec_file::refuse("this is not a data asset", &mistakes).hint("name the data with `--path`"));
    };
    check_files(&spec, &base)?;
    let post = Post::open(context, args.common.dry_run).await?;
    let referred = match spec.kind == DataType::MlTable && !is_remote(&path) {
        true => referred(&base.path(&path).join("MLTable"))?,
        false => None,
    };
    let uri = match is_remote(&path) {
        true => path,
        false => {
            let sent = post.data(&base.path(&path), spec.datastore.as_deref()).await;
            sent.doing(|| format!("cannot register data `{name}`"))?.trim_end_matches('/').to_owned()
        }
    };
    asset::create(context, DATA, &post, &name, spec.version.as_deref(), &data_body(&spec, &uri, referred)).await
}

/// What the paths of a table point at.
fn referred(file: &std::path::Path) -> Done<Option<Value>> {
    let text = spec_file::read_text(file)?;
    let Ok(root) = domain::spec::yaml::parse(&file.display().to_string(), &text) else { return Ok(None) };
    let root = root.to_json();
    let paths = root["paths"].as_array().into_iter().flatten();
    let all: Vec<Value> = paths.filter_map(|one| one.as_object()?.values().next().cloned()).collect();
    Ok((!all.is_empty()).then_some(Value::Array(all)))
}

fn validate(context: &Context, args: &ValidateArgs) -> Done {
    let SpecFile { spec, base } = spec_file::read(Noun::Data, &args.file, &args.set)?;
    if let (Spec::Data(spec), false) = (&spec, args.spec_only) {
        check_files(spec, &base)?;
    }
    context.output.note(&format!("`{}` is a valid data file", args.file.display()));
    Ok(())
}

fn check_files(spec: &Data, base: &Base) -> Done {
    match spec.path.as_deref().filter(|path| !is_remote(path)) {
        Some(path) => check_kind("path", spec.kind, &base.existing("path", path)?),
        None => Ok(()),
    }
}
