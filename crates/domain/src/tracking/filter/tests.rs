//! Filters read, refused and applied: what the protocol's clients see.

use super::*;
use std::collections::BTreeMap;

/// A filter as one line a clause, or the refusal.
fn read(subject: Subject, text: &str) -> String {
    match Filter::parse(subject, text) {
        Err(bad) => format!("! {}", bad.message),
        Ok(filter) => filter.clauses.iter().map(shown).collect::<Vec<_>>().join(" & "),
    }
}

fn shown(clause: &Clause) -> String {
    let value = match &clause.value {
        FilterValue::Text(text) => format!(" <{text}>"),
        FilterValue::Integer(whole) => format!(" {whole}"),
        FilterValue::Float(float) => format!(" {float:?}"),
        FilterValue::List(list) => format!(" [{}]", list.join("|")),
        FilterValue::Nothing => String::new(),
    };
    format!("{}:{} {}{value}", clause.entity.as_str(), clause.key, clause.comparator.as_str())
}

fn check(subject: Subject, cases: &[(&str, &str)]) {
    for (text, expect) in cases {
        assert_eq!(read(subject, text), *expect, "{text}");
    }
}

/// Only the beginning of the refusal; the known keys that follow are the code's own list.
fn refused(subject: Subject, cases: &[(&str, &str)]) {
    for (text, expect) in cases {
        let said = read(subject, text);
        assert!(said.starts_with(&format!("! {expect}")), "{text}: {said}");
    }
}

#[test]
fn runs_are_searched_by_everything_they_have() {
    check(
        Subject::Runs,
        &[
            ("", ""),
            ("metrics.acc > 1", "metric:acc > 1.0"),
            ("metric.acc>=-2.5e-3", "metric:acc >= -0.0025"),
            ("metrics.a = .5 AND metrics.b = 5.", "metric:a = 0.5 & metric:b = 5.0"),
            ("params.lr = '0.1'", "parameter:lr = <0.1>"),
            ("parameters.lr != \"0.1\"", "parameter:lr != <0.1>"),
            ("param.a.b.c ilike '%x%'", "parameter:a.b.c ILIKE <%x%>"),
            ("tags.`a b` = 'x'", "tag:a b = <x>"),
            ("tags.\"mlflow.source.name\" = 'x'", "tag:mlflow.source.name = <x>"),
            ("tags.'a/b' = 'x'", "tag:a/b = <x>"),
            ("`tags`.`a-b` LIKE 'x_'", "tag:a-b LIKE <x_>"),
            (
                "tags.order = 'x' AND tags.and = 'y' AND tags.like = 'z'",
                "tag:order = <x> & tag:and = <y> & tag:like = <z>",
            ),
            ("tags.é = 'ü'", "tag:é = <ü>"),
            ("tags.1a = ''", "tag:1a = <>"),
            ("status = 'FINISHED'", "attribute:status = <FINISHED>"),
            ("attributes.status='A' and attr.user_id != 'b'", "attribute:status = <A> & attribute:user_id != <b>"),
            ("run.artifact_uri LIKE 's3://%'", "attribute:artifact_uri LIKE <s3://%>"),
            ("\"status\" = 'x'", "attribute:status = <x>"),
            ("created > 5", "attribute:start_time > 5"),
            ("attribute.end_time <= 5.5", "attribute:end_time <= 5.5"),
            ("start_time > 99999999999999999999", "attribute:start_time > 1e20"),
            ("attributes.`Run Name` = 'x'", "attribute:run_name = <x>"),
            ("run_id IN ('a', \"b\",)", "attribute:run_id IN [a|b]"),
            ("attribute.run_id not  in('a')", "attribute:run_id NOT IN [a]"),
            ("datasets.name = 'd' AND dataset.context IN ('train')", "dataset:name = <d> & dataset:context IN [train]"),
            ("params.a IS NULL and tags.b is not null", "parameter:a IS NULL & tag:b IS NOT NULL"),
            ("AND metrics.a > 1 metrics.b < 2 AND", "metric:a > 1.0 & metric:b < 2.0"),
            ("params.a = 'it''s' AND params.b = 'it\\'s'", "parameter:a = <it''s> & parameter:b = <it\\'s>"),
            ("params.a = '`x`'", "parameter:a = <`x`>"),
        ],
    );
}

