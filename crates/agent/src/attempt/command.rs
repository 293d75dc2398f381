//! The user's command as a process: straight to the program where it is one, through a shell otherwise.

use domain::{
    Assignment,
    job::Failure,
    spec::expression::{self, Reference},
};
use std::collections::BTreeMap;

/// Names of variables that hold shell text to run before the command; users have files with either.
const PRE_STEPS: [&str; 2] = ["AMLARC_PRESTEP", "AMLARC_RESTEP"];

/// Words that only a shell understands.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "[", "alias", "bg", "break", "cd", "command", "continue", "declare", "eval", "exec", "exit", "export",
    "false", "fg", "hash", "if", "jobs", "kill", "let", "local", "pwd", "read", "return", "set", "shift", "source",
    "test", "time", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
    "for", "case", "function", "echo", "printf",
];

/// The arguments of the process for this attempt. `paths` are the node's places of inputs and outputs.
pub(super) fn arguments(
    assignment: &Assignment,
    inputs: &BTreeMap<String, String>,
    outputs: &BTreeMap<String, String>,
) -> Result<Vec<String>, Failure> {
    let lookup = |reference: &Reference| match reference {
        Reference::Input(name) => inputs.get(name).cloned(),
        Reference::Output(name) => outputs.get(name).cloned(),
        _ => None,
    };
    let text = expression::expand(&assignment.plan.command, &lookup)
        .map_err(|error| Failure::new("UserError.Expression", error.to_string()))?;
    let pre_step = PRE_STEPS.iter().find_map(|name| assignment.plan.variables.get(*name));
    match (pre_step, plain_program(&text)) {
        (None, Some(words)) => Ok(words),
        (None, None) => Ok(vec![shell().into(), "-c".into(), text]),
        (Some(step), _) => {
            let cores = assignment.plan.requests.cpu_milli.div_ceil(1000).max(1);
            let script = format!("get_cores() {{ echo {cores}; }}\n{step}\n{text}");
            Ok(vec![shell().into(), "-c".into(), script])
        }
    }
}

/// The words of a command that needs no shell: plain characters, no builtin, no assignment.
fn plain_program(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || " _./=:,+@%-".contains(c);
    if !text.chars().all(plain) {
        return None;
    }
    let words: Vec<String> = text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let first = words.first()?;
    (!first.contains('=') && !SHELL_WORDS.contains(&first.as_str())).then_some(words)
}

/// The same command for an image: which shell it has is found out inside.
pub(super) fn in_image(argv: &[String]) -> Vec<String> {
    const EITHER: &str = "if command -v bash >/dev/null 2>&1; then exec bash -c \"$0\"; else exec sh -c \"$0\"; fi";
    match argv {
        [first, flag, text] if first == shell() && flag == "-c" => {
            ["/bin/sh", "-c", EITHER, text].map(str::to_owned).to_vec()
        }
        plain => plain.to_vec(),
    }
}

/// Whether this is the program that commands are handed to which are more than one plain program.
pub(super) fn is_shell(program: &str) -> bool {
    program == shell()
}

fn shell() -> &'static str {
    if std::path::Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_command_finds_its_shell_inside_an_image() {
        let argv = vec![shell().to_owned(), "-c".into(), "a && b".into()];
        assert_eq!(in_image(&argv).last().map(String::as_str), Some("a && b"));
        assert_eq!(in_image(&argv)[0], "/bin/sh");
        assert_eq!(in_image(&["python".into()]), ["python"]);
    }

    #[test]
    fn one_plain_program_needs_no_shell() {
        assert_eq!(plain_program("/bin/true"), Some(vec!["/bin/true".into()]));
        assert_eq!(plain_program(" python a.py  --lr 0.1 ").map(|w| w.len()), Some(4));
        for shelled in ["a | b", "a && b", "echo hi", "X=1 a", "a\nb", "a $HOME", "a 'b c'", "a *", "cd x", ""] {
            assert_eq!(plain_program(shelled), None, "{shelled}");
        }
    }
}
