//! `peregrine registry …`.

use super::{
    Context,
    record::{self, Kind, Place, text},
};
use crate::{
    args::record::{Create, RegistryVerb, Update},
    failure::Done,
    output::Column,
    post::Post,
    upload::segment,
};
use api::arm::{PROVIDER, Scope, place};
use domain::spec::shape::Noun;
use serde_json::{Value, json};
use std::process::ExitCode;

const KIND: Kind = Kind {
    noun: Noun::Registry,
    word: "registry",
    columns: &[
        Column::new("NAME", |item| text(item, "name")).whole(),
        Column::new("LOCATION", |item| text(item, "location")),
        Column::new("DESCRIPTION", |item| text(item, "description")),
    ],
    open: &[("description", "description")],
};

pub(super) async fn run(context: &Context, verb: RegistryVerb) -> Done<ExitCode> {
    let at = |name: &str| Place { path: path(&context.config.scope(), name), name: name.to_owned() };
    match verb {
        RegistryVerb::Create(args) => create(context, &args).await?,
        RegistryVerb::Show(args) => record::show_one(context, KIND, &context.session().await?, &at(&args.name)).await?,
        RegistryVerb::List(args) => {
            let path =
                format!("/subscriptions/{}/providers/{PROVIDER}/registries", context.config.scope().subscription);
            record::list(context, KIND, &path, &args).await?;
        }
        RegistryVerb::Update(args) => update(context, args).await?,
        RegistryVerb::Delete(args) => {
            record::delete(context, KIND, &at(&args.name), &args, " with the assets in it").await?;
        }
        RegistryVerb::Validate(args) => record::validate(context, KIND, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The path of a registry.
pub(super) fn path(scope: &Scope, name: &str) -> String {
    format!(
        "/subscriptions/{}/resourceGroups/{}/providers/{PROVIDER}/registries/{}",
        scope.subscription,
        scope.group,
        segment(name)
    )
}

async fn create(context: &Context, args: &Create) -> Done {
    let (mut spec, _) = record::read(KIND, &args.file)?;
    let name = record::named(KIND, args.name.as_deref(), &spec)?;
    let post = Post::open(context, args.dry_run).await?;
    if spec.get("location").is_none() {
        spec["location"] = json!("local");
    }
    let at = Place { path: path(&post.scope, &name), name };
    record::put(context, KIND, &post, &at, &place::registry(&spec), !args.no_wait).await
}

async fn update(context: &Context, args: Update) -> Done {
    let Some(file) = args.file else {
        let name = record::named(KIND, args.name.as_deref(), &Value::Null)?;
        let at = Place { path: path(&context.config.scope(), &name), name };
        return record::edit(context, KIND, &at, !args.no_wait, |found| record::apply(KIND, found, &args.change)).await;
    };
    let file = crate::args::FileArgs { file: Some(file), set: args.change.set };
    create(context, &Create { file, name: args.name, no_wait: args.no_wait, dry_run: false }).await
}
