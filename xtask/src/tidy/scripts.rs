//! What a file of the studio must not have: the type `any`, or a way to keep its types from being checked.

use super::{File, Report};

const FOLDER: &str = "studio/src/";
/// What turns the checker off.
const SWITCHES: &[&str] = &["@ts-ignore", "@ts-nocheck", "@ts-expect-error"];

/// Checks one file if it is of the studio's sources.
pub(super) fn check(file: &File, report: &mut Report) {
    if !file.path.starts_with(FOLDER) {
        return;
    }
    for (at, line) in file.text.lines().enumerate() {
        let place = format!("{}:{}", file.path, at + 1);
        if let Some(switch) = SWITCHES.iter().find(|switch| line.contains(**switch)) {
            report.errors.push(format!("{place}: `{switch}`; say what the type is instead"));
        }
        if has_any(code(line)) {
            report.errors.push(format!("{place}: the type `any`; say what it is, or `unknown` and look"));
        }
    }
}

/// A line without its comment.
fn code(line: &str) -> &str {
    let trimmed = line.trim_start();
    if trimmed.starts_with("//") || trimmed.starts_with('*') || trimmed.starts_with("/*") {
        return "";
    }
    line.split(" // ").next().unwrap_or(line)
}

/// Whether `any` stands where a type does: behind a mark of types, and not in front of another word.
fn has_any(code: &str) -> bool {
    code.match_indices("any").any(|(at, word)| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        let whole = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let before = before.trim_end();
        let typed = before.ends_with([':', '<', '|', '&', ',', '=', '('])
            || before.ends_with(" as")
            || before.ends_with(" extends");
        let ends = after.is_empty()
            || after.starts_with([';', ',', ')', '>', '[', '|', '&', '=', '}'])
            || after.starts_with(" =");
        whole && typed && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_any_is_found_and_the_word_is_not() {
        for line in ["let x: any = 1;", "(y as any).z", "Map<string, any>", "const f = (x: any) => x", "rows: any[]"] {
            assert!(has_any(code(line)), "{line}");
        }
        for line in [
            "// any: any",
            "no role in any workspace.",
            "const many: string",
            "one, any other with a file",
            "company: x",
        ] {
            assert!(!has_any(code(line)), "{line}");
        }
    }
}
