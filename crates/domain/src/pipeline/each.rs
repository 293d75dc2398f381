//! Loops over items that a step makes: one turn is planned when the pipeline is accepted, and written out for every item
//! when they are known.
//!
//! A plan holds names, paths and addresses of its job. In that of the turn a mark stands for the item in all of them, and
//! another for each value that an item may give, so that writing it out is putting texts in their place.
//! Invariants: a word that becomes part of a path is a plain name; a value is put in as it is and not looked at again.

use super::{Condition, Graph, Settings, Source, Step};
use crate::PlannedInput;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};

/// The most steps one loop may become.
const MOST_STEPS: usize = 30_000;

/// The input of a loop's step that the items come from.
pub const ITEMS: &str = "items";

/// What a loop over items runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Each {
    /// Stands for the item, wherever its word is to be.
    pub mark: String,
    /// One turn. Its steps know each other by their place in it.
    pub turn: Vec<Step>,
    /// How many steps may be under way at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<usize>,
    /// Values that items may give.
    pub values: BTreeMap<String, Fallback>,
    /// Inputs of the loop's step that are inputs of a step of every turn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fed: BTreeMap<String, (usize, String)>,
}

/// What a value is where an item does not give it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    Text(String),
    /// The input is left out.
    Absent,
    /// Every item must give it.
    Missing,
}

/// One item: the word for it and what it gives.
pub type Item = (String, Map<String, Value>);

/// The items of a list of maps or a map of maps; nothing where it is neither, or empty.
pub fn items(value: &Value) -> Option<Vec<Item>> {
    let all: Vec<(String, &Value)> = match value {
        Value::Array(many) => many.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect(),
        Value::Object(many) => many.iter().map(|(name, item)| (name.clone(), item)).collect(),
        _ => Vec::new(),
    };
    let all: Option<Vec<Item>> = all.into_iter().map(|(word, item)| Some((word, item.as_object()?.clone()))).collect();
    all.filter(|all| !all.is_empty())
}

/// The items that a file lists: as JSON, or one map of JSON a line.
pub fn items_in(text: &str) -> Option<Vec<Item>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).map(serde_json::from_str);
    match serde_json::from_str(text) {
        Ok(whole @ Value::Array(_)) => items(&whole),
        Ok(Value::Object(none)) if none.is_empty() => None,
        // A file of one line holds one item, unless what it holds are maps themselves.
        Ok(whole) => items(&whole).or_else(|| items(&Value::Array(vec![whole]))),
        Err(_) => items(&Value::Array(lines.collect::<Result<_, _>>().ok()?)),
    }
}

impl Each {
    /// A turn made of the steps from `first` on, which are not in the graph any more; what they take from those
    /// before becomes the business of `step`, the loop's own.
    pub fn of(mark: String, first: usize, turn: Vec<Step>, step: &mut Step) -> Each {
        let mut each = Each { mark, turn, ..Each::default() };
        for (at, inner) in each.turn.iter_mut().enumerate() {
            let bound = std::mem::take(&mut inner.bound).into_iter();
            let (outer, own): (BTreeMap<_, _>, _) = bound.partition(|(_, made)| is_before(made, first));
            inner.bound = own;
            for (input, source) in outer {
                let key = format!("{at}.{input}");
                step.bound.insert(key.clone(), source);
                each.fed.insert(key, (at, input));
            }
            step.after.extend(inner.after.iter().filter(|before| **before < first));
            inner.after.retain(|before| *before >= first);
            // What never holds without anybody saying so is written inside of the turn.
            let said = |when: &Condition| when.source().is_none_or(|source| !is_before(source, first));
            let (own, outer): (Vec<_>, Vec<_>) = std::mem::take(&mut inner.when).into_iter().partition(said);
            inner.when = own;
            step.when.extend(outer);
            shift(inner, |at| at - first);
        }
        let mut seen = Vec::new();
        step.when.retain(|when| {
            !seen.contains(when) && {
                seen.push(when.clone());
                true
            }
        });
        step.after.sort_unstable();
        step.after.dedup();
        each
    }

    /// The mark of a value that an item may give.
    pub fn mark_of(mark: &str, name: &str) -> String {
        format!("{}{name}}}}}", opening(mark))
    }