#[test]
fn a_run_filter_that_says_nothing_sensible_is_told_why() {
    check(
        Subject::Runs,
        &[
            (" ", "! Invalid filter ' '. Could not be parsed."),
            ("metrics.acc", "! Invalid clause(s) in filter string: 'metrics.acc'"),
            ("metrics.a > 1 OR metrics.b > 2", "! Invalid clause(s) in filter string: 'OR'"),
            ("metrics.a >", "! Invalid clause(s) in filter string: 'metrics.a', '>'"),
            ("(params.a = 'x')", "! Invalid clause(s) in filter string: '(params.a = 'x')'"),
            ("params.a = 'x' foo", "! Invalid clause(s) in filter string: 'params.a = 'x' foo'"),
            (
                "params.a = 'x', params.b = 'y'",
                "! Invalid clause(s) in filter string: 'params.a = 'x', params.b = 'y''",
            ),
            ("params.a = 'open", "! Invalid clause(s) in filter string: 'params.a', '=', ''', 'open'"),
            ("metrics.a between 1 and 2", "! Invalid clause(s) in filter string: 'metrics.a', 'between', '1', '2'"),
            ("not params.a = 'x'", "! Invalid clause(s) in filter string: 'not'"),
            ("params.a = 'x' -- c", "! Invalid clause(s) in filter string: '-- c'"),
            ("metrics.a = 1;", "! Invalid clause(s) in filter string: ';'"),
            ("run_id IN 'a'", "! Invalid clause(s) in filter string: 'run_id', 'IN', ''a''"),
            ("run_id IN ('a'", "! Invalid clause(s) in filter string: 'run_id', 'IN', '(', ''a''"),
            ("1 = metrics.a", "! Invalid comparison clause. Expected 'Identifier' found '1'"),
            ("metrics.a + 1 > 2", "! Invalid comparison clause. Expected 'Identifier' found 'metrics.a + 1'"),
            ("metrics.a > 1 > 2", "! Invalid comparison clause. Expected 'Identifier' found 'metrics.a > 1'"),
            ("count(params.a) = 1", "! Invalid comparison clause. Expected 'Identifier' found 'count(params.a)'"),
            ("tags.a-b = 'x'", "! Invalid comparison clause. Expected 'Identifier' found 'tags.a-b'"),
            (
                "foo.bar = 1",
                "! Invalid entity type 'foo'. Valid values are ['metric', 'parameter', 'tag', 'attribute', 'dataset']",
            ),
            ("metrics.acc > 'x'", "! Expected numeric value type for metric. Found 'x'"),
            ("metrics.a = nan", "! Expected numeric value type for metric. Found nan"),
            ("metrics.a = 1e+5", "! Expected numeric value type for metric. Found 1e+5"),
            ("metrics.a IN (1)", "! Expected numeric value type for metric. Found (1)"),
            ("start_time > '5'", "! Expected numeric value type for numeric attribute: start_time. Found '5'"),
            ("params.a = 1", "! Expected a quoted string value for parameter (e.g. 'my-value'). Got value 1"),
            ("tags.a IN ('x')", "! Expected a quoted string value for tag (e.g. 'my-value'). Got value ('x')"),
            ("status = 1", "! Expected a quoted string value for attributes. Got value 1"),
            (
                "params.a = foo",
                "! Parameter value is either not quoted or unidentified quote types used for string value foo. Use either \
                 single or double quotes.",
            ),
            (
                "run_name IN ('a')",
                "! Only ['run_id'] attributes support comparison with a list of quoted string values.",
            ),
            ("run_id = ('a')", "! Invalid comparator '=' for a list of values. Use 'IN' or 'NOT IN'."),
            (
                "metrics.a IS NULL",
                "! IS NULL / IS NOT NULL is only supported for tags and params, not for 'metric' 'a'",
            ),
            (
                "params.a > 'x'",
                "! Invalid comparator '>' not one of '{'!=', '=', 'LIKE', 'ILIKE', 'IS NULL', 'IS NOT NULL'}'",
            ),
        ],
    );
    refused(
        Subject::Runs,
        &[
            ("attributes.foo = 'x'", "Invalid attribute key 'foo' specified. Valid keys are '{'artifact_uri'"),
            (
                "dataset.foo = 'x'",
                "Invalid dataset key 'foo' specified. Valid keys are '{'context', 'digest', 'name'}'",
            ),
            ("metrics.a == 1", "Invalid comparator '==' not one of"),
            ("metrics.a LIKE 1", "Invalid comparator 'LIKE' not one of"),
            ("params.a NOT LIKE 'x'", "Invalid comparator 'NOT LIKE' not one of"),
            ("status > 'x'", "Invalid comparator '>' not one of"),
            ("dataset.name >= 'x'", "Invalid comparator '>=' not one of"),
        ],
    );
}

