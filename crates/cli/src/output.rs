//! The one way out: data on stdout in the format asked for, progress and hints on stderr.
//!
//! Invariant: nothing but data reaches stdout, so that a pipe never has to filter. A reader that goes away
//! ends the command quietly.

mod format;
mod query;
mod table;
mod times;

pub(crate) use format::Format;
pub(crate) use query::Query;
pub(crate) use table::Column;
pub(crate) use times::{ago, duration_between, instant};

use crate::failure::{Done, Failure};
use domain::spec::yaml::to_yaml;
use serde_json::Value;
use std::io::{self, IsTerminal, Write};

/// How this run prints.
#[derive(Debug)]
pub(crate) struct Output {
    format: Format,
    /// The user chose the format, so that data is wanted even where a command would stay silent.
    chosen: bool,
    query: Option<Query>,
    quiet: bool,
    stdout_terminal: bool,
    stderr_terminal: bool,
}

impl Output {
    pub(crate) fn new(format: Option<Format>, query: Option<&str>, quiet: bool) -> Done<Output> {
        let stdout_terminal = io::stdout().is_terminal();
        let by_default = if stdout_terminal { Format::Table } else { Format::Json };
        Ok(Output {
            format: format.unwrap_or(by_default),
            chosen: format.is_some() || query.is_some(),
            query: query.map(Query::parse).transpose()?,
            quiet,
            stdout_terminal,
            stderr_terminal: io::stderr().is_terminal(),
        })
    }

    pub(crate) fn stdout_is_terminal(&self) -> bool {
        self.stdout_terminal
    }

    /// Whether a progress line can be drawn and drawn over.
    pub(crate) fn shows_progress(&self) -> bool {
        self.stderr_terminal && !self.quiet
    }

    pub(crate) fn format_was_chosen(&self) -> bool {
        self.chosen
    }

    /// Sentences will do: nobody asked for a form that programs read.
    pub(crate) fn is_for_people(&self) -> bool {
        !self.chosen || (self.format == Format::Table && self.query.is_none())
    }

    /// One thing. As a table it is a list of its scalar values.
    pub(crate) fn show(&self, value: &Value) -> Done {
        match (&self.query, self.format) {
            (None, Format::Table) => self.text(&table::facts(value)),
            _ => self.other(value.clone()),
        }
    }

    /// Many things; a table has the columns given, other formats everything.
    pub(crate) fn list(&self, items: Vec<Value>, columns: &[Column]) -> Done {
        match (&self.query, self.format) {
            (None, Format::Table) => self.text(&table::table(&items, columns, self.width())),
            _ => self.other(Value::Array(items)),
        }
    }

    /// Rows of cells, the first of them their heads, where the format is a table; otherwise everything as it is.
    pub(crate) fn grid(&self, rows: &[Vec<String>], value: Value) -> Done {
        match (&self.query, self.format) {
            (None, Format::Table) => self.text(&table::grid(rows, self.width())),
            _ => self.other(value),
        }
    }

    /// A table as text, for those who draw it again and again.
    pub(crate) fn table_text(&self, items: &[Value], columns: &[Column]) -> String {
        table::table(items, columns, self.width())
    }

    /// A list and more about it: a table is the list alone, other formats have everything.
    pub(crate) fn list_within(&self, whole: Value, list: &str, columns: &[Column]) -> Done {
        match (&self.query, self.format, &whole[list]) {
            (None, Format::Table, Value::Array(items)) => self.text(&table::table(items, columns, self.width())),
            _ => self.other(whole),
        }
    }

    /// What would be sent: too deep for a table, so JSON unless another form was chosen.
    pub(crate) fn sheet(&self, value: Value) -> Done {
        match (&self.query, self.format) {
            (None, Format::Table) => self.text(&format::json(&value)),
            _ => self.other(value),
        }
    }

    /// Text as it is.
    pub(crate) fn text(&self, text: &str) -> Done {
        self.bytes(text.as_bytes())
    }

    /// Bytes as they are, flushed.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Done {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::broken_pipe(),
            _ => Failure::file("cannot write to stdout", &error),
        })
    }

    /// A line for people, on stderr; silent with `--quiet`.
    pub(crate) fn note(&self, line: &str) {
        if !self.quiet {
            self.always(line);
        }
    }

    /// A line for people that `--quiet` does not silence.
    pub(crate) fn always(&self, line: &str) {
        // Nobody is left to tell when stderr is gone.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Text on stderr without a line break, such as a progress line.
    pub(crate) fn draw(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }

    /// Columns of the terminal; `None` where there is none, and nothing need be cut.
    pub(crate) fn width(&self) -> Option<usize> {
        if !self.stdout_terminal {
            return None;
        }
        terminal_width(io::stdout())
    }

    /// Columns that a progress line has.
    pub(crate) fn progress_width(&self) -> usize {
        terminal_width(io::stderr()).unwrap_or(80)
    }

    fn other(&self, value: Value) -> Done {
        let value = match &self.query {
            Some(query) => query.apply(&value)?,
            None => value,
        };
        match self.format {
            Format::Json => self.text(&format::json(&value)),
            Format::Yaml => self.text(&to_yaml(&value)),
            Format::Tsv => self.text(&format::tsv(&value)),
            Format::Table => self.text(&table::any(&value, self.width())),
            Format::None => Ok(()),
        }
    }
}

fn terminal_width(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
