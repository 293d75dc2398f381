//! Why a replica behind the inference server ended, from what it left in its log.
//!
//! The server ends with code 3 whatever was wrong with the script. Which of the stages failed, and the lines that matter
//! to the script's author, stand in the log, followed by a listing of the model that may push them out of its end.

use domain::{Serving, ServingKind, job::Failure};

/// The inference server's exit code for a script that cannot serve.
const SCRIPT_FAILED: i32 = 3;
/// The most lines of a traceback that go into a failure.
const LINES: usize = 60;
const TRACEBACK: &str = "Traceback (most recent call last):";
/// What follows are the server's own frames around the script's.
const WRAPPED: &str = "The above exception was the direct cause of the following exception:";

/// The failure in the script's own terms, where it is one of the script's. `log` is the end of the replica's log.
pub(in crate::attempt) fn explain(serving: &Serving, failure: Failure, log: &str) -> Failure {
    let script = match &serving.kind {
        ServingKind::ScoringScript { entry } => format!("`{entry}`"),
        ServingKind::MlflowModel => "the MLflow model".to_owned(),
        ServingKind::Container => return failure,
    };
    if failure.exit_code != Some(SCRIPT_FAILED) {
        return failure;
    }
    let life = log.rfind("Booting worker").map_or(log, |at| &log[at..]);
    let Some(at) = life.find(TRACEBACK) else { return failure };
    let own = life[at..].split(WRAPPED).next().unwrap_or_default();
    let lines: Vec<&str> = own.trim_end().lines().take(LINES).collect();
    let last = lines.iter().rev().find(|line| !line.trim().is_empty()).copied().unwrap_or_default();
    let (code, what) = if life.contains("User's init function failed") {
        ("UserScriptInitFailed", format!("`init()` of {script} failed: {last}"))
    } else if last.contains("function defined") {
        ("UserScriptFunctionNotFound", format!("{script} cannot be used: {last}"))
    } else {
        ("UserScriptImportError", format!("{script} cannot be imported: {last}"))
    };
    Failure { code: code.to_owned(), message: what, last_lines: lines.join("\n"), ..failure }
}
