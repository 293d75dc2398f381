//! One run: sent whole, marked as whole, read back.
//!
//! Invariant: a run carries the mark of an unfinished copy until everything of it was sent; whoever comes later begins
//! such a run anew, which changes nothing that is there already, and leaves others alone.

use super::{
    Import, Moved, Target,
    files::File,
    image::{Image, What, mark_of},
    wire::{Answer, Place, object, pairs, sent, texts, word},
};
use crate::failure::{Done, Failure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::foreign::mlflow::{Dataset, Logged, ModelPoint, Run};

/// The tag of everything that was imported: from where.
pub(super) const FROM: &str = "peregrine.imported_from";
/// The tag of a run that is not whole yet.
const UNFINISHED: &str = "peregrine.import_unfinished";
const NAME: &str = "mlflow.runName";
/// Entries of one batch: what the server takes at most, and fewer where they are long.
const POINTS: usize = 1000;
const TEXTS: usize = 100;
const BATCH_BYTES: usize = 500_000;

/// A run and everything that belongs to it.
struct Whole<'a> {
    run: &'a Run,
    logged: Logged,
    model_points: Vec<ModelPoint>,
    files: Vec<File>,
}

impl Import<'_> {
    /// Copies a run and compares; one that is here is left alone.
    pub(super) async fn run(&self, target: &Target<'_>, run: &Run) -> Done {
        let usual = format!("{}/{}/artifacts", target.source.id, run.id);
        let (files, left) = self.folders.files(&run.artifact_uri, &usual);
        let thing = format!("run `{}`", run.id);
        left.iter().for_each(|reason| self.report.borrow_mut().leave(&format!("artifacts of {thing}"), reason));
        let whole =
            Whole { run, logged: self.db.logged(&run.id)?, model_points: self.db.points_of_models(&run.id)?, files };
        let moved = match self.wire {
            Some(_) => self.move_run(target, &whole).await,
            None => Ok(Moved::Left(None)),
        };
        let mut original = whole.image(matches!(moved, Ok(Moved::Yes(_))))?;
        match moved {
            Ok(Moved::Yes(_)) => drop(self.runs.borrow_mut().insert(run.id.clone(), true)),
            Ok(Moved::Before) => {
                self.runs.borrow_mut().insert(run.id.clone(), false);
                self.late_files(&thing, &place(target, run), &whole.files, &mut original).await?;
            }
            _ => {}
        }
        self.told(&thing, &original, moved)
    }

    async fn move_run(&self, target: &Target<'_>, whole: &Whole<'_>) -> Answer<Moved> {
        let (wire, run) = (self.wire(), whole.run);
        match wire.find("runs/get", &[("run_id", &run.id)]).await? {
            None => {
                if let Some(reason) = target.wake(wire).await? {
                    return Ok(Moved::Left(Some(reason)));
                }
                wire.post("runs/create", whole.begin(&target.number, self.from)).await?;
            }
            Some(known) => {
                let tags = texts(&known["run"]["data"]["tags"]);
                match (tags.contains_key(FROM), tags.contains_key(UNFINISHED)) {
                    (true, false) => return Ok(Moved::Before),
                    (true, true) if known["run"]["info"]["lifecycle_stage"] == "deleted" => {
                        wire.post("runs/restore", json!({"run_id": run.id})).await?;
                    }
                    (true, true) => {}
                    (false, _) => return Ok(Moved::Left(Some("a run of that id is here and is another".into()))),
                }
            }
        }
        self.fill(target, whole).await?;
        self.copy_of(target, whole).await.map(Moved::Yes)
    }

    /// Sends everything that is logged to a run, ends it, and takes the mark away.
    async fn fill(&self, target: &Target<'_>, whole: &Whole<'_>) -> Answer<()> {
        let (wire, run) = (self.wire(), whole.run);
        for batch in whole.batches() {
            wire.post("runs/log-batch", batch).await?;
        }
        if let Some(inputs) = whole.inputs() {
            wire.post("runs/log-inputs", inputs).await?;
        }
        if !whole.logged.made.is_empty() {
            let models = whole.logged.made.iter().map(|(id, step)| json!({"model_id": id, "step": step}));
            wire.post("runs/outputs", json!({"run_id": run.id, "models": models.collect::<Vec<_>>()})).await?;
        }
        for file in &whole.files {
            let done = wire.put_file(&place(target, run), file).await;
            self.without(done, &format!("`{}` of run `{}`", file.name, run.id))?;
        }
        let end = [("run_id", json!(run.id)), ("status", json!(run.status)), ("end_time", json!(run.ended_at))];
        wire.post("runs/update", object(end)).await?;
        wire.post("runs/delete-tag", json!({"run_id": run.id, "key": UNFINISHED})).await?;
        if run.deleted {
            wire.post("runs/delete", json!({"run_id": run.id})).await?;
        }
        Ok(())
    }

    /// The run as the server has it now.
    async fn copy_of(&self, target: &Target<'_>, whole: &Whole<'_>) -> Answer<Image> {
        let (wire, id) = (self.wire(), whole.run.id.as_str());
        let shown = wire.get("runs/get", &[("run_id", id)]).await?["run"].take();
        let (info, data) = (&shown["info"], &shown["data"]);
        let mut image = Image::default();
        image.put_thing(
            What::Runs,
            [
                ("name", word(&info["run_name"])),
                ("status", word(&info["status"])),
                ("start", word(&info["start_time"])),
                ("end", word(&info["end_time"])),
                ("user", word(&info["user_id"])),
                ("lifecycle", word(&info["lifecycle_stage"])),
            ],
        );
        image.put(What::Params, texts(&data["params"]));
        let mut tags = texts(&data["tags"]);
        tags.remove(FROM);
        if !whole.logged.tags.contains_key(NAME) {
            tags.remove(NAME);
        }
        image.put(What::Tags, tags);
        let mut points = Vec::new();
        for metric in data["metrics"].as_array().into_iter().flatten() {
            let key = word(&metric["key"]);
            points.extend(wire.history(id, &key).await?.into_iter().map(|point| (key.clone(), point)));
        }
        image.put_points(What::Points, points);
        image.put(What::Inputs, inputs_shown(&shown));
        image.put(What::Artifacts, wire.marks(&place(target, whole.run)).await?);
        Ok(image)
    }
}

