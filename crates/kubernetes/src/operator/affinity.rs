//! Which nodes a pod insists on beyond plain labels: the required part of its node affinity.
//!
//! Invariant: says of a node what Kubernetes' scheduler says of it. Of several terms one is enough; a term without any rule
//! matches nothing.

use k8s_openapi::api::core::v1::{Affinity as Given, NodeSelectorRequirement};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Terms of which a node must match one; none at all: any node does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(from = "Outer")]
pub(crate) struct Affinity {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    match_expressions: Vec<Rule>,
    match_fields: Vec<Rule>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
struct Rule {
    key: String,
    operator: String,
    values: Vec<String>,
}

/// As it stands in a pod.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Outer {
    node_affinity: Inner,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Inner {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Required,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Required {
    node_selector_terms: Vec<Term>,
}

impl From<Outer> for Affinity {
    fn from(outer: Outer) -> Affinity {
        Affinity { terms: outer.node_affinity.required.node_selector_terms }
    }
}

impl Affinity {
    /// What an instance type insists on.
    pub(crate) fn of(given: Option<&Given>) -> Affinity {
        let required = given
            .and_then(|given| given.node_affinity.as_ref())
            .and_then(|nodes| nodes.required_during_scheduling_ignored_during_execution.as_ref());
        let rules = |all: &Option<Vec<NodeSelectorRequirement>>| all.iter().flatten().map(Rule::of).collect();
        let terms = required.iter().flat_map(|required| &required.node_selector_terms).map(|term| Term {
            match_expressions: rules(&term.match_expressions),
            match_fields: rules(&term.match_fields),
        });
        Affinity { terms: terms.collect() }
    }

    /// Whether a node of this name and with these labels will do.
    pub(crate) fn takes(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.terms.is_empty() || self.terms.iter().any(|term| term.takes(name, labels))
    }
}

impl Term {
    fn takes(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let some = !(self.match_expressions.is_empty() && self.match_fields.is_empty());
        let labelled = self.match_expressions.iter().all(|rule| rule.holds(labels.get(&rule.key).map(String::as_str)));
        // A node's name is the only field that can be asked for.
        let named = self.match_fields.iter().all(|rule| rule.key == "metadata.name" && rule.holds(Some(name)));
        some && labelled && named
    }
}

impl Rule {
    fn of(given: &NodeSelectorRequirement) -> Rule {
        let values = given.values.clone().unwrap_or_default();
        Rule { key: given.key.clone(), operator: given.operator.clone(), values }
    }

    fn holds(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|one| one == value);
        match self.operator.as_str() {
            "In" => value.is_some_and(listed),
            "NotIn" => !value.is_some_and(listed),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => self.numbers(value).is_some_and(|(has, than)| has > than),
            "Lt" => self.numbers(value).is_some_and(|(has, than)| has < than),
            // The API server takes no other.
            _ => false,
        }
    }

    fn numbers(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn affinity(terms: Value) -> Affinity {
        let given = json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
        }});
        let typed: Given = serde_json::from_value(given.clone()).unwrap();
        let seen: Affinity = serde_json::from_value(given).unwrap();
        assert_eq!(Affinity::of(Some(&typed)), seen, "a pod and an instance type say the same");
        seen
    }

    #[test]
    fn each_operator_means_what_kubernetes_says() {
        let labels = BTreeMap::from([("zone".to_owned(), "a".to_owned()), ("gen".to_owned(), "7".to_owned())]);
        for (key, operator, values, expect) in [
            ("zone", "In", vec!["b", "a"], true),
            ("zone", "In", vec!["b"], false),
            ("rack", "In", vec!["b"], false),
            ("zone", "NotIn", vec!["b"], true),
            ("zone", "NotIn", vec!["a"], false),
            ("rack", "NotIn", vec!["a"], true),
            ("zone", "Exists", vec![], true),
            ("rack", "Exists", vec![], false),
            ("rack", "DoesNotExist", vec![], true),
            ("zone", "DoesNotExist", vec![], false),
            ("gen", "Gt", vec!["6"], true),
            ("gen", "Gt", vec!["7"], false),
            ("gen", "Lt", vec!["10"], true),
            ("zone", "Lt", vec!["10"], false),
            ("zone", "Like", vec!["a"], false),
        ] {
            let rule = json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]);
            assert_eq!(affinity(rule).takes("n1", &labels), expect, "{key} {operator} {values:?}");
        }
    }

    #[test]
    fn one_term_is_enough_and_all_of_its_rules_are_needed() {
        let labels = BTreeMap::from([("zone".to_owned(), "a".to_owned())]);
        let zone = |value: &str| json!({"key": "zone", "operator": "In", "values": [value]});
        let name = json!({"key": "metadata.name", "operator": "In", "values": ["n1"]});
        for (terms, expect) in [
            (json!([]), true),
            (json!([{}]), false),
            (json!([{"matchExpressions": [zone("b")]}, {"matchExpressions": [zone("a")]}]), true),
            (json!([{"matchExpressions": [zone("a"), zone("b")]}]), false),
            (json!([{"matchExpressions": [zone("a")], "matchFields": [name]}]), true),
            (json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]), false),
        ] {
            assert_eq!(affinity(terms.clone()).takes("n1", &labels), expect, "{terms}");
        }
        assert!(Affinity::of(None).takes("n1", &labels));
    }
}
