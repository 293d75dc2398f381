//! Spark jobs.

use super::{
    io, pipeline, put,
    tree::{carry, labels, some, word},
};
use serde_json::{Map, Value, json};

/// The `properties` of a Spark job; code and environment must be references by now.
pub fn body(spec: &Value) -> Value {
    let mut p = Map::new();
    put(&mut p, "jobType", json!("Spark"));
    carry(
        &mut p,
        spec,
        &[
            ("display_name", "displayName"),
            ("description", "description"),
            ("experiment_name", "experimentName"),
            ("compute", "computeId"),
            ("code", "codeId"),
            ("environment", "environmentId"),
            ("args", "args"),
            ("py_files", "pyFiles"),
            ("jars", "jars"),
            ("files", "files"),
            ("archives", "archives"),
        ],
    );
    put(&mut p, "tags", labels(spec, "tags"));
    put(&mut p, "properties", labels(spec, "properties"));
    put(&mut p, "isArchived", json!(false));
    put(&mut p, "conf", labels(spec, "conf"));
    put(&mut p, "entry", some(spec, "entry").map(entry));
    let attached = some(spec, "compute").is_some();
    let identity = some(spec, "identity").map_or_else(|| own_identity(attached), pipeline::identity);
    put(&mut p, "identity", identity);
    if let Some(resources) = some(spec, "resources") {
        let mut out = Map::new();
        carry(&mut out, resources, &[("instance_type", "instanceType"), ("runtime_version", "runtimeVersion")]);
        put(&mut p, "resources", Value::Object(out));
    }
    put(&mut p, "inputs", io::inputs(some(spec, "inputs").unwrap_or(&Value::Null)));
    put(&mut p, "outputs", io::outputs(some(spec, "outputs").unwrap_or(&Value::Null)));
    Value::Object(p)
}

/// As whom a job runs that does not say: the pool's on a pool, the user's elsewhere.
pub(crate) fn own_identity(attached: bool) -> Value {
    json!({"identityType": if attached { "Managed" } else { "UserIdentity" }})
}

/// With a number of executors that changes, the job starts with the fewest.
pub(crate) fn complete(conf: &mut Map<String, Value>) {
    let on = conf.get("spark.dynamicAllocation.enabled").and_then(super::tree::python);
    if on.is_some_and(|on| on.eq_ignore_ascii_case("true"))
        && let Some(least) = conf.get("spark.dynamicAllocation.minExecutors").cloned()
    {
        conf.entry("spark.executor.instances").or_insert(least);
    }
}

fn entry(value: &Value) -> Value {
    match word(value, "class_name") {
        Some(class) => json!({"sparkJobEntryType": "SparkJobScalaEntry", "className": class}),
        None => json!({"sparkJobEntryType": "SparkJobPythonEntry", "file": value["file"]}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_engine_are_texts() {
        let made = body(&json!({"entry": {"file": "a.py"}, "conf": {"spark.driver.cores": 1, "spark.x": true}}));
        assert_eq!(made["conf"], json!({"spark.driver.cores": "1", "spark.x": "True"}));
        assert_eq!(made["entry"]["sparkJobEntryType"], "SparkJobPythonEntry");
    }
}
