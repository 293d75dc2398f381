//! What cannot be tested on this machine is said aloud, and once more at the end of `cargo xtask ci`.

use std::{fs::OpenOptions, io::Write};

/// Says what is skipped and why. The test that calls it returns at once.
pub(crate) fn skip(what: &str) {
    note(&format!("skipped: {what}"));
}

/// Says something that is no failure even where nothing may be skipped.
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
    let Some(path) = std::env::var_os("PEREGRINE_SKIPPED") else { return };
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}
