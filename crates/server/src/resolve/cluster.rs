//! Jobs for a cluster: what no node there could ever hold, or what no pod there could reach, is refused now and not left to
//! wait for ever.

use super::{Lookup, Resolved};
use crate::http::{agents::places, clusters::launch::default_image};
use domain::{
    InstanceType, Place, Plan, PlannedInput, Resources,
    cluster::{ClusterFacts, ClusterInstanceType, ClusterNode},
    resources::DEFAULT_INSTANCE_TYPE,
    spec::CommandJob,
};
use store::{TargetRow, TargetState};

impl Lookup<'_, '_> {
    /// Whether work can be sent to a target at all.
    pub(super) fn is_fit(&mut self, on: &TargetRow) {
        if on.state == TargetState::Failed {
            let name = &on.target.compute;
            let message = format!("compute target `{name}` is not fit for work: {}", on.complaints());
            let fix = format!("mend that and attach it again; `peregrine compute show -n {name}` has the checks");
            self.mistake("compute", message, fix);
        }
    }

    /// Whether jobs run where this one is to go; a cluster that nothing was heard of yet may.
    pub(super) fn trains(&mut self, resolved: &Resolved) -> Result<(), store::Error> {
        let Resolved { target, cluster, .. } = resolved;
        if cluster == store::HERE {
            return Ok(());
        }
        let facts = self.app.facts(self.tx, cluster)?;
        if !facts.training && !facts.uid.is_empty() {
            let message =
                format!("training is not enabled on cluster `{cluster}`, where compute target `{target}` lies");
            self.mistake("compute", message, "run `peregrine extension upgrade --config enableTraining=True`");
        }
        Ok(())
    }

    /// What an instance type of the cluster asks for and allows.
    pub(super) fn cluster_resources(
        &mut self,
        spec: &CommandJob,
        on: &TargetRow,
    ) -> Result<InstanceType, store::Error> {
        let facts = self.app.facts(self.tx, &on.cluster)?;
        let named = spec.resources.instance_type.as_deref().or(on.target.default_instance_type.as_deref());
        let wanted = named.unwrap_or(DEFAULT_INSTANCE_TYPE);
        let Some(kind) = facts.instance_types.iter().find(|kind| kind.name.eq_ignore_ascii_case(wanted)) else {
            let names: Vec<&str> = facts.instance_types.iter().map(|kind| kind.name.as_str()).collect();
            let offered = if names.is_empty() { "none yet".to_owned() } else { names.join(", ") };
            let message =
                format!("instance type `{wanted}` is not offered by `{}` (offered: {offered})", on.target.compute);
            let fix = format!("name one of these, or see `peregrine compute show -n {}`", on.target.compute);
            self.mistake("resources.instance_type", message, fix);
            return Ok(InstanceType { name: wanted.to_owned(), requests: Resources::default(), limits: None });
        };
        Ok(InstanceType { name: kind.name.clone(), requests: kind.requests, limits: Some(kind.limits) })
    }

    /// Work that the cluster could not hold even if it were empty is refused, unless nodes are added to it on demand.
    pub(super) fn fits_cluster(&mut self, plan: &Plan, on: &TargetRow) -> Result<(), store::Error> {
        let facts = self.app.facts(self.tx, &on.cluster)?;
        let kind = facts.instance_types.iter().find(|kind| Some(&kind.name) == plan.instance_type.as_ref());
        if let Some(message) = kind.filter(|_| !facts.grows).and_then(|kind| never_fits(&facts, kind, plan.parts())) {
            let show = format!("`peregrine compute show -n {}` lists what there is", on.target.compute);
            self.mistake("resources", message, format!("choose another instance type or fewer instances; {show}"));
        }
        Ok(())
    }