    /// All turns, or what is wrong with the items.
    pub fn written_out(&self, items: Vec<Item>, settings: Settings) -> Result<Graph, String> {
        if items.len().saturating_mul(self.turn.len()) > MOST_STEPS {
            return Err(format!("{} items make more than {MOST_STEPS} steps", items.len()));
        }
        let turn = serde_json::to_value(&self.turn).map_err(|error| error.to_string())?;
        let mut graph = Graph { settings, groups: self.at_once.into_iter().collect(), ..Graph::default() };
        let mut words = HashSet::new();
        for (at, (word, item)) in items.iter().enumerate() {
            let word = if is_plain(word) { word.clone() } else { at.to_string() };
            // Names of jobs and folders may differ by more than the case of their letters only.
            let word = if words.insert(word.to_ascii_lowercase()) { word } else { format!("{word}-{at}") };
            let values = self.values_of(at, item)?;
            let filled = self.filled(&turn, &word, &values);
            let mut steps: Vec<Step> = serde_json::from_value(filled).map_err(|error| error.to_string())?;
            let first = graph.steps.len();
            for step in &mut steps {
                leave_out(step, &word, &values);
                shift(step, |at| at + first);
                step.group = self.at_once.map(|_| 0);
            }
            graph.steps.extend(steps);
        }
        Ok(graph)
    }

    /// What each value is for an item; nothing where it has none.
    fn values_of(&self, at: usize, item: &Map<String, Value>) -> Result<BTreeMap<&str, Option<String>>, String> {
        let value = |(name, default): (&'_ String, &Fallback)| match (item.get(name), default) {
            (Some(Value::String(text)), _) => Ok(Some(text.clone())),
            (Some(value @ (Value::Number(_) | Value::Bool(_))), _) => Ok(Some(value.to_string())),
            (Some(_), _) => Err(format!("item {at} gives `{name}` something that is no text, number or truth value")),
            (None, Fallback::Text(text)) => Ok(Some(text.clone())),
            (None, Fallback::Absent) => Ok(None),
            (None, Fallback::Missing) => Err(format!("item {at} gives no value for `{name}`, which the step needs")),
        };
        self.values.iter().map(|one| Ok((one.0.as_str(), value(one)?))).collect()
    }

    fn filled(&self, value: &Value, word: &str, values: &BTreeMap<&str, Option<String>>) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text.replace(&self.mark, word), word, values)),
            Value::Array(many) => many.iter().map(|one| self.filled(one, word, values)).collect(),
            Value::Object(many) => {
                many.iter().map(|(key, one)| (key.clone(), self.filled(one, word, values))).collect()
            }
            other => other.clone(),
        }
    }

    /// A text with values in the place of their marks.
    fn text(&self, text: &str, word: &str, values: &BTreeMap<&str, Option<String>>) -> String {
        // The mark in the opening has become the word by now.
        let opening = opening(word);
        let mut whole = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(&opening) {
            let Some((name, then)) = after.split_once("}}") else { break };
            whole.push_str(before);
            match values.get(name) {
                Some(Some(value)) => whole.push_str(value),
                Some(None) => whole.push_str(&Each::mark_of(word, name)),
                None => {}
            }
            rest = then;
        }
        whole + rest
    }
}

/// Takes away inputs that are nothing but a value nobody gave.
fn leave_out(step: &mut Step, word: &str, values: &BTreeMap<&str, Option<String>>) {
    let absent = values.iter().filter(|(_, value)| value.is_none());
    let marks: Vec<String> = absent.map(|(name, _)| Each::mark_of(word, name)).collect();
    let left = |value: &str| marks.iter().any(|mark| mark == value);
    let job = step.search.as_mut().map_or(&mut step.job, |search| &mut search.trial);
    job.plan.inputs.retain(|_, input| !matches!(input, PlannedInput::Literal { value } if left(value)));
    if let Some(inputs) = job.body.get_mut("inputs").and_then(Value::as_object_mut) {
        inputs.retain(|_, input| !input["value"].as_str().is_some_and(left));
    }
}

fn opening(mark: &str) -> String {
    format!("${{{{each.{mark}.")
}

/// Whether a word can be part of a path and of a job's name.
fn is_plain(word: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    !word.is_empty() && word.len() <= 40 && word.bytes().all(plain)
}

