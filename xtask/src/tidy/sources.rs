//! What a Rust file must have (an opening `//!`, a telling name) and how large it and its functions are.
//!
//! Sizes are habits, not rules: they are mentioned, never refused, and tests do not count.

use super::{File, Report, lexer};

/// Past these, a size is mentioned.
const FUNCTION_LINES: usize = 60;
const FILE_LINES: usize = 400;
const PARAMETERS: usize = 5;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper"];

/// Checks one `.rs` file.
pub(super) fn check(file: &File, report: &mut Report) {
    names(file, report);
    if !file.text.trim_start_matches('\u{feff}').trim_start().starts_with("//!") {
        report.errors.push(format!(
            "{}:1: no `//!` at the top; say what this file holds and what always holds in it",
            file.path
        ));
    }
    if !is_test(&file.path) {
        sizes(file, report);
    }
}

fn names(file: &File, report: &mut Report) {
    let parts: Vec<&str> = file.path.trim_end_matches(".rs").split('/').collect();
    if parts.last() == Some(&"mod") {
        report.errors.push(format!("{}: a `mod.rs`; name the file after its module, beside the folder", file.path));
    }
    if let Some(name) = parts.iter().find(|part| EMPTY_NAMES.contains(part)) {
        report.errors.push(format!("{}: a module named `{name}`; name it after what it holds", file.path));
    }
    for (at, line) in lexer::blank(&file.text).lines().enumerate() {
        if let Some(name) = inline_module(line).filter(|name| EMPTY_NAMES.contains(name)) {
            report.errors.push(format!(
                "{}:{}: a module named `{name}`; name it after what it holds",
                file.path,
                at + 1
            ));
        }
    }
}

/// `x` of `mod x {`; a module in a file of its own is found by the file's name.
fn inline_module(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = line.strip_prefix("mod ").or_else(|| line.split_once(" mod ").map(|(_, rest)| rest))?;
    rest.strip_suffix('{').map(str::trim)
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
}

fn sizes(file: &File, report: &mut Report) {
    let source = without_tests(&file.text);
    let lines = source.lines().count();
    if lines > FILE_LINES {
        report.mentions.push(format!("{}: {lines} lines without tests", file.path));
    }
    for function in lexer::functions(&lexer::blank(source)) {
        let place = format!("{}:{}: fn `{}`", file.path, function.line, function.name);
        if function.lines > FUNCTION_LINES {
            report.mentions.push(format!("{place} has {} lines", function.lines));
        }
        if function.parameters > PARAMETERS {
            report.mentions.push(format!("{place} has {} parameters", function.parameters));
        }
    }
}

/// The text before the inline test module at the foot of the file.
fn without_tests(text: &str) -> &str {
    let mut from = 0;
    while let Some(at) = text[from..].find("#[cfg(test)]").map(|at| at + from) {
        let after = text[at..].lines().skip(1).find(|line| !line.trim().starts_with("#["));
        if after.and_then(inline_module).is_some() {
            return &text[..at];
        }
        from = at + 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(path: &str, text: &str) -> Report {
        let mut report = Report::default();
        check(&File { path: path.to_owned(), text: text.to_owned() }, &mut report);
        report
    }

    #[test]
    fn each_fault_of_a_file_is_one_error() {
        let cases = [
            ("crates/a/src/jobs.rs", "//! Jobs.\n", 0),
            ("crates/a/src/jobs.rs", "use std::fmt;\n", 1),
            ("crates/a/src/jobs/mod.rs", "//! Jobs.\n", 1),
            ("crates/a/src/utils.rs", "//! Things.\n", 1),
            ("crates/a/src/common/jobs.rs", "//! Jobs.\n", 1),
            ("crates/a/src/jobs.rs", "//! Jobs.\npub(crate) mod helpers {\n}\n", 1),
            ("crates/a/src/jobs.rs", "//! Jobs.\n// mod helpers {\n", 0),
        ];
        for (path, text, expected) in cases {
            assert_eq!(report(path, text).errors.len(), expected, "{path}: {text}");
        }
    }

    #[test]
    fn sizes_are_mentioned_and_tests_do_not_count() {
        let long = format!("//! Long.\nfn long() {{\n{}}}\n", "    step();\n".repeat(60));
        assert_eq!(report("crates/a/src/x.rs", &long).mentions, ["crates/a/src/x.rs:2: fn `long` has 62 lines"]);
        assert_eq!(report("crates/a/tests/it/x.rs", &long).mentions, Vec::<String>::new());
        let tested = format!("//! Short.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "// line\n".repeat(500));
        assert_eq!(report("crates/a/src/x.rs", &tested), Report::default());
        let wide = "//! Wide.\nfn wide(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {}\n";
        assert_eq!(report("crates/a/src/x.rs", wide).mentions, ["crates/a/src/x.rs:2: fn `wide` has 6 parameters"]);
    }
}
