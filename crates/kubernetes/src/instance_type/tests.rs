//! Conversions of instance types, and what the definition says. Whether the rules hold is tried on a real cluster.

use super::*;

fn spec(value: serde_json::Value) -> InstanceTypeSpec {
    serde_json::from_value(value).unwrap()
}

#[test]
fn amounts_become_ours_and_devices_count_once() {
    let it = spec(json!({
        "nodeSelector": {"disk": "ssd"},
        "resources": {
            "requests": {"cpu": "700m", "memory": "1500Mi"},
            "limits": {"cpu": 1, "memory": "2Gi", "nvidia.com/gpu": 1, "amd.com/gpu": null, "nvidia.com/mig-1g.5gb": "2", "x.io/a": 0},
        },
    }))
    .to_domain("a");
    let expect = |cpu_milli, memory_bytes| Resources { cpu_milli, memory_bytes, gpus: 1 };
    assert_eq!((it.requests, it.limits), (expect(700, 1500 << 20), expect(1000, 2 << 30)));
    assert_eq!(it.extended, BTreeMap::from([("nvidia.com/mig-1g.5gb".to_owned(), 2)]));
    assert_eq!(it.node_selector["disk"], "ssd");
}

#[test]
fn what_a_deployment_says_itself_goes_before_its_type() {
    let limits = [("cpu", "2"), ("memory", "4Gi"), ("nvidia.com/gpu", "1")];
    let kind = InstanceTypeSpec::of(&[("cpu", "1"), ("memory", "2Gi")], &limits);
    let amounts = |cpu_milli, memory_bytes, gpus| Resources { cpu_milli, memory_bytes, gpus };
    let made = kind.with(&amounts(100, 0, 0), &amounts(0, 8 << 30, 2)).to_domain("a");
    assert_eq!((made.requests, made.limits), (amounts(100, 2 << 30, 2), amounts(2000, 8 << 30, 2)));
}

#[test]
fn a_pod_asks_for_nothing_that_is_null_or_zero() {
    let asked = spec(json!({"resources": {
        "requests": {"cpu": "1", "memory": "1Gi"},
        "limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": 0, "amd.com/gpu": null},
    }}))
    .requirements();
    assert_eq!(asked.limits.unwrap().into_keys().collect::<Vec<_>>(), ["cpu", "memory"]);
    assert_eq!(asked.requests.unwrap()["cpu"], Quantity("1".into()));
}

#[test]
fn the_built_in_type_asks_for_little_and_may_use_two_cores() {
    let it = built_in().spec.to_domain(DEFAULT_INSTANCE_TYPE);
    assert_eq!((it.requests.cpu_milli, it.limits.cpu_milli), (100, 2000));
    assert_eq!((it.requests.memory_bytes, it.limits.memory_bytes, it.limits.gpus), (2 << 30, 2 << 30, 0));
}

#[test]
fn the_definition_is_of_azure_s_group_for_the_whole_cluster_with_rules() {
    let crd = definition();
    assert_eq!(crd["metadata"]["name"], "instancetypes.amlarc.azureml.com");
    assert_eq!((&crd["spec"]["scope"], &crd["spec"]["versions"][0]["name"]), (&json!("Cluster"), &json!("v1alpha1")));
    let resources =
        &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["resources"];
    let rules = |at: &serde_json::Value| at["x-kubernetes-validations"].as_array().unwrap().len();
    let inner = |name: &str| rules(&resources["properties"][name]);
    assert!(crd.to_string().len() < 40_000);
    assert_eq!((rules(resources), inner("requests"), inner("limits")), (3, 4, 5));
}