#[test]
fn names_and_values_are_judged_before_comparators() {
    refused(Subject::Runs, &[("params.a > 'x' AND foo = 'y'", "Invalid attribute key 'foo'")]);
}

#[test]
fn injected_statements_stay_values_or_are_refused() {
    check(
        Subject::Runs,
        &[
            ("tags.a = '; drop table runs; --'", "tag:a = <; drop table runs; -->"),
            ("tags.`a' OR 1=1 --` = 'x'", "tag:a' OR 1=1 -- = <x>"),
            (
                "tags.a = 'x'; drop table runs",
                "! Search filter contained multiple expression \"tags.a = 'x'; drop table runs\". Provide AND-ed \
                 expression list.",
            ),
        ],
    );
    for text in [
        "tags.a = 'x' OR 1 = 1",
        "tags.a = 'x' UNION SELECT 1",
        "metrics.a > 1)",
        "tags.a = 'x' /* */",
        "tags.a = 'x' AND 1 = 1",
    ] {
        assert!(Filter::parse(Subject::Runs, text).is_err(), "{text}");
    }
}

#[test]
fn experiments_are_searched_by_name_times_id_and_tags() {
    check(
        Subject::Experiments,
        &[
            ("name = 'a' AND attribute.name ILIKE '%b'", "attribute:name = <a> & attribute:name ILIKE <%b>"),
            (
                "creation_time > 1 AND last_update_time <= 2",
                "attribute:creation_time > 1 & attribute:last_update_time <= 2",
            ),
            ("experiment_id IN ('1', '2')", "attribute:experiment_id IN [1|2]"),
            ("tags.a = 'x' AND tag.b IS NOT NULL", "tag:a = <x> & tag:b IS NOT NULL"),
            ("name = 'a' OR name = 'b'", "! Invalid clause(s) in filter string: OR"),
            ("metrics.a > 1", "! Invalid entity type 'metrics'. Valid entity types are ('attribute', 'tag', 'tags')"),
            ("experiment_id LIKE '1'", "! Invalid comparator for experiment_id: LIKE"),
            ("name IS NULL", "! IS NULL / IS NOT NULL is only supported for tags, not for attribute 'name'"),
            (
                "name IN ('a')",
                "! Only ['experiment_id'] attributes support comparison with a list of quoted string values.",
            ),
            ("creation_time > 1.5", "! Invalid value for numeric attribute 'creation_time': '1.5'"),
            ("tags.a > 'x'", "! Invalid comparator for tag: >"),
        ],
    );
    refused(
        Subject::Experiments,
        &[("foo = 'x'", "Invalid attribute key 'foo'"), ("name > 'x'", "Invalid comparator '>'")],
    );
}

