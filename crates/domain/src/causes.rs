//! Errors in one line, for logs and records.

/// An error and all its causes, joined by colons.
pub fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
