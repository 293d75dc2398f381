//! Links in Markdown: what a page points to in this repository exists.
//!
//! Addresses with a scheme and places within a page are not checked; neither is anything inside code.

use std::path::Path;

use super::{File, Report};

/// Checks one `.md` file.
pub(super) fn check(file: &File, root: &Path, report: &mut Report) {
    for (line, target) in links(&file.text) {
        let base = if target.starts_with('/') { root.to_owned() } else { folder_of(root, &file.path) };
        if !base.join(target.trim_start_matches('/')).exists() {
            report.errors.push(format!("{}:{line}: link to `{target}`, which does not exist", file.path));
        }
    }
}

fn folder_of(root: &Path, path: &str) -> std::path::PathBuf {
    root.join(path).parent().unwrap_or(root).to_owned()
}

/// Line and path of every link to a file, in order.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        match fence {
            Some(mark) if trimmed.starts_with(mark) => fence = None,
            Some(_) => {}
            None => match ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
                Some(mark) => fence = Some(mark),
                None => {
                    let prose = without_code(line);
                    let targets = inline(&prose).chain(definition(&prose)).filter_map(file_part);
                    found.extend(targets.map(|target| (at + 1, target.to_owned())));
                }
            },
        }
    }
    found
}

/// Code spans turned into spaces.
fn without_code(line: &str) -> String {
    let mut parts = line.split('`');
    let mut prose = parts.next().unwrap_or_default().to_owned();
    let mut code = true;
    for part in parts {
        prose.push_str(if code { " " } else { part });
        code = !code;
    }
    prose
}

/// Targets of `[text](target "title")`, images included.
fn inline(prose: &str) -> impl Iterator<Item = &str> {
    prose.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The target of a line `[name]: target`. Footnotes are prose.
fn definition(prose: &str) -> Option<&str> {
    let rest = prose.trim_start().strip_prefix('[')?;
    let (name, target) = rest.split_once("]:")?;
    (!name.starts_with('^') && !name.contains(']')).then(|| target.trim())
}

/// The path in a link's target; `None` when it leads elsewhere.
fn file_part(target: &str) -> Option<&str> {
    let target = target.trim();
    let target = match target.strip_prefix('<') {
        Some(rest) => rest.split('>').next()?,
        None => target.split_whitespace().next()?,
    };
    let path = target.split('#').next()?;
    let scheme = path.split_once(':').is_some_and(|(scheme, _)| !scheme.contains('/'));
    (!path.is_empty() && !scheme).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_are_found() {
        let cases: &[(&str, &[&str])] = &[
            ("see [a](docs/a.md) and ![b](b.png \"title\")", &["docs/a.md", "b.png"]),
            ("[section](guide.md#start), [here](#here)", &["guide.md"]),
            ("[web](https://example.org/x), <mailto:a@b>, [m](mailto:a@b)", &[]),
            ("code `[a](gone.md)` and [b](<with space.md>)", &["with space.md"]),
            ("[name]: ../x.md\n[^1]: a note", &["../x.md"]),
            ("```\n[a](gone.md)\n```\n[b](b.md)", &["b.md"]),
            ("table | [a](a.md) | [b](b.md) |", &["a.md", "b.md"]),
        ];
        for (text, expected) in cases {
            let found: Vec<String> = links(text).into_iter().map(|(_, target)| target).collect();
            assert_eq!(&found, expected, "{text}");
        }
    }

    #[test]
    fn a_link_to_nothing_is_an_error_with_its_line() {
        let file = File { path: "docs/a.md".into(), text: "fine [m](../Cargo.toml)\n\n[x](gone.md)\n".into() };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask has a parent");
        let mut report = Report::default();
        check(&file, root, &mut report);
        assert_eq!(report.errors, ["docs/a.md:3: link to `gone.md`, which does not exist"]);
    }
}
