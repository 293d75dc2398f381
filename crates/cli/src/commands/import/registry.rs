//! Registered models: names, versions under the numbers they had, aliases.

use super::{
    Import, Moved,
    files::Address,
    image::{Image, What},
    wire::{Answer, object, pairs, texts, word},
};
use crate::failure::Done;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::foreign::mlflow::{LoggedModel, RegisteredModel, Run, Version};

const PROMPT: &str = "mlflow.prompt.is_prompt";

/// Where the files that versions are made of are now, by where they were.
#[derive(Debug, Default)]
pub(super) struct Roots(BTreeMap<String, Root>);

#[derive(Debug, Clone)]
struct Root {
    uri: String,
    run: Option<String>,
    model: Option<String>,
}

impl Roots {
    pub(super) fn add_run(&mut self, number: &str, run: &Run) {
        let uri = format!("mlflow-artifacts:/{number}/{}/artifacts", run.id);
        let root = Root { uri, run: Some(run.id.clone()), model: None };
        self.0.insert(format!("runs:/{}", run.id), root.clone());
        self.0.extend(place(&run.artifact_uri).map(|place| (place, root)));
    }

    pub(super) fn add_model(&mut self, number: &str, model: &LoggedModel) {
        let uri = format!("mlflow-artifacts:/{number}/models/{}/artifacts", model.id);
        let root = Root { uri, run: None, model: Some(model.id.clone()) };
        self.0.insert(format!("models:/{}", model.id), Root { uri: format!("models:/{}", model.id), ..root.clone() });
        self.0.extend(place(&model.artifact_location).map(|place| (place, root)));
    }

    /// The root an address lies below, and the rest of it.
    fn of<'s>(&self, place: &'s str) -> Option<(&Root, &'s str)> {
        let mut end = place.len();
        loop {
            if let Some(root) = self.0.get(&place[..end]) {
                return Some((root, &place[end..]));
            }
            end = place[..end].rfind('/')?;
        }
    }
}

/// One spelling of where something lies that may have been copied; what lies elsewhere is not.
fn place(uri: &str) -> Option<String> {
    match Address::of(uri) {
        Address::Path(path) => Some(path),
        Address::Served(path) => Some(format!("mlflow-artifacts:/{path}")),
        Address::Elsewhere(_) => None,
    }
}

/// What a version is made of here: source, run and logged model; or why there is nothing.
fn source_of(version: &Version, roots: &Roots) -> Result<(String, String, Option<String>), String> {
    let as_it_is = || Ok((version.source.clone(), version.run_id.clone(), None));
    let named = ["models:/", "runs:/"].iter().any(|scheme| version.source.starts_with(scheme));
    if version.tags.get(PROMPT).is_some_and(|word| word.eq_ignore_ascii_case("true")) {
        return as_it_is();
    }
    let Some(place) = (if named { Some(version.source.clone()) } else { place(&version.source) }) else {
        return as_it_is();
    };
    match roots.of(&place) {
        Some((root, rest)) => {
            let run = root.run.clone().unwrap_or_else(|| version.run_id.clone());
            Ok((format!("{}{rest}", root.uri), run, root.model.clone()))
        }
        None if version.source.starts_with("models:/") => as_it_is(),
        None => Err("its files are not among those of the runs and logged models that were copied".into()),
    }
}

