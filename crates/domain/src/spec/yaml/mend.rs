//! One thing PyYAML reads and the YAML standard does not: a quoted text that goes on at its key's own indentation.
//!
//! Users' files have it, so such lines are indented and the file is read again. Blanks at the start of a
//! line are no part of a quoted text, so its value stays the same.

use saphyr_parser::ScanError;

/// Files are read again this often at most.
pub(super) const MOST: usize = 50;

/// The text with the lines of the quoted text in question indented; `None` when the error is another one or the
/// quote is never closed.
pub(super) fn mended(text: &str, error: &ScanError) -> Option<String> {
    if !error.info().contains("invalid indentation in quoted scalar") {
        return None;
    }
    let mark = error.marker();
    let (start, quote) = text.char_indices().nth(mark.index())?;
    let end = start + 1 + closing(text.get(start + 1..)?, quote)?;
    let quoted = &text[start..end];
    let deeper = quoted.replace('\n', &format!("\n{}", " ".repeat(mark.col() + 1)));
    (deeper.len() > quoted.len()).then(|| [&text[..start], &deeper, &text[end..]].concat())
}

/// Where the closing quote stands.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote == '"' => {
                chars.next();
            }
            '\'' if quote == '\'' && chars.next_if(|(_, next)| *next == '\'').is_some() => {}
            c if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}
