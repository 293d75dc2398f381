//! Sweeps: accepted with what their trials are, or refused with every mistake.

use crate::Server;
use serde_json::{Value, json};

fn sweep(more: Value) -> Value {
    let mut properties = json!({
        "jobType": "Sweep", "experimentName": "tests",
        "trial": {"command": "train --lr ${{search_space.lr}} ${{inputs.data}}", "environmentId": "azureml:AzureML-Minimal@latest"},
        "searchSpace": {"lr": ["uniform", [0.1, 0.9]]},
        "samplingAlgorithm": {"samplingAlgorithmType": "Random", "seed": 3},
        "objective": {"goal": "minimize", "primaryMetric": "loss"},
        "limits": {"jobLimitsType": "Sweep", "maxTotalTrials": 4, "maxConcurrentTrials": 2},
        "inputs": {"data": {"jobInputType": "literal", "value": "5"}},
        "outputs": {"model": {"jobOutputType": "uri_folder"}},
    });
    for (key, value) in more.as_object().unwrap() {
        properties[key] = value.clone();
    }
    json!({"properties": properties})
}

#[tokio::test]
async fn a_sweep_is_accepted_and_has_no_trials_yet() {
    let server = Server::start().await;
    let accepted = server.put("jobs/s1", sweep(json!({}))).await.expect(201);
    assert_eq!(accepted["properties"]["status"], "Queued");
    assert_eq!(accepted["properties"]["searchSpace"]["lr"], json!(["uniform", [0.1, 0.9]]));
    let graph = server.get("jobs/s1/graph").await.expect(200);
    assert_eq!(graph["steps"], json!([]));
    let warm = sweep(json!({"properties": {"peregrine.warm_start": "s1", "peregrine.asha.reduction_factor": "3"}}));
    server.put("jobs/s2", warm).await.expect(201);
}

#[tokio::test]
async fn a_sweep_that_makes_no_sense_is_refused_with_the_reason() {
    let server = Server::start().await;
    for (more, words) in [
        (json!({"searchSpace": {}}), "there is nothing to search"),
        (json!({"searchSpace": {"lr": ["uniform", [1, 0]]}}), "1 is not below `max_value`, 0"),
        (json!({"searchSpace": {"lr": ["flat", [1, 0]]}}), "is no range"),
        (json!({"searchSpace": {"x": ["randint", [3]]}}), "names no value of the search space"),
        (json!({"limits": {"maxTotalTrials": 2, "maxConcurrentTrials": 5}}), "larger than `max_total_trials`"),
        (json!({"limits": {"maxTotalTrials": 0}}), "at least 1"),
        (json!({"objective": {"goal": "sideways", "primaryMetric": "x"}}), "sideways"),
        (json!({"earlyTermination": {"policyType": "Bandit"}}), "needs `slack_factor` or `slack_amount`"),
        (json!({"trial": {"command": "x ${{search_space.lr}}", "environmentId": "azureml:gone:1"}}), "gone"),
        (json!({"computeId": "azureml:gone"}), "there is no compute target `gone`"),
        (json!({"properties": {"peregrine.warm_start": "nobody"}}), "there is no sweep `nobody`"),
        (json!({"properties": {"peregrine.asha.reduction_factor": "1"}}), "it must be at least 2"),
        (json!({"properties": {"peregrine.seed": "x"}}), "is not a whole number"),
    ] {
        let answer = server.put("jobs/bad", sweep(more.clone())).await;
        let text = answer.text();
        answer.refused(400);
        assert!(text.contains(words), "{more}: {text}");
    }
}