fn is_before(source: &Source, first: usize) -> bool {
    source.steps.iter().all(|at| *at < first)
}

/// Moves everything a step says of other steps.
fn shift(step: &mut Step, to: impl Fn(usize) -> usize) {
    let said = step.when.iter_mut().filter_map(|when| match when {
        Condition::Never => None,
        Condition::Said { source, .. } => Some(source),
    });
    let sources = step.bound.values_mut().chain(said).flat_map(|source| &mut source.steps);
    sources.chain(&mut step.after).for_each(|at| *at = to(*at));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::StepJob;
    use serde_json::json;

    const MARK: &str = "each-1";

    fn step(name: &str, bound: &[(&str, usize)]) -> Step {
        let source = |at: usize| Source { steps: vec![at], output: "out".into(), optional: false };
        let mut job = StepJob { body: json!({"displayName": format!("{name}.{MARK}")}), ..StepJob::default() };
        for input in ["n", "x"] {
            let value = Each::mark_of(MARK, input);
            job.body["inputs"][input] = json!({"value": value});
            job.plan.inputs.insert(input.into(), PlannedInput::Literal { value });
        }
        let bound = bound.iter().map(|(input, at)| ((*input).to_owned(), source(*at))).collect();
        Step { name: format!("{name}.{MARK}"), bound, job, ..Step::default() }
    }

    fn each() -> (Each, Step) {
        let mut own = Step::default();
        // Two steps stand before the loop: the first makes something that every turn takes.
        let turn = vec![step("a", &[("data", 0)]), step("b", &[("data", 2)])];
        let values = [("n".to_owned(), Fallback::Missing), ("x".to_owned(), Fallback::Absent)].into();
        (Each { values, at_once: Some(3), ..Each::of(MARK.into(), 2, turn, &mut own) }, own)
    }

    #[test]
    fn what_a_turn_takes_from_outside_is_the_business_of_the_loop() {
        let (each, own) = each();
        assert_eq!(own.bound.keys().collect::<Vec<_>>(), ["0.data"]);
        assert_eq!(each.fed["0.data"], (0, "data".to_owned()));
        assert!(each.turn[0].bound.is_empty());
        assert_eq!(each.turn[1].bound["data"].steps, [0], "it counts from the beginning of the turn");
    }

    #[test]
    fn a_turn_is_written_out_for_every_item() {
        let (each, _) = each();
        let tricky = Each::mark_of(MARK, "x");
        let items = items(&json!({"one": {"n": 1, "x": "y"}, "../two": {"n": tricky}})).unwrap();
        let graph = each.written_out(items, Settings::default()).unwrap();
        let names: Vec<&str> = graph.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["a.one", "b.one", "a.1", "b.1"], "a word that leads elsewhere becomes a number");
        assert_eq!(graph.steps[3].bound["data"].steps, [2]);
        assert_eq!((graph.groups[0], graph.steps[3].group), (3, Some(0)));
        let value = |at: usize, input: &str| match graph.steps[at].job.plan.inputs.get(input) {
            Some(PlannedInput::Literal { value }) => Some(value.clone()),
            _ => None,
        };
        assert_eq!((value(0, "n"), value(0, "x")), (Some("1".into()), Some("y".into())));
        assert_eq!(value(2, "n"), Some(tricky), "a value is not looked at again");
        assert_eq!(value(2, "x"), None, "nobody gave it");
        assert!(graph.steps[2].job.body["inputs"].get("x").is_none());
    }

    #[test]
    fn items_that_cannot_be_used_are_told() {
        let (each, _) = each();
        for (text, says) in [
            ("[{}]", "no value for `n`"),
            (r#"[{"n": [1]}]"#, "no text"),
            (&format!("[{}]", vec![r#"{"n": 1}"#; 15_001].join(",")), "more than 30000"),
        ] {
            let wrong = each.written_out(items_in(text).unwrap(), Settings::default()).unwrap_err();
            assert!(wrong.contains(says), "{wrong}");
        }
        assert_eq!(items_in("{\"n\": 1}\n{\"n\": 2}\n").unwrap().len(), 2, "one a line");
        assert_eq!(items_in("{\"n\": 1}").unwrap().len(), 1);
        for text in ["", "[]", "[1]", "nothing", "{}"] {
            assert_eq!(items_in(text), None, "{text}");
        }
    }
}
