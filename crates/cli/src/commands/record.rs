//! What schedules, endpoints, deployments and registries have in common: a name, a resource, and verbs over it.
//!
//! One implementation for all of them; a noun brings its words, its columns and its paths.

use super::{Context, Session, change, confirm, settle};
use crate::{
    args::{ChangeArgs, FileArgs, ValidateArgs, place},
    failure::{Doing, Done, Failure},
    output::Column,
    post::Post,
    spec_file::{self, Base},
    upload::segment,
};
use api::arm::{Scope, show::record, tree::word};
use domain::{
    names::{DeploymentName, EndpointName, RegistryName, ScheduleName},
    spec::shape::Noun,
};
use serde_json::{Map, Value, json};

/// A noun whose resources are records.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) noun: Noun,
    /// As people say it.
    pub(super) word: &'static str,
    pub(super) columns: &'static [Column],
    /// Keys that `update --set` may change, besides tags.
    pub(super) open: &'static [change::Allowed],
}

impl Kind {
    fn plural(&self) -> String {
        self.word.strip_suffix('y').map_or_else(|| format!("{}s", self.word), |stem| format!("{stem}ies"))
    }
}

/// Where a record is, and its name for messages.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) name: String,
}

impl Place {
    /// `{workspace}/{collection}/{name}`.
    pub(super) fn new(scope: &Scope, collection: &str, name: &str) -> Place {
        Place { path: format!("{}/{collection}/{}", scope.path(), segment(name)), name: name.to_owned() }
    }
}

/// A file as a tree, or an empty one where no file is named.
pub(super) fn read(kind: Kind, args: &FileArgs) -> Done<(Value, Base)> {
    match &args.file {
        Some(file) => spec_file::tree(kind.noun, file, &args.set),
        None if !args.set.is_empty() => {
            Err(Failure::input("`--set` changes a file, and there is none").hint("name one with `-f`"))
        }
        None => Ok((json!({}), Base::here())),
    }
}

/// The name: the flag's, else the file's.
pub(super) fn named(kind: Kind, flag: Option<&str>, spec: &Value) -> Done<String> {
    match flag.map(str::to_owned).or_else(|| api::arm::text(spec, "name")) {
        Some(name) => valid(kind.noun, name),
        None => {
            Err(Failure::input(format!("the {} has no name", kind.word))
                .hint("set `name` in the file, or add `-n NAME`"))
        }
    }
}

/// Each noun has its own rule.
fn valid(noun: Noun, name: String) -> Done<String> {
    let checked = match noun {
        Noun::Schedule => ScheduleName::parse(&name).map(String::from),
        Noun::Registry => RegistryName::parse(&name).map(String::from),
        Noun::OnlineDeployment | Noun::BatchDeployment => DeploymentName::parse(&name).map(String::from),
        _ => EndpointName::parse(&name).map(String::from),
    };
    checked.map_err(|error| Failure::input(error.to_string()))
}

/// Puts a record and prints it; on paper, prints what would be sent.
pub(super) async fn put(context: &Context, kind: Kind, post: &Post<'_>, at: &Place, body: &Value, wait: bool) -> Done {
    let made = post.put_at(&at.path, body, wait).await;
    let made = made.doing(|| format!("cannot create {} `{}`", kind.word, at.name))?;
    if post.shown()? {
        return Ok(());
    }
    context.output.show(&record(&made))
}

pub(super) async fn show_one(context: &Context, kind: Kind, session: &Session<'_>, at: &Place) -> Done {
    context.output.show(&record(&fetch(kind, session, at).await?))
}

pub(super) async fn list(context: &Context, kind: Kind, path: &str, args: &place::List) -> Done {
    let session = context.session().await?;
    let path = if path.starts_with('/') { path.to_owned() } else { session.path(path) };
    let found =
        session.client.list(&path, args.max_results).await.doing(|| format!("cannot list {}", kind.plural()))?;
    context.output.list(found.iter().map(record).collect(), kind.columns)
}

/// Fetches, lets `edit` change what may be changed, puts back.
pub(super) async fn edit(
    context: &Context,
    kind: Kind,
    at: &Place,
    wait: bool,
    edit: impl FnOnce(&mut Value) -> Done,
) -> Done {
    let session = context.session().await?;
    let body = edited(kind, &session, at, edit).await?;
    let changed = settle::put(&session, &at.path, &body, wait).await;
    context.output.show(&record(&changed.doing(|| format!("cannot change {} `{}`", kind.word, at.name))?))
}

