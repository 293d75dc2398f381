//! `peregrine model …`.

use super::{
    Context, Session,
    asset::{self, MODELS},
    job::counted,
    replicate,
};
use crate::{
    args::{
        ValidateArgs,
        asset::{ModelCreate, ModelDownload, ModelVerb},
    },
    failure::{Doing, Done, Failure},
    post::Post,
    spec_file,
    spec_file::{Base, SpecFile},
    upload::{Store, download as download_blobs},
};
use api::arm::{
    assets::model_body,
    reference::{DataUri, data_uri, is_remote},
};
use domain::spec::{Model, check, check::Spec, shape::Noun};
use serde_json::Value;
use std::process::ExitCode;

pub(super) async fn run(context: &Context, verb: ModelVerb) -> Done<ExitCode> {
    match verb {
        ModelVerb::Create(args) => create(context, &args).await?,
        ModelVerb::Show(args) => asset::show_one(context, MODELS, &args).await?,
        ModelVerb::List(args) => asset::list(context, MODELS, &args).await?,
        ModelVerb::Update(args) => {
            asset::update(context, MODELS, &args, &[("description", "description"), ("stage", "stage")]).await?;
        }
        ModelVerb::Archive(which) => asset::archive(context, MODELS, &which, true).await?,
        ModelVerb::Restore(which) => asset::archive(context, MODELS, &which, false).await?,
        ModelVerb::Replicate(args) => return replicate::run(context, MODELS, &args).await,
        ModelVerb::Share(args) => asset::share(context, MODELS, &args).await?,
        ModelVerb::Validate(args) => validate(context, &args)?,
        ModelVerb::Download(args) => download(context, &args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(context: &Context, args: &ModelCreate) -> Done {
    let (mut spec, mut base) = match asset::from_file(Noun::Model, &args.common.file)? {
        Some((Spec::Model(spec), base)) => (spec, base),
        _ => (Model::default(), Base::here()),
    };
    if let Some(path) = &args.path {
        (spec.path, base) = (Some(path.clone()), Base::here());
    }
    spec.kind = args.kind.clone().or(spec.kind);
    spec.stage = args.stage.clone().or(spec.stage);
    spec.datastore = args.datastore.clone().or(spec.datastore);
    asset::overlay(&args.common, &mut spec.name, &mut spec.version, &mut spec.description, &mut spec.tags)?;
    let name = asset::named(MODELS, spec.name.as_deref())?;
    let mistakes = check::model(&spec);
    let Some(path) = spec.path.clone().filter(|_| mistakes.is_empty()) else {
        return Err(spec_file::refuse("this is not a model", &mistakes).hint("name its files with `--path`"));
    };
    check_files(&spec, &base)?;
    let post = Post::open(context, args.common.dry_run).await?;
    let uri = match is_remote(&path) {
        true => path,
        false => {
            let sent = post.data(&base.path(&path), spec.datastore.as_deref()).await;
            let short = sent.doing(|| format!("cannot register model `{name}`"))?;
            post.scope.long_address(short.trim_end_matches('/'))
        }
    };
    asset::create(context, MODELS, &post, &name, spec.version.as_deref(), &model_body(&spec, &uri, false)).await
}

fn validate(context: &Context, args: &ValidateArgs) -> Done {
    let SpecFile { spec, base } = spec_file::read(Noun::Model, &args.file, &args.set)?;
    if let (Spec::Model(spec), false) = (&spec, args.spec_only) {
        check_files(spec, &base)?;
    }
    context.output.note(&format!("`{}` is a valid model file", args.file.display()));
    Ok(())
}

fn check_files(spec: &Model, base: &Base) -> Done {
    match spec.path.as_deref().filter(|path| !is_remote(path)) {
        Some(path) => base.existing("path", path).map(drop),
        None => Ok(()),
    }
}

async fn download(context: &Context, args: &ModelDownload) -> Done {
    let session = context.session().await?;
    let model = asset::find(&session, MODELS, &args.which).await?;
    let uri = model["properties"]["modelUri"].as_str().unwrap_or_default();
    let what = || format!("cannot download model `{}`", args.which.name);
    let (store, path) = place_of(&session, uri).await.doing(what)?;
    let to = args.download_path.join(&args.which.name);
    let count = download_blobs(&session.uploader(), &store, &path, &to).await.doing(what)?;
    context.output.note(&format!("{} in `{}`", counted(count), to.display()));
    Ok(())
}

/// Where a model's files lie; one made by a job lies where the job's output does.
async fn place_of(session: &Session<'_>, uri: &str) -> Done<(Store, String)> {
    let up = session.uploader();
    match data_uri(uri) {
        DataUri::Datastore { datastore, path, .. } => Ok((Store::open(&up, Some(&datastore)).await?, path)),
        DataUri::JobOutput { job, output, path } => {
            let resource: Value = session.client.get(&session.path(&format!("jobs/{job}"))).await?;
            let (datastore, head) =
                match data_uri(resource["properties"]["outputs"][&output]["uri"].as_str().unwrap_or_default()) {
                    DataUri::Datastore { datastore, path, .. } => (Some(datastore), path),
                    _ => (None, format!("azureml/{job}/{output}")),
                };
            let store = Store::open(&up, datastore.as_deref()).await?;
            Ok((store, format!("{}/{path}", head.trim_end_matches('/'))))
        }
        DataUri::Other(_) => Err(Failure::input(format!("`{uri}` cannot be reached from here"))
            .hint("fetch it with the tool that speaks that address")),
    }
}
