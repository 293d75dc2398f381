//! The cluster as the operator knows it: nodes, what runs on them, gangs, instance types, claims.
//!
//! One task owns it and feeds it with what the watches bring. It is small on purpose: of other people's pods it keeps where
//! they run and what they ask for. Invariant: after a watch began anew, what was not listed is gone.

use super::{
    amounts::{Amounts, Need},
    claims::{self, Claim, Claims},
    fate::{self, Verdict},
    fit::{Node, Room, promise},
    labels,
    seen::{BoundSeen, ClaimSeen, GroupSeen, JobSeen, NodeSeen, PodSeen, ServiceSeen, condition, instant},
};
use crate::{
    instance_type::{self, InstanceType, InstanceTypeSpec},
    names, quantity, reservation,
};
use domain::{AttemptId, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

#[derive(Default)]
pub(crate) struct World {
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) gangs: BTreeMap<AttemptId, Gang>,
    types: BTreeMap<String, InstanceTypeSpec>,
    claims: BTreeMap<(String, String), Claim>,
    /// What was said of gangs whose Volcano Jobs the watches have yet to bring.
    early: HashMap<AttemptId, (String, bool)>,
    /// The router's service, where there is one.
    pub(crate) router: Option<ServiceSeen>,
    /// By uid: where a pod runs and what it asks for.
    bound: HashMap<String, (String, Arc<Amounts>)>,
    /// Uids of pods that hold a node's memory, with the mark of their node.
    reserved: HashMap<String, String>,
    // Gangs and pods are mostly alike; each shape is kept once.
    needs: HashSet<Arc<Need>>,
    shapes: HashSet<Arc<Amounts>>,
}

/// One attempt on the cluster.
#[derive(Debug, Clone)]
pub(crate) struct Gang {
    pub(crate) namespace: String,
    /// How many pods it has when it is whole.
    pub(crate) parts: u32,
    pub(crate) priority: i64,
    pub(crate) since: Timestamp,
    pub(crate) need: Arc<Need>,
    pub(crate) secret: String,
    /// Present when Volcano makes its pods.
    pub(crate) job: Option<Job>,
    pub(crate) pods: BTreeMap<u32, Part>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) leaving: bool,
    /// Ended by Volcano itself.
    pub(crate) over: bool,
    /// What Volcano's scheduler says of the gang.
    pub(crate) says: String,
    /// Volcano has let its pods be made.
    pub(crate) enqueued: bool,
}

/// One pod of a gang.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) pod: String,
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) node: Option<String>,
    pub(crate) bound_at: Option<Timestamp>,
    /// It waits behind our gate.
    pub(crate) gated: bool,
    /// It waits behind a gate, ours or another's.
    pub(crate) held: bool,
    /// Its deletion was asked for, by whomever.
    pub(crate) leaving: bool,
    /// The scheduler may end others for it.
    pub(crate) preempts: bool,
    /// A container of it has run.
    pub(crate) ran: bool,
    pub(crate) verdict: Verdict,
    /// What the scheduler says when it finds no node.
    pub(crate) says: String,
    /// Why it would be gone if it were deleted now.
    pub(crate) if_deleted: fate::Fate,
}

impl Gang {
    /// All of its pods have a node.
    pub(crate) fn is_placed(&self) -> bool {
        self.pods.len() >= self.parts as usize && self.pods.values().all(|part| part.node.is_some())
    }

    /// The scheduler was given at least one of its pods.
    pub(crate) fn is_free(&self) -> bool {
        self.pods.values().any(|part| !part.held)
    }

    /// Everything it consists of was made.
    pub(crate) fn is_whole(&self) -> bool {
        self.job.is_some() || self.pods.len() >= self.parts as usize
    }

