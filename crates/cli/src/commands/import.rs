//! `peregrine import mlflow`: what an MLflow server has tracked, copied through MLflow's own API and compared afterwards.
//!
//! Invariants: the source is only read; what is here already is left as it is; whatever was copied is read back, and what
//! differs makes the command fail. An import that was interrupted goes on where it was when it is run again.

mod files;
mod image;
mod models;
mod registry;
mod report;
mod runs;
mod wire;

use super::Context;
use crate::{
    args::import::{ImportVerb, Mlflow as Args},
    failure::{Done, Exit, Failure},
    output::Output,
};
use api::ClientError;
use files::{Address, File, Folders};
use futures_util::{StreamExt, TryStreamExt, stream};
use image::{Image, What, mark_of};
use registry::Roots;
use report::{Fate, Report};
use runs::FROM;
use serde_json::{Value, json};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::ExitCode,
};
use store::foreign::{
    ForeignError,
    mlflow::{Experiment, LoggedModel, Mlflow, Run},
};
use wire::{Answer, Place, Wire, object, pairs, refusal, texts, word};

/// Runs that are copied at the same time.
const AT_ONCE: usize = 8;

/// An import under way.
struct Import<'a> {
    db: Mlflow,
    folders: Folders,
    /// None where nothing is to be sent.
    wire: Option<Wire<'a>>,
    /// The source, as it was named.
    from: &'a str,
    output: &'a Output,
    report: RefCell<Report>,
    /// The runs that are here, and whether they are new.
    runs: RefCell<BTreeMap<String, bool>>,
    seen: Cell<usize>,
}

/// What came of the attempt to copy a thing.
enum Moved {
    Yes(Image),
    Before,
    Left(Option<String>),
}

/// An experiment here that takes the runs of one of the source.
struct Target<'a> {
    source: &'a Experiment,
    number: String,
    /// Whether it takes runs; one that is deleted in the source too is brought back while it must.
    awake: tokio::sync::Mutex<bool>,
    /// It is to be deleted at the end.
    woken: Cell<bool>,
}

pub(super) async fn run(context: &Context, verb: ImportVerb) -> Done<ExitCode> {
    let ImportVerb::Mlflow(args) = verb;
    let path = database(&args.from)?;
    let db = Mlflow::open(&path)?;
    let base = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    if let Some(folder) = args.artifacts.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::input(format!("there is no folder `{}`", folder.display()))
            .hint("`--artifacts` is the folder that `mlflow server --artifacts-destination` names"));
    }
    let folders = Folders { base, artifacts: args.artifacts.clone() };
    let session = if args.dry_run { None } else { Some(context.session().await?) };
    let wire = session.as_ref().map(|session| Wire::new(&session.client, &session.scope));
    let import = Import {
        db,
        folders,
        wire,
        from: &args.from,
        output: &context.output,
        report: RefCell::default(),
        runs: RefCell::default(),
        seen: Cell::default(),
    };
    import.all(&args).await?;
    import.report.borrow().show(&context.output, args.dry_run)?;
    Ok(ExitCode::SUCCESS)
}

