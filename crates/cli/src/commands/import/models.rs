//! Models that runs logged: each with its files under the id it had.

use super::{
    Import, Moved, Target,
    files::File,
    image::{Image, What},
    report::Fate,
    runs::marks,
    wire::{Answer, Place, object, pairs, point, refusal, texts, word},
};
use crate::failure::Done;
use reqwest::Method;
use serde_json::{Value, json};
use store::foreign::mlflow::{LoggedModel, ModelPoint};

/// The tag that lists the versions a model became; the server writes it as they are registered.
const BECAME: &str = "mlflow.modelVersions";
const STATUSES: [&str; 3] = ["LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY", "LOGGED_MODEL_UPLOAD_FAILED"];

impl Import<'_> {
    /// Copies a logged model and compares; one that is here and whole is left alone.
    pub(super) async fn logged_model(&self, target: &Target<'_>, model: &LoggedModel) -> Done {
        let usual = format!("{}/models/{}/artifacts", target.source.id, model.id);
        let (files, left) = self.folders.files(&model.artifact_location, &usual);
        let thing = format!("logged model `{}`", model.id);
        left.iter().for_each(|reason| self.report.borrow_mut().leave(&format!("artifacts of {thing}"), reason));
        let moved = match self.wire {
            Some(_) => self.move_model(target, model, &files).await,
            None => Ok(Moved::Left(None)),
        };
        let mut original = original(model, &files, matches!(moved, Ok(Moved::Yes(_))))?;
        // The files of a model that is deleted are not shown.
        if matches!(moved, Ok(Moved::Before)) && !model.deleted {
            self.late_files(&thing, &place(target, model), &files, &mut original).await?;
        }
        self.told(&thing, &original, moved)
    }

    async fn move_model(&self, target: &Target<'_>, model: &LoggedModel, files: &[File]) -> Answer<Moved> {
        let (wire, call) = (self.wire(), format!("logged-models/{}", model.id));
        let known = wire.find(&call, &[("allow_deleted", "true")]).await?;
        match known.as_ref().map(|known| &known["model"]["info"]) {
            None => {
                if let Some(reason) = target.wake(wire).await? {
                    return Ok(Moved::Left(Some(reason)));
                }
                wire.post("logged-models", begin(target, model)).await?;
            }
            Some(info) if word(&info["creation_timestamp_ms"]) != model.created_at.to_string() => {
                return Ok(Moved::Left(Some("a logged model of that id is here and is another".into())));
            }
            Some(info) if info["status"] != STATUSES[0] => return Ok(Moved::Before),
            Some(_) => {}
        }
        let place = place(target, model);
        for file in files {
            let done = wire.put_file(&place, file).await;
            self.without(done, &format!("`{}` of logged model `{}`", file.name, model.id))?;
        }
        if model.status != 1 {
            wire.tell(Method::PATCH, &call, json!({"model_id": model.id, "status": status(model)})).await?;
        }
        let shown = wire.get(&call, &[]).await?["model"].take();
        let mut copy = Image::default();
        let info = &shown["info"];
        copy.put_thing(
            What::LoggedModels,
            [
                ("name", word(&info["name"])),
                ("type", word(&info["model_type"])),
                ("run", word(&info["source_run_id"])),
                ("status", word(&info["status"])),
                ("created", word(&info["creation_timestamp_ms"])),
            ],
        );
        copy.put(What::Params, texts(&shown["data"]["params"]));
        copy.put(What::Tags, texts(&info["tags"]));
        copy.put(What::Artifacts, wire.marks(&place).await?);
        Ok(Moved::Yes(copy))
    }

    /// The points that tell of a model, once the runs that logged them are here.
    pub(super) async fn check_model_points(&self, model: &LoggedModel) -> Done {
        let Some(wire) = &self.wire else { return Ok(()) };
        let here = self.runs.borrow().clone();
        let source = self.db.points_of_model(&model.id)?.into_iter().filter(|told| here.contains_key(&told.run));
        let source: Vec<_> = source.collect();
        if source.is_empty() {
            return Ok(());
        }
        let new = source.iter().any(|told| here[&told.run]);
        let thing = format!("logged model `{}`", model.id);
        let call = format!("logged-models/{}", model.id);
        let shown = match wire.get(&call, &[("allow_deleted", "true")]).await {
            Ok(shown) => shown,
            Err(error) => {
                let told = refusal(error)?;
                self.report.borrow_mut().differs(&thing, &told);
                return Ok(());
            }
        };
        let (mut original, mut copy) = (Image::default(), Image::default());
        let of =
            |told: &ModelPoint| format!("{} {} {}", told.run, told.dataset_name.clone().unwrap_or_default(), told.key);
        original.put_points(What::ModelPoints, source.iter().map(|told| (of(told), told.point)).collect());
        let metrics = shown["model"]["data"]["metrics"].as_array();
        let key = |metric: &Value| {
            format!("{} {} {}", word(&metric["run_id"]), word(&metric["dataset_name"]), word(&metric["key"]))
        };
        copy.put_points(What::ModelPoints, metrics.into_iter().flatten().map(|one| (key(one), point(one))).collect());
        let fate = if new { Fate::Moved(&copy) } else { Fate::Before };
        self.report.borrow_mut().note(&thing, &original, fate);
        Ok(())
    }

    /// Deletes the models that are deleted in the source: last, because versions may have come from them.
    pub(super) async fn delete_model(&self, model: &LoggedModel) -> Done {
        let Some(wire) = self.wire.as_ref().filter(|_| model.deleted) else { return Ok(()) };
        let call = format!("logged-models/{}", model.id);
        let gone = match wire.find(&call, &[]).await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => wire.tell(Method::DELETE, &call, json!({})).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = gone {
            let told = refusal(error)?;
            self.report.borrow_mut().differs(&format!("logged model `{}`", model.id), &told);
        }
        Ok(())
    }
}

fn place(target: &Target<'_>, model: &LoggedModel) -> Place {
    Place::Model { number: target.number.clone(), model: model.id.clone() }
}

fn status(model: &LoggedModel) -> &'static str {
    let number = usize::try_from(model.status - 1).unwrap_or(0);
    STATUSES.get(number).unwrap_or(&STATUSES[0])
}

fn begin(target: &Target<'_>, model: &LoggedModel) -> Value {
    object([
        ("experiment_id", json!(target.number)),
        ("name", json!(model.name)),
        ("model_type", json!(model.model_type)),
        ("source_run_id", json!(model.source_run)),
        ("params", pairs(&model.params)),
        ("tags", pairs(model.tags.iter().filter(|(key, _)| *key != BECAME))),
        ("peregrine", json!({"id": model.id, "created_at": model.created_at})),
    ])
}

fn original(model: &LoggedModel, files: &[File], with_sums: bool) -> Done<Image> {
    let mut image = Image::default();
    image.put_thing(
        What::LoggedModels,
        [
            ("name", model.name.clone()),
            ("type", model.model_type.clone()),
            ("run", model.source_run.clone()),
            ("status", status(model).into()),
            ("created", model.created_at.to_string()),
        ],
    );
    image.put(What::Params, model.params.clone());
    let mut tags = model.tags.clone();
    tags.remove(BECAME);
    image.put(What::Tags, tags);
    image.put(What::Artifacts, marks(files, with_sums)?);
    Ok(image)
}
