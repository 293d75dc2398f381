//! Control flow: branches become conditions on steps, loops are written out as far as they may go.

use super::{Known, Made, Scope, Tie, Turn, Weaver, feed::Feed, order};
use api::arm::{
    pipeline::read::{self, Binding, Given},
    scalar,
    tree::{entries, some, word},
};
use domain::pipeline::{Condition, Limited, Source};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use store::Error;

/// What to do about a kind of step that cannot run.
pub(super) const REFUSED: &str =
    "steps that can run: `command`, `parallel`, `sweep`, `pipeline`, `if_else`, `do_while`, `parallel_for`";
/// As often as a loop may go round.
const MOST_TURNS: u64 = 1000;

/// Which nodes stand in branches and loops.
#[derive(Default)]
pub(super) struct Flow {
    /// What a loop runs, and the loop.
    pub(super) bodies: HashMap<String, String>,
    /// What stands in a branch.
    branches: HashMap<String, Branch>,
    /// What stands in two places of which one would be forgotten, with those who name it.
    doubled: Vec<(String, String)>,
}

/// One side of an `if_else`.
#[derive(Debug, Clone, PartialEq)]
struct Branch {
    /// The node that splits there; it may stand in a branch itself.
    of: String,
    /// As it was sent.
    condition: Value,
    /// Which answer it waits for.
    is: bool,
}

pub(super) fn is_control(node: &Value) -> bool {
    matches!(word(node, "type"), Some("if_else" | "do_while" | "parallel_for"))
}

impl Flow {
    pub(super) fn of(nodes: &Map<String, Value>) -> Flow {
        let mut flow = Flow::default();
        for (name, node) in nodes {
            match word(node, "type") {
                _ if is_loop(node) => {
                    if let Some(body) = some(node, "body").and_then(step_of)
                        && let Some(other) = flow.bodies.insert(body.clone(), name.clone())
                    {
                        flow.doubled.push((body, format!("is run by two loops, `{other}` and `{name}`")));
                    }
                }
                Some("if_else") => {
                    for (key, is) in [("true_block", true), ("false_block", false)] {
                        for step in blocks(some(node, key)) {
                            let branch = Branch { of: name.clone(), condition: node["condition"].clone(), is };
                            flow.branch(step, branch);
                        }
                    }
                }
                _ => {}
            }
        }
        flow
    }

    fn branch(&mut self, step: String, branch: Branch) {
        let (of, is) = (branch.of.clone(), branch.is);
        let how = match self.branches.insert(step.clone(), branch) {
            None => return,
            Some(other) if other.of == of && other.is == is => return,
            Some(other) if other.of == of => format!("stands in both blocks of `{of}`"),
            Some(other) => format!("stands in blocks of `{}` and of `{of}`", other.of),
        };
        self.doubled.push((step, how));
    }

    /// The branches that a node stands in, from the inside out. What a loop runs stands where the loop does.
    fn around(&self, nodes: &Map<String, Value>, name: &str) -> Vec<&Branch> {
        let mut found: Vec<&Branch> = Vec::new();
        let (mut names, mut seen) = (vec![name.to_owned()], HashSet::new());
        while let Some(name) = names.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let body = nodes.get(&name).filter(|node| is_loop(node)).and_then(|node| step_of(some(node, "body")?));
            names.extend(body);
            if let Some(branch) = self.branches.get(&name) {
                found.push(branch);
                names.push(branch.of.clone());
            }
        }
        found
    }

    /// The nodes that one waits for, by name.
    pub(super) fn named_by(&self, nodes: &Map<String, Value>, name: &str) -> Vec<String> {
        let node = &nodes[name];
        let mut named = order::inputs_name(node);
        named.extend(self.around(nodes, name).into_iter().filter_map(|branch| order::named(&branch.condition)));
        match word(node, "type") {
            _ if is_loop(node) => {
                named.extend(some(node, "items").and_then(order::named));
                let body = some(node, "body").and_then(step_of);
                if let Some(body) = body.as_ref().and_then(|body| nodes.get(body)) {
                    named.extend(order::inputs_name(body));
                }
                named.retain(|one| Some(one) != body.as_ref());
            }
            Some("if_else") => named.extend(some(node, "condition").and_then(order::named)),
            _ => {}
        }
        named
    }
}

fn is_loop(node: &Value) -> bool {
    matches!(word(node, "type"), Some("do_while" | "parallel_for"))
}