#[test]
fn models_are_searched_by_name_and_tags() {
    check(
        Subject::RegisteredModels,
        &[
            ("name LIKE 'a%' and tags.k != 'v'", "attribute:name LIKE <a%> & tag:k != <v>"),
            ("name IN ('a','b')", "attribute:name IN [a|b]"),
            ("attribute.name = 'a'", "attribute:name = <a>"),
            (
                "name = 1",
                "! Expected a quoted string value or a list of quoted string values for attributes. Got value 1",
            ),
            ("name > 'a'", "! Invalid comparator for attribute: >"),
            ("tags.k IS NULL", "! Invalid comparison: tags.k IS NULL. Expected a comparison with 3 tokens."),
            ("run_id = 'x'", "! Invalid attribute key 'run_id' specified. Valid keys are '{'name'}'"),
        ],
    );
}

#[test]
fn versions_are_searched_by_name_run_source_number_and_tags() {
    check(
        Subject::ModelVersions,
        &[
            ("name = 'a' AND version_number >= 2", "attribute:name = <a> & attribute:version_number >= 2"),
            ("version_number = '3'", "attribute:version_number = 3"),
            (
                "run_id IN ('r','s') AND source_path LIKE 's3%'",
                "attribute:run_id IN [r|s] & attribute:source_path LIKE <s3%>",
            ),
            ("tags.`a b` ILIKE 'x'", "tag:a b ILIKE <x>"),
            ("version_number = 'x'", "! Invalid value for numeric attribute 'version_number': 'x'"),
            ("version_number = 1.5", "! Invalid value for numeric attribute 'version_number': '1.5'"),
            ("version_number LIKE '1'", "! Invalid comparator for attribute version_number: LIKE"),
            (
                "version_number IN ('1')",
                "! Only ['name', 'run_id'] attributes support comparison with a list of quoted string values.",
            ),
            ("name = 1", "! Only the '{'version_number'}' attributes support comparison with numeric values."),
            ("source_path > 'a'", "! Invalid comparator for attribute: >"),
        ],
    );
}

#[test]
fn logged_models_take_values_as_they_are_written() {
    check(
        Subject::LoggedModels,
        &[
            ("metrics.loss > 0.1 AND params.lr = 0.01", "metric:loss > 0.1 & parameter:lr = <0.01>"),
            ("metrics.a < 1e+5 AND tags.a-b = 'x'", "metric:a < 100000.0 & tag:a-b = <x>"),
            (
                "name like '%x' AND attributes.model_type in ('a', 'b')",
                "attribute:name LIKE <%x> & attribute:model_type IN [a|b]",
            ),
            ("params.a NOT IN ('x')", "parameter:a NOT IN [x]"),
            (
                "creation_time >= 5 AND last_updated_timestamp_ms < 6",
                "attribute:creation_timestamp >= 5 & attribute:last_updated_timestamp < 6",
            ),
            (
                "params.lr > '1'",
                "! Invalid comparison operator for params.lr: '>'. Expected one of ('=', '!=', 'LIKE', 'ILIKE', 'IN', 'NOT IN').",
            ),
            (
                "metrics.a LIKE 'x'",
                "! Invalid comparison operator for metrics.a: 'LIKE'. Expected one of ('<', '<=', '>', '>=', '=', '!=').",
            ),
            (
                "param.a = 'x'",
                "! Invalid entity type: 'param'. Expected one of ['attributes', 'metrics', 'params', 'tags'].",
            ),
            ("a = 1; b = 2", "! Invalid filter string: 'a = 1; b = 2'. Expected a single SQL expression."),
            (
                "params.a = 'x' OR params.b = 'y'",
                "! Invalid filter string: \"params.a = 'x' OR params.b = 'y'\". Expected a list of comparisons separated by \
                 'AND' (e.g. 'metrics.loss > 0.1 AND params.lr = 0.01').",
            ),
            ("metrics.a > 'x'", "! Expected numeric value type for metric. Found 'x'"),
        ],
    );
}

#[test]
fn asking_for_prompts_and_for_no_prompts_are_told_apart() {
    let cases = [
        ("name = 'a'", false, 1),
        ("tags.`mlflow.prompt.is_prompt` = 'true'", true, 1),
        ("tags.`mlflow.prompt.is_prompt` != 'False'", true, 1),
        ("tags.`mlflow.prompt.is_prompt` = 'false' AND name = 'a'", false, 1),
        ("tags.`mlflow.prompt.is_prompt` != 'true'", false, 0),
        ("tags.`mlflow.prompt.is_prompt` LIKE 'true'", false, 0),
    ];
    for (text, wanted, left) in cases {
        let (rest, prompts) = Filter::parse(Subject::RegisteredModels, text).unwrap().split_prompts();
        assert_eq!((prompts, rest.clauses.len()), (wanted, left), "{text}");
    }
}

