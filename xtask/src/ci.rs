//! Everything that must hold before a change is taken, in order, cheapest first.
//!
//! Stops at the first failure with the command that repeats it, and always ends with a table of the steps and their
//! seconds. The order matters: `gen`, `examples` and `e2e` share the release binary that `e2e` builds.

use std::time::{Duration, Instant};

use crate::shell::{Failed, Shell, say};
use crate::{deps, examples, generate, setup, steps, tidy};

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
    Step { name: "test", repeat: "cargo xtask test", run: steps::test_all },
    Step { name: "postgres", repeat: "cargo xtask postgres", run: steps::postgres },
    Step { name: "e2e", repeat: "cargo xtask e2e", run: |sh| steps::e2e(sh, None) },
    Step { name: "gen --check", repeat: "cargo xtask gen --check", run: generate::check },
    Step { name: "examples", repeat: "cargo xtask examples", run: examples::run },
    Step { name: "deps", repeat: "cargo xtask deps", run: deps::run_installed },
];

/// Runs the steps until one fails.
pub(crate) fn run(sh: &Shell) -> Result<(), Failed> {
    say(&format!("building into {}", sh.target().display()));
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
            outcome = Err(Failed::Check(format!(
                "step `{}` failed: {failed}\nhint: repeat it with `{}`",
                step.name, step.repeat
            )));
            break;
        }
    }
    rows.extend(STEPS[rows.len()..].iter().map(|step| (step.name, None)));
    say(&table(&rows));
    outcome
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
