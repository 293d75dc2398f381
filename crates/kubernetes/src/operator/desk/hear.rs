//! What the watches bring goes into the world, and what it means for an attempt to the server.

use super::Desk;
use crate::operator::{
    fate::{Fate, Verdict},
    seen::NodeSeen,
    watch::{Change, Seen},
    world::{Part, claim_key},
};
use domain::{AttemptId, cluster::ClusterWhat};
use kube::ResourceExt;
use std::collections::HashSet;
use tokio::time::Instant;

/// What the watches have listed.
#[derive(Default)]
pub(super) struct Lists {
    pods: Listing<String>,
    bound: Listing<String>,
    nodes: Listing<String>,
    jobs: Listing<String>,
    groups: Listing<String>,
    types: Listing<String>,
    claims: Listing<(String, String)>,
    services: Listing<String>,
}

/// One watch: what a list that is under way has brought so far.
struct Listing<T> {
    listed: HashSet<T>,
    under_way: bool,
    /// It was listed at least once.
    once: bool,
}

impl<T> Default for Listing<T> {
    fn default() -> Listing<T> {
        Listing { listed: HashSet::new(), under_way: false, once: false }
    }
}

impl<T: std::hash::Hash + Eq> Listing<T> {
    fn start(&mut self) {
        self.listed.clear();
        self.under_way = true;
    }

    fn note(&mut self, one: impl FnOnce() -> Option<T>) {
        if self.under_way {
            self.listed.extend(one());
        }
    }

    fn end(&mut self) -> HashSet<T> {
        self.under_way = false;
        self.once = true;
        std::mem::take(&mut self.listed)
    }
}

impl Lists {
    pub(super) fn new(volcano: bool) -> Lists {
        let mut lists = Lists::default();
        lists.jobs.once = !volcano;
        lists.groups.once = !volcano;
        lists
    }

    /// Everything there is is known.
    pub(super) fn are_complete(&self) -> bool {
        let all = [&self.pods, &self.bound, &self.nodes, &self.jobs, &self.groups, &self.types];
        all.iter().all(|list| list.once) && self.claims.once
    }
}

impl Desk {
    pub(super) fn hear(&mut self, seen: Seen) {
        match seen {
            Seen::Pod(change) => self.hear_pod(change),
            Seen::Job(change) => self.hear_job(change),
            Seen::Group(change) => match change {
                Change::Start => self.lists.groups.start(),
                Change::Seen(group) => self.world.see_group(&group),
                Change::Listed => drop(self.lists.groups.end()),
                Change::Gone(group) => self.world.lose_group(&group),
            },
            Seen::Bound(change) => {
                self.facts.dirty |= match change {
                    Change::Start => {
                        self.lists.bound.start();
                        false
                    }
                    Change::Seen(pod) => {
                        self.lists.bound.note(|| pod.uid());
                        self.world.see_bound(*pod)
                    }
                    Change::Listed => {
                        self.world.keep_bound(&self.lists.bound.end());
                        true
                    }
                    Change::Gone(pod) => {
                        self.world.lose_bound(&pod.uid().unwrap_or_default());
                        true
                    }
                }
            }
            Seen::Node(change) => {
                self.facts.dirty |= match change {
                    Change::Start => {
                        self.lists.nodes.start();
                        false
                    }
                    Change::Seen(node) => {
                        self.lists.nodes.note(|| node.uid());
                        self.see_node(*node)
                    }
                    Change::Listed => {
                        self.world.keep_nodes(&self.lists.nodes.end());
                        true
                    }
                    Change::Gone(node) => {
                        self.world.lose_node(&node.name_any());
                        true
                    }
                }
            }
            Seen::Type(change) => {
                self.facts.dirty = true;
                match change {
                    Change::Start => self.lists.types.start(),
                    Change::Seen(kind) => {
                        let name = kind.name_any();
                        self.lists.types.note(|| Some(name.clone()));
                        match kind.0 {
                            Ok(kind) => self.world.see_type(kind),
                            Err(error) => {
                                tracing::warn!(name, error = %error, "an instance type cannot be read and is left out");
                                self.world.lose_type(&name);
                            }
                        }
                    }
                    Change::Listed => self.world.keep_types(&self.lists.types.end()),
                    Change::Gone(kind) => self.world.lose_type(&kind.name_any()),
                }
            }
            Seen::Claim(change) => match change {
                Change::Start => self.lists.claims.start(),
                Change::Seen(claim) => {
                    self.lists.claims.note(|| claim_key(&claim.metadata));
                    self.world.see_claim(&claim);
                }
                Change::Listed => self.world.keep_claims(&self.lists.claims.end()),
                Change::Gone(claim) => self.world.lose_claim(&claim.metadata),
            },
            Seen::Service(change) => {
                self.facts.dirty = true;
                match change {
                    Change::Start => self.lists.services.start(),
                    Change::Seen(service) => {
                        self.lists.services.note(|| service.uid());
                        self.world.router = Some(*service);
                    }
                    Change::Listed => self.world.keep_router(&self.lists.services.end()),
                    Change::Gone(_) => self.world.router = None,
                }
            }
        }
    }