    /// On its way out already.
    pub(crate) fn is_leaving(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.leaving) || self.pods.values().any(|part| part.leaving)
    }

    /// None of its pods does anything any more.
    pub(crate) fn is_over(&self) -> bool {
        !self.pods.is_empty() && self.pods.values().all(|part| matches!(part.verdict, Verdict::Over(_)))
    }

    pub(crate) fn has_run(&self) -> bool {
        self.pods.values().any(|part| part.ran)
    }

    /// Since when some of it holds a node while the rest has none.
    pub(crate) fn partial_since(&self) -> Option<Timestamp> {
        if self.parts < 2 || self.is_placed() {
            return None;
        }
        self.pods
            .values()
            .filter(|part| !matches!(part.verdict, Verdict::Over(_)))
            .filter_map(|part| part.bound_at)
            .min()
    }
}

impl World {
    /// Takes in a pod of ours; says which part of which attempt it is.
    pub(crate) fn see_pod(&mut self, pod: PodSeen) -> Option<(AttemptId, u32)> {
        let (attempt, part) = part_of(&pod.metadata)?;
        let need = self.need(pod.spec.need());
        let limit = pod.spec.memory_limit();
        let seen = part_seen(pod, limit, &self.nodes);
        let gang = self.gangs.entry(attempt.clone()).or_insert_with(|| Gang::of(&seen.1, Arc::clone(&need)));
        gang.need = need;
        gang.pods.insert(part, seen.0);
        Some((attempt, part))
    }

    /// A pod of ours is no more. Says what it was, unless another has its place already.
    pub(crate) fn lose_pod(&mut self, meta: &ObjectMeta) -> Option<(AttemptId, u32, Part)> {
        let (attempt, part) = part_of(meta)?;
        let gang = self.gangs.get_mut(&attempt)?;
        let same = gang.pods.get(&part).is_some_and(|seen| Some(&seen.uid) == meta.uid.as_ref());
        let mut lost = if same { gang.pods.remove(&part)? } else { return None };
        if lost.node.as_ref().is_some_and(|node| !self.nodes.contains_key(node)) && lost.if_deleted.code == "Deleted" {
            lost.if_deleted = fate::deleted(&Default::default(), false);
        }
        self.forget_if_empty(&attempt);
        Some((attempt, part, lost))
    }

    /// Pods of ours that a fresh list does not have.
    pub(crate) fn unlisted_pods(&self, listed: &HashSet<String>) -> Vec<(AttemptId, u32)> {
        let parts =
            self.gangs.iter().flat_map(|(attempt, gang)| gang.pods.iter().map(move |(part, pod)| (attempt, part, pod)));
        let missing = parts.filter(|(_, _, pod)| !listed.contains(&pod.uid));
        missing.map(|(attempt, part, _)| (attempt.clone(), *part)).collect()
    }

    /// As [`World::lose_pod`], for a pod whose end nobody saw.
    pub(crate) fn lose_part(&mut self, attempt: &AttemptId, part: u32) -> Option<Part> {
        let lost = self.gangs.get_mut(attempt)?.pods.remove(&part);
        self.forget_if_empty(attempt);
        lost
    }

    pub(crate) fn see_job(&mut self, job: JobSeen) -> Option<AttemptId> {
        let attempt = attempt_of(&job.metadata)?;
        let need = self.need(job.spec.need());
        let seen = Job {
            name: job.metadata.name.clone().unwrap_or_default(),
            uid: job.metadata.uid.clone().unwrap_or_default(),
            leaving: job.metadata.deletion_timestamp.is_some(),
            over: matches!(job.status.state.phase.as_str(), "Terminated" | "Failed" | "Aborted" | "Completed"),
            ..Job::default()
        };
        let gang = self.gangs.entry(attempt.clone()).or_insert_with(|| Gang::of(&job.metadata, Arc::clone(&need)));
        gang.need = need;
        let before = gang.job.take().map(|job| (job.says, job.enqueued));
        let (says, enqueued) = self.early.remove(&attempt).or(before).unwrap_or_default();
        gang.job = Some(Job { says, enqueued, ..seen });
        Some(attempt)
    }

    pub(crate) fn lose_job(&mut self, meta: &ObjectMeta) -> Option<AttemptId> {
        let attempt = attempt_of(meta)?;
        let gang = self.gangs.get_mut(&attempt)?;
        gang.job.take_if(|job| Some(&job.uid) == meta.uid.as_ref())?;
        self.forget_if_empty(&attempt);
        Some(attempt)
    }