/// A run in memory: metrics by name, everything else as text.
#[derive(Default)]
pub(crate) struct Thing {
    pub(crate) metrics: BTreeMap<&'static str, f64>,
    pub(crate) texts: Vec<(Entity, &'static str, &'static str)>,
    pub(crate) times: BTreeMap<&'static str, i64>,
}

impl Fields for Thing {
    fn any(&self, entity: Entity, key: &str, test: &mut dyn FnMut(Field<'_>) -> bool) -> bool {
        let texts = self.texts.iter().filter(|(kind, name, _)| *kind == entity && *name == key);
        let time = self.times.get(key).filter(|_| entity == Entity::Attribute);
        let metric = self.metrics.get(key).filter(|_| entity == Entity::Metric);
        texts.map(|(.., text)| Field::Text(text)).any(&mut *test)
            || time.is_some_and(|time| test(Field::Integer(*time)))
            || metric.is_some_and(|metric| test(Field::Float(*metric)))
    }
}

#[test]
fn a_thing_matches_when_every_clause_holds() {
    let run = Thing {
        metrics: [("acc", 0.9), ("nan", f64::NAN)].into(),
        texts: vec![
            (Entity::Param, "lr", "0.1"),
            (Entity::Tag, "team", "Vision"),
            (Entity::Attribute, "run_id", "r1"),
            (Entity::Dataset, "name", "train"),
            (Entity::Dataset, "name", "test"),
        ],
        times: [("start_time", 100)].into(),
    };
    let cases = [
        ("", true),
        ("metrics.acc > 0.8 AND params.lr = '0.1'", true),
        ("metrics.acc > 0.8 AND params.lr = '0.2'", false),
        ("metrics.acc >= 0.9 AND metrics.acc <= 0.9", true),
        ("metrics.gone != 1", false),
        ("metrics.nan > 0", false),
        ("metrics.nan <= 0", false),
        ("metrics.nan = 0", false),
        ("metrics.nan != 0", true),
        ("params.gone != 'x'", false),
        ("params.gone IS NULL AND params.lr IS NOT NULL", true),
        ("tags.team LIKE 'vis%'", false),
        ("tags.team ILIKE 'vis%'", true),
        ("run_id IN ('r0','r1')", true),
        ("run_id NOT IN ('r0','r1')", false),
        ("start_time < 100.5 AND start_time >= 100", true),
        ("end_time != 5", false),
        ("datasets.name = 'test'", true),
        ("datasets.name != 'test'", true),
        ("datasets.name LIKE 'v%'", false),
        ("datasets.name IN ('x', 'train')", true),
    ];
    for (text, expect) in cases {
        assert_eq!(Filter::parse(Subject::Runs, text).unwrap().matches(&run), expect, "{text}");
    }
}

#[test]
fn no_text_whatever_breaks_the_parser() {
    const PARTS: [&str; 24] = [
        "metrics", ".", "a", "`", "'", "\"", "(", ")", ",", ";", "=", "!=", " ", "LIKE", "IN", "NOT", "IS", "NULL",
        "1", "-", "e5", "é", "\\", "AND",
    ];
    let mut state = 7_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut draw = state;
        for _ in 0..(draw >> 60) + 1 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(PARTS[(draw >> 33) as usize % PARTS.len()]);
        }
        for subject in [Subject::Runs, Subject::LoggedModels, Subject::ModelVersions] {
            let _ = Filter::parse(subject, &text);
        }
    }
    let long = "tags.a = 'x' AND ".repeat(100_000);
    assert!(Filter::parse(Subject::Runs, &long).unwrap_err().message.len() < 1000);
    assert!(Filter::parse(Subject::Runs, &"(".repeat(1_000_000)).is_err());
}
