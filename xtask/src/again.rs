//! Suites of tests, and a second chance for the few that fail.
//!
//! The suites start real clusters, servers and browsers on whatever machine is there, and a test that waits for one of them may
//! run out of time because its neighbours took the processor. So up to `FEW` failures are run again, one at a time; what fails alone fails
//! the suite, and what does not is named at the end, because a test that fails now and then is a mistake of somebody's. Longer
//! lists are not tried again: they are no accident.

use crate::ci;
use crate::shell::{Failed, Shell, say};

/// As many failures as may be an accident.
const FEW: usize = 5;
const RERUN: &str = "error: test failed, to rerun pass `";

/// The failures of one test program: how cargo is told to run it, and the names.
#[derive(Debug, PartialEq)]
struct Failures {
    target: Vec<String>,
    names: Vec<String>,
}

/// Runs `cargo test` with these arguments.
pub(crate) fn suite(sh: &Shell, args: &[&str]) -> Result<(), Failed> {
    let mut printed = Vec::new();
    let Err(failed) = sh.cargo_heard(args, |line| printed.push(line.to_owned())) else { return Ok(()) };
    let failures = failures(&printed);
    let names = || failures.iter().flat_map(|target| &target.names);
    let known = !failures.is_empty() && failures.iter().all(|target| !target.names.is_empty());
    if !known || names().count() > FEW {
        return Err(failed);
    }
    for target in &failures {
        say(&format!("\n== again, alone: {}", target.names.join(", ")));
        let mut args = vec!["test"];
        args.extend(target.target.iter().map(String::as_str));
        args.extend(["--", "--exact", "--test-threads=1"]);
        args.extend(target.names.iter().map(String::as_str));
        sh.cargo(&args)?;
    }
    names().try_for_each(|name| ci::note(&format!("{name} failed beside others and passed alone")))
}

/// What failed, by the lines that cargo and the test programs print.
fn failures(printed: &[String]) -> Vec<Failures> {
    let (mut found, mut names) = (Vec::new(), Vec::new());
    for line in printed {
        if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            names.push(name.to_owned());
        }
        if let Some(target) = line.strip_prefix(RERUN).and_then(|rest| rest.strip_suffix('`')) {
            let target = target.split(' ').map(str::to_owned).collect();
            found.push(Failures { target, names: std::mem::take(&mut names) });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_belong_to_the_program_that_ends_with_them() {
        let printed = "test a::one ... ok\ntest a::two ... FAILED\nfailures:\n    a::two\nerror: test failed, to rerun pass `-p x --test it`\n\
                       test three ... ok\nerror: test failed, to rerun pass `-p y --lib`";
        let printed: Vec<String> = printed.lines().map(str::to_owned).collect();
        let of = |target: &str, names: &[&str]| Failures {
            target: target.split(' ').map(str::to_owned).collect(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        };
        // One that ended without naming a test, killed perhaps, has no names.
        assert_eq!(failures(&printed), [of("-p x --test it", &["a::two"]), of("-p y --lib", &[])]);
    }
}
