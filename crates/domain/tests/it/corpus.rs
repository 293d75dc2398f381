//! Conformance: every file of the corpus is read, and judged as the SDK's own loader judges it, except for short
//! lists with reasons a user would agree with.

use domain::spec::{
    Mistake, cannot_run,
    check::{self, Spec},
    shape::Noun,
};
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
    (
        "cli/endpoints/online/managed/binary-payloads/binary-payloads-deployment.yml",
        "is a placeholder",
        "the endpoint's name is still to be filled in, in the file or with `--set endpoint_name=...`",
    ),
    (
        "cli/endpoints/online/managed/inference-schema/deployment-numpy.yml",
        "is a placeholder",
        "the endpoint's name is still to be filled in, in the file or with `--set endpoint_name=...`",
    ),
    (
        "cli/endpoints/online/managed/inference-schema/deployment-pandas.yml",
        "is a placeholder",
        "the endpoint's name is still to be filled in, in the file or with `--set endpoint_name=...`",
    ),
    (
        "cli/endpoints/online/managed/inference-schema/deployment-standard.yml",
        "is a placeholder",
        "the endpoint's name is still to be filled in, in the file or with `--set endpoint_name=...`",
    ),
    (
        "cli/endpoints/online/managed/openapi/deployment.yml",
        "is a placeholder",
        "the endpoint's name is still to be filled in, in the file or with `--set endpoint_name=...`",
    ),
    (
        "cli/jobs/spark/attached-spark-standalone-default-identity.yml",
        "is a placeholder",
        "the Spark pool's name is still to be filled in",
    ),
    (
        "cli/jobs/spark/attached-spark-standalone-managed-identity.yml",
        "is a placeholder",
        "the Spark pool's name is still to be filled in",
    ),
    (
        "cli/jobs/spark/attached-spark-standalone-user-identity.yml",
        "is a placeholder",
        "the Spark pool's name is still to be filled in",
    ),
];

/// Files the SDK's loader refuses and we accept, and why that is right.
const ACCEPTED_HERE: &[(&str, &str)] = &[];

/// Files that no loader of the SDK was asked about: what they are, and whether we accept them.
const WITHOUT_VERDICT: &[&str] = &["registry"];

#[derive(Default)]
struct Count {
    files: usize,
    agreed: usize,
    accepted: usize,
}

#[test]
fn files_are_judged_as_the_sdk_judges_them() {
    let Some(corpus) = corpus() else { return };
    let oracle: BTreeMap<String, String> =
        rows(&corpus, "ORACLE.csv").into_iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    let (mut counts, mut wrong) = (BTreeMap::<String, Count>::new(), Vec::new());
    for row in rows(&corpus, "INDEX.csv") {
        let (path, kind) = (&row[0], &row[1]);
        let Some(noun) = noun_of(kind) else { continue };
        let accepted = match oracle.get(path).map(String::as_str) {
            Some(verdict) => verdict == "accepts",
            None => WITHOUT_VERDICT.contains(&kind.as_str()),
        };
        let result = check::read(noun, path, &text(&corpus, path), &[]);
        let count = counts.entry(kind.split('(').next().unwrap_or(kind).to_owned()).or_default();
        count.files += 1;
        count.accepted += usize::from(result.is_ok());
        count.agreed += usize::from(result.is_ok() == accepted);
        wrong.extend(difference(path, accepted, &result));
    }
    for (kind, Count { files, agreed, accepted }) in &counts {
        eprintln!("{kind}: {agreed} of {files} agree, {accepted} accepted");
    }
    for (path, _, reason) in REFUSED_HERE {
        eprintln!("refused here, accepted by the SDK: {path}: {reason}");
    }
    for (path, reason) in ACCEPTED_HERE {
        eprintln!("accepted here, refused by the SDK: {path}: {reason}");
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    assert!(counts.values().map(|count| count.files).sum::<usize>() >= 390, "the corpus has shrunk");
}

/// What is wrong about our verdict, unless it is the SDK's or a listed difference.
fn difference(path: &str, accepted: bool, result: &Result<Spec, Vec<Mistake>>) -> Option<String> {
    let refused_here = REFUSED_HERE.iter().find(|(listed, ..)| *listed == path);
    let accepted_here = ACCEPTED_HERE.iter().any(|(listed, _)| *listed == path);
    match (result, refused_here) {
        (Ok(_), Some(_)) => Some(format!("{path}: listed as refused, and accepted")),
        (Err(mistakes), Some((_, piece, _))) if mistakes.iter().any(|m| !m.message.contains(piece)) => {
            Some(format!("{path}: refused for more than its reason: {mistakes:?}"))
        }
        (Err(_), Some(_)) => None,
        (Ok(_), None) if !accepted && !accepted_here => Some(format!("{path}: accepted, and the SDK refuses it")),
        (Ok(_), None) if accepted && accepted_here => Some(format!("{path}: listed as a difference, and is none")),
        (Err(_), None) if accepted_here => Some(format!("{path}: listed as accepted, and refused")),
        (Err(mistakes), None) if accepted => {
            Some(mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

#[test]
fn valid_jobs_that_are_no_commands_say_that_they_cannot_run() {
    let Some(corpus) = corpus() else { return };
    let mut seen = BTreeMap::<String, usize>::new();
    for row in rows(&corpus, "INDEX.csv") {
        let (path, kind) = (&row[0], &row[1]);
        if noun_of(kind) != Some(Noun::Job) {
            continue;
        }
        let Ok(spec) = check::read(Noun::Job, path, &text(&corpus, path), &[]) else { continue };
        let message = cannot_run(&spec).map(|mistake| mistake.message);
        let runs = ["commandJob", "pipelineJob", "sweepJob"].iter().any(|runs| kind.starts_with(runs));
        assert_eq!(message.is_none(), runs, "{path}: {message:?}");
        *seen.entry(message.unwrap_or_default()).or_default() += 1;
    }
    eprintln!("{seen:#?}");
    assert_eq!(seen.len(), 3, "those that run, and two kinds that cannot: {seen:?}");
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
    let kind = kind.split(['(', '/']).next()?;
    match kind {
        job if job.ends_with("Job") => Some(Noun::Job),
        component if component.ends_with("Component") => Some(Noun::Component),
        "onlineEndpoint" => Some(Noun::OnlineEndpoint),
        "onlineDeployment" => Some(Noun::OnlineDeployment),
        "batchEndpoint" => Some(Noun::BatchEndpoint),
        "batchDeployment" => Some(Noun::BatchDeployment),
        other => Noun::parse(other),
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
