//! Parts of jobs from the words of a file, where there is no typed spec: nodes of pipelines, trials, deployments.

use super::{distribution_body, service_body};
use crate::arm::{put, scalar};
use domain::spec::{Distribution, Service};
use serde_json::{Map, Value, json};

/// The resources of a job from the words of a file.
pub fn resources_of(value: &Value) -> Value {
    let mut map = Map::new();
    for (ours, wire) in [
        ("instance_count", "instanceCount"),
        ("instance_type", "instanceType"),
        ("shm_size", "shmSize"),
        ("max_instance_count", "maxInstanceCount"),
        ("locations", "locations"),
    ] {
        put(&mut map, wire, value.get(ours).filter(|inner| !inner.is_null()).cloned());
    }
    let arguments = match value.get("docker_args") {
        Some(Value::Array(many)) => Some(many.iter().filter_map(scalar).collect::<Vec<_>>().join(" ")),
        Some(one) => scalar(one),
        None => None,
    };
    put(&mut map, "dockerArgs", arguments.map(Value::from));
    put(
        &mut map,
        "properties",
        value.get("properties").filter(|p| p.is_object()).cloned().unwrap_or_else(|| json!({})),
    );
    Value::Object(map)
}

/// A distribution from the words of a file.
pub fn distribution_of(value: &Value) -> Value {
    match serde_json::from_value::<Distribution>(value.clone()) {
        Ok(distribution) => distribution_body(&distribution),
        Err(_) => value.clone(),
    }
}

/// A service from the words of a file.
pub fn service_of(value: &Value) -> Value {
    match serde_json::from_value::<Service>(value.clone()) {
        Ok(service) => service_body(&service),
        Err(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_the_engine_are_one_text() {
        let made = resources_of(&json!({"instance_count": 2, "docker_args": ["--ipc", "host"]}));
        assert_eq!(made, json!({"instanceCount": 2, "dockerArgs": "--ipc host", "properties": {}}));
    }

    #[test]
    fn a_distribution_and_a_service_are_spelled_as_resources_spell_them() {
        assert_eq!(distribution_of(&json!({"type": "mpi"})), json!({"distributionType": "Mpi"}));
        assert_eq!(service_of(&json!({"type": "vs_code"})), json!({"jobServiceType": "VSCode"}));
    }
}