    /// Jobs of ours that a fresh list does not have are no more.
    pub(crate) fn keep_jobs(&mut self, listed: &HashSet<String>) {
        for gang in self.gangs.values_mut() {
            gang.job.take_if(|job| !listed.contains(&job.uid));
        }
        self.gangs.retain(|_, gang| gang.job.is_some() || !gang.pods.is_empty());
    }

    pub(crate) fn see_group(&mut self, group: &GroupSeen) {
        let Some(attempt) = attempt_of(&group.metadata) else { return };
        let unscheduled = condition(&group.status.conditions, "Unschedulable").filter(|c| c.status == "True");
        let says = unscheduled.map(|c| c.message.clone()).unwrap_or_default();
        let enqueued = !matches!(group.status.phase.as_str(), "" | "Pending");
        match self.gangs.get_mut(&attempt).and_then(|gang| gang.job.as_mut()) {
            Some(job) => (job.says, job.enqueued) = (says, enqueued),
            None => drop(self.early.insert(attempt, (says, enqueued))),
        }
    }

    pub(crate) fn lose_group(&mut self, group: &GroupSeen) {
        if let Some(attempt) = attempt_of(&group.metadata) {
            self.early.remove(&attempt);
        }
    }

    /// Whether anything changed that decides where pods fit.
    pub(crate) fn see_node(&mut self, node: NodeSeen) -> bool {
        let node = node_seen(node);
        let same = self.nodes.get(&node.name) == Some(&node);
        if !same {
            self.nodes.insert(node.name.clone(), node);
        }
        !same
    }

    pub(crate) fn lose_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    pub(crate) fn keep_nodes(&mut self, listed: &HashSet<String>) {
        self.nodes.retain(|_, node| listed.contains(&node.uid));
    }

    /// Whether anything changed that decides where pods fit.
    pub(crate) fn see_bound(&mut self, pod: BoundSeen) -> bool {
        let (Some(uid), Some(node)) = (pod.metadata.uid, pod.spec.node_name.clone()) else { return false };
        if let Some(mark) = pod.metadata.labels.and_then(|mut labels| labels.remove(reservation::LABEL)) {
            self.reserved.insert(uid.clone(), mark);
        }
        let amounts = intern(&mut self.shapes, pod.spec.amounts());
        let now = (node, amounts);
        self.bound.insert(uid, now.clone()).as_ref() != Some(&now)
    }

    pub(crate) fn lose_bound(&mut self, uid: &str) {
        self.bound.remove(uid);
        self.reserved.remove(uid);
    }

    pub(crate) fn keep_bound(&mut self, listed: &HashSet<String>) {
        self.bound.retain(|uid, _| listed.contains(uid));
        self.reserved.retain(|uid, _| listed.contains(uid));
    }

    pub(crate) fn see_type(&mut self, kind: InstanceType) {
        self.types.insert(kind.metadata.name.unwrap_or_default(), kind.spec);
    }

    pub(crate) fn lose_type(&mut self, name: &str) {
        self.types.remove(name);
    }

    pub(crate) fn keep_types(&mut self, listed: &HashSet<String>) {
        self.types.retain(|name, _| listed.contains(name));
    }

    pub(crate) fn see_claim(&mut self, claim: &ClaimSeen) {
        if claim.metadata.deletion_timestamp.is_some() {
            // It stays for as long as pods use it, and takes no new ones: those would wait for ever.
            return self.lose_claim(&claim.metadata);
        }
        let Some(key) = claim_key(&claim.metadata) else { return };
        let path = claim.metadata.annotations.as_ref().and_then(|all| all.get(labels::MOUNT_PATH));
        let path = path.cloned().unwrap_or_default();
        self.claims.insert(key.clone(), Claim { name: key.1, path });
    }

    pub(crate) fn lose_claim(&mut self, meta: &ObjectMeta) {
        claim_key(meta).map(|key| self.claims.remove(&key));
    }

    pub(crate) fn keep_claims(&mut self, listed: &HashSet<(String, String)>) {
        self.claims.retain(|key, _| listed.contains(key));
    }

