//! Everything that must hold before a change is taken, in order, cheapest first.
//!
//! Stops at the first failure (with `--keep-going` at the end) with the command that repeats it, and always ends with a table of the steps and their
//! seconds, and of what the tests skipped; with `CI` set, skipping is failing. The cluster goes whatever came of the steps. The order matters: `gen`, `examples` and `e2e` share the release binary that `e2e` builds.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::shell::{Failed, Shell, say};
use crate::{cluster, deps, examples, generate, setup, shell, sources, steps, studio, tidy};

struct Step {
    name: &'static str,
    /// What a developer types to run this step alone.
    repeat: &'static str,
    run: fn(&Shell) -> Result<(), Failed>,
}

const STEPS: &[Step] = &[
    Step { name: "setup", repeat: "cargo xtask setup", run: setup::run },
    Step { name: "tidy", repeat: "cargo xtask tidy", run: tidy::run },
    Step { name: "fmt", repeat: "cargo fmt --all --check", run: steps::fmt },
    Step { name: "clippy", repeat: "cargo clippy --workspace --all-targets -- -D warnings", run: steps::clippy },
    Step { name: "cluster", repeat: "cargo xtask cluster up --name ci", run: cluster::begin_ci },
    Step { name: "test", repeat: "cargo xtask test", run: steps::test_all },
    Step { name: "postgres", repeat: "cargo xtask postgres", run: steps::postgres },
    Step { name: "e2e", repeat: "cargo xtask e2e", run: |sh| steps::e2e(sh, None) },
    Step { name: "studio", repeat: "cargo xtask studio", run: studio::run },
    Step { name: "gen --check", repeat: "cargo xtask gen --check", run: generate::check },
    Step { name: "examples", repeat: "cargo xtask examples", run: examples::run },
    Step { name: "deps", repeat: "cargo xtask deps", run: deps::run_installed },
];

/// How the line of a test that did not run begins, here and in the tests.
const SKIPPED: &str = "skipped:";

/// Runs the steps until one fails, or all of them.
pub(crate) fn run(sh: &Shell, keep_going: bool) -> Result<(), Failed> {
    say(&format!("building into {}", sh.target().display()));
    let skipped = skipped();
    let _none_yet = fs::remove_file(&skipped);
    let sh = &sh.with("PEREGRINE_SKIPPED", &skipped).with("PEREGRINE_TEST_CLUSTER", cluster::ci_env());
    sources::settle(sh)?;
    let mut rows = Vec::new();
    let mut outcome = Ok(());
    for step in STEPS {
        say(&format!("\n== {}", step.name));
        let started = now();
        let result = (step.run)(sh);
        let took = started.elapsed();
        say(&format!("== {} {}: {:.1} s", step.name, word(result.is_ok()), took.as_secs_f64()));
        rows.push((step.name, Some((result.is_ok(), took))));
        if let Err(failed) = result {
            let message = format!("step `{}` failed: {failed}\nhint: repeat it with `{}`", step.name, step.repeat);
            outcome = outcome.and(Err(Failed::Check(message)));
            if !keep_going {
                break;
            }
        }
    }
    cluster::end_ci(sh);
    sources::seal(sh);
    rows.extend(STEPS[rows.len()..].iter().map(|step| (step.name, None)));
    say(&table(&rows));
    let notes = fs::read_to_string(&skipped).unwrap_or_default();
    let notes: BTreeSet<_> = notes.lines().collect();
    notes.iter().for_each(|note| say(note));
    let strict = std::env::var_os("CI").is_some() && std::env::var_os("PEREGRINE_MAY_SKIP").is_none();
    outcome.and(if strict { nothing_skipped(&notes) } else { Ok(()) })
}

/// Where changes are taken everything can be had, so a suite that was skipped there would be a suite nobody runs any more.
fn nothing_skipped(notes: &BTreeSet<&str>) -> Result<(), Failed> {
    match notes.iter().filter(|note| note.starts_with(SKIPPED)).count() {
        0 => Ok(()),
        count => Err(Failed::Check(format!(
            "{count} of the things above were skipped, and `CI` is set\nhint: install what they name, or set `PEREGRINE_MAY_SKIP=1`"
        ))),
    }
}

/// Notes what cannot be tested here, for the end of the run.
pub(crate) fn skip(what: &str) -> Result<(), Failed> {
    note(&format!("{SKIPPED} {what}"))
}

/// Says something that is to be said again at the end of the run.
pub(crate) fn note(what: &str) -> Result<(), Failed> {
    say(what);
    let path = skipped();
    let file = OpenOptions::new().create(true).append(true).open(&path);
    file.and_then(|mut file| writeln!(file, "{what}")).map_err(Failed::at(&path))
}

fn skipped() -> PathBuf {
    shell::cache_dir().join("ci-skipped")
}

#[expect(clippy::disallowed_methods, reason = "how long a step takes on the developer's machine is its point")]
fn now() -> Instant {
    Instant::now()
}

fn word(ok: bool) -> &'static str {
    if ok { "passed" } else { "failed" }
}

fn table(rows: &[(&str, Option<(bool, Duration)>)]) -> String {
    let mut text = format!("\n{:<12} {:<8} {:>8}\n", "step", "result", "seconds");
    let mut total = Duration::ZERO;
    for (name, result) in rows {
        match result {
            Some((ok, took)) => {
                total += *took;
                text += &format!("{name:<12} {:<8} {:>8.1}\n", word(*ok), took.as_secs_f64());
            }
            None => text += &format!("{name:<12} {:<8} {:>8}\n", "not run", "-"),
        }
    }
    text + &format!("{:<12} {:<8} {:>8.1}", "all", "", total.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_run_twice_is_fine_and_what_was_not_run_is_not() {
        assert!(nothing_skipped(&BTreeSet::from(["a::b failed beside others and passed alone"])).is_ok());
        assert!(nothing_skipped(&BTreeSet::from(["skipped: Postgres (not installed)"])).is_err());
    }

    #[test]
    fn the_table_shows_steps_that_were_not_reached() {
        let rows = [("tidy", Some((true, Duration::from_millis(1500)))), ("e2e", None)];
        let lines: Vec<String> = table(&rows).lines().map(|line| line.trim_end().to_owned()).collect();
        assert_eq!(
            lines[1..],
            [
                "step         result    seconds",
                "tidy         passed        1.5",
                "e2e          not run         -",
                "all                        1.5",
            ]
        );
    }
}
