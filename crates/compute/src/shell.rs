//! Words for a shell that is not ours.

/// A word that any POSIX shell reads as exactly this text.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for text in ["", "plain", "it's", "a b\n$(touch x) `y` \\ \"z\" *", "'';'", "ünï-☃"] {
            let said = Command::new("sh").arg("-c").arg(format!("printf %s {}", quote(text))).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), text);
        }
    }
}
