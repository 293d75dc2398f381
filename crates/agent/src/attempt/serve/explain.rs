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
    let lines: Vec<&str> = own.lines().take_while(|line| !is_record(line)).filter(|line| !line.is_empty()).collect();
    let last = lines.last().copied().unwrap_or_default();
    // The script's own frames are the last ones.
    let lines = &lines[lines.len().saturating_sub(LINES)..];
    let (code, what) = if life.contains("User's init function failed") {
        ("UserScriptInitFailed", format!("`init()` of {script} failed: {last}"))
    } else if last.contains("function defined") {
        ("UserScriptFunctionNotFound", format!("{script} cannot be used: {last}"))
    } else {
        ("UserScriptImportError", format!("{script} cannot be imported: {last}"))
    };
    Failure { code: code.to_owned(), message: what, last_lines: lines.join("\n"), ..failure }
}

/// A line that begins as the server's log lines do: `2026-11-15 22:48:16,624 I ...`.
fn is_record(line: &str) -> bool {
    let head = line.as_bytes().get(..11);
    head.is_some_and(|head| head[..4].iter().all(u8::is_ascii_digit) && head[4] == b'-' && head[7] == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Probe;

    const LOG: &str = "\
2026-11-15 22:48:14,624 I [20] gunicorn.error - Booting worker with pid: 20
2026-11-15 22:48:15,624 E [20] azmlinfsrv - User's init function failed
2026-11-15 22:48:15,625 E [20] azmlinfsrv - Encountered Exception Traceback (most recent call last):
  File \"user_script.py\", line 117, in invoke_init
  File \"score.py\", line 2, in init
RuntimeError: boom

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
UserScriptException: Caught an unhandled exception from the user script

2026-11-15 22:48:15,626 I [20] azmlinfsrv - Model Directory Contents:
2026-11-15 22:48:17,995 E [16] gunicorn.error - Reason: Worker failed to boot.
";

    fn told(kind: ServingKind, code: i32, log: &str) -> Failure {
        let probe = Probe::default();
        let serving = Serving {
            endpoint: "e".into(),
            deployment: "d".into(),
            port: None,
            scoring_path: "/score".into(),
            liveness: probe.clone(),
            readiness: probe,
            start_seconds: 1,
            kind,
            model_mount: None,
        };
        let failure = Failure { exit_code: Some(code), ..Failure::new("UserError.ExitCode", "it exited") };
        explain(&serving, failure, log)
    }

    #[test]
    fn the_scripts_own_traceback_is_found_before_what_the_server_says_of_it() {
        let script = || ServingKind::ScoringScript { entry: "score.py".into() };
        let failure = told(script(), 3, LOG);
        assert_eq!(failure.code, "UserScriptInitFailed");
        assert_eq!(failure.message, "`init()` of `score.py` failed: RuntimeError: boom");
        assert_eq!(failure.last_lines.lines().count(), 4, "{failure:?}");
        for (kind, code, log) in
            [(script(), 1, LOG), (ServingKind::Container, 3, LOG), (script(), 3, "no traceback in it")]
        {
            assert_eq!(told(kind, code, log).code, "UserError.ExitCode");
        }
    }
}
