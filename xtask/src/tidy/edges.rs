//! Which crate may see which: the only rule of the house that is law.
//!
//! Edges point downward. An edge that is not in `ALLOWED` is an error, and so is a crate that is not in it: a new
//! crate or edge is a change of architecture, made here and in ARCHITECTURE.md together. Dependencies of tests are
//! free. `xtask` depends on nothing.

use super::{File, Report};

/// What a crate may depend on among our own; every crate but `domain` may also see `domain`.
const ALLOWED: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("planner", &[]),
    ("api", &[]),
    ("store", &[]),
    ("compute", &[]),
    ("kubernetes", &["compute", "api"]),
    ("controller", &["store", "planner", "compute"]),
    ("server", &["api", "store"]),
    ("agent", &["api"]),
    ("router", &["api"]),
    ("cli", &["planner", "api", "store", "compute", "kubernetes", "controller", "server", "agent", "router"]),
];

/// Checks every crate's manifest among the files.
pub(super) fn check(files: &[File], report: &mut Report) {
    for file in files {
        let found = dependencies(&file.text);
        if file.path == "xtask/Cargo.toml" {
            let errors = found.iter().map(|d| {
                format!(
                    "xtask/Cargo.toml:{}: `xtask` depends on `{}`; it uses the standard library only",
                    d.line, d.name
                )
            });
            report.errors.extend(errors);
        } else if let Some(name) = crate_folder(&file.path) {
            check_crate(name, &file.path, &found, report);
        }
    }
}

fn check_crate(name: &str, path: &str, found: &[Dependency], report: &mut Report) {
    let Some(allowed) = allowed(name) else {
        report
            .errors
            .push(format!("{path}: crate `{name}` has no place in the house; give it one in xtask/src/tidy/edges.rs"));
        return;
    };
    for dependency in found.iter().filter(|d| allowed_anywhere(&d.name)) {
        let domain = dependency.name == "domain" && name != "domain";
        if !domain && !allowed.contains(&dependency.name.as_str()) {
            report.errors.push(format!(
                "{path}:{}: `{name}` may not depend on `{}`{}",
                dependency.line,
                dependency.name,
                offer(name, allowed)
            ));
        }
    }
}

fn offer(name: &str, allowed: &[&str]) -> String {
    let mut names: Vec<&str> = if name == "domain" { Vec::new() } else { vec!["domain"] };
    names.extend(allowed);
    if names.is_empty() {
        " (it depends on no crate of ours)".to_owned()
    } else {
        format!(" (it may on: {})", names.join(", "))
    }
}

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    ALLOWED.iter().find(|(of, _)| *of == name).map(|(_, to)| *to)
}

/// Whether a dependency is one of our crates, rather than a third party's.
fn allowed_anywhere(name: &str) -> bool {
    allowed(name).is_some()
}

/// `store` of `crates/store/Cargo.toml`.
fn crate_folder(path: &str) -> Option<&str> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    /// The crate as code names it; for our own, without `peregrine-`.
    name: String,
    line: usize,
}

/// Reads as much TOML as manifests use: dotted keys, inline tables, `[dependencies.x]`, `[target.….dependencies]`.
fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut inside = false;
    for (at, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            inside = is_dependency_table(header);
            if let Some(name) = named_table(header) {
                found.push(Dependency { name: ours(name).to_owned(), line: at + 1 });
            }
        } else if inside
            && !line.starts_with('#')
            && let Some((key, value)) = line.split_once('=')
        {
            let key = key.trim().split('.').next().unwrap_or_default().trim_matches('"');
            let name = package(value).unwrap_or(key);
            found.push(Dependency { name: ours(name).to_owned(), line: at + 1 });
        }
    }
    found
}

fn is_dependency_table(header: &str) -> bool {
    let last = header.rsplit('.').next().unwrap_or(header);
    matches!(last, "dependencies" | "build-dependencies") && (last == header || header.starts_with("target."))
}

/// `x` of `[dependencies.x]`.
fn named_table(header: &str) -> Option<&str> {
    let (table, name) = header.rsplit_once('.')?;
    is_dependency_table(table).then(|| name.trim_matches('"'))
}

/// `peregrine-store` of `{ package = "peregrine-store", … }`.
fn package(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("package")?;
    rest.split('"').nth(1)
}

fn ours(name: &str) -> &str {
    name.strip_prefix("peregrine-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(path: &str, manifest: &str) -> Vec<String> {
        let mut report = Report::default();
        check(&[File { path: path.to_owned(), text: manifest.to_owned() }], &mut report);
        report.errors
    }

    #[test]
    fn dependencies_are_found_in_every_spelling() {
        let cases = [
            ("[dependencies]\nstore.workspace = true", Some("store")),
            ("[dependencies]\nstore = { workspace = true }", Some("store")),
            ("[dependencies]\nkeep = { package = \"peregrine-store\", path = \"../store\" }", Some("store")),
            ("[dependencies]\n\"peregrine-store\" = \"0.1\"", Some("store")),
            ("[dependencies.store]\nworkspace = true", Some("store")),
            ("[target.'cfg(unix)'.dependencies]\nstore.workspace = true", Some("store")),
            ("[build-dependencies]\nstore.workspace = true", Some("store")),
            ("[dev-dependencies]\nstore.workspace = true", None),
            ("[package]\nname = \"store\"", None),
            ("[dependencies]\n# store.workspace = true", None),
        ];
        for (manifest, expected) in cases {
            let names: Vec<String> = dependencies(manifest).into_iter().map(|d| d.name).collect();
            assert_eq!(names.first().map(String::as_str), expected, "{manifest}");
        }
    }

    #[test]
    fn an_edge_that_is_not_listed_is_an_error_with_its_line() {
        let manifest = "[dependencies]\ndomain.workspace = true\napi.workspace = true\ncompute.workspace = true\n";
        assert_eq!(
            errors("crates/server/Cargo.toml", manifest),
            ["crates/server/Cargo.toml:4: `server` may not depend on `compute` (it may on: domain, api, store)"]
        );
    }

    #[test]
    fn the_bottom_crate_sees_none_of_ours_and_any_of_others() {
        assert_eq!(
            errors("crates/domain/Cargo.toml", "[dependencies]\nserde.workspace = true\n"),
            Vec::<String>::new()
        );
        assert_eq!(errors("crates/domain/Cargo.toml", "[dependencies]\nplanner.workspace = true\n").len(), 1);
    }

    #[test]
    fn a_crate_without_a_place_and_a_dependency_of_xtask_are_errors() {
        assert_eq!(errors("crates/extras/Cargo.toml", "[dependencies]\n").len(), 1);
        assert_eq!(errors("xtask/Cargo.toml", "[dependencies]\nserde.workspace = true\n").len(), 1);
    }
}