impl Import<'_> {
    /// The calls; there only where something is to be sent.
    fn wire(&self) -> &Wire<'_> {
        self.wire.as_ref().expect("only what sends asks for it")
    }

    async fn all(&self, args: &Args) -> Done {
        for (what, count) in self.db.unread()? {
            self.report.borrow_mut().leave_all(&format!("{count} {what}"), 1, &format!("{what} are not kept here"));
        }
        let experiments = chosen(self.db.experiments()?, &args.experiment)?;
        let (mut roots, mut models) = (Roots::default(), Vec::new());
        for experiment in &experiments {
            models.extend(self.experiment(experiment, &mut roots).await?);
        }
        for model in &models {
            self.check_model_points(model).await?;
        }
        let only: BTreeSet<String> =
            self.runs.borrow().keys().cloned().chain(models.iter().map(|model| model.id.clone())).collect();
        self.registry(&roots, Some(&only).filter(|_| !args.experiment.is_empty())).await?;
        for model in &models {
            self.delete_model(model).await?;
        }
        if self.seen.get() > 0 && self.output.shows_progress() {
            self.output.draw("\r\x1b[2K");
        }
        Ok(())
    }

    /// Copies an experiment and what belongs to it; its logged models.
    async fn experiment(&self, source: &Experiment, roots: &mut Roots) -> Done<Vec<LoggedModel>> {
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

    /// Writes down what came of the attempt to copy a thing.
    fn told(&self, thing: &str, original: &Image, moved: Answer<Moved>) -> Done {
        let mut report = self.report.borrow_mut();
        match moved {
            Ok(Moved::Yes(copy)) => report.note(thing, original, Fate::Moved(&copy)),
            Ok(Moved::Before) => report.note(thing, original, Fate::Before),
            Ok(Moved::Left(reason)) => {
                report.note(thing, original, Fate::Left);
                reason.iter().for_each(|reason| report.leave(thing, reason));
            }
            Err(error) => {
                let told = refusal(error)?;
                report.note(thing, original, Fate::Left);
                report.differs(thing, &told);
            }
        }
        Ok(())
    }

    /// Files of a thing that was here before, and that were not found then: they are sent now. Takes them out of what
    /// was here.
    async fn late_files(&self, thing: &str, place: &Place, files: &[File], before: &mut Image) -> Answer<()> {
        let Some(wire) = self.wire.as_ref().filter(|_| !files.is_empty()) else { return Ok(()) };
        let known = wire.names(place).await?;
        let late: Vec<&File> = files.iter().filter(|file| !known.contains(&file.name)).collect();
        let (mut original, mut copy) = (BTreeMap::new(), BTreeMap::new());
        for file in late {
            let done = wire.put_file(place, file).await;
            if !self.without(done, &format!("`{}` of {thing}", file.name))? {
                continue;
            }
            let unreadable = |source| ClientError::File { path: file.path.clone(), source };
            original.insert(file.name.clone(), mark_of(&file.path).map_err(unreadable)?);
            copy.insert(file.name.clone(), wire.mark(place, &file.name).await?);
        }
        if let Some(section) = before.0.get_mut(&What::Artifacts) {
            section.count -= original.len() as u64;
        }
        let image = |marks| {
            let mut image = Image::default();
            image.put(What::Artifacts, marks);
            image
        };
        if !original.is_empty() {
            self.report.borrow_mut().note(thing, &image(original), Fate::Moved(&image(copy)));
        }
        Ok(())
    }

    /// Notes a refusal and goes on; whether there was none. Anything else ends the import.
    fn without(&self, done: Answer<()>, thing: &str) -> Answer<bool> {
        let Err(error) = done else { return Ok(true) };
        let Some(reason) = wire::reason(&error) else { return Err(error) };
        self.report.borrow_mut().differs(thing, &reason);
        Ok(false)
    }

    fn draw(&self, experiment: &str) {
        self.seen.set(self.seen.get() + 1);
        if self.output.shows_progress() {
            let line = format!("importing: {} runs, at experiment `{experiment}`", self.seen.get());
            let cut: String = line.chars().take(self.output.progress_width().saturating_sub(1)).collect();
            self.output.draw(&format!("\r\x1b[2K{cut}"));
        }
    }
}

impl Target<'_> {
    /// Makes sure that the experiment takes runs; why it cannot, if so.
    async fn wake(&self, wire: &Wire<'_>) -> Answer<Option<String>> {
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
fn chosen(all: Vec<Experiment>, names: &[String]) -> Done<Vec<Experiment>> {
    if let Some(name) = names.iter().find(|name| !all.iter().any(|one| one.name == **name)) {
        let known: Vec<String> = all.iter().take(20).map(|one| format!("`{}`", one.name)).collect();
        return Err(Failure::input(format!("the source has no experiment `{name}`"))
            .hint(format!("it has {}", known.join(", "))));
    }
    Ok(all.into_iter().filter(|one| names.is_empty() || names.contains(&one.name)).collect())
}

/// The file a database's address names.
fn database(from: &str) -> Done<PathBuf> {
    let path = match from.split_once("://") {
        None => from,
        Some(("sqlite" | "sqlite+pysqlite", rest)) => rest.strip_prefix('/').unwrap_or(rest),
        Some((scheme, _)) => {
            return Err(Failure::input(format!("cannot import from `{scheme}://…`"))
                .because("only SQLite databases of MLflow can be read")
                .hint("give `--from sqlite:///mlflow.db`"));
        }
    };
    let path = path.split('?').next().unwrap_or(path);
    if Path::new(path).is_dir() {
        return Err(Failure::input(format!("`{path}` is a folder, not a database"))
            .hint("a folder of runs becomes a database with `mlflow migrate-filestore --source DIR --target sqlite:///mlflow.db`"));
    }
    Ok(PathBuf::from(path))
}

impl From<ForeignError> for Failure {
    fn from(error: ForeignError) -> Failure {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let failure = match &error {
            ForeignError::Read { .. } => Failure::new(Exit::Input, error.to_string()),
            _ => Failure::input(error.to_string()),
        };
        let failure = cause.into_iter().fold(failure, Failure::because);
        match error {
            ForeignError::Schema { .. } => failure
                .hint("a database that is older than MLflow 1.0 is brought up with `mlflow db upgrade`; a newer one needs a newer Peregrine"),
            ForeignError::NotMlflow { .. } | ForeignError::NotSqlite { .. } => {
                failure.hint("name the file that `mlflow server --backend-store-uri` names")
            }
            _ => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_named_as_mlflow_names_them_or_by_path() {
        for (from, expect) in [
            ("sqlite:///mlflow.db", "mlflow.db"),
            ("sqlite:////srv/mlflow.db", "/srv/mlflow.db"),
            ("sqlite:///a/mlflow.db?timeout=10", "a/mlflow.db"),
            ("a/mlflow.db", "a/mlflow.db"),
        ] {
            assert_eq!(database(from).unwrap(), Path::new(expect), "{from}");
        }
        for from in ["postgresql://u:secret@h/db", "http://127.0.0.1:5000", "/tmp"] {
            let told = database(from).unwrap_err().to_string();
            assert!(told.contains("hint:") && !told.contains("secret"), "{told}");
        }
    }
}