    pub(crate) fn keep_router(&mut self, listed: &HashSet<String>) {
        self.router.take_if(|service| service.metadata.uid.as_ref().is_none_or(|uid| !listed.contains(uid)));
    }

    /// The claims that jobs of a namespace get.
    pub(crate) fn claims(&self, namespace: &str) -> Claims {
        let mine = self.claims.iter().filter(|((place, _), _)| place == namespace);
        claims::sort_out(mine.map(|(_, claim)| claim.clone()))
    }

    /// An instance type by name; the one that needs no name is there even if nobody made it.
    pub(crate) fn instance_type(&self, name: &str) -> Option<InstanceTypeSpec> {
        let built_in = || Some(instance_type::built_in()).filter(|kind| kind.metadata.name.as_deref() == Some(name));
        self.types.get(name).cloned().or_else(|| built_in().map(|kind| kind.spec))
    }

    /// Names and shapes, with the built-in one.
    pub(crate) fn instance_types(&self) -> BTreeMap<String, InstanceTypeSpec> {
        let built_in = instance_type::built_in();
        let mut all = BTreeMap::from([(built_in.metadata.name.unwrap_or_default(), built_in.spec)]);
        all.extend(self.types.clone());
        all
    }

    /// What is left of every node.
    pub(crate) fn rooms(&self) -> Vec<Room<'_>> {
        let mut rooms: Vec<_> = self.nodes.values().map(Room::empty).collect();
        let at: HashMap<_, _> = self.nodes.keys().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        for (node, amounts) in self.bound.values() {
            if let Some(at) = at.get(node.as_str()) {
                rooms[*at].fill(amounts, 1);
            }
        }
        // Two watches bring word of a pod of ours; it takes room from the first word to the last.
        for (gang, part) in self.gangs.values().flat_map(|gang| gang.pods.values().map(move |part| (gang, part))) {
            let unheard = !self.bound.contains_key(&part.uid) && !matches!(part.verdict, Verdict::Over(_));
            if let Some(at) = part.node.as_ref().filter(|_| unheard).and_then(|node| at.get(node.as_str())) {
                rooms[*at].fill(&gang.need.amounts, 1);
            }
        }
        rooms
    }

    /// As [`World::rooms`], less what pods need that the scheduler has and has not placed yet.
    pub(crate) fn rooms_left(&self) -> Vec<Room<'_>> {
        let mut rooms = self.rooms();
        for gang in self.gangs.values().filter(|gang| gang.job.is_none()) {
            let loose = gang.pods.values().filter(|part| !part.held && part.node.is_none() && !part.leaving);
            promise(&gang.need, loose.count() as u64, &mut rooms);
        }
        rooms
    }

    /// Whether a node's memory is held, by its mark.
    pub(crate) fn is_reserved(&self, mark: &str) -> bool {
        self.reserved.values().any(|held| held == mark)
    }

    fn need(&mut self, need: Need) -> Arc<Need> {
        intern(&mut self.needs, need)
    }

    fn forget_if_empty(&mut self, attempt: &AttemptId) {
        if self.gangs.get(attempt).is_some_and(|gang| gang.job.is_none() && gang.pods.is_empty()) {
            self.gangs.remove(attempt);
        }
        // What no gang has any more is not worth keeping.
        if self.needs.len() > 64 {
            self.needs.retain(|need| Arc::strong_count(need) > 1);
        }
        if self.shapes.len() > 256 {
            self.shapes.retain(|shape| Arc::strong_count(shape) > 1);
        }
    }
}

impl Gang {
    fn of(meta: &ObjectMeta, need: Arc<Need>) -> Gang {
        let label = |name: &str| meta.labels.as_ref().and_then(|all| all.get(name));
        let note = |name: &str| meta.annotations.as_ref().and_then(|all| all.get(name));
        Gang {
            namespace: meta.namespace.clone().unwrap_or_default(),
            parts: label(labels::PARTS).and_then(|text| text.parse().ok()).unwrap_or(1),
            priority: note(labels::PRIORITY).and_then(|text| text.parse().ok()).unwrap_or_default(),
            since: meta.creation_timestamp.as_ref().map_or(Timestamp(0), instant),
            need,
            secret: note(labels::SECRET).cloned().unwrap_or_default(),
            job: None,
            pods: BTreeMap::new(),
        }
    }
}

