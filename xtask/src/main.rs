//! Developer commands, run as `cargo xtask <command>`.
//!
//! Uses the standard library only, so that it builds in seconds on a fresh clone and before anything else compiles.
//! Each command is a function that takes a `Shell` and returns `Result<(), Failed>`; `main` alone turns that into an
//! exit code: 0 done, 1 a check failed, 2 the command line was not understood.

mod again;
mod ci;
mod cluster;
mod deps;
mod examples;
mod generate;
mod image;
#[path = "../../tests/postgres.rs"]
#[expect(dead_code, reason = "the suites use what this program does not")]
mod postgres;
mod setup;
mod shell;
mod sources;
mod steps;
mod studio;
mod tidy;

use std::process::ExitCode;

use shell::{Failed, Shell, say};

const HELP: &str = "\
developer commands of Peregrine

usage: cargo xtask <command>

  check           format, clippy and tidy; what you run all day
  test [crate]    unit and integration tests, of the workspace or of one crate (`cargo xtask test store`)
  postgres        the integration tests of server and controller with their records in Postgres
  e2e [filter]    build the release binary, then run tests/e2e against it
  examples        build the release binary, then run every job file under examples/
  studio          the studio's types and its stories in a browser; `studio shot` draws the pictures of the README and the guide
  dev             run a server in the foreground with its state in .dev/
  gen [--check]   write docs/reference, the chart and definitions from the binary; with --check, only say what would change
  tidy            crate edges, module docs, names, links in documents, sizes
  deps            licences, bans and advisories (cargo-deny), unused dependencies (cargo-machete)
  cluster up      a real Kubernetes for tests: [--name X] [--fake-nodes N] [--autoscale MAX] [--no-volcano] [--no-node]
                  [--binary FILE]; also `down`, `status [--json]`, `stop PART`, `start PART`, each with [--name X]
  image FILE      our container image as an archive, with a binary that runs on glibc 2.28 and later; `image --release FILE` to give away
  bench [name]    run bench/run.py against the release binary
  soak [part]     the long runs: thousands of kills, storms on 1,000 fake nodes (`soak kubernetes` alone), long benches
  setup           install what the tests need
  ci              all of it in order, as .ci/run does; stops at the first failure

`CARGO_TARGET_DIR` is honoured; `ci` defaults it to ~/.cache/peregrine/target";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed::Usage(message)) => {
            eprintln!("error: {message}\nhint: run `cargo xtask` for the list of commands");
            ExitCode::from(2)
        }
        Err(failed) => {
            eprintln!("error: {failed}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[&str]) -> Result<(), Failed> {
    let sh = Shell::here();
    match words {
        [] | ["help" | "--help" | "-h"] => {
            say(HELP);
            Ok(())
        }
        ["check"] => steps::check(&sh),
        ["test"] => setup::run(&sh).and_then(|()| steps::test_all(&sh)),
        ["test", name] => setup::run(&sh).and_then(|()| steps::test_one(&sh, name)),
        ["postgres"] => setup::run(&sh).and_then(|()| steps::postgres(&sh)),
        ["e2e"] => steps::e2e(&sh, None),
        ["e2e", filter] => steps::e2e(&sh, Some(filter)),
        ["examples"] => examples::run(&sh),
        ["studio"] => setup::run(&sh).and_then(|()| studio::run(&sh)),
        ["studio", "shot"] => studio::shot(&sh),
        ["dev"] => steps::dev(&sh),
        ["gen"] => generate::write(&sh),
        ["gen", "--check"] => generate::check(&sh),
        ["tidy"] => tidy::run(&sh),
        ["deps"] => deps::run(&sh),
        ["image", file] => image::run(&sh, file.as_ref(), false),
        ["image", "--release", file] => image::run(&sh, file.as_ref(), true),
        ["cluster", rest @ ..] => cluster::run(&sh, rest),
        ["bench", names @ ..] => steps::bench(&sh, names),
        ["soak"] => steps::soak(&sh),
        ["soak", "kubernetes"] => steps::soak_kubernetes(&sh),
        ["setup"] => setup::run(&sh),
        ["ci"] => ci::run(&sh.or_target(shell::cache_dir().join("target")), false),
        ["ci", "--keep-going"] => ci::run(&sh.or_target(shell::cache_dir().join("target")), true),
        other => Err(Failed::Usage(format!("`{}` is not a command", other.join(" ")))),
    }
}
