//! The order in which the nodes of a pipeline are looked at: each after those it names.

use super::flow::Flow;
use api::arm::{
    pipeline::read::{self, Binding, Given},
    tree::{entries, some},
};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The nodes in such an order, first come first where there is a choice; or some that wait for each other, the first
/// of them again at the end. What a loop runs comes with the loop.
pub(super) fn order<'n>(nodes: &'n Map<String, Value>, flow: &Flow) -> Result<Vec<&'n str>, Vec<String>> {
    let names: Vec<&str> = nodes.keys().map(String::as_str).filter(|name| !flow.bodies.contains_key(*name)).collect();
    let at: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let before: Vec<HashSet<usize>> = names
        .iter()
        .map(|name| {
            let named = flow.named_by(nodes, name);
            let real = named.iter().map(|one| flow.bodies.get(one).map_or(one.as_str(), String::as_str));
            real.filter_map(|one| at.get(one).copied()).collect()
        })
        .collect();
    let mut missing: Vec<usize> = before.iter().map(HashSet::len).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    for (this, before) in before.iter().enumerate() {
        before.iter().for_each(|one| after[*one].push(this));
    }
    let mut free: BTreeSet<usize> = (0..names.len()).filter(|one| missing[*one] == 0).collect();
    let mut order = Vec::with_capacity(names.len());
    while let Some(one) = free.pop_first() {
        order.push(names[one]);
        for next in &after[one] {
            missing[*next] -= 1;
            if missing[*next] == 0 {
                free.insert(*next);
            }
        }
    }
    if order.len() == names.len() {
        return Ok(order);
    }
    Err(circle(&names, &before, &missing))
}

/// From a node that is left over, back along those it waits for, until one comes twice.
fn circle(names: &[&str], before: &[HashSet<usize>], missing: &[usize]) -> Vec<String> {
    let mut trail: Vec<usize> = Vec::new();
    let mut next = missing.iter().position(|count| *count > 0);
    while let Some(one) = next {
        if let Some(start) = trail.iter().position(|seen| *seen == one) {
            return trail[start..].iter().chain([&one]).map(|at| names[*at].to_owned()).collect();
        }
        trail.push(one);
        next = before[one].iter().copied().filter(|before| missing[*before] > 0).min();
    }
    trail.iter().map(|at| names[*at].to_owned()).collect()
}

/// The nodes that a node's inputs name.
pub(super) fn inputs_name(node: &Value) -> Vec<String> {
    let inputs = entries(some(node, "inputs").unwrap_or(&Value::Null));
    inputs.filter_map(|(_, value)| named(value)).collect()
}

/// The node that a value is bound to.
pub(super) fn named(value: &Value) -> Option<String> {
    match read::given(value)?.0 {
        Given::Bound(Binding::OutputOf { step, .. } | Binding::InputOf { step, .. } | Binding::Step(step)) => {
            Some(step)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ordered(nodes: Value) -> Result<String, String> {
        let Value::Object(nodes) = nodes else { panic!() };
        order(&nodes, &Flow::of(&nodes)).map(|names| names.join(" ")).map_err(|names| names.join(" "))
    }

    #[test]
    fn a_node_comes_after_those_it_names() {
        let bound = |step: &str| json!({"inputs": {"i": {"value": format!("${{{{parent.jobs.{step}.outputs.o}}}}")}}});
        assert_eq!(ordered(json!({"c": bound("b"), "b": bound("a"), "a": {}, "d": {}})).unwrap(), "a b c d");
        assert_eq!(ordered(json!({"c": bound("b"), "b": bound("c"), "a": bound("b")})).unwrap_err(), "c b c");
        assert_eq!(ordered(json!({"a": bound("a")})).unwrap_err(), "a a");
    }

    #[test]
    fn ten_thousand_nodes_are_put_in_order_at_once() {
        let nodes: Map<String, Value> = (0..10_000)
            .rev()
            .map(|n| {
                let bound = format!("${{{{parent.jobs.s{}.outputs.o}}}}", n - 1);
                (format!("s{n}"), if n == 0 { json!({}) } else { json!({"inputs": {"i": bound}}) })
            })
            .collect();
        let order = order(&nodes, &Flow::of(&nodes)).unwrap();
        assert_eq!((order[0], order[9_999]), ("s0", "s9999"));
    }
}
