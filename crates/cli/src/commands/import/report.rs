//! What came of an import: counts and checksums of both sides, what was left out and why, and what differs.

use super::image::{Image, What, hex};
use crate::{
    failure::{Done, Exit, Failure},
    output::{Column, Output},
};
use ring::digest::{Context, SHA256};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many differences are told one by one.
const TOLD: usize = 20;

/// What happened to a thing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate<'a> {
    /// It was copied, and this is the copy.
    Moved(&'a Image),
    /// It was here before.
    Before,
    /// It stays where it is.
    Left,
}

#[derive(Debug, Default)]
struct Counts {
    source: u64,
    moved: u64,
    before: u64,
    /// Checksums of what was copied, by thing: in the source, and as it was read back.
    sums: BTreeMap<String, (String, Option<String>)>,
    read_back: u64,
}

/// The book of an import.
#[derive(Debug, Default)]
pub(super) struct Report {
    counts: BTreeMap<What, Counts>,
    /// Reasons, with how many things each holds for and one of them.
    left: BTreeMap<String, (u64, String)>,
    differences: Vec<String>,
}

impl Report {
    /// Writes down what a thing of the source is and what happened to it.
    pub(super) fn note(&mut self, thing: &str, source: &Image, fate: Fate<'_>) {
        for (what, section) in &source.0 {
            let counts = self.counts.entry(*what).or_default();
            counts.source += section.count;
            match fate {
                Fate::Left => {}
                Fate::Before => counts.before += section.count,
                Fate::Moved(copy) => {
                    counts.moved += section.count;
                    counts.read_back += copy.0.get(what).map_or(0, |section| section.count);
                    let original = source.sum(*what, source).unwrap_or_default();
                    counts.sums.insert(thing.to_owned(), (original, copy.sum(*what, source)));
                }
            }
        }
        if let Fate::Moved(copy) = fate {
            self.differences.extend(source.differences(copy).into_iter().map(|told| format!("{thing}: {told}")));
        }
    }

    /// Something stays where it is, for a reason.
    pub(super) fn leave(&mut self, thing: &str, reason: &str) {
        let (count, _) = self.left.entry(reason.to_owned()).or_insert((0, thing.to_owned()));
        *count += 1;
    }

    /// Many of a kind stay where they are.
    pub(super) fn leave_all(&mut self, what: &str, count: u64, reason: &str) {
        self.left.insert(reason.to_owned(), (count, what.to_owned()));
    }

    /// Something is not here as it should be.
    pub(super) fn differs(&mut self, thing: &str, how: &str) {
        self.differences.push(format!("{thing}: {how}"));
    }

    /// Shows it all. What differs is a failure.
    pub(super) fn show(&self, output: &Output, dry: bool) -> Done {
        let rows: Vec<Value> = self.counts.iter().map(|(what, counts)| counts.row(*what)).collect();
        let left: Vec<Value> = self
            .left
            .iter()
            .map(|(reason, (count, example))| json!({"count": count, "example": example, "reason": reason}))
            .collect();
        let whole = json!({"counts": rows, "skipped": left, "differences": self.differences});
        output.list_within(whole, "counts", if dry { &COLUMNS[..2] } else { COLUMNS })?;
        for (reason, (count, example)) in &self.left {
            let more = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            output.note(&format!("skipped {example}{more}: {reason}"));
        }
        if self.differences.is_empty() {
            return Ok(());
        }
        let count = self.differences.len();
        let mut failure =
            Failure::new(Exit::Ours, format!("what is here now is not what the source has, in {count} places"));
        for told in self.differences.iter().take(TOLD) {
            failure = failure.because(told.clone());
        }
        if count > TOLD {
            failure = failure.because(format!("and {} more", count - TOLD));
        }
        Err(failure.hint("run it again: what is whole is left alone, and what is not is sent once more"))
    }
}

/// A checksum of something at its source, and of its copy once that was read back.
type Sums = (String, Option<String>);

impl Counts {
    fn row(&self, what: What) -> Value {
        let sum = |of: fn(&Sums) -> String| {
            let mut all = Context::new(&SHA256);
            self.sums.iter().for_each(|(thing, sums)| all.update(format!("{thing} {}\n", of(sums)).as_bytes()));
            hex(all)[..16].to_owned()
        };
        let source = sum(|(source, _)| source.clone());
        let copy = sum(|(_, copy)| copy.clone().unwrap_or_default());
        json!({
            "what": what.label(), "source": self.source, "new": self.moved, "before": self.before,
            "readBack": self.read_back, "sourceChecksum": source, "checksum": copy,
            "verified": source == copy && self.moved == self.read_back,
        })
    }
}

const COLUMNS: &[Column] = &[
    Column::new("WHAT", |row| text(&row["what"])).whole(),
    Column::new("SOURCE", |row| text(&row["source"])),
    Column::new("NEW", |row| text(&row["new"])),
    Column::new("THERE BEFORE", |row| text(&row["before"])),
    Column::new("READ BACK", |row| text(&row["readBack"])),
    Column::new("CHECKSUM", |row| if row["new"] == 0 { String::new() } else { text(&row["checksum"]) }),
    Column::new("VERIFIED", |row| match (&row["new"], &row["verified"]) {
        (new, _) if *new == 0 => String::new(),
        (_, Value::Bool(true)) => "yes".into(),
        _ => "NO".into(),
    }),
];

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
