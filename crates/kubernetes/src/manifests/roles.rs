//! What the operator may do in the cluster, and why: least privilege, verb by verb.
//!
//! Reasons are annotations of the roles themselves, so that `kubectl describe clusterrole` gives them too. Invariant: secrets
//! can be made and never read.

use super::Sheet;
use crate::names::{OPERATOR, PART_OF, PRODUCT};
use serde_json::{Map, Value, json};

/// Role for namespaces in which jobs run.
const JOBS: &str = "peregrine-jobs";

/// Something the operator may do: group, resources, verbs, and what for.
struct Rule(&'static str, &'static [&'static str], &'static [&'static str], &'static str);

const WATCH: &[&str] = &["get", "list", "watch"];

/// In the whole cluster: looking only.
const EVERYWHERE: &[Rule] = &[
    Rule("", &["nodes"], WATCH, "what nodes have, and which instance types would fit on them"),
    Rule("", &["pods"], WATCH, "what of a node is free is what no pod has asked for, whoever's it is"),
    Rule("", &["namespaces"], &["get"], "whether the namespace of a compute target exists, and which cluster this is"),
    Rule("", &["persistentvolumeclaims"], WATCH, "volumes labelled `ml.azure.com/pvc` are mounted into jobs"),
    Rule("amlarc.azureml.com", &["instancetypes"], WATCH, "the instance types that jobs may name"),
    Rule("batch.volcano.sh", &["jobs"], WATCH, "gangs that Volcano starts"),
    Rule("scheduling.volcano.sh", &["podgroups"], WATCH, "why Volcano lets a gang wait"),
    Rule("authorization.k8s.io", &["selfsubjectaccessreviews"], &["create"], "to say at attach what it may not do"),
];

/// Where jobs run.
const IN_JOBS: &[Rule] = &[
    Rule(
        "",
        &["pods"],
        &["create", "patch", "delete", "deletecollection"],
        "a job is pods: make them, release a gang (patch), remove them at the end",
    ),
    Rule("", &["secrets"], &["create"], "the token of one attempt, for its pods; removed with its owner, never read"),
    Rule("events.k8s.io", &["events"], &["create", "patch"], "tells a job's story to `kubectl describe`"),
    Rule(
        "batch.volcano.sh",
        &["jobs"],
        &["create", "deletecollection"],
        "a gang is one of these, where Volcano is there",
    ),
];

/// In the extension's own namespace.
const OWN: &[Rule] = &[
    Rule("coordination.k8s.io", &["leases"], &["create", "get", "update"], "one of two operators leads"),
    Rule("", &["pods"], &["create", "delete"], "one small pod a node holds memory back"),
    Rule("", &["services"], &["list", "watch"], "where callers reach the router"),
    Rule("events.k8s.io", &["events"], &["create", "patch"], "tells what the extension did"),
];

/// The service account and its roles, but for those in namespaces of jobs.
pub(super) fn cluster(sheet: &Sheet) -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": sheet.metadata(OPERATOR)}),
        role(OPERATOR, None, EVERYWHERE),
        binding(OPERATOR, None, "ClusterRole", sheet),
        role(JOBS, None, IN_JOBS),
        role(OPERATOR, Some(&sheet.namespace), OWN),
        binding(OPERATOR, Some(&sheet.namespace), "Role", sheet),
    ]
}

/// Jobs may run wherever a compute target says.
pub(super) fn jobs_everywhere(sheet: &Sheet) -> Value {
    binding(JOBS, None, "ClusterRole", sheet)
}

/// Jobs may run in this namespace.
pub(super) fn jobs_in(sheet: &Sheet, namespace: &Value) -> Value {
    binding(JOBS, Some(namespace), "ClusterRole", sheet)
}

fn metadata(name: &str, namespace: Option<&Value>) -> Value {
    let mut metadata = json!({"name": name, "labels": {PART_OF: PRODUCT}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.clone();
    }
    metadata
}

fn role(name: &str, namespace: Option<&Value>, rules: &[Rule]) -> Value {
    let mut metadata = metadata(name, namespace);
    metadata["annotations"] = reasons(rules);
    let rule =
        |Rule(group, resources, verbs, _): &Rule| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": if namespace.is_some() { "Role" } else { "ClusterRole" },
        "metadata": metadata,
        "rules": rules.iter().map(rule).collect::<Vec<_>>(),
    })
}

fn reasons(rules: &[Rule]) -> Value {
    let mut all = Map::new();
    for Rule(group, resources, verbs, why) in rules {
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let key = format!("why.peregrine.dev/{}{group}", resources.join("-"));
        all.insert(key, json!(format!("{}: {why}", verbs.join(", "))));
    }
    Value::Object(all)
}

fn binding(name: &str, namespace: Option<&Value>, kind: &str, sheet: &Sheet) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" },
        "metadata": metadata(name, namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": OPERATOR, "namespace": sheet.namespace}],
    })
}
