//! The kinds of jobs there are, and what is said of those that cannot run yet.
//!
//! A body of a kind that cannot run is still looked at: whoever sends one with a mistake hears of the mistake first.

use domain::spec::Mistake;
use serde_json::Value;

/// The kind that a node runs.
const COMMAND: &str = "Command";
/// Kinds that consist of other jobs.
const PARENTS: &[&str] = &["Pipeline", "Sweep"];

/// A kind of job that is known and cannot run here yet.
struct Waiting {
    kind: &'static str,
    /// What its body must hold, as objects or texts.
    needs: &'static [(&'static str, Form)],
    message: &'static str,
    fix: &'static str,
}

#[derive(Clone, Copy)]
enum Form {
    Object,
    Text,
}

const WAITING: &[Waiting] = &[
    Waiting {
        kind: "Spark",
        needs: &[("entry", Form::Object), ("codeId", Form::Text)],
        message: "`Spark` jobs cannot run yet: this server starts no Spark cluster",
        fix: "submit a `Command` job that runs `spark-submit --master local[*]` in an environment with pyspark",
    },
    Waiting {
        kind: "AutoML",
        needs: &[("taskDetails", Form::Object)],
        message: "`AutoML` jobs cannot run: this server does not choose models by itself",
        fix: "submit a `Command` job that trains the model",
    },
    Waiting {
        kind: "Labeling",
        needs: &[],
        message: "`Labeling` jobs cannot run: this server has no labelling tool",
        fix: "label the data elsewhere and register the result as a data asset",
    },
    Waiting {
        kind: "FineTuning",
        needs: &[("fineTuningDetails", Form::Object)],
        message: "`FineTuning` jobs cannot run: this server has no catalogue of models to tune",
        fix: "submit a `Command` job that tunes the model",
    },
];

/// What is wrong with the kind of a body: nothing when it is one that runs.
pub(super) fn mistakes(body: &Value) -> Vec<Mistake> {
    let kind = match body.get("jobType") {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::String(kind)) => kind,
        Some(_) => return vec![Mistake::new("jobType", "must be text", known())],
    };
    if kind.eq_ignore_ascii_case(COMMAND) {
        return Vec::new();
    }
    if let Some(kind) = PARENTS.iter().find(|parent| parent.eq_ignore_ascii_case(kind)) {
        return vec![Mistake::new("jobType", format!("a `{kind}` job is not run by a node"), "submit it by itself")];
    }
    let Some(waiting) = WAITING.iter().find(|waiting| waiting.kind.eq_ignore_ascii_case(kind)) else {
        let shown: String = kind.chars().take(60).collect();
        return vec![Mistake::new("jobType", format!("`{shown}` is not a kind of job"), known())];
    };
    let mut bad: Vec<Mistake> = waiting.needs.iter().filter_map(|(key, form)| missing(body, key, *form)).collect();
    if bad.is_empty() {
        bad.push(Mistake::new("jobType", waiting.message, waiting.fix));
    }
    bad
}

/// The kind of a body if jobs of it consist of other jobs.
pub fn parent_kind(body: &Value) -> Option<&'static str> {
    let kind = body.get("jobType").and_then(Value::as_str)?;
    PARENTS.iter().copied().find(|parent| parent.eq_ignore_ascii_case(kind))
}

/// Whether a body is of a kind that runs.
pub(super) fn runs(body: &Value) -> bool {
    body.get("jobType").and_then(Value::as_str).is_none_or(|kind| kind.eq_ignore_ascii_case(COMMAND))
}

fn missing(body: &Value, key: &str, form: Form) -> Option<Mistake> {
    let (there, word) = match form {
        Form::Object => (body.get(key).is_some_and(Value::is_object), "an object"),
        Form::Text => (body.get(key).is_some_and(Value::is_string), "text"),
    };
    (!there).then(|| Mistake::new(key, format!("must be {word}"), "send the body the client made"))
}

fn known() -> String {
    let waiting: Vec<&str> = WAITING.iter().map(|waiting| waiting.kind).collect();
    format!("one of {COMMAND}, {}, {}", PARENTS.join(", "), waiting.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(body: Value) -> String {
        mistakes(&body).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_kind_that_cannot_run_says_so_in_its_own_words() {
        let whole = [
            ("Spark", json!({"entry": {}, "codeId": "x"}), "Spark cluster"),
            ("AutoML", json!({"taskDetails": {}}), "choose models"),
        ];
        for (kind, mut body, words) in whole {
            body["jobType"] = json!(kind);
            let said = told(body);
            assert!(said.contains(&format!("`{kind}` jobs cannot run")) && said.contains(words), "{said}");
        }
    }

    #[test]
    fn a_mistake_in_the_body_is_told_before_that_it_could_not_run() {
        let said = told(json!({"jobType": "Spark", "entry": []}));
        assert!(said.contains("entry") && said.contains("codeId") && !said.contains("cannot run"), "{said}");
    }

    #[test]
    fn an_unknown_kind_hears_which_there_are() {
        let said = told(json!({"jobType": "Quantum"}));
        for word in ["`Quantum`", "Command", "Sweep", "Pipeline", "Spark", "AutoML"] {
            assert!(said.contains(word), "no {word} in {said}");
        }
        assert!(told(json!({"jobType": 5})).contains("must be text"));
        assert_eq!(told(json!({"jobType": "command"})) + &told(json!({})), "");
    }
}
