//! A progress line for uploads and downloads, on a terminal only.

use crate::output::Output;
use domain::resources::humane_bytes;
use std::cell::Cell;

/// Counts files and bytes; draws at most once per percent.
pub(super) struct Progress<'a> {
    output: &'a Output,
    verb: &'static str,
    files: usize,
    bytes: u64,
    done_files: Cell<usize>,
    done_bytes: Cell<u64>,
    drawn: Cell<Option<u64>>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(output: &'a Output, verb: &'static str, files: usize, bytes: u64) -> Progress<'a> {
        let (done_files, done_bytes, drawn) = (Cell::new(0), Cell::new(0), Cell::new(None));
        Progress { output, verb, files, bytes, done_files, done_bytes, drawn }
    }

    /// One more file is through.
    pub(super) fn file(&self, bytes: u64) {
        self.done_files.set(self.done_files.get() + 1);
        self.done_bytes.set(self.done_bytes.get() + bytes);
        if !self.output.shows_progress() || (self.files < 20 && self.bytes < 8 << 20) {
            return;
        }
        let percent = match self.bytes {
            0 => self.done_files.get() as u64 * 100 / self.files.max(1) as u64,
            all => self.done_bytes.get() * 100 / all,
        };
        if self.drawn.replace(Some(percent)) == Some(percent) {
            return;
        }
        let (files, all) = (self.done_files.get(), self.files);
        let bytes = format!("{} of {}", humane_bytes(self.done_bytes.get()), humane_bytes(self.bytes));
        self.output.draw(&format!("\r\x1b[2K{} {percent} %: {files} of {all} files, {bytes}", self.verb));
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.drawn.get().is_some() {
            self.output.draw("\r\x1b[2K");
        }
    }
}
