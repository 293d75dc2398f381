//! Runs every file under `examples/` with the release binary, as a reader of the examples would.
//!
//! A file says what it is by its `$schema` line. Assets are created before jobs, so that jobs may name them. Files
//! without that line (conda files, parameters) belong to the others and are left alone, and so do files beside a `run.sh`,
//! which uses them itself. All run against a server of their own, in a fresh state folder, which is stopped at the end
//! whatever happened.

use std::fs;
use std::path::{Path, PathBuf};

use crate::image;
use crate::shell::{Failed, Shell, say};

/// The nouns that a file can create, in the order in which they are created.
const NOUNS: &[(&str, &str)] = &[
    ("datastore", "datastore"),
    ("azureBlob", "datastore"),
    ("environment", "environment"),
    ("data", "data"),
    ("model", "model"),
    ("commandComponent", "component"),
    ("pipelineComponent", "component"),
    ("commandJob", "job"),
    ("sweepJob", "job"),
    ("pipelineJob", "job"),
];

/// Runs them all, files first, then each folder's `run.sh`; the first failure ends it.
pub(crate) fn run(sh: &Shell) -> Result<(), Failed> {
    let binary = image::build(sh)?;
    let home = sh.target().join("xtask").join("examples");
    if home.exists() {
        fs::remove_dir_all(&home).map_err(Failed::at(&home))?;
    }
    fs::create_dir_all(&home).map_err(Failed::at(&home))?;
    let sh = sh.with("PEREGRINE_HOME", &home).with("PEREGRINE_BIN", &binary);
    let ran = run_all(&sh, &binary).and_then(|files| Ok(files + run_scripts(&sh)?));
    let stopped = sh.run(&binary, &["server", "stop"]);
    say(&format!("examples: {} files ran", ran?));
    stopped
}

fn run_all(sh: &Shell, binary: &Path) -> Result<usize, Failed> {
    let mut files = Vec::new();
    for path in yaml_files(&sh.root.join("examples"))? {
        let text = fs::read_to_string(&path).map_err(Failed::at(&path))?;
        let Some(schema) = schema_name(&text) else { continue };
        let place = NOUNS.iter().position(|(name, _)| *name == schema).ok_or_else(|| {
            Failed::Check(format!("`{}`: no step here knows how to run a `{schema}` file", path.display()))
        })?;
        files.push((place, path));
    }
    files.sort();
    for (place, path) in &files {
        create(sh, binary, NOUNS[*place].1, path)?;
    }
    Ok(files.len())
}

/// What no file of a noun can show is shown by a script.
fn run_scripts(sh: &Shell) -> Result<usize, Failed> {
    let folder = sh.root.join("examples");
    let mut scripts = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Failed::at(&folder))? {
        scripts.push(entry.map_err(Failed::at(&folder))?.path().join("run.sh"));
    }
    scripts.retain(|script| script.is_file());
    scripts.sort();
    for script in &scripts {
        sh.run(script, &[])?;
    }
    Ok(scripts.len())
}

fn create(sh: &Shell, binary: &Path, noun: &str, path: &Path) -> Result<(), Failed> {
    let path = path.strip_prefix(&sh.root).unwrap_or(path).to_string_lossy();
    let mut args = vec![noun, "create", "-f", &path];
    if noun == "job" {
        args.push("--stream");
    }
    sh.run(binary, &args)
}

/// `commandJob` of `$schema: https://…/commandJob.schema.json`.
fn schema_name(text: &str) -> Option<&str> {
    let url = text.lines().find_map(|line| line.strip_prefix("$schema:"))?;
    let file = url.trim().trim_matches(['"', '\'']).rsplit('/').next()?;
    file.split('.').next()
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>, Failed> {
    let mut found = Vec::new();
    let mut folders = if folder.exists() { vec![folder.to_owned()] } else { Vec::new() };
    while let Some(next) = folders.pop() {
        if next.join("run.sh").is_file() {
            continue;
        }
        for entry in fs::read_dir(&next).map_err(Failed::at(&next))? {
            let path = entry.map_err(Failed::at(&next))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "yml" || e == "yaml") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_it_is_by_its_schema_line() {
        let cases = [
            ("$schema: https://host/latest/commandJob.schema.json\ncommand: x\n", Some("commandJob")),
            ("# note\n$schema: \"https://host/environment.schema.json\"\n", Some("environment")),
            ("name: conda-env\ndependencies: []\n", None),
        ];
        for (text, expected) in cases {
            assert_eq!(schema_name(text), expected, "{text}");
        }
    }
}
