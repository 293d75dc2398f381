//! Where a version of a registered model comes from: a run, a logged model, another version, or a place outside.
//!
//! Invariant: a source of this server's own files lies inside the run or model the caller names, and may see.

use super::{artifacts, call::Asker, fault::Fault, registry::Model};
use domain::tracking::{Stage, text::shown};
use store::Tx;

/// What is known of a source.
pub(super) struct Origin {
    pub(super) source: String,
    /// Where its files are, for clients of MLflow.
    pub(super) storage: String,
    pub(super) run_id: Option<String>,
    /// The logged model it is.
    pub(super) model: Option<String>,
    /// The folder of its files in the artifact container, where they are there.
    pub(super) folder: Option<String>,
}

pub(super) fn origin(
    tx: &mut Tx<'_>,
    by: &Asker,
    source: &str,
    run_id: Option<String>,
    model_id: Option<String>,
) -> Result<Origin, Fault> {
    let source = artifacts::plain(by, source);
    let source = source.as_str();
    refuse_local(source)?;
    refuse_climbing(source)?;
    if let Some(rest) = source.strip_prefix("models:/") {
        return of_model(tx, by, source, rest.trim_start_matches('/'), (run_id, model_id));
    }
    if let Some(model_id) = &model_id {
        return of_logged(tx, by, source, model_id, run_id);
    }
    if source.starts_with("runs:") {
        return Err(outside(source, "run_id"));
    }
    if !source.starts_with("mlflow-artifacts:") {
        return Ok(Origin { source: source.into(), storage: source.into(), run_id, model: None, folder: None });
    }
    let run = match &run_id {
        Some(run_id) => tx.run(by.workspace(), run_id)?,
        None => None,
    };
    let inside = run.and_then(|run| {
        let root = artifacts::run_uri(&Asker { plugin: false, ..by.clone() }, &run);
        Some((below(source, &root)?, run))
    });
    let (path, run) = inside.ok_or_else(|| outside(source, "run_id"))?;
    let folder = format!("{}{path}", artifacts::folder_of(&run.run_id));
    Ok(Origin { source: source.into(), storage: source.into(), run_id, model: None, folder: Some(folder) })
}

/// `models:/<name>/<version>`, `models:/<name>@<alias>` or `models:/<id of a logged model>`.
fn of_model(
    tx: &mut Tx<'_>,
    by: &Asker,
    source: &str,
    rest: &str,
    (run_id, model_id): (Option<String>, Option<String>),
) -> Result<Origin, Fault> {
    if let Some((name, alias)) = rest.split_once('@') {
        return of_version(tx, by, name, Wanted::Alias(alias), run_id);
    }
    if let Some((name, version)) = rest.split_once('/') {
        return of_version(tx, by, name, Wanted::Version(version), run_id);
    }
    let model_id = model_id.unwrap_or_else(|| rest.to_owned());
    if model_id != rest {
        return Err(outside(source, "model_id"));
    }
    of_logged(tx, by, source, &model_id, run_id)
}

enum Wanted<'a> {
    Version(&'a str),
    Alias(&'a str),
}

/// A version of another registered model, or of the same.
fn of_version(
    tx: &mut Tx<'_>,
    by: &Asker,
    name: &str,
    wanted: Wanted<'_>,
    run_id: Option<String>,
) -> Result<Origin, Fault> {
    let model = Model::get(tx, by, name)?;
    let version = match wanted {
        Wanted::Alias(alias) => model.aliases().get(alias).cloned(),
        Wanted::Version("latest") => model.versions.last().map(|version| version.row.key.version.clone()),
        Wanted::Version(word) => match Stage::parse(word) {
            Ok(stage) => {
                model.latest().into_iter().find(|version| version.stage() == stage).map(|v| v.row.key.version.clone())
            }
            Err(_) => Some(word.to_owned()),
        },
    };
    let missing = || Fault::missing(format!("Registered model {name} has no such version"));
    let version = model.version(&version.ok_or_else(missing)?)?;
    let own = api::arm::text(&version.body, "modelUri");
    let folder =
        own.and_then(|uri| uri.split_once("/datastores/workspaceartifactstore/paths/").map(|(_, f)| f.to_owned()));
    Ok(Origin {
        source: format!("models:/{name}/{}", version.row.key.version),
        storage: version.storage(),
        run_id: run_id.or_else(|| version.run_id()),
        model: None,
        folder,
    })
}

/// A logged model, or a folder of one.
fn of_logged(
    tx: &mut Tx<'_>,
    by: &Asker,
    source: &str,
    model_id: &str,
    run_id: Option<String>,
) -> Result<Origin, Fault> {
    let found = tx.logged_model(by.workspace(), model_id)?.filter(|row| !row.deleted);
    let row = match found {
        Some(row) => row,
        None if source.starts_with("models:/") => {
            return Err(Fault::missing(format!("Logged model with ID '{model_id}' not found.")));
        }
        None => return Err(outside(source, "model_id")),
    };
    let root = artifacts::model_uri(&row);
    let path = match source.starts_with("models:/") {
        true => Some(String::new()),
        false if source.starts_with("mlflow-artifacts:") => below(source, &root),
        false => None,
    };
    let ours = row.location.is_empty();
    match path {
        Some(path) => Ok(Origin {
            source: source.into(),
            storage: format!("{root}{path}"),
            run_id: run_id.or(row.source_run),
            model: Some(model_id.to_owned()),
            folder: ours.then(|| format!("{}{path}", artifacts::model_folder(model_id))),
        }),
        None if source.starts_with("mlflow-artifacts:") || source.starts_with("runs:") => {
            Err(outside(source, "model_id"))
        }
        None => Ok(Origin {
            source: source.into(),
            storage: source.into(),
            run_id: run_id.or(row.source_run),
            model: Some(model_id.to_owned()),
            folder: None,
        }),
    }
}

/// What follows `root` in an address that lies inside it: nothing, or a path with its `/`.
fn below(source: &str, root: &str) -> Option<String> {
    let rest = source.trim_end_matches('/').strip_prefix(root)?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
}

/// Files of the machine the server runs on are nobody's to register.
fn refuse_local(source: &str) -> Result<(), Fault> {
    let scheme = source.split_once(':').map(|(scheme, _)| scheme);
    let remote = scheme.is_some_and(|scheme| {
        scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '+')
    });
    if remote && scheme != Some("file") {
        return Ok(());
    }
    let reason = "a path of a machine cannot be a model's source; log the model to a run and name the run";
    Err(Fault::invalid(format!("Invalid model version source: '{}': {reason}", shown(source))))
}

fn refuse_climbing(source: &str) -> Result<(), Fault> {
    let mut plain = source.to_owned();
    for _ in 0..8 {
        let next = percent_encoding::percent_decode_str(&plain).decode_utf8_lossy().into_owned();
        if next == plain {
            break;
        }
        plain = next;
    }
    let climbs = plain.split(['/', '\\']).any(|part| part == "..") || plain.contains('\0');
    if !climbs {
        return Ok(());
    }
    let reason = "an absolute path must be provided, without references to folders above";
    Err(Fault::invalid(format!("Invalid model version source: '{}': {reason}", shown(source))))
}

fn outside(source: &str, key: &str) -> Fault {
    let source = shown(source);
    Fault::invalid(format!("Invalid model version source: '{source}'. '{key}' should name what contains it."))
}