    /// Pods see this server's stores and the world, but not the disk of its machine, and make no images.
    pub(super) fn reaches_pods(&mut self, plan: &Plan, on: &TargetRow) {
        let name = &on.target.compute;
        // A machine makes images as the server's own does.
        if plan.environment.build.is_some() && !on.cluster.starts_with('@') {
            let message = format!(
                "environment `{}` is built from a Dockerfile, which pods on `{name}` cannot do",
                plan.environment.label
            );
            self.mistake("environment", message, "build the image, push it to a registry, and name it with `image`");
        }
        let imageless = plan.environment.image.is_none() && plan.environment.build.is_none();
        if imageless && !on.cluster.starts_with('@') && default_image(on).is_none() {
            let label = &plan.environment.label;
            let message = format!("environment `{label}` names no image, and pods on `{name}` run from one");
            let fix = format!("name one with `image`, or attach `{name}` with a `default_image` for all such work");
            self.mistake("environment", message, fix);
        }
        let inputs = plan.inputs.iter().filter_map(|(key, input)| match input {
            PlannedInput::Data { place, .. } => Some((format!("inputs.{key}"), place)),
            PlannedInput::Literal { .. } => None,
        });
        let outputs = plan.outputs.iter().map(|(key, output)| (format!("outputs.{key}"), &output.place));
        let app = self.app;
        let away = |place: &Place| matches!(place, Place::Folder { path } if !places::is_own(app, path));
        let far: Vec<String> = inputs.chain(outputs).filter(|(_, place)| away(place)).map(|(key, _)| key).collect();
        for key in far {
            let message = format!("it lies on the disk of the server's machine, which pods on `{name}` do not see");
            self.mistake(
                key,
                message,
                "use a datastore of the workspace, such as `azureml://datastores/workspaceblobstore/paths/…`",
            );
        }
    }
}

/// Said of a node that is large enough by itself.
const BUT: &str = ", but a share of memory is held back on each node, or affinity or a taint rules it out";

/// Why so many of a shape could not be held even if everything else were gone; `None` if they could.
fn never_fits(facts: &ClusterFacts, kind: &ClusterInstanceType, count: u32) -> Option<String> {
    let needs = kind.requests.humane();
    let Some(largest) = facts.nodes.iter().max_by_key(|node| size(node)) else {
        return Some(format!("instance type `{}` needs {needs}, and the cluster has no node", kind.name));
    };
    if !kind.fits_ever {
        let selector: Vec<String> = kind.node_selector.iter().map(|(key, value)| format!("`{key}={value}`")).collect();
        let only = if selector.is_empty() { String::new() } else { format!(" labelled {}", selector.join(", ")) };
        return Some(format!(
            "instance type `{}` needs {needs}, more than any node{only} can hold (the largest, `{}`, has {}{})",
            kind.name,
            largest.name,
            largest.allocatable.humane(),
            if holds(largest, kind) > 0 { BUT } else { "" }
        ));
    }
    let room = kind.fits_empty.unwrap_or_else(|| facts.nodes.iter().map(|node| holds(node, kind)).sum());
    (u64::from(count) > room).then(|| {
        format!("{count} instances of `{}` are asked for, and all nodes together hold {room} of them", kind.name)
    })
}

fn size(node: &ClusterNode) -> (u32, u64, u64) {
    (node.allocatable.gpus, node.allocatable.cpu_milli, node.allocatable.memory_bytes)
}

/// How many of a shape a node holds when it is empty.
fn holds(node: &ClusterNode, kind: &ClusterInstanceType) -> u64 {
    if !kind.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value)) {
        return 0;
    }
    let (has, asks) = (&node.allocatable, &kind.requests);
    let whole = |has: u64, asks: u64| has.checked_div(asks).unwrap_or(u32::MAX.into());
    let plain = [
        whole(has.cpu_milli, asks.cpu_milli),
        whole(has.memory_bytes, asks.memory_bytes),
        whole(has.gpus.into(), asks.gpus.into()),
    ];
    let extended = kind.extended.iter().map(|(name, asks)| whole(node.extended.get(name).copied().unwrap_or(0), *asks));
    plain.into_iter().chain(extended).min().unwrap_or(0)
}