/// A record as it would be put back after `edit`.
pub(super) async fn edited(
    kind: Kind,
    session: &Session<'_>,
    at: &Place,
    edit: impl FnOnce(&mut Value) -> Done,
) -> Done<Value> {
    let mut found = fetch(kind, session, at).await?;
    edit(&mut found)?;
    let keys = ["location", "tags", "identity", "sku", "kind", "properties"].into_iter();
    let kept = keys.filter_map(|key| Some((key, found.get(key).filter(|value| !value.is_null())?.clone())));
    Ok(kept.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>().into())
}

/// `--set` and `--remove` on a record: tags stand beside the properties, the rest in them.
pub(super) fn apply(kind: Kind, found: &mut Value, change: &ChangeArgs) -> Done {
    let inside = found["properties"]["tags"].is_object() && !found["tags"].is_object();
    let tags = if inside { found["properties"]["tags"].take() } else { found["tags"].take() };
    found["properties"]["tags"] = tags;
    change::apply(&mut found["properties"], change, kind.open)?;
    if !inside {
        found["tags"] = found["properties"]["tags"].take();
        if let Some(properties) = found["properties"].as_object_mut() {
            properties.shift_remove("tags");
        }
    }
    Ok(())
}

pub(super) async fn delete(context: &Context, kind: Kind, at: &Place, args: &place::Delete, loss: &str) -> Done {
    let session = context.session().await?;
    fetch(kind, &session, at).await?;
    confirm(context, &format!("deleting {} `{}`{loss}", kind.word, at.name), args.yes)?;
    let gone = settle::delete(&session, &at.path, !args.no_wait).await;
    gone.doing(|| format!("cannot delete {} `{}`", kind.word, at.name))?;
    context.output.note(&format!("deleted {} `{}`", kind.word, at.name));
    Ok(())
}

pub(super) fn validate(context: &Context, kind: Kind, args: &ValidateArgs) -> Done {
    spec_file::tree(kind.noun, &args.file, &args.set)?;
    context.output.note(&format!("`{}` is a valid {} file", args.file.display(), kind.word));
    Ok(())
}

/// A record that must exist.
pub(super) async fn fetch(kind: Kind, session: &Session<'_>, at: &Place) -> Done<Value> {
    let found = session.find(&at.path).await?;
    found.ok_or_else(|| {
        Failure::input(format!("there is no {} `{}`", kind.word, at.name))
            .hint(format!("run `peregrine {} list`", kind.word.replace(' ', "-")))
    })
}

/// The state of a record in a table.
pub(super) fn state(item: &Value) -> String {
    word(item, "provisioning_state").unwrap_or_default().to_owned()
}

pub(super) fn text(item: &Value, key: &str) -> String {
    api::arm::text(item, key).unwrap_or_default()
}

/// The last part of an id: `name` or `name:version`.
pub(super) fn short(id: &str) -> String {
    let parts: Vec<&str> = id.split('/').collect();
    match parts.as_slice() {
        [.., name, "versions", version] => format!("{name}:{version}"),
        [.., last] => (*last).to_owned(),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind =
        Kind { noun: Noun::Schedule, word: "schedule", columns: &[], open: &[("description", "description")] };

    #[test]
    fn tags_change_where_they_stand() {
        let change = ChangeArgs { set: vec!["tags.a=1".into(), "description=x".into()], remove: vec![] };
        let mut beside = json!({"tags": {"b": "2"}, "properties": {"k": 1}});
        apply(KIND, &mut beside, &change).unwrap();
        assert_eq!(beside, json!({"tags": {"b": "2", "a": "1"}, "properties": {"k": 1, "description": "x"}}));
        let mut within = json!({"properties": {"tags": {}}});
        apply(KIND, &mut within, &change).unwrap();
        assert_eq!(within["properties"]["tags"], json!({"a": "1"}));
    }

    #[test]
    fn an_id_is_shown_by_its_end() {
        assert_eq!(short("/s/models/m/versions/2"), "m:2");
        assert_eq!(short("/s/computes/c"), "c");
    }

    #[test]
    fn a_name_cannot_leave_its_collection() {
        let scope = Scope { subscription: "s".into(), group: "g".into(), workspace: "w".into() };
        assert!(Place::new(&scope, "schedules", "../jobs/x").path.ends_with("/schedules/..%2Fjobs%2Fx"));
    }
}
