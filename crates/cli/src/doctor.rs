//! `peregrine doctor`: what this machine has, and what is missing for what.
//!
//! Invariant: every line says whether it is there, what it is needed for and what to do; only what nothing can do
//! without makes the command fail.

mod machine;
mod programs;

use crate::{
    commands::Context,
    failure::{Done, Exit},
    output::Column,
};
use serde_json::{Value, json};
use std::process::ExitCode;

/// One finding.
#[derive(Debug)]
struct Check {
    name: &'static str,
    state: State,
    found: String,
    needed_for: &'static str,
    fix: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ok,
    /// Some things will not work.
    Missing,
    /// Nothing will.
    Broken,
}

const COLUMNS: &[Column] = &[
    Column::new("CHECK", |item| text(item, "check")).whole(),
    Column::new("STATE", |item| text(item, "state")).whole(),
    Column::new("FOUND", |item| text(item, "found")),
    Column::new("NEEDED FOR", |item| text(item, "needed_for")),
];

pub(crate) async fn run(context: &Context) -> Done<ExitCode> {
    let home = &context.config.home;
    let mut checks = vec![machine::home(home), machine::disk(home), machine::port(&context.config), machine::umask()];
    checks.push(programs::python().await);
    checks.push(programs::uv(home).await);
    checks.push(programs::conda().await);
    checks.push(programs::containers().await);
    checks.push(programs::git().await);
    checks.push(machine::cgroups());
    checks.push(machine::gpus());
    context.output.list(checks.iter().map(view).collect(), COLUMNS)?;
    for check in checks.iter().filter(|check| check.state != State::Ok && !check.fix.is_empty()) {
        context.output.note(&format!("hint: {}: {}", check.name, check.fix));
    }
    context.output.note("note: jobs on this machine run as you and can read what you can; for people who must not trust each other use containers or separate machines");
    let broken = checks.iter().any(|check| check.state == State::Broken);
    Ok(if broken { ExitCode::from(Exit::Input as u8) } else { ExitCode::SUCCESS })
}

impl Check {
    fn ok(name: &'static str, needed_for: &'static str, found: impl Into<String>) -> Check {
        Check { name, state: State::Ok, found: found.into(), needed_for, fix: String::new() }
    }

    fn missing(
        name: &'static str,
        needed_for: &'static str,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Check {
        Check { name, state: State::Missing, found: found.into(), needed_for, fix: fix.into() }
    }

    fn broken(self) -> Check {
        Check { state: State::Broken, ..self }
    }
}

fn view(check: &Check) -> Value {
    let state = match check.state {
        State::Ok => "ok",
        State::Missing => "missing",
        State::Broken => "broken",
    };
    json!({"check": check.name, "state": state, "found": check.found, "needed_for": check.needed_for, "fix": check.fix})
}

fn text(item: &Value, key: &str) -> String {
    item[key].as_str().unwrap_or_default().to_owned()
}
