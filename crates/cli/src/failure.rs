//! What goes wrong, as people read it: what could not be done, because of what, and what to do next.
//!
//! Invariant: every failure knows its exit code. 1 the job failed, 2 your input, 3 not allowed, 4 cannot reach,
//! 5 our fault; 0 is for what went well.

use api::ClientError;
use domain::spec::Mistake;
use std::{error::Error, fmt, io};

/// The result of everything a command does.
pub(crate) type Done<T = ()> = Result<T, Failure>;

/// Whose fault it is; the number is the process's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    JobFailed = 1,
    Input = 2,
    NotAllowed = 3,
    Unreachable = 4,
    Ours = 5,
    /// The user pressed Ctrl-C.
    Interrupted = 130,
    /// Whoever read our stdout went away; there is nothing to say and nobody to say it to.
    BrokenPipe = 141,
}

/// A failure, ready to be shown.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    what: String,
    because: Vec<String>,
    hints: Vec<String>,
    /// Printed before the error itself, such as places in a file.
    preface: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Failure {
        Failure { exit, what: what.into(), because: Vec::new(), hints: Vec::new(), preface: String::new() }
    }

    /// The user can mend it.
    pub(crate) fn input(what: impl Into<String>) -> Failure {
        Failure::new(Exit::Input, what)
    }

    pub(crate) fn broken_pipe() -> Failure {
        Failure::new(Exit::BrokenPipe, "nobody reads stdout any more")
    }

    pub(crate) fn because(mut self, cause: impl Into<String>) -> Failure {
        self.because.push(cause.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.push(hint.into());
        self
    }

    /// A file that cannot be read or written, in words that name it.
    pub(crate) fn file(what: impl Into<String>, error: &io::Error) -> Failure {
        Failure::input(what).because(io_words(error))
    }

    /// Mistakes in a file, each with its line and a caret under the place.
    pub(crate) fn mistakes(what: impl Into<String>, text: &str, mistakes: &[Mistake]) -> Failure {
        let blocks: Vec<String> = mistakes.iter().map(|m| block(text, m)).collect();
        Failure { preface: blocks.join("\n"), ..Failure::input(what) }
    }

    /// Says what was being done; what was the error so far becomes its cause.
    pub(crate) fn doing(mut self, what: impl Into<String>) -> Failure {
        let cause = std::mem::replace(&mut self.what, what.into());
        self.because.insert(0, cause);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.preface.is_empty() {
            writeln!(f, "{}", self.preface)?;
        }
        write!(f, "error: {}", self.what)?;
        for cause in &self.because {
            write!(f, "\n  because: {}", cause.replace('\n', "\n    "))?;
        }
        for hint in &self.hints {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl Error for Failure {}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let exit = match &error {
            ClientError::Refused { status: 401 | 403, .. } => Exit::NotAllowed,
            ClientError::Refused { status: 500.., .. } | ClientError::Garbled { .. } => Exit::Ours,
            ClientError::Refused { .. }
            | ClientError::File { .. }
            | ClientError::Authority(_)
            | ClientError::Identity(_) => Exit::Input,
            ClientError::Unreachable { .. } => Exit::Unreachable,
        };
        let mut failure = Failure { because: causes(&error), ..Failure::new(exit, error.to_string()) };
        if let ClientError::Refused { details, .. } = &error {
            let mut details = details.iter().cloned();
            // A message that only sums up its details is not worth a line of its own.
            match details.next() {
                Some(first) if failure.what.contains(&first) => failure.what = first,
                Some(first) => failure.because.push(first),
                None => {}
            }
            failure.because.extend(details);
        }
        match exit {
            Exit::Unreachable => failure.hint("run `peregrine server status`, or `peregrine server start`"),
            Exit::NotAllowed => failure.hint("check `server.token_file` with `peregrine config show`"),
            _ => failure,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        match error.downcast::<Failure>() {
            Ok(failure) => failure,
            Err(error) => match error.downcast::<ClientError>() {
                Ok(error) => error.into(),
                Err(error) => {
                    let because = error.chain().skip(1).map(ToString::to_string).collect();
                    Failure { because, ..Failure::new(Exit::Ours, error.to_string()) }
                }
            },
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::new(Exit::Ours, io_words(&error))
    }
}

/// Adds what was being done to whatever went wrong.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Done<T>;
}

impl<T, E: Into<Failure>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Done<T> {
        self.map_err(|error| error.into().doing(what()))
    }
}

/// An IO error without the operating system's number.
pub(crate) fn io_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is not a folder".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
}

fn causes(error: &dyn Error) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = match cause.downcast_ref::<io::Error>() {
            Some(error) if error.source().is_none() => io_words(error),
            _ => cause.to_string(),
        };
        if !all.iter().any(|known| known.contains(&words)) {
            all.push(words);
        }
        next = cause.source();
    }
    all
}

/// One mistake: `file:line:column: message`, then the line it stands on and a caret.
fn block(text: &str, mistake: &Mistake) -> String {
    let shown = mistake.to_string();
    let Some(line) = mistake.line.checked_sub(1).and_then(|at| text.lines().nth(at)) else { return shown };
    let number = mistake.line.to_string();
    let before = mistake.column.saturating_sub(1);
    // A very long line is shown around the place only.
    let from = before.saturating_sub(60);
    let piece: String = line.chars().skip(from).take(120).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let gap = " ".repeat(number.len());
    format!("{shown}\n {number} | {piece}\n {gap} | {}^", " ".repeat(before - from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_failure_names_the_cause_and_the_next_step() {
        let failure =
            Failure::input("cannot submit `a`").because("no compute target `lab`").hint("run `peregrine compute list`");
        expect![[r#"
            error: cannot submit `a`
              because: no compute target `lab`
            hint: run `peregrine compute list`"#]]
        .assert_eq(&failure.to_string());
    }

    #[test]
    fn a_mistake_shows_its_line_and_a_caret() {
        let mistake = Mistake {
            file: "job.yml".into(),
            line: 2,
            column: 3,
            ..Mistake::new("inpts", "is not a key of a job", "did you mean `inputs`?")
        };
        expect![[r#"
            job.yml:2:3: `inpts`: is not a key of a job (did you mean `inputs`?)
             2 |   inpts: 1
               |   ^
            error: 1 mistake in `job.yml`"#]]
        .assert_eq(&Failure::mistakes("1 mistake in `job.yml`", "a: 1\n  inpts: 1\n", &[mistake]).to_string());
    }

    #[test]
    fn the_server_s_answer_decides_the_exit_code() {
        let refused =
            |status| ClientError::Refused { status, code: String::new(), message: "no".into(), details: vec![] };
        for (status, exit) in [
            (400, Exit::Input),
            (404, Exit::Input),
            (401, Exit::NotAllowed),
            (403, Exit::NotAllowed),
            (503, Exit::Ours),
        ] {
            assert_eq!(Failure::from(refused(status)).exit, exit, "{status}");
        }
    }

    #[test]
    fn every_detail_of_a_refusal_is_told_once() {
        let details = vec!["no `a`".to_owned(), "no `b`".to_owned()];
        let message = "refused for 2 reasons; the first: no `a`".to_owned();
        let refused = ClientError::Refused { status: 400, code: String::new(), message, details };
        assert_eq!(Failure::from(refused).to_string(), "error: no `a`\n  because: no `b`");
    }

    #[test]
    fn what_was_done_stands_before_the_cause() {
        let shown = Failure::input("inner").because("innermost").doing("outer").to_string();
        assert_eq!(shown, "error: outer\n  because: inner\n  because: innermost");
    }
}