fn place(target: &Target<'_>, run: &Run) -> Place {
    Place::Run { number: target.number.clone(), run: run.id.clone() }
}

impl Whole<'_> {
    fn begin(&self, number: &str, from: &str) -> Value {
        let run = self.run;
        let name = self.logged.tags.get(NAME).unwrap_or(&run.name);
        object([
            ("experiment_id", json!(number)),
            ("run_name", json!(name)),
            ("user_id", json!(run.user)),
            ("start_time", json!(run.started_at)),
            ("tags", json!([{"key": FROM, "value": from}, {"key": UNFINISHED, "value": "true"}])),
            ("peregrine", json!({"id": run.id})),
        ])
    }

    /// Everything a batch can hold, in as few as are allowed. Points that tell of a model come a second time, with it.
    fn batches(&self) -> Vec<Value> {
        let logged = &self.logged;
        let text = |(key, value): (&String, &String)| json!({"key": key, "value": value});
        let plain = logged.points.iter().map(|(key, point)| sent(key, point));
        let of_models = self.model_points.iter().map(|told| {
            let mut metric = sent(&told.key, &told.point);
            metric["model_id"] = json!(told.model);
            metric["dataset_name"] = json!(told.dataset_name);
            metric["dataset_digest"] = json!(told.dataset_digest);
            metric
        });
        let lists = [
            ("metrics", POINTS, plain.chain(of_models).collect::<Vec<Value>>()),
            ("params", TEXTS, logged.params.iter().map(text).collect()),
            ("tags", TEXTS, logged.tags.iter().map(text).collect()),
        ];
        let mut batches = Vec::new();
        for (list, most, entries) in lists {
            for entries in parts(entries, most) {
                batches.push(json!({"run_id": self.run.id, list: entries}));
            }
        }
        batches
    }

    fn inputs(&self) -> Option<Value> {
        let logged = &self.logged;
        if logged.datasets.is_empty() && logged.read.is_empty() {
            return None;
        }
        let models: Vec<Value> = logged.read.iter().map(|(id, _)| json!({"model_id": id})).collect();
        let datasets: Vec<Value> = logged.datasets.iter().map(dataset).collect();
        Some(json!({"run_id": self.run.id, "datasets": datasets, "models": models}))
    }

    /// The run as the source has it. What is in its files is read only where it is to be compared.
    fn image(&self, with_sums: bool) -> Done<Image> {
        let (run, logged) = (self.run, &self.logged);
        let number = |at: Option<i64>| at.filter(|at| *at > 0).map(|at| at.to_string()).unwrap_or_default();
        let mut image = Image::default();
        image.put_thing(
            What::Runs,
            [
                ("name", logged.tags.get(NAME).unwrap_or(&run.name).clone()),
                ("status", run.status.clone()),
                ("start", number(run.started_at)),
                ("end", number(run.ended_at)),
                ("user", run.user.clone()),
                ("lifecycle", if run.deleted { "deleted".into() } else { "active".into() }),
            ],
        );
        image.put(What::Params, logged.params.clone());
        image.put(What::Tags, logged.tags.clone());
        image.put_points(What::Points, logged.points.clone());
        let mut inputs: BTreeMap<String, String> = logged
            .datasets
            .iter()
            .map(|data| (format!("{} {}", data.name, data.digest), dataset(data).to_string()))
            .collect();
        inputs.extend(logged.read.iter().map(|(id, _)| (format!("read {id}"), String::new())));
        inputs.extend(logged.made.iter().map(|(id, step)| (format!("made {id}"), step.to_string())));
        image.put(What::Inputs, inputs);
        image.put(What::Artifacts, marks(&self.files, with_sums)?);
        Ok(image)
    }
}