/// `${{parent.jobs.x}}` or `x`.
fn step_of(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    match read::binding(text) {
        Some(Binding::Step(step)) => Some(step),
        None if !text.contains("${{") => Some(text.to_owned()),
        _ => None,
    }
}

fn blocks(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(many)) => many.iter().filter_map(step_of).collect(),
        Some(one) => step_of(one).into_iter().collect(),
        None => Vec::new(),
    }
}

impl Weaver<'_, '_> {
    pub(super) fn flow(&mut self, scope: &Scope<'_>) -> Flow {
        let flow = Flow::of(scope.nodes);
        for name in flow.bodies.keys().chain(flow.branches.keys()).filter(|name| !scope.nodes.contains_key(*name)) {
            let message = format!("there is no step `{name}`");
            self.lookup.mistake(format!("jobs.{}{name}", scope.path), message, "name one that there is");
        }
        for (name, how) in &flow.doubled {
            let key = format!("jobs.{}{name}", scope.path);
            self.lookup.mistake(key, format!("the step {how}"), "write a step of its own for each");
        }
        flow
    }

    /// How a node is tied to the branch it stands in, and to what is around its pipeline.
    pub(super) fn tie(&mut self, scope: &Scope<'_>, known: &Known, flow: &Flow, name: &str) -> Tie {
        let mut tie = scope.tie.clone();
        let key = format!("jobs.{}{name}", scope.path);
        for Branch { condition, is, .. } in flow.around(scope.nodes, name) {
            tie.when.extend(self.condition(scope, known, &key, condition, *is));
        }
        tie
    }

    /// A condition that was sent; nothing where it always holds.
    fn condition(&mut self, scope: &Scope<'_>, known: &Known, key: &str, sent: &Value, is: bool) -> Option<Condition> {
        let feed = match read::given(sent).map(|(given, _)| given) {
            Some(Given::Literal(text)) => Some(Feed::Literal(text)),
            Some(Given::Bound(binding)) => self.bound(scope, known, key, &binding),
            _ => None,
        };
        match feed {
            Some(Feed::Literal(text)) if text.eq_ignore_ascii_case("true") == is => None,
            Some(Feed::Literal(_)) => Some(Condition::Never),
            Some(Feed::Made(Made { source, .. }, _)) => Some(Condition::Said { source, is }),
            Some(Feed::Unknown) => None,
            _ => {
                let fix = "write true or false, or bind an output of type `boolean`";
                self.lookup.mistake(key, "the condition has no value", fix);
                None
            }
        }
    }

    pub(super) fn control(
        &mut self,
        scope: &Scope<'_>,
        known: &mut Known,
        flow: &Flow,
        name: &str,
    ) -> Result<(), Error> {
        let node = &scope.nodes[name];
        let key = format!("jobs.{}{name}", scope.path);
        if word(node, "type") == Some("if_else") {
            if blocks(some(node, "true_block")).is_empty() && blocks(some(node, "false_block")).is_empty() {
                self.lookup.mistake(key, "the branch leads nowhere", "give it `true_block` or `false_block`");
            }
            return Ok(());
        }
        let body = some(node, "body").and_then(step_of);
        let Some((body, inner)) = body.and_then(|body| Some((body.clone(), scope.nodes.get(&body)?))) else {
            self.lookup.mistake(format!("{key}.body"), "the loop runs nothing", "name a step: `${{parent.jobs.x}}`");
            return Ok(());
        };
        let tie = self.tie(scope, known, flow, name);
        let made = match word(node, "type") {
            Some("do_while") => self.do_while(scope, known, name, tie, (&body, inner))?,
            _ => self.parallel_for(scope, known, name, tie, (&body, inner))?,
        };
        self.promote_all(scope, known, inner, &format!("{}{body}", scope.path), &made);
        if word(node, "type") == Some("parallel_for") {
            self.promote_all(scope, known, node, &format!("{}{name}", scope.path), &made);
        }
        known.made.insert(name.to_owned(), made.clone());
        known.made.insert(body, made);
        Ok(())
    }

