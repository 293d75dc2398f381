//! `peregrine import mlflow`: what an MLflow server has tracked, copied through MLflow's own API and compared afterwards.
//!
//! Invariants: the source is only read; what is here already is left as it is; whatever was copied is read back, and what
//! differs makes the command fail. An import that was interrupted goes on where it was when it is run again.

mod experiments;
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
use experiments::{Target, chosen};
use files::{File, Folders};
use image::{Image, What, mark_of};
use registry::Roots;
use report::{Fate, Report};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::ExitCode,
};
use store::foreign::{ForeignError, mlflow::Mlflow};
use wire::{Answer, Place, Wire, refusal};

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
