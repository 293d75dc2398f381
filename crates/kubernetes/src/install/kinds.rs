//! The kinds of objects that are ours to make or to clear away, and how the API server addresses them.

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::Value;

/// One kind: API version, kind, plural, and whether it lies in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) version: &'static str,
    pub(super) name: &'static str,
    pub(super) plural: &'static str,
    pub(super) namespaced: bool,
}

const fn within(version: &'static str, name: &'static str, plural: &'static str) -> Kind {
    Kind { version, name, plural, namespaced: true }
}

const fn cluster(version: &'static str, name: &'static str, plural: &'static str) -> Kind {
    Kind { version, name, plural, namespaced: false }
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// What the extension consists of, in the order in which it is taken away: who makes things first.
pub(super) const EXTENSION: &[Kind] = &[
    within("apps/v1", "Deployment", "deployments"),
    within("v1", "Pod", "pods"),
    within("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors"),
    within("v1", "Service", "services"),
    within("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    within("coordination.k8s.io/v1", "Lease", "leases"),
    within("v1", "ConfigMap", "configmaps"),
    within("v1", "Secret", "secrets"),
    within(RBAC, "RoleBinding", "rolebindings"),
    within(RBAC, "Role", "roles"),
    cluster(RBAC, "ClusterRoleBinding", "clusterrolebindings"),
    cluster(RBAC, "ClusterRole", "clusterroles"),
    within("v1", "ServiceAccount", "serviceaccounts"),
    DEFINITION,
    NAMESPACE,
];

pub(super) const DEFINITION: Kind =
    cluster("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions");
pub(super) const NAMESPACE: Kind = cluster("v1", "Namespace", "namespaces");

/// What attempts consist of. A Volcano job takes its pods along.
pub(super) const ATTEMPTS: &[Kind] = &[
    within("batch.volcano.sh/v1alpha1", "Job", "jobs"),
    within("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups"),
    within("v1", "Pod", "pods"),
    within("v1", "Secret", "secrets"),
    within("v1", "ConfigMap", "configmaps"),
    within("v1", "Service", "services"),
];

impl Kind {
    /// The kind of an object of ours.
    pub(super) fn of(object: &Value) -> Kind {
        let known = EXTENSION.iter().find(|kind| object["kind"] == kind.name && object["apiVersion"] == kind.version);
        *known.expect("every object of the extension is of a kind listed here")
    }

    pub(super) fn group(&self) -> &'static str {
        self.version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Objects of this kind, in one namespace or, without one, wherever they are.
    pub(super) fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        let version = self.version.rsplit('/').next().unwrap_or(self.version);
        let kind = GroupVersionKind::gvk(self.group(), version, self.name);
        let resource = ApiResource::from_gvk_with_plural(&kind, self.plural);
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifests::{Install, objects};
    use crate::settings::{Raw, Settings};

    #[test]
    fn every_object_of_the_extension_has_a_kind_and_a_namespace_where_it_needs_one() {
        let settings = Settings { replicas: 2, service_monitor: true, grafana_dashboard: true, ..Settings::default() };
        let some = || Some("x".to_owned());
        let protected = Some(Raw::from([("a".into(), "b".into())]));
        let all = objects(&Install { settings, token: some(), authority: some(), protected, ..Install::default() });
        assert_eq!(all.len(), 17);
        for object in all {
            assert_eq!(Kind::of(&object).namespaced, object["metadata"].get("namespace").is_some(), "{object}");
        }
    }
}