    /// Each turn after the first takes what the one before it made, and runs if that one said so.
    fn do_while(
        &mut self,
        scope: &Scope<'_>,
        known: &mut Known,
        name: &str,
        around: Tie,
        (body, inner): (&str, &Value),
    ) -> Result<BTreeMap<String, Made>, Error> {
        let (node, key) = (&scope.nodes[name], format!("jobs.{}{name}", scope.path));
        let turns = some(node, "limits").and_then(|limits| some(limits, "max_iteration_count")).and_then(scalar);
        let turns = turns.map_or(Some(MOST_TURNS), |text| text.parse().ok());
        let Some(turns) = turns.filter(|turns| (1..=MOST_TURNS).contains(turns)) else {
            let message = format!("`max_iteration_count` is a number from 1 to {MOST_TURNS}");
            self.lookup.mistake(format!("{key}.limits"), message, "such as `max_iteration_count: 10`");
            return Ok(BTreeMap::new());
        };
        let mapping = mapping(node);
        if let Some(twice) = twice(&mapping) {
            let message = format!("two outputs go to the input `{twice}` of the next turn");
            self.lookup.mistake(format!("{key}.mapping"), message, "map one output to each input");
            return Ok(BTreeMap::new());
        }
        let mut all: BTreeMap<String, Made> = BTreeMap::new();
        let mut last: BTreeMap<String, Made> = BTreeMap::new();
        let mut tie = around.clone();
        for turn in 0..turns {
            let is_last = turn + 1 == turns;
            let given = mapping
                .iter()
                .filter_map(|(output, input)| Some((input.clone(), Feed::Made(last.get(output)?.clone(), None))))
                .collect();
            let path = format!("{}{body}.{turn}", scope.path);
            let turn = Turn { path, given, looped: true, gathered: None, tie: tie.clone() };
            (last, _) = self.node(scope, known, inner, &turn)?;
            if self.stop || !self.lookup.bad.is_empty() {
                break;
            }
            for (output, made) in &last {
                all.entry(output.clone())
                    .and_modify(|whole| whole.source.steps.extend(&made.source.steps))
                    .or_insert_with(|| made.clone());
            }
            match self.again(&key, node, body, &last) {
                Some(Again::Never) | None => break,
                Some(Again::Always) => {}
                Some(Again::If(source)) if is_last => {
                    let name = format!("{}{name}", scope.path);
                    self.graph.limited.push(Limited { name, turns, source });
                }
                Some(Again::If(source)) => {
                    tie.when = around.when.clone();
                    tie.when.push(Condition::Said { source, is: true });
                }
            }
        }
        Ok(all)
    }

    /// Whether a loop goes round again; `None` after a mistake was noted.
    fn again(&mut self, key: &str, node: &Value, body: &str, last: &BTreeMap<String, Made>) -> Option<Again> {
        let output = match some(node, "condition").and_then(read::given).map(|(given, _)| given) {
            Some(Given::Bound(Binding::OutputOf { step, name })) if step == body => Some(name),
            Some(Given::Literal(text)) if text.eq_ignore_ascii_case("true") => return Some(Again::Always),
            Some(Given::Literal(text)) if text.eq_ignore_ascii_case("false") => return Some(Again::Never),
            Some(Given::Literal(text)) => Some(text),
            _ => None,
        };
        if let Some(made) = output.as_ref().and_then(|output| last.get(output)) {
            return Some(Again::If(made.source.clone()));
        }
        let message = "the condition is not an output of the step that the loop runs";
        let fix = format!("bind one: `${{{{parent.jobs.{body}.outputs.x}}}}`");
        self.lookup.mistake(format!("{key}.condition"), message, fix);
        None
    }
}

enum Again {
    Always,
    Never,
    If(Source),
}

/// An input that more than one output goes to.
fn twice(mapping: &[(String, String)]) -> Option<&String> {
    let mut seen = HashSet::new();
    mapping.iter().map(|(_, input)| input).find(|input| !seen.insert(*input))
}

/// Which output of a turn becomes which input of the next.
fn mapping(node: &Value) -> Vec<(String, String)> {
    let name_of = |value: &Value| match read::binding(value.as_str()?) {
        Some(Binding::InputOf { name, .. }) => Some(name),
        _ => value.as_str().map(str::to_owned),
    };
    let mut all = Vec::new();
    for (output, inputs) in entries(some(node, "mapping").unwrap_or(&Value::Null)) {
        let output = match read::binding(output) {
            Some(Binding::OutputOf { name, .. }) => name,
            _ => output.clone(),
        };
        let many = inputs.as_array().map_or_else(|| vec![inputs], |many| many.iter().collect());
        all.extend(many.into_iter().filter_map(name_of).map(|input| (output.clone(), input)));
    }
    all
}
