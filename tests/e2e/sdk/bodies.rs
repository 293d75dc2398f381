//! What the command line would send is what the SDK sends: `tests/sdk/bodies.py` over every file of the corpus.
//!
//! The SDK runs against a stand-in in its own process, so this test needs no server and no network; it needs the corpus
//! beside the checkout and the SDK in a virtual environment, and says so where either is missing.

use super::venv;
use crate::harness::{binary, said};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The release whose resources are compared.
const VERSION: &str = "1.35.2";

#[test]
fn the_resources_we_send_are_those_the_sdk_sends() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let corpus = root.join("../shared/corpus");
    if !corpus.join("ORACLE.csv").is_file() {
        eprintln!("SKIPPED: there is no corpus at {}", corpus.display());
        return;
    }
    let Some(python) = python() else {
        eprintln!("SKIPPED: azure-ai-ml {VERSION} is not kept here and the package index cannot be reached");
        return;
    };
    let mut compare = Command::new("timeout");
    compare.arg("400").arg(python).arg(root.join("tests/sdk/bodies.py")).env_remove("PYTHONPATH");
    compare.arg("--corpus").arg(corpus.canonicalize().unwrap()).arg("--peregrine").arg(binary());
    let compared = said(compare.env("PEREGRINE_HOME", "/nonexistent").output().unwrap());
    eprintln!("{}", compared.out);
    assert_eq!(compared.code, Some(0), "{}\n{}", compared.out, compared.err);
    let equal: usize = compared.out.lines().filter_map(equals).sum();
    assert!(equal >= 280, "only {equal} files were compared and found equal");
}

/// How many files of a kind are equal, from its line of the summary.
fn equals(line: &str) -> Option<usize> {
    let (_, counts) = line.split_once(" files: ")?;
    counts.split(", ").find_map(|part| part.strip_suffix(" equal")?.parse().ok())
}

/// The interpreter named by `PEREGRINE_SDK_PYTHON`, else the one kept for these tests.
fn python() -> Option<PathBuf> {
    std::env::var_os("PEREGRINE_SDK_PYTHON").map(PathBuf::from).or_else(|| venv::with_sdk(VERSION))
}

#[test]
fn every_pipeline_of_the_corpus_is_accepted_or_refused_for_a_reason() {
    let Some(summary) = pipelines(&[]) else { return };
    assert!(summary["accepted"].as_u64().unwrap() >= 34, "{summary}");
}

/// All but those that need a public registry, AutoML, Spark or a prompt flow.
#[test]
fn pipelines_of_the_corpus_run_to_their_end() {
    let Some(summary) = pipelines(&["--run"]) else { return };
    assert!(summary["accepted"].as_u64().unwrap() >= 41, "{summary}");
}

/// What `tests/sdk/pipelines.py` says at its end; nothing where it cannot be run.
fn pipelines(more: &[&str]) -> Option<serde_json::Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let corpus = crate::corpus::corpus()?;
    let Some(python) = python() else {
        crate::skip::skip("pipelines of the corpus (azure-ai-ml is not kept here and cannot be had)");
        return None;
    };
    let home = crate::environments::shared_builds();
    let mut submit = Command::new("timeout");
    submit.arg("400").arg(python);
    submit.arg(root.join("tests/sdk/pipelines.py")).arg(corpus).args(more).env_remove("PYTHONPATH");
    submit.env("PEREGRINE_BIN", binary()).env("PEREGRINE_HOME", home.home());
    let submitted = said(submit.output().unwrap());
    eprintln!("{}", submitted.out);
    assert_eq!(submitted.code, Some(0), "{}\n{}", submitted.out, submitted.err);
    Some(serde_json::from_str(submitted.out.lines().last().unwrap_or_default()).unwrap())
}