    /// Whether anything changed that decides where pods fit. What runs on a node that stops answering is told so.
    fn see_node(&mut self, node: NodeSeen) -> bool {
        let name = node.name_any();
        let ready = |desk: &Desk| desk.world.nodes.get(&name).map(|node| node.ready);
        let before = ready(self);
        let changed = self.world.see_node(node);
        let text = match (before, ready(self)) {
            (Some(true), Some(false)) => format!(
                "node `{name}` stopped answering; if it does not come back, remove it with `kubectl delete node {name}`, and the \
                 job is tried again elsewhere"
            ),
            (Some(false), Some(true)) => format!("node `{name}` answers again"),
            _ => return changed,
        };
        let there = |part: &Part| part.node.as_ref() == Some(&name) && !matches!(part.verdict, Verdict::Over(_));
        for (attempt, _) in self.world.gangs.iter().filter(|(_, gang)| gang.pods.values().any(there)) {
            self.tell(attempt, ClusterWhat::Notice { text: text.clone() });
        }
        changed
    }

    fn hear_pod(&mut self, change: Change<Box<crate::operator::seen::PodSeen>>) {
        match change {
            Change::Start => self.lists.pods.start(),
            Change::Seen(pod) => {
                self.lists.pods.note(|| pod.uid());
                if let Some((attempt, part)) = self.world.see_pod(*pod) {
                    self.follow(&attempt, part);
                }
            }
            Change::Listed => {
                let listed = self.lists.pods.end();
                for (attempt, part) in self.world.unlisted_pods(&listed) {
                    if let Some(lost) = self.world.lose_part(&attempt, part) {
                        self.lost(&attempt, part, &lost);
                    }
                }
            }
            Change::Gone(pod) => {
                if let Some((attempt, part, lost)) = self.world.lose_pod(&pod.metadata) {
                    self.lost(&attempt, part, &lost);
                }
            }
        }
    }

    fn hear_job(&mut self, change: Change<Box<crate::operator::seen::JobSeen>>) {
        match change {
            Change::Start => self.lists.jobs.start(),
            Change::Seen(job) => {
                self.lists.jobs.note(|| job.uid());
                self.world.see_job(*job);
            }
            Change::Listed => self.world.keep_jobs(&self.lists.jobs.end()),
            Change::Gone(job) => {
                let Some(attempt) = self.world.lose_job(&job.metadata) else { return };
                // Its pods speak for themselves, where it had any.
                let silent = !self.world.gangs.contains_key(&attempt) && !self.departed.contains(&attempt);
                if silent && !self.memo(&attempt).is_quiet() {
                    self.gone(
                        &attempt,
                        0,
                        &Fate { code: "Deleted", why: "its Volcano Job was deleted".to_owned(), retryable: true },
                    );
                }
                self.forget(&attempt);
            }
        }
    }

    /// Tells what is new about a part.
    fn follow(&mut self, attempt: &AttemptId, part: u32) {
        let Some(pod) = self.world.gangs.get(attempt).and_then(|gang| gang.pods.get(&part)) else { return };
        let (node, verdict) = (pod.node.clone(), pod.verdict.clone());
        let memo = self.memos.entry(attempt.clone()).or_default();
        let newly_bound = node.filter(|_| memo.told_bound.insert(part));
        match &verdict {
            Verdict::Stalled { .. } => drop(memo.stalled.entry(part).or_insert_with(Instant::now)),
            _ => drop(memo.stalled.remove(&part)),
        }
        if let Some(node) = newly_bound {
            self.tell(attempt, ClusterWhat::Bound { part, node });
        }
        if let Verdict::Over(fate) = verdict {
            self.gone(attempt, part, &fate);
        }
    }

    /// A pod is no more.
    fn lost(&mut self, attempt: &AttemptId, part: u32, pod: &Part) {
        self.freeing.remove(attempt);
        let stopped = self.memo(attempt).stop_since.is_some();
        match stopped {
            true => self.gone(
                attempt,
                part,
                &Fate { code: "Stopped", why: "its pod was stopped".to_owned(), retryable: false },
            ),
            false => self.gone(attempt, part, &pod.if_deleted),
        }
        self.forget(attempt);
    }

    /// Tells the end of a part once, unless it was brought about by us.
    pub(super) fn gone(&mut self, attempt: &AttemptId, part: u32, fate: &Fate) {
        let memo = self.memos.entry(attempt.clone()).or_default();
        if memo.is_quiet() || !memo.told_gone.insert(part) {
            return;
        }
        self.note_on(attempt, "Gone", &fate.why);
        self.depart(attempt, part, fate.code, fate.why.clone(), fate.retryable);
    }

    /// Drops what is remembered of an attempt of which nothing is left.
    fn forget(&mut self, attempt: &AttemptId) {
        if self.world.gangs.contains_key(attempt) {
            return;
        }
        self.memos.remove(attempt);
        self.freeing.remove(attempt);
    }
}