/// The marks of files of this machine, by name.
pub(super) fn marks(files: &[File], with_sums: bool) -> Done<BTreeMap<String, String>> {
    let mut marks = BTreeMap::new();
    for file in files {
        let mark = match with_sums {
            true => mark_of(&file.path)
                .map_err(|error| Failure::file(format!("cannot read `{}`", file.path.display()), &error))?,
            false => String::new(),
        };
        marks.insert(file.name.clone(), mark);
    }
    Ok(marks)
}

/// Parts of a list, of so many entries and bytes at most.
fn parts(entries: Vec<Value>, most: usize) -> Vec<Vec<Value>> {
    let (mut all, mut bytes): (Vec<Vec<Value>>, usize) = (Vec::new(), 0);
    for entry in entries {
        let long = entry.to_string().len();
        match all.last_mut() {
            Some(last) if last.len() < most && bytes + long <= BATCH_BYTES => {
                bytes += long;
                last.push(entry);
            }
            _ => {
                bytes = long;
                all.push(vec![entry]);
            }
        }
    }
    all
}

fn dataset(data: &Dataset) -> Value {
    let dataset = object([
        ("name", json!(data.name)),
        ("digest", json!(data.digest)),
        ("source_type", json!(data.source_type)),
        ("source", json!(data.source)),
        ("schema", json!(data.schema)),
        ("profile", json!(data.profile)),
    ]);
    json!({"dataset": dataset, "tags": pairs(&data.tags)})
}

fn inputs_shown(shown: &Value) -> BTreeMap<String, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let named = |input: &Value| {
        let dataset = &input["dataset"];
        (format!("{} {}", word(&dataset["name"]), word(&dataset["digest"])), input.to_string())
    };
    let mut all: BTreeMap<String, String> = list(&shown["inputs"]["dataset_inputs"]).iter().map(named).collect();
    let read = list(&shown["inputs"]["model_inputs"]);
    all.extend(read.iter().map(|model| (format!("read {}", word(&model["model_id"])), String::new())));
    let made = list(&shown["outputs"]["model_outputs"]);
    all.extend(made.iter().map(|model| (format!("made {}", word(&model["model_id"])), word(&model["step"]))));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_as_many_entries_as_are_allowed_and_no_more_bytes() {
        let sizes = |entries: Vec<Value>, most| parts(entries, most).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(vec![json!(1); 2500], 1000), [1000, 1000, 500]);
        assert_eq!(sizes(vec![json!("x".repeat(BATCH_BYTES / 2 - 10)); 5], 1000), [2, 2, 1]);
        assert_eq!(sizes(vec![json!("x".repeat(BATCH_BYTES * 2)); 2], 1000), [1, 1]);
        assert!(sizes(Vec::new(), 10).is_empty());
    }
}
