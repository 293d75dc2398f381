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

/// Runs `cargo test` with these arguments.
pub(crate) fn suite(sh: &Shell, args: &[&str]) -> Result<(), Failed> {
    let mut printed = Vec::new();
    let Err(failed) = sh.cargo_heard(args, |line| printed.push(line.to_owned())) else { return Ok(()) };
    let failures = failures(&printed);
    let names = || failures.iter().flatten();
    let known = !failures.is_empty() && failures.iter().all(|names| !names.is_empty());
    if !known || names().count() > FEW {
        return Err(failed);
    }
    say(&format!("\n== again, alone: {}", names().map(String::as_str).collect::<Vec<_>>().join(", ")));
    // By the arguments of the suite: with others, cargo would build everything once more.
    let mut again: Vec<&str> = args.iter().copied().take_while(|arg| *arg != "--").collect();
    again.extend(["--", "--exact", "--test-threads=1"]);
    again.extend(names().map(String::as_str));
    sh.cargo(&again)?;
    names().try_for_each(|name| ci::note(&format!("{name} failed beside others and passed alone")))
}

/// What failed in each test program, by the lines that cargo and the programs print.
fn failures(printed: &[String]) -> Vec<Vec<String>> {
    let (mut found, mut names) = (Vec::new(), Vec::new());
    for line in printed {
        if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            names.push(name.to_owned());
        }
        if line.starts_with(RERUN) {
            found.push(std::mem::take(&mut names));
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
        // One that ended without naming a test, killed perhaps, has no names.
        assert_eq!(failures(&printed), [vec!["a::two".to_owned()], vec![]]);
    }
}
