//! Experiments: found by name or made, filled, and deleted again where they are deleted in the source.

use super::{
    Import,
    files::Address,
    image::{Image, What},
    registry::Roots,
    report::Fate,
    runs::FROM,
    wire::{Answer, Wire, object, pairs, refusal, texts, word},
};
use crate::failure::{Done, Failure};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use std::cell::Cell;
use store::foreign::mlflow::{Experiment, LoggedModel, Run};

/// Runs that are copied at the same time.
const AT_ONCE: usize = 8;

/// An experiment here that takes the runs of one of the source.
pub(super) struct Target<'a> {
    pub(super) source: &'a Experiment,
    pub(super) number: String,
    /// Whether it takes runs; one that is deleted in the source too is brought back while it must.
    awake: tokio::sync::Mutex<bool>,
    /// It is to be deleted at the end.
    woken: Cell<bool>,
}

impl Import<'_> {
    /// Copies an experiment and what belongs to it; its logged models.
    pub(super) async fn experiment(&self, source: &Experiment, roots: &mut Roots) -> Done<Vec<LoggedModel>> {
        let (models, runs) = (self.db.logged_models(source.id)?, self.db.runs(source.id)?);
        let target = match self.target(source).await {
            Ok(target) => target,
            Err(error) => {
                let told = refusal(error)?;
                self.report.borrow_mut().differs(&format!("experiment `{}`", source.name), &told);
                return Ok(Vec::new());
            }
        };
        models.iter().for_each(|model| roots.add_model(&target.number, model));
        runs.iter().for_each(|run| roots.add_run(&target.number, run));
        for model in &models {
            self.logged_model(&target, model).await?;
        }
        let target = &target;
        let one = |run: Run| async move {
            self.run(target, &run).await?;
            self.draw(&source.name);
            Ok::<_, Failure>(())
        };
        stream::iter(runs).map(one).buffer_unordered(AT_ONCE).try_for_each(|()| async { Ok(()) }).await?;
        if let Some(wire) = self.wire.as_ref().filter(|_| target.woken.get()) {
            let gone = wire.post("experiments/delete", json!({"experiment_id": target.number})).await;
            self.without(gone.map(drop), &format!("experiment `{}`", source.name))?;
        }
        Ok(models)
    }

    /// The experiment here that stands for one of the source; made where none has its name.
    async fn target<'s>(&self, source: &'s Experiment) -> Answer<Target<'s>> {
        let thing = format!("experiment `{}`", source.name);
        let target = |number: String, awake: bool, woken: bool| Target {
            source,
            number,
            awake: tokio::sync::Mutex::new(awake),
            woken: Cell::new(woken),
        };
        let mut original = Image::default();
        let created = source.created_at.filter(|at| *at > 0).map(|at| at.to_string()).unwrap_or_default();
        original.put_thing(What::Experiments, [("name", source.name.clone()), ("created", created)]);
        original.put(What::Tags, source.tags.clone());
        let Some(wire) = &self.wire else {
            self.report.borrow_mut().note(&thing, &original, Fate::Left);
            return Ok(target(source.id.to_string(), true, false));
        };
        let by_name = [("experiment_name", source.name.as_str())];
        if let Some(known) = wire.find("experiments/get-by-name", &by_name).await? {
            let known = &known["experiment"];
            let number = word(&known["experiment_id"]);
            let awake = known["lifecycle_stage"] != "deleted";
            if awake {
                self.add_tags(wire, source, known).await?;
            }
            self.report.borrow_mut().note(&thing, &original, Fate::Before);
            return Ok(target(number, awake, false));
        }
        let mut tags = source.tags.clone();
        tags.insert(FROM.into(), self.from.to_owned());
        let location = matches!(Address::of(&source.artifact_location), Address::Elsewhere(_));
        let made = object([
            ("name", json!(source.name)),
            ("artifact_location", json!(Some(&source.artifact_location).filter(|_| location))),
            ("tags", pairs(&tags)),
            ("peregrine", object([("created_at", json!(source.created_at))])),
        ]);
        wire.post("experiments/create", made).await?;
        let shown = wire.get("experiments/get-by-name", &by_name).await?["experiment"].take();
        let mut copy = Image::default();
        copy.put_thing(What::Experiments, [("name", word(&shown["name"])), ("created", word(&shown["creation_time"]))]);
        let mut tags = texts(&shown["tags"]);
        tags.remove(FROM);
        copy.put(What::Tags, tags);
        self.report.borrow_mut().note(&thing, &original, Fate::Moved(&copy));
        Ok(target(word(&shown["experiment_id"]), true, source.deleted))
    }

    /// Tags of an experiment that was here; those it has stay.
    async fn add_tags(&self, wire: &Wire<'_>, source: &Experiment, known: &Value) -> Answer<()> {
        let has = texts(&known["tags"]);
        for (key, value) in source.tags.iter().filter(|(key, _)| !has.contains_key(*key)) {
            let tag = json!({"experiment_id": known["experiment_id"], "key": key, "value": value});
            wire.post("experiments/set-experiment-tag", tag).await?;
        }
        for (key, _) in source.tags.iter().filter(|(key, value)| has.get(*key).is_some_and(|known| known != *value)) {
            let thing = format!("tag `{key}` of experiment `{}`", source.name);
            self.report.borrow_mut().leave(&thing, "the experiment was here and has another value");
        }
        Ok(())
    }
}

impl Target<'_> {
    /// Makes sure that the experiment takes runs; why it cannot, if so.
    pub(super) async fn wake(&self, wire: &Wire<'_>) -> Answer<Option<String>> {
        let mut awake = self.awake.lock().await;
        if *awake {
            return Ok(None);
        }
        if !self.source.deleted {
            let name = &self.source.name;
            return Ok(Some(format!("experiment `{name}` is deleted here: restore it, then import again")));
        }
        wire.post("experiments/restore", json!({"experiment_id": self.number})).await?;
        (*awake, _) = (true, self.woken.set(true));
        Ok(None)
    }
}

/// The experiments that were asked for; all where none was.
pub(super) fn chosen(all: Vec<Experiment>, names: &[String]) -> Done<Vec<Experiment>> {
    if let Some(name) = names.iter().find(|name| !all.iter().any(|one| one.name == **name)) {
        let known: Vec<String> = all.iter().take(20).map(|one| format!("`{}`", one.name)).collect();
        return Err(Failure::input(format!("the source has no experiment `{name}`"))
            .hint(format!("it has {}", known.join(", "))));
    }
    Ok(all.into_iter().filter(|one| names.is_empty() || names.contains(&one.name)).collect())
}
