//! Instance types on a real API server: with kubectl, as people have it, and with our own command.

use super::{alone, ours};
use crate::{
    cluster::Cluster,
    harness::{Home, Said, said},
};
use serde_json::Value;
use std::{collections::BTreeMap, process::Command};

const HEAD: &str = "apiVersion: amlarc.azureml.com/v1alpha1\nkind: InstanceType\n";

/// As in files written for Azure's extension, and what we have beyond it.
const GOOD: &[(&str, &str)] = &[
    (
        "one",
        "metadata: {name: NAME}\nspec:\n  nodeSelector: {mylabel: mylabelvalue}\n  resources:\n    limits: {cpu: \"1\", nvidia.com/gpu: 1, memory: 2Gi}\n    requests: {cpu: 700m, memory: 1500Mi}\n",
    ),
    (
        "without a GPU",
        "metadata: {name: NAME}\nspec:\n  resources:\n    requests: {cpu: \"0.6\", memory: 1536Mi}\n    limits: {cpu: \"0.6\", memory: 1536Mi, nvidia.com/gpu: null}\n",
    ),
    (
        "whole numbers",
        "metadata: {name: NAME}\nspec:\n  resources:\n    requests: {cpu: 1, memory: 1073741824}\n    limits: {cpu: 2, memory: 2e9, amd.com/gpu: \"2\", nvidia.com/mig-1g.5gb: 1, ephemeral-storage: 10Gi}\n",
    ),
    (
        "beyond Azure",
        "metadata: {name: NAME}\nspec:\n  priorityClassName: high\n  tolerations: [{key: spot, operator: Exists, effect: NoSchedule}]\n  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}}\n  resources: {requests: {cpu: \"1\", memory: 1Gi}, limits: {cpu: \"1\", memory: 1Gi}}\n",
    ),
];

/// What is wrong, and a word of what is said about it.
const BAD: &[(&str, &str)] = &[
    (
        "{requests: {cpu: '2', memory: 1Gi}, limits: {cpu: '1', memory: 1Gi}}",
        "`limits.cpu` must not be below `requests.cpu`",
    ),
    ("{requests: {cpu: '1', memory: 2Gi}, limits: {cpu: '1', memory: 1024Mi}}", "`limits.memory` must not be below"),
    (
        "{requests: {cpu: '1', memory: 1Gi, nvidia.com/gpu: 1}, limits: {cpu: '1', memory: 1Gi, nvidia.com/gpu: 1}}",
        "belong into `limits` only",
    ),
    ("{requests: {cpu: '1', memory: 1Gi}, limits: {cpu: '1', memory: 1Gi, nvidia.com/gpu: 500m}}", "whole numbers"),
    ("{requests: {cpu: '1', memory: 1Gi}, limits: {cpu: '1', memory: 1Gi, nvidia.com/gpu: -1}}", "whole numbers"),
    ("{requests: {cpu: '1', memory: 1Gi}, limits: {cpu: '1', memory: 1Gi, nvidia.com/gpu: 0.5}}", "integer"),
    (
        "{requests: {cpu: '0', memory: 1Gi}, limits: {cpu: '1', memory: 1Gi}}",
        "`requests.cpu` is required and must be more than 0",
    ),
    ("{requests: {cpu: '1', memory: ''}, limits: {cpu: '1', memory: 1Gi}}", "an amount in `requests` cannot be read"),
    ("{requests: {cpu: '1', memory: 1gb}, limits: {cpu: '1', memory: 1Gi}}", "an amount in `requests` cannot be read"),
    ("{requests: {cpu: '1'}, limits: {cpu: '1', memory: 1Gi}}", "`requests.memory` is required"),
    ("{requests: {cpu: null, memory: 1Gi}, limits: {cpu: '1', memory: 1Gi}}", "`requests.cpu` is required"),
    ("{requests: {cpu: '1', memory: 1Gi}}", "limits"),
    ("{requests: {cpu: '1', memory: 1Gi}, limits: {cpu: '1', memory: 1Gi, gpu: 1}}", "devices with their domain"),
    ("{requests: {cpu: '1', memory: 1Gi}, limits: {cpu: '1', memory: 1Gi}, reqests: {}}", "unknown field"),
];

#[test]
fn files_people_have_apply_and_wrong_ones_are_refused_with_the_reason() {
    let Some(cluster) = Cluster::lease() else { return };
    let _alone = alone();
    let home = Home::new();
    define(&cluster);
    for (at, (what, text)) in GOOD.iter().enumerate() {
        let file = home.file("good.yml", &format!("{HEAD}{}", text.replace("NAME", &format!("e2e-{at}"))));
        let file = file.to_str().unwrap();
        cluster.ok(&["apply", "-f", file]);
        let told = apply(&home, &cluster, &[file]);
        assert_eq!(told.code, Some(0), "{what}: {}", told.err);
    }
    lists_apply(&home, &cluster);
    for (resources, expect) in BAD {
        let file =
            home.file("bad.yml", &format!("{HEAD}metadata: {{name: e2e-bad}}\nspec: {{resources: {resources}}}\n"));
        let file = file.to_str().unwrap();
        let told = said(cluster.kubectl(&["apply", "-f", file]));
        assert!(told.code != Some(0) && told.err.contains(expect), "{resources}: {}", told.err);
        apply(&home, &cluster, &[file]).must(2, &[expect]);
    }
    assert!(cluster.kubectl(&["get", "instancetype", "e2e-bad"]).stdout.is_empty());
    let made = cluster.ok(&["get", "instancetypes", "-o", "name"]);
    for name in made.lines().filter(|name| name.contains("/e2e-")) {
        cluster.ok(&["delete", name]);
    }
}

