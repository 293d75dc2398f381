//! Where the job is, in one line: drawn over itself on a terminal, printed once per change elsewhere.
//!
//! Invariant: the line is never in the way of the log; it is drawn only where the log stands at the start of a line.

use crate::output::Output;
use domain::time::humane;
use tokio::time::Instant;

pub(super) struct StatusLine<'a> {
    output: &'a Output,
    since: Instant,
    /// What was last told: phase and note.
    told: (String, String),
    /// The note that came last. One that is older than its phase says nothing about it.
    last_note: (String, String),
    drawn: bool,
    at_line_start: bool,
}

impl<'a> StatusLine<'a> {
    pub(super) fn new(output: &'a Output) -> StatusLine<'a> {
        StatusLine {
            output,
            since: Instant::now(),
            told: Default::default(),
            last_note: Default::default(),
            drawn: false,
            at_line_start: true,
        }
    }

    /// Where the job is now.
    pub(super) fn tell(&mut self, status: &str, phase: &str, note: &str) {
        if status.is_empty() {
            return;
        }
        let phase = word_of(if phase.is_empty() { status } else { phase });
        if self.last_note.1 != note {
            self.last_note = (phase.to_owned(), note.to_owned());
        }
        let note = if self.last_note.0 == phase && phase != "running" { note } else { "" };
        let now = (phase.to_owned(), note.to_owned());
        if now == self.told {
            return;
        }
        if now.0 != self.told.0 {
            self.since = Instant::now();
        }
        self.told = now;
        match self.output.shows_progress() {
            true => self.redraw(),
            false if phase != "ended" => self.output.note(&self.words()),
            false => {}
        }
    }

    /// Draws the line with the time that has passed.
    pub(super) fn redraw(&mut self) {
        if !self.output.shows_progress() || !self.at_line_start || self.told.0.is_empty() {
            return;
        }
        let text = format!("{} · {}", self.words(), humane(self.since.elapsed()));
        let width = self.output.progress_width().saturating_sub(1);
        let text: String = text.chars().take(width).collect();
        self.output.draw(&format!("\r\x1b[2K{text}"));
        self.drawn = true;
    }

    /// Takes the line away, so that something else can be printed.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.output.draw("\r\x1b[2K");
        }
    }

    /// A line of its own, above.
    pub(super) fn say(&mut self, text: &str) {
        self.clear();
        self.output.note(text);
    }

    /// Tells where the log's cursor stands.
    pub(super) fn at_line_start(&mut self, yes: bool) {
        self.at_line_start = yes;
    }

    fn words(&self) -> String {
        match self.told.1.is_empty() {
            true => self.told.0.clone(),
            false => format!("{}: {}", self.told.0, self.told.1),
        }
    }
}

/// The word for a status or a phase.
fn word_of(text: &str) -> &'static str {
    match text.to_lowercase().as_str() {
        "queued" | "placed" | "notstarted" => "queued",
        "preparing" | "staging" | "starting" | "provisioning" => "staging",
        "environment" => "environment",
        "running" => "running",
        "finalizing" | "collecting" => "collecting",
        "cancelrequested" | "stopping" => "stopping",
        _ => "ended",
    }
}
