//! Conformance: every file of the corpus is read, and what the SDK accepts is accepted here too, except for a
//! short list with reasons a user would agree with.

use domain::spec::{check, shape::Noun};
use std::{collections::BTreeMap, path::PathBuf};

/// Files the SDK's loader accepts and we refuse, a piece of our message, and why that is right.
const REFUSED_HERE: &[(&str, &str, &str)] = &[
    (
        "best-practices/largescale-deep-learning/Training/Bert-Pretrain/AML-DeepSpeed-submit.yml",
        "is a placeholder",
        "the compute target's name is still to be filled in; no server could run it",
    ),
    (
        "best-practices/largescale-deep-learning/Training/Bert-Pretrain/AML-submit.yml",
        "is a placeholder",
        "the compute target's name is still to be filled in; no server could run it",
    ),
    (
        "cli/jobs/pipelines-with-components/nyc_taxi_data_regression/artifacts/model/nyc-taxi-model.yaml",
        "is a placeholder",
        "the version is still to be filled in; it would register a version called `<VERSION>`",
    ),
    (
        "sdk/python/jobs/spark/automation/create_credential_less_data_store.yml",
        "is a placeholder",
        "name, account and container are still to be filled in",
    ),
];

/// Kinds of jobs that are recognised and refused with one mistake.
const OTHER_JOBS: &[&str] = &["pipelineJob", "sweepJob", "sparkJob", "autoMLJob"];

#[derive(Default)]
struct Count {
    files: usize,
    accepted: usize,
}

#[test]
fn what_the_sdk_accepts_is_accepted_here() {
    let Some(corpus) = corpus() else { return };
    let oracle: BTreeMap<String, String> =
        rows(&corpus, "ORACLE.csv").into_iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    let (mut counts, mut wrong) = (BTreeMap::<String, Count>::new(), Vec::new());
    for row in rows(&corpus, "INDEX.csv") {
        let (path, kind) = (&row[0], &row[1]);
        let Some(noun) = noun_of(kind) else { continue };
        let result = check::read(noun, path, &text(&corpus, path), &[]);
        let count = counts.entry(kind.clone()).or_default();
        count.files += 1;
        count.accepted += usize::from(result.is_ok());
        let listed = REFUSED_HERE.iter().find(|(listed, ..)| listed == path);
        match (result, listed) {
            (Ok(_), Some(_)) => wrong.push(format!("{path}: listed as refused, and accepted")),
            (Err(mistakes), Some((_, piece, _))) if mistakes.iter().any(|m| !m.message.contains(piece)) => {
                wrong.push(format!("{path}: refused for more than its reason: {mistakes:?}"));
            }
            (Err(mistakes), None) if oracle.get(path).is_some_and(|verdict| verdict == "accepts") => {
                wrong.extend(mistakes.iter().map(|mistake| mistake.to_string()));
            }
            _ => {}
        }
    }
    for (kind, Count { files, accepted }) in &counts {
        eprintln!("{kind}: {accepted} of {files} accepted");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(counts.values().map(|count| count.files).sum::<usize>() >= 80, "the corpus has shrunk");
}

#[test]
fn other_kinds_of_jobs_are_refused_with_one_mistake() {
    let Some(corpus) = corpus() else { return };
    let mut seen = 0;
    for row in rows(&corpus, "INDEX.csv") {
        let (path, kind) = (&row[0], &row[1]);
        if !OTHER_JOBS.iter().any(|other| kind.starts_with(other)) {
            continue;
        }
        seen += 1;
        let mistakes = check::read(Noun::Job, path, &text(&corpus, path), &[]).expect_err(path);
        let clear = mistakes.len() == 1 && mistakes[0].message.contains("cannot run yet; command jobs can");
        // A template that is no YAML before it is filled in cannot say what kind of job it is.
        let template = mistakes[0].key.is_empty() && text(&corpus, path).contains("{{");
        assert!(clear || template, "{path}: {mistakes:?}");
    }
    eprintln!("other kinds of jobs: {seen} refused");
}

#[test]
fn every_curated_name_in_the_corpus_is_known() {
    let Some(corpus) = corpus() else { return };
    let (mut mentions, mut unknown) = (0, Vec::new());
    for row in rows(&corpus, "INDEX.csv") {
        for name in curated_mentions(&text(&corpus, &row[0])) {
            mentions += 1;
            if domain::curated::find(&name).is_none() {
                unknown.push(format!("{}: {name}", row[0]));
            }
        }
    }
    eprintln!("curated environments: {mentions} mentions");
    assert!(unknown.is_empty() && mentions > 100, "{mentions} mentions, unknown: {unknown:#?}");
}

/// Values of `environment:` that name a curated environment.
fn curated_mentions(text: &str) -> Vec<String> {
    let value = |line: &str| {
        let value = line.trim().trim_start_matches("- ").strip_prefix("environment:")?;
        Some(value.split('#').next()?.trim().trim_matches(['"', '\'']).to_owned())
    };
    let curated =
        |name: &String| name.starts_with("azureml://registries/azureml/") || name.starts_with("azureml:AzureML-");
    text.lines().filter_map(value).filter(curated).collect()
}

fn noun_of(kind: &str) -> Option<Noun> {
    match kind.split(['(', '/']).next()? {
        "commandJob" => Some(Noun::Job),
        other => Noun::parse(other).filter(|noun| *noun != Noun::Job),
    }
}

/// The corpus beside the checkout; says so aloud where there is none.
fn corpus() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if path.join("INDEX.csv").is_file() {
        return Some(path);
    }
    eprintln!("SKIPPED: there is no corpus at {}", path.display());
    None
}

fn text(corpus: &std::path::Path, file: &str) -> String {
    std::fs::read_to_string(corpus.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The rows of a CSV file after its head: commas separate, double quotes enclose and are doubled inside.
fn rows(corpus: &std::path::Path, file: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let text = text(corpus, file);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quoted, c) {
            (true, '"') if chars.next_if_eq(&'"').is_some() => field.push('"'),
            (_, '"') => quoted = !quoted,
            (false, ',') => row.push(std::mem::take(&mut field)),
            (false, '\n') => {
                row.push(std::mem::take(&mut field).trim_end_matches('\r').to_owned());
                rows.push(std::mem::take(&mut row));
            }
            (_, c) => field.push(c),
        }
    }
    rows.drain(..1);
    rows
}
