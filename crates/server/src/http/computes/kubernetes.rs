//! Targets on clusters as resources: what their checks found, and what the cluster has.

use super::{check, managed, view::amounts};
use crate::http::clusters::attach;
use domain::{
    cluster::{ClusterFacts, ClusterInstanceType, ClusterNode},
    kept::Kept,
};
use serde_json::{Map, Value, json};
use store::{ComputeRow, Error, TargetRow, TargetState, Tx};

/// The kind of these targets, as records spell it.
pub(super) const KIND: &str = "Kubernetes";

/// What a target lies on.
pub(super) struct On {
    pub(super) target: TargetRow,
    facts: ClusterFacts,
    /// Of a managed cluster.
    managed: Option<managed::Nodes>,
    kept: Vec<(String, Kept)>,
}

/// Takes out of a body what the server adds to it when it shows it.
pub(super) fn forget_shown(body: &mut Value) {
    if let Some(inner) = body["properties"]["properties"].as_object_mut() {
        attach::SHOWN.iter().chain(&managed::SHOWN).for_each(|key| drop(inner.remove(*key)));
    }
}

impl On {
    pub(super) fn of(tx: &mut Tx<'_>, workspace: &str, row: &ComputeRow) -> Result<Option<On>, Error> {
        let Some(target) = tx.target(workspace, &row.name)? else { return Ok(None) };
        let facts = tx.facts(&target.cluster)?;
        let managed = check::kind_of(row) == managed::KIND;
        let managed = managed.then(|| managed::Nodes::of(tx, &target.cluster)).transpose()?;
        let kept = tx.kept_on(&target.cluster)?;
        Ok(Some(On { target, facts, managed, kept }))
    }

    /// In the place where clients look for what went wrong.
    pub(super) fn errors(&self) -> Value {
        if self.target.state != TargetState::Failed {
            return Value::Null;
        }
        let failed = self.target.findings.iter().filter(|finding| !finding.passed);
        let error = |code: &str, message: &str| json!({"error": {"code": code, "message": message, "details": []}});
        failed.map(|finding| error(&finding.check, &finding.detail)).collect()
    }

    /// Adds what is known of the cluster to what a client sent of its target.
    pub(super) fn describe(&self, inner: &mut Value) {
        let target = &self.target.target;
        let default = target.default_instance_type.as_deref().unwrap_or(domain::resources::DEFAULT_INSTANCE_TYPE);
        let types: Map<String, Value> = self.facts.instance_types.iter().map(|kind| self.instance_type(kind)).collect();
        if !self.target.cluster.starts_with('@') {
            inner["namespace"] = json!(target.namespace);
            inner["cluster"] = json!(self.target.cluster);
        }
        for (key, value) in [
            ("defaultInstanceType", json!(default)),
            ("instanceTypes", Value::Object(types)),
            ("capacity", json!(self.facts.room())),
            ("checks", json!(self.target.findings)),
        ] {
            inner[key] = value;
        }
        if let Some(nodes) = &self.managed {
            nodes.describe(inner);
        }
    }

    /// Every node with what it has and what of it is free.
    pub(super) fn nodes(&self) -> Value {
        let one = |node: &ClusterNode| {
            json!({
                "name": node.name, "ready": node.ready, "allocatable": amounts(&node.allocatable),
                "free": amounts(&node.free),
            })
        };
        self.facts.nodes.iter().map(one).collect()
    }

    /// Fetched data that lies there, by node.
    pub(super) fn kept(&self) -> Value {
        let one = |(node, kept): &(String, Kept)| json!({"node": node, "source": kept.source, "bytes": kept.bytes});
        self.kept.iter().map(one).collect()
    }

    /// Every node as clients list the nodes of a target.
    pub(super) fn listed(&self) -> Value {
        if let Some(nodes) = &self.managed {
            return nodes.listed();
        }
        let one = |node: &ClusterNode| {
            let state = match (node.ready, node.free == node.allocatable) {
                (false, _) => "unusable",
                (true, true) => "idle",
                (true, false) => "running",
            };
            json!({
                "nodeId": node.name, "privateIpAddress": null, "publicIpAddress": null, "port": null, "runId": null,
                "nodeState": state, "capacity": node.allocatable, "free": node.free,
            })
        };
        self.facts.nodes.iter().map(one).collect()
    }

    /// A managed cluster counts the nodes it may have, of which those at work are not to be had now.
    fn instance_type(&self, kind: &ClusterInstanceType) -> (String, Value) {
        let busy = self.managed.as_ref().map_or(0, managed::Nodes::busy);
        let mut view = instance_type(kind);
        view["fitsNow"] = json!(kind.fits_now.saturating_sub(busy));
        (kind.name.clone(), view)
    }
}

fn instance_type(kind: &ClusterInstanceType) -> Value {
    let shape = |resources| {
        let mut shape = amounts(resources);
        kind.extended.iter().for_each(|(name, count)| shape[name] = json!(count));
        shape
    };
    json!({
        "nodeSelector": (!kind.node_selector.is_empty()).then_some(&kind.node_selector),
        "resources": {"requests": amounts(&kind.requests), "limits": shape(&kind.limits)},
        "fitsNow": kind.fits_now, "fitsEver": kind.fits_ever,
    })
}