impl Import<'_> {
    /// Copies registered models; with `only`, those that some of these runs and logged models became.
    pub(super) async fn registry(&self, roots: &Roots, only: Option<&BTreeSet<String>>) -> Done {
        let mut versions = self.db.versions()?;
        versions.retain(|version| only.is_none_or(|only| wanted(version, only)));
        let names: BTreeSet<String> = versions.iter().map(|version| version.name.clone()).collect();
        let mut models = self.db.registered_models()?;
        models.retain(|model| only.is_none() || names.contains(&model.name));
        for model in &models {
            let moved = self.move_name(model).await;
            self.told(&format!("registered model `{}`", model.name), &name_image(model), moved)?;
        }
        for version in &versions {
            let thing = format!("version {} of model `{}`", version.version, version.name);
            let source = source_of(version, roots);
            let image = version_image(version, source.as_ref().map_or("", |(source, _, _)| source));
            let moved = match source {
                Ok(source) => self.move_version(version, source).await,
                Err(reason) => Ok(Moved::Left(Some(reason))),
            };
            self.told(&thing, &image, moved)?;
        }
        for model in &models {
            self.aliases(model, &versions).await?;
        }
        Ok(())
    }

    async fn move_name(&self, model: &RegisteredModel) -> Answer<Moved> {
        let Some(wire) = &self.wire else { return Ok(Moved::Left(None)) };
        if wire.find("registered-models/get", &[("name", &model.name)]).await?.is_some() {
            return Ok(Moved::Before);
        }
        let body = object([
            ("name", json!(model.name)),
            ("description", json!(model.description)),
            ("tags", pairs(&model.tags)),
            ("peregrine", object([("created_at", json!(model.created_at))])),
        ]);
        wire.post("registered-models/create", body).await?;
        let shown = wire.get("registered-models/get", &[("name", &model.name)]).await?["registered_model"].take();
        let mut copy = Image::default();
        let facts = [("description", word(&shown["description"])), ("created", word(&shown["creation_timestamp"]))];
        copy.put_thing(What::Models, facts);
        copy.put(What::Tags, texts(&shown["tags"]));
        Ok(Moved::Yes(copy))
    }

    async fn move_version(&self, version: &Version, source: (String, String, Option<String>)) -> Answer<Moved> {
        let Some(wire) = &self.wire else { return Ok(Moved::Left(None)) };
        let number = version.version.to_string();
        let query = [("name", version.name.as_str()), ("version", number.as_str())];
        if let Some(known) = wire.find("model-versions/get", &query).await? {
            let created = word(&known["model_version"]["creation_timestamp"]);
            let same = version.created_at.is_none_or(|at| at.to_string() == created);
            let other = "a version of that number is here and is another";
            return Ok(if same { Moved::Before } else { Moved::Left(Some(other.into())) });
        }
        let (source, run, model) = source;
        let stage = Some(&version.stage).filter(|stage| !stage.is_empty());
        let body = object([
            ("name", json!(version.name)),
            ("source", json!(source)),
            ("run_id", json!(run)),
            ("model_id", json!(model)),
            ("run_link", json!(version.run_link)),
            ("description", json!(version.description)),
            ("tags", pairs(&version.tags)),
            (
                "peregrine",
                object([
                    ("version", json!(version.version)),
                    ("stage", json!(stage)),
                    ("created_at", json!(version.created_at)),
                ]),
            ),
        ]);
        wire.post("model-versions/create", body).await?;
        let shown = wire.get("model-versions/get", &query).await?["model_version"].take();
        let mut copy = Image::default();
        let facts = [
            ("source", word(&shown["source"])),
            ("run", word(&shown["run_id"])),
            ("stage", word(&shown["current_stage"])),
            ("description", word(&shown["description"])),
            ("created", word(&shown["creation_timestamp"])),
        ];
        copy.put_thing(What::Versions, facts);
        copy.put(What::Tags, texts(&shown["tags"]));
        Ok(Moved::Yes(copy))
    }

    /// Names versions by their aliases, where the alias is not in use here.
    async fn aliases(&self, model: &RegisteredModel, versions: &[Version]) -> Done {
        for (alias, version) in &model.aliases {
            if !versions.iter().any(|known| known.name == model.name && known.version == *version) {
                continue;
            }
            let thing = format!("alias `{alias}` of model `{}`", model.name);
            let mut image = Image::default();
            image.put(What::Aliases, [(alias.clone(), version.to_string())].into());
            let moved = self.move_alias(model, alias, *version).await;
            self.told(&thing, &image, moved)?;
        }
        Ok(())
    }

    async fn move_alias(&self, model: &RegisteredModel, alias: &str, version: i64) -> Answer<Moved> {
        let Some(wire) = &self.wire else { return Ok(Moved::Left(None)) };
        let shown = async || {
            let shown = wire.get("registered-models/get", &[("name", &model.name)]).await?;
            let all = shown["registered_model"]["aliases"].as_array().cloned().unwrap_or_default();
            let known = |one: &Value| one["alias"] == alias;
            Ok(all.iter().find(|one| known(one)).map(|one| word(&one["version"])))
        };
        match shown().await? {
            Some(known) if known == version.to_string() => return Ok(Moved::Before),
            Some(_) => return Ok(Moved::Left(Some("the alias names another version here".into()))),
            None => {}
        }
        let body = json!({"name": model.name, "alias": alias, "version": version.to_string()});
        wire.post("registered-models/alias", body).await?;
        let mut copy = Image::default();
        copy.put(What::Aliases, shown().await?.map(|known| (alias.to_owned(), known)).into_iter().collect());
        Ok(Moved::Yes(copy))
    }
}

/// Whether a version comes from one of these runs and logged models.
fn wanted(version: &Version, only: &BTreeSet<String>) -> bool {
    only.contains(&version.run_id) || version.source.strip_prefix("models:/").is_some_and(|id| only.contains(id))
}

fn name_image(model: &RegisteredModel) -> Image {
    let mut image = Image::default();
    let created = model.created_at.map(|at| at.to_string()).unwrap_or_default();
    image.put_thing(What::Models, [("description", model.description.clone()), ("created", created)]);
    image.put(What::Tags, model.tags.clone());
    image
}

fn version_image(version: &Version, source: &str) -> Image {
    let mut image = Image::default();
    let facts = [
        ("source", source.to_owned()),
        ("run", version.run_id.clone()),
        ("stage", version.stage.clone()),
        ("description", version.description.clone()),
        ("created", version.created_at.map(|at| at.to_string()).unwrap_or_default()),
    ];
    image.put_thing(What::Versions, facts);
    image.put(What::Tags, version.tags.clone());
    image
}
