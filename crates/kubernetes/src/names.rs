//! Names and labels that everything of the extension carries, and how its own pods are confined.

use serde_json::{Value, json};

/// On everything of the extension; its value is [`PRODUCT`]. Who manages it is for Helm and others to say.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// Our own name; also the field manager of what is applied.
pub const PRODUCT: &str = "peregrine";
/// On everything that belongs to an attempt.
pub const ATTEMPT: &str = "peregrine.dev/attempt";
/// Deployment, service account, lease and roles of the operator.
pub const OPERATOR: &str = "peregrine-operator";
/// Deployment, service and account of the router.
pub const ROUTER: &str = "peregrine-router";
/// The namespace where nobody names another.
pub const NAMESPACE: &str = "peregrine";

/// What Pod Security `restricted` wants of a pod. No user is named: the image has one, and OpenShift gives its own.
pub fn pod_security() -> Value {
    json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})
}

/// What Pod Security `restricted` wants of a container, and a root file system nobody writes to.
pub fn container_security() -> Value {
    json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
}

/// References to objects by their names.
pub fn references(names: impl IntoIterator<Item = impl AsRef<str>>) -> Value {
    names.into_iter().map(|name| json!({"name": name.as_ref()})).collect()
}
