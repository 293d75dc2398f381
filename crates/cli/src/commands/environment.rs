//! `peregrine environment …`, and environments defined inside jobs.

use super::{
    Context,
    asset::{self, ENVIRONMENTS},
};
use crate::{
    args::{
        ValidateArgs,
        asset::{EnvironmentCreate, EnvironmentVerb, List, Show},
    },
    failure::{Doing, Done, Failure},
    output::Column,
    post::Post,
    spec_file,
    spec_file::{Base, SpecFile},
};
use api::{
    arm::{assets::environment_body, reference::is_remote},
    blob::sha256,
};
use domain::{
    curated::{self, Curated},
    spec::{BuildContext, Environment, check, check::Spec, shape::Noun, yaml::to_yaml},
};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The name under which environments defined inside jobs are kept.
const ANONYMOUS: &str = "CliV2AnonymousEnvironment";
const REGISTRY: &str = "azureml";

pub(super) async fn run(context: &Context, verb: EnvironmentVerb) -> Done<ExitCode> {
    match verb {
        EnvironmentVerb::Create(args) => create(context, &args).await?,
        EnvironmentVerb::Show(args) if args.registry.as_deref() == Some(REGISTRY) => show_curated(context, &args)?,
        EnvironmentVerb::Show(args) => asset::show_one(context, ENVIRONMENTS, &args).await?,
        EnvironmentVerb::List(args) if args.registry.as_deref() == Some(REGISTRY) => list_curated(context, &args)?,
        EnvironmentVerb::List(args) => asset::list(context, ENVIRONMENTS, &args).await?,
        EnvironmentVerb::Update(args) => {
            asset::update(context, ENVIRONMENTS, &args, &[("description", "description")]).await?
        }
        EnvironmentVerb::Archive(which) => asset::archive(context, ENVIRONMENTS, &which, true).await?,
        EnvironmentVerb::Restore(which) => asset::archive(context, ENVIRONMENTS, &which, false).await?,
        EnvironmentVerb::Share(args) => asset::share(context, ENVIRONMENTS, &args).await?,
        EnvironmentVerb::Validate(args) => validate(context, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Registers an environment defined inside another file: under the hash of its definition, or with `named` under
/// its own name where it has one.
pub(crate) async fn register(post: &Post<'_>, spec: &Environment, base: &Base, named: bool) -> Done<String> {
    let name = spec.name.as_ref().filter(|_| named);
    let mut spec = spec.clone();
    if name.is_none() {
        (spec.description, spec.tags) = (None, Default::default());
    }
    let body = body(post, &spec, base, name.is_none()).await?;
    let (name, version) = match name {
        Some(name) => match &spec.version {
            Some(version) => (name.clone(), version.clone()),
            None => (name.clone(), post.next_version("environments", name).await?),
        },
        None => (ANONYMOUS.to_owned(), sha256(body.to_string().as_bytes())),
    };
    let made = post.put(&format!("environments/{name}/versions/{version}"), &json!({"properties": body})).await?;
    Ok(made["id"].as_str().unwrap_or_default().to_owned())
}

/// Whether the files that an environment names are there.
pub(super) fn check_files(spec: &Environment, base: &Base, prefix: &str) -> Done {
    if let Some(path) = conda_path(spec) {
        let path = base.existing(&format!("{prefix}conda_file"), path)?;
        conda_text(&path)?;
    }
    if let Some(path) = build_path(spec) {
        let folder = base.existing(&format!("{prefix}build.path"), path)?;
        let dockerfile = spec.build.as_ref().and_then(|build| build.dockerfile_path.as_deref()).unwrap_or("Dockerfile");
        if !folder.join(dockerfile).is_file() {
            return Err(Failure::input(format!("there is no `{dockerfile}` in `{}`", folder.display()))
                .hint(format!("set `{prefix}build.dockerfile_path`, or add the file")));
        }
    }
    Ok(())
}

async fn create(context: &Context, args: &EnvironmentCreate) -> Done {
    let (mut spec, base) = match asset::from_file(Noun::Environment, &args.common.file)? {
        Some((Spec::Environment(spec), base)) => (spec, base),
        _ => (Environment::default(), Base::here()),
    };
    let mut flags = Environment {
        image: args.image.clone(),
        os_type: args.os_type.as_ref().map(|os| os.to_lowercase()),
        ..Environment::default()
    };
    // Paths given as flags start where the user stands, whatever file there is.
    let here = |path: &std::path::Path| std::path::absolute(path).unwrap_or(path.to_owned()).display().to_string();
    flags.conda_file = args.conda_file.as_deref().map(|path| json!(here(path)));
    flags.build = args
        .build_context
        .as_deref()
        .map(|path| BuildContext { path: Some(here(path)), dockerfile_path: args.dockerfile_path.clone() });
    spec.image = flags.image.or(spec.image);
    spec.conda_file = flags.conda_file.or(spec.conda_file);
    spec.build = flags.build.or(spec.build);
    spec.os_type = flags.os_type.or(spec.os_type);
    asset::overlay(&args.common, &mut spec.name, &mut spec.version, &mut spec.description, &mut spec.tags)?;
    let name = asset::named(ENVIRONMENTS, spec.name.as_deref())?;
    let mistakes = check::environment(&spec);
    if !mistakes.is_empty() {
        return Err(spec_file::refuse("this is not an environment", &mistakes)
            .hint("name an image, a conda file or a build context"));
    }
    check_files(&spec, &base, "")?;
    let post = Post::open(context, args.common.dry_run).await?;
    let body = body(&post, &spec, &base, false).await?;
    asset::create(context, ENVIRONMENTS, &post, &name, spec.version.as_deref(), &body).await
}

fn validate(context: &Context, args: &ValidateArgs) -> Done {
    let SpecFile { spec, base } = spec_file::read(Noun::Environment, &args.file, &args.set)?;
    if let (Spec::Environment(spec), false) = (&spec, args.spec_only) {
        check_files(spec, &base, "")?;
    }
    context.output.note(&format!("`{}` is a valid environment file", args.file.display()));
    Ok(())
}

/// The body to send: the conda file as text, the build context uploaded.
async fn body(post: &Post<'_>, spec: &Environment, base: &Base, anonymous: bool) -> Done<Value> {
    let conda = match &spec.conda_file {
        Some(Value::String(path)) => Some(conda_text(&base.existing("conda_file", path)?)?),
        Some(mapping) => Some(to_yaml(mapping)),
        None => None,
    };
    let context = match build_path(spec) {
        Some(path) => {
            Some(post.data(&base.path(path), None).await.doing(|| "cannot send the build context".to_owned())?)
        }
        None => None,
    };
    Ok(environment_body(spec, conda.as_deref(), context.as_deref(), anonymous))
}

fn conda_text(path: &std::path::Path) -> Done<String> {
    spec_file::read_text(path)
}

fn conda_path(spec: &Environment) -> Option<&str> {
    spec.conda_file.as_ref().and_then(Value::as_str)
}

fn build_path(spec: &Environment) -> Option<&str> {
    spec.build.as_ref().and_then(|build| build.path.as_deref()).filter(|path| !is_remote(path))
}

const CURATED: &[Column] = &[
    Column::new("NAME", |item| item["name"].as_str().unwrap_or_default().to_owned()).whole(),
    Column::new("PYTHON", |item| item["python"].as_str().unwrap_or_default().to_owned()),
    Column::new("DESCRIPTION", |item| item["description"].as_str().unwrap_or_default().to_owned()),
];

fn list_curated(context: &Context, args: &List) -> Done {
    let wanted = args.name.as_deref();
    let chosen = curated::list().iter().filter(|one| wanted.is_none_or(|name| one.name.eq_ignore_ascii_case(name)));
    context.output.list(chosen.take(args.max_results).map(curated_view).collect(), CURATED)
}

fn show_curated(context: &Context, args: &Show) -> Done {
    match curated::find(&args.which.name) {
        Some(found) => context.output.show(&curated_view(found)),
        None => Err(Failure::input(format!("there is no curated environment `{}`", args.which.name))
            .hint("run `peregrine environment list --registry azureml`")),
    }
}

fn curated_view(one: &Curated) -> Value {
    json!({
        "name": one.name, "version": "1", "python": one.python, "pip": one.pip, "description": one.description,
        "id": format!("azureml://registries/{REGISTRY}/environments/{}/versions/1", one.name),
    })
}