#[test]
fn types_go_with_the_nodes_there_are_and_ask_for_no_more_than_is_left() {
    let Some(cluster) = Cluster::lease() else { return };
    let _alone = alone();
    let home = Home::new();
    define(&cluster);
    let generate = ["compute", "generate-instance-types", "--kubeconfig", cluster.fact("KUBECONFIG")];
    let types = home.json(&generate);
    let types: BTreeMap<_, _> = types["items"].as_array().unwrap().iter().map(named).collect();
    // Fake nodes have 64 cores, 512 GiB and 8 GPUs.
    for (name, gpus) in [("64cpu512g8gpu", "8"), ("32cpu256g4gpu", "4"), ("16cpu128g2gpu", "2")] {
        assert_eq!(types[name]["nvidia.com/gpu"], gpus, "{types:#?}");
    }
    let cores = cluster.field("node/real", ".status.capacity.cpu");
    let real = types.iter().find(|(name, _)| name.starts_with(&format!("{cores}cpu")) && !name.ends_with("gpu"));
    let (_, limits) = real.unwrap_or_else(|| panic!("none is for a node of {cores} cores: {types:#?}"));
    let mib: u64 = limits["memory"].as_str().unwrap().trim_end_matches("Mi").parse().unwrap();
    let all: u64 = cluster.field("node/real", ".status.allocatable.memory").trim_end_matches("Ki").parse().unwrap();
    let share = mib * 1024 * 100 / all;
    assert!((90..=95).contains(&share), "{share} % of the real node's memory: {limits}");

    let apply = [&generate[..], &["--apply"]].concat();
    home.ok(&apply);
    assert_eq!(cluster.field("instancetype/64cpu512g8gpu", ".spec.resources.limits.nvidia\\.com/gpu"), "8");
    let again = home.json(&apply);
    assert!(again.as_array().unwrap().iter().all(|one| one["what"] == "unchanged"), "{again}");
    cluster.ok(&[&["delete", "instancetype"], types.keys().copied().collect::<Vec<_>>().as_slice()].concat());
}

/// The name of a type, and its limits.
fn named(one: &Value) -> (&str, &Value) {
    (one["metadata"]["name"].as_str().unwrap(), &one["spec"]["resources"]["limits"])
}

/// One file, several types: kubectl takes lists whose items do not say what they are, and so do we.
fn lists_apply(home: &Home, cluster: &Cluster) {
    let item = |name: &str, gpus: &str| {
        format!(
            "- metadata: {{name: {name}}}\n  spec: {{resources: {{requests: {{cpu: 100m, memory: 100Mi}}, limits: {{cpu: '1', nvidia.com/gpu: {gpus}, memory: 1Gi}}}}}}\n"
        )
    };
    let head = "apiVersion: amlarc.azureml.com/v1alpha1\nkind: InstanceTypeList\nitems:\n";
    let list = home.file("list.yml", &format!("{head}{}{}", item("e2e-list-a", "0"), item("e2e-list-b", "2")));
    cluster.ok(&["apply", "-f", list.to_str().unwrap()]);
    assert_eq!(cluster.field("instancetype/e2e-list-b", ".spec.resources.limits.nvidia\\.com/gpu"), "2");
    cluster.ok(&["delete", "instancetype", "e2e-list-a", "e2e-list-b"]);
    // Where kubectl stumbles over a `null` in a list, we do not.
    let nulls = home.file("nulls.yml", &format!("{head}{}", item("e2e-list-c", "null")));
    let told = apply(home, cluster, &[list.to_str().unwrap(), nulls.to_str().unwrap()]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert_eq!(cluster.field("instancetype/e2e-list-c", ".metadata.name"), "e2e-list-c");
    // All or none: a good one beside a bad one is not applied.
    let half = home.file("half.yml", &format!("{head}{}{}", item("e2e-list-d", "0"), item("e2e-list-e", "some")));
    apply(home, cluster, &[half.to_str().unwrap()]).must(2, &["nothing was applied", "`e2e-list-e`"]);
    assert!(!cluster.kubectl(&["get", "instancetype", "e2e-list-d"]).status.success());
}

/// What instance types are, as this version has it.
fn define(cluster: &Cluster) {
    let file = ours("deploy/crds/instancetypes.yaml");
    let apply = ["apply", "--server-side", "--force-conflicts", "--field-manager", "peregrine", "-f"];
    cluster.ok(&[&apply[..], &[file.to_str().unwrap()]].concat());
    cluster.until("the definition", || cluster.kubectl(&["get", "instancetypes"]).status.success());
}

fn apply(home: &Home, cluster: &Cluster, files: &[&str]) -> Said {
    let mut command: Command = home.command(&["compute", "apply", "--kubeconfig", cluster.fact("KUBECONFIG"), "-f"]);
    said(command.args(files).output().unwrap())
}
