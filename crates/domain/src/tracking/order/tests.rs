//! Orders read and applied.

use super::*;
use crate::tracking::filter::tests::Thing;

fn read(subject: Subject, clauses: &[&str]) -> String {
    match Order::parse(subject, clauses) {
        Err(bad) => format!("! {}", bad.message),
        Ok(order) => shown(&order),
    }
}

fn shown(order: &Order) -> String {
    let key = |key: &OrderKey| {
        let on = key.dataset.as_ref().map_or(String::new(), |on| format!(" on {}/{:?}", on.name, on.digest));
        format!("{}:{} {}{on}", key.entity.as_str(), key.key, if key.ascending { "up" } else { "down" })
    };
    order.keys.iter().map(key).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_clause_is_a_name_and_perhaps_a_direction() {
    let tail = "attribute:start_time down, attribute:run_id up";
    let cases = [
        ("metrics.a", "metric:a up"),
        ("metrics.a ASC", "metric:a up"),
        ("metric.`a b` desc", "metric:a b down"),
        ("params.\"a/b\" DESC", "parameter:a/b down"),
        ("tags.mlflow.user", "tag:mlflow.user up"),
        ("attribute.end_time DESC", "attribute:end_time down"),
        ("status", "attribute:status up"),
    ];
    for (clause, expect) in cases {
        assert_eq!(read(Subject::Runs, &[clause]), format!("{expect}, {tail}"), "{clause}");
    }
}

#[test]
fn every_order_ends_in_the_subjects_own() {
    let cases: [(Subject, &[&str], &str); 9] = [
        (Subject::Runs, &[], "attribute:start_time down, attribute:run_id up"),
        (Subject::Runs, &["created ASC"], "attribute:start_time up, attribute:run_id up"),
        (Subject::Experiments, &[], "attribute:creation_time down, attribute:experiment_id up"),
        (Subject::Experiments, &["name"], "attribute:name up, attribute:experiment_id down"),
        (Subject::RegisteredModels, &["timestamp DESC"], "attribute:last_updated_timestamp down, attribute:name up"),
        (Subject::RegisteredModels, &["name DESC"], "attribute:name down"),
        (
            Subject::ModelVersions,
            &[],
            "attribute:last_updated_timestamp down, attribute:name up, attribute:version_number down",
        ),
        (
            Subject::ModelVersions,
            &["creation_timestamp"],
            "attribute:creation_timestamp up, attribute:name up, attribute:version_number down",
        ),
        (
            Subject::ModelVersions,
            &["attribute.version_number ASC", "name DESC"],
            "attribute:version_number up, attribute:name down",
        ),
    ];
    for (subject, clauses, expect) in cases {
        assert_eq!(read(subject, clauses), expect, "{subject:?} {clauses:?}");
    }
}

#[test]
fn an_order_that_cannot_be_is_refused() {
    let cases: [(Subject, &[&str], &str); 12] = [
        (Subject::Runs, &["metrics.a foo"], "Invalid ordering key in order_by clause 'metrics.a foo'."),
        (Subject::Runs, &["metrics.a/b DESC"], "Invalid order_by clause 'metrics.a/b DESC'. Could not be parsed."),
        (
            Subject::Runs,
            &["metrics.a DESC, metrics.b"],
            "Invalid order_by clause 'metrics.a DESC, metrics.b'. Could not",
        ),
        (Subject::Runs, &[""], "Invalid order_by clause ''. Could not be parsed."),
        (Subject::Runs, &["1; drop table runs"], "Invalid order_by clause '1; drop table runs'. Could not be parsed."),
        (Subject::Runs, &["foo"], "Invalid attribute key 'foo' specified."),
        (Subject::Runs, &["datasets.name"], "Invalid identifier type 'dataset'"),
        (
            Subject::Runs,
            &["created", "start_time DESC"],
            "`order_by` contains duplicate fields: ['created', 'start_time DESC']",
        ),
        (Subject::Experiments, &["tags.a"], "Invalid order_by entity: tag"),
        (
            Subject::RegisteredModels,
            &["creation_timestamp"],
            "Invalid order by key 'creation_timestamp' specified. Valid keys are '{'name', 'timestamp'}'",
        ),
        (Subject::RegisteredModels, &["timestamp", "last_updated_timestamp"], "`order_by` contains duplicate fields"),
        (Subject::ModelVersions, &["tags.a"], "Invalid order by key 'a' specified."),
    ];
    for (subject, clauses, expect) in cases {
        let said = read(subject, clauses);
        assert!(said.starts_with(&format!("! {expect}")), "{clauses:?}: {said}");
    }
    assert!(Order::parse(Subject::Experiments, &["name", "name DESC"]).is_ok());
}

#[test]
fn logged_models_are_ordered_by_attributes_and_metrics_on_datasets() {
    let order =
        |clause: LoggedOrder| Order::logged_models(&[clause]).map(|order| shown(&order)).map_err(|bad| bad.message);
    let named = |field| LoggedOrder { field_name: Some(field), ..LoggedOrder::default() };
    let tail = "attribute:creation_timestamp down, attribute:model_id up";
    assert_eq!(order(named("metrics.acc")), Ok(format!("metric:acc up, {tail}")));
    assert_eq!(
        order(LoggedOrder {
            ascending: Some(false),
            dataset_name: Some("d"),
            dataset_digest: Some(""),
            ..named("metrics.a.b")
        }),
        Ok(format!("metric:a.b down on d/None, {tail}"))
    );
    assert_eq!(order(named("creation_time")), Ok("attribute:creation_timestamp up, attribute:model_id up".to_owned()));
    let refused = [
        (LoggedOrder::default(), "`field_name` in the `order_by` clause must be specified."),
        (named("params.a"), "Invalid order by field name: params.a. Only metrics are supported."),
        (named("foo"), "Invalid order by field name: foo"),
        (
            LoggedOrder { dataset_digest: Some("x"), ..named("metrics.a") },
            "`dataset_digest` can only be specified if `dataset_name` is also specified.",
        ),
    ];
    for (clause, expect) in refused {
        assert_eq!(order(clause), Err(expect.to_owned()));
    }
}

/// Names in the order a search by `clause` answers; every name is also the run's id, all began at once.
fn sorted(clause: &str) -> String {
    let metric = [("big", 2.0), ("inf", f64::INFINITY), ("nan", f64::NAN), ("neg", -1.0)];
    let thing = |name: &'static str| Thing {
        metrics: metric.iter().filter(|(run, _)| *run == name).map(|(_, value)| ("m", *value)).collect(),
        texts: vec![(Entity::Attribute, "run_id", name)],
        times: [("start_time", 1)].into(),
    };
    let mut names = ["none", "nan", "neg", "inf", "also-none", "big"];
    let order = Order::parse(Subject::Runs, &[clause]).unwrap();
    names.sort_by(|a, b| order.compare(&thing(a), &thing(b)));
    names.join(" ")
}

#[test]
fn what_is_no_number_comes_behind_numbers_and_what_is_missing_last() {
    assert_eq!(sorted("metrics.m ASC"), "neg big inf nan also-none none");
    assert_eq!(sorted("metrics.m DESC"), "inf big neg nan also-none none");
    assert_eq!(sorted("run_id DESC"), "none neg nan inf big also-none");
}