pub(crate) fn claim_key(meta: &ObjectMeta) -> Option<(String, String)> {
    Some((meta.namespace.clone()?, meta.name.clone()?))
}

pub(crate) fn attempt_of(meta: &ObjectMeta) -> Option<AttemptId> {
    AttemptId::parse(meta.labels.as_ref()?.get(names::ATTEMPT)?).ok()
}

fn part_of(meta: &ObjectMeta) -> Option<(AttemptId, u32)> {
    let all = meta.labels.as_ref()?;
    let part = all.get(labels::PART).or_else(|| all.get(labels::VOLCANO_PART))?;
    Some((attempt_of(meta)?, part.parse().ok()?))
}

fn intern<T: std::hash::Hash + Eq>(all: &mut HashSet<Arc<T>>, one: T) -> Arc<T> {
    match all.get(&one) {
        Some(known) => Arc::clone(known),
        None => {
            let new = Arc::new(one);
            all.insert(Arc::clone(&new));
            new
        }
    }
}

fn part_seen(pod: PodSeen, memory_limit: u64, nodes: &BTreeMap<String, Node>) -> (Part, ObjectMeta) {
    let PodSeen { metadata, spec, status, .. } = pod;
    let scheduled = condition(&status.conditions, "PodScheduled");
    let bound = scheduled.filter(|c| c.status == "True").and_then(|c| c.last_transition_time.as_ref());
    let ran = |one: &super::seen::ContainerStatus| one.state.running.is_some() || one.state.terminated.is_some();
    let node_exists = spec.node_name.as_ref().is_none_or(|node| nodes.contains_key(node));
    let part = Part {
        pod: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        version: metadata.resource_version.clone().unwrap_or_default(),
        // A node may be written into a pod before anyone says when.
        bound_at: spec.node_name.as_ref().and(bound.or(metadata.creation_timestamp.as_ref())).map(instant),
        node: spec.node_name,
        gated: spec.scheduling_gates.iter().any(|gate| gate.name == labels::GATE),
        held: !spec.scheduling_gates.is_empty(),
        leaving: metadata.deletion_timestamp.is_some(),
        preempts: spec.priority > 0 && spec.preemption_policy != "Never",
        ran: status.container_statuses.iter().any(ran)
            || matches!(status.phase.as_str(), "Running" | "Succeeded" | "Failed"),
        verdict: fate::verdict(&status, memory_limit),
        says: scheduled.filter(|c| c.status == "False").map(|c| c.message.clone()).unwrap_or_default(),
        if_deleted: fate::deleted(&status, node_exists),
    };
    (part, metadata)
}

fn node_seen(node: NodeSeen) -> Node {
    let ready = condition(&node.status.conditions, "Ready").is_some_and(|c| c.status == "True");
    let pods = node.status.allocatable.get("pods").and_then(quantity::units).unwrap_or(110);
    let address =
        |kind: &str| node.status.addresses.iter().find(|one| one.r#type == kind).map(|one| one.address.clone());
    let address = address("ExternalIP").or_else(|| address("InternalIP")).unwrap_or_default();
    Node {
        address,
        name: node.metadata.name.unwrap_or_default(),
        uid: node.metadata.uid.unwrap_or_default(),
        ready,
        cordoned: node.spec.unschedulable,
        // Kubernetes marks a cordoned node with a taint as well; one reason is enough.
        taints: node.spec.taints.into_iter().filter(|taint| taint.key != "node.kubernetes.io/unschedulable").collect(),
        labels: node.metadata.labels.unwrap_or_default(),
        allocatable: Amounts::of(&node.status.allocatable),
        memory_bytes: node.status.capacity.get("memory").and_then(quantity::units).unwrap_or_default(),
        pods,
    }
}

#[cfg(test)]
mod tests;
