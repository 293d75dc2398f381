//! One pass: compares what is with what should be, and starts what is missing.

use super::{
    Desk, Done, FactsSent,
    memo::{Rest, Taken},
    wait::says,
};
use crate::operator::{
    act::{self, Recipe},
    claims::Claims,
    facts,
    fate::{self, Fate, Verdict},
    fit::{self, promise},
    link::Holding,
    release::{self, Gated, Manner},
    seen::PodStatus,
    world::{Gang, Part},
};
use crate::reservation;
use domain::{AttemptId, cluster::ClusterWhat};
use k8s_openapi::{
    api::core::v1::{Node, NodeStatus, Pod},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use kube::Api;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// Launches that are carried out at once.
const MAKING: usize = 48;
/// A gang that holds nodes in part for this long is taken back; the rules allow it 30 s.
const PARTIAL_AT_MOST: Duration = Duration::from_secs(20);
/// What held nodes for longer was once whole: in part, an operator would have taken it back.
const WHOLE_ONCE: Duration = Duration::from_secs(120);
/// What an agent needs to end its command, to save and to report.
const STOP_AT_MOST: Duration = Duration::from_secs(90);
const STOP_GRACE_SECONDS: u32 = 30;
/// What lacks its Secret and is not launched again is left over.
const LACKING_AT_MOST: Duration = Duration::from_secs(120);
/// What was made and does not come with the watches for this long was deleted by someone.
const UNSEEN_AT_MOST: Duration = Duration::from_secs(10);
const REMOVE_AGAIN: Duration = Duration::from_secs(20);
const REHEARSE_AGAIN: Duration = Duration::from_secs(30);
const FACTS_EVERY: Duration = Duration::from_secs(5);
const RESERVE_EVERY: Duration = Duration::from_secs(5);
const RESERVE_AGAIN: Duration = Duration::from_secs(120);
/// Pods that are made for nodes at once.
const RESERVING: usize = 20;

impl Desk {
    pub(super) fn pass(&mut self) {
        let complete = self.lists.are_complete();
        self.cx.metrics.came_round(complete);
        if !complete {
            return;
        }
        self.note_made();
        let gangs = &self.world.gangs;
        self.made.retain(|attempt, at| !gangs.contains_key(attempt) && at.elapsed() < UNSEEN_AT_MOST);
        let settled = self.settle();
        self.launch();
        self.tend();
        self.release();
        self.explain();
        self.report();
        self.reserve();
        self.publish();
        // Until it is known what was made completely, the server would send all of it again.
        if settled || self.holding.borrow().is_some() {
            let holding = self.held();
            self.holding.send_if_modified(|now| now.replace(holding.clone()) != Some(holding));
        }
    }

    /// Finds out whether gangs of an earlier operator were made to the end. Says whether that is known of all.
    fn settle(&mut self) -> bool {
        let unsure = |(attempt, gang): &(&AttemptId, &Gang)| {
            let memo = self.memo(attempt);
            memo.sure.is_none()
                && !gang.has_run()
                && !gang.is_leaving()
                && memo.removing.is_none()
                && !self.launches.contains_key(*attempt)
        };
        let all: Vec<_> = self
            .world
            .gangs
            .iter()
            .filter(unsure)
            .map(|(a, g)| (a.clone(), g.namespace.clone(), g.secret.clone()))
            .collect();
        let settled = all.is_empty();
        for (attempt, namespace, secret) in all {
            let memo = self.memos.entry(attempt.clone()).or_default();
            if self.acts.len() >= MAKING || std::mem::replace(&mut memo.busy, true) {
                continue;
            }
            let client = self.cx.client.clone();
            self.start(async move {
                let exists = act::has_secret(&client, &namespace, &secret).await;
                Done::Sure { attempt, exists }
            });
        }
        settled
    }

    /// Carries out launches, as many at once as the cluster takes well.
    fn launch(&mut self) {
        let now = Instant::now();
        let mut making = self.launches.values().filter(|pending| pending.making).count();
        let due = self.launches.iter().filter(|(_, pending)| !pending.making && pending.after <= now);
        let due: Vec<_> = due.map(|(attempt, _)| attempt.clone()).take(MAKING.saturating_sub(making)).collect();
        for attempt in due {
            if making >= MAKING || self.world.gangs.get(&attempt).is_some_and(Gang::is_leaving) {
                continue;
            }
            if let Some(recipe) = self.recipe(&attempt) {
                making += 1;
                let client = self.cx.client.clone();
                self.memos.entry(attempt.clone()).or_default().taken_back = false;
                self.start(async move {
                    let result = act::make(&client, &recipe).await;
                    Done::Made { attempt, result }
                });
            }
        }
    }

    fn recipe(&mut self, attempt: &AttemptId) -> Option<Recipe> {
        let pending = self.launches.get_mut(attempt)?;
        let launch = pending.launch.clone();
        let Some(shape) = self.world.instance_type(&launch.instance_type) else {
            pending.after = Instant::now() + pending.pace.after_failure();
            let there: Vec<_> = self.world.instance_types().into_keys().collect();
            let text =
                format!("the cluster has no instance type `{}`; it has {}", launch.instance_type, there.join(", "));
            self.say(attempt, text);
            return None;
        };
        let shape = match &launch.replica {
            Some(replica) => shape.with(&replica.requests, &replica.limits),
            None => shape,
        };
        pending.making = true;
        let Claims { mounted: claims, left_out } = self.world.claims(&launch.target.namespace);
        self.leave_out(attempt, &left_out);
        let kind = self.cx.kind(&launch);
        Some(Recipe { launch, shape, claims, options: Arc::clone(&self.cx.options), kind })
    }

    /// Tells whoever may look for a volume in vain, once.
    fn leave_out(&mut self, attempt: &AttemptId, reasons: &[String]) {
        let memo = self.memos.entry(attempt.clone()).or_default();
        if reasons.is_empty() || std::mem::replace(&mut memo.told_claims, true) {
            return;
        }
        let text = reasons.join("; ");
        tracing::warn!(attempt.id = %attempt, "{text}");
        self.tell(attempt, ClusterWhat::Notice { text });
    }

    /// Sees to gangs that got stuck somewhere.
    fn tend(&mut self) {
        let attempts: Vec<_> = self.world.gangs.keys().cloned().collect();
        for attempt in attempts {
            self.tend_one(&attempt);
        }
    }

    fn tend_one(&mut self, attempt: &AttemptId) {
        let Some(gang) = self.world.gangs.get(attempt) else { return };
        let memo = self.memo(attempt);
        if let Some(since) = memo.removing {
            // Volcano may have made a pod since, or the request was lost.
            if since.elapsed() > REMOVE_AGAIN && !memo.busy {
                let namespace = gang.namespace.clone();
                self.memos.entry(attempt.clone()).or_default().removing = Some(Instant::now());
                self.remove(namespace, vec![attempt.clone()], super::REMOVE_GRACE_SECONDS);
            }
            return;
        }
        if memo.busy || self.launches.contains_key(attempt) {
            return;
        }
        if let Some(since) = memo.stop_since {
            let (nothing_runs, late) = (!gang.has_run(), since.elapsed() > STOP_AT_MOST);
            if late && let Some(node) = self.cut_off_on(gang) {
                let why = format!("it was stopped; node `{node}` does not answer, and ends the pod when it does again");
                return self.gone(attempt, 0, &Fate { code: "Stopped", why, retryable: false });
            }
            if !gang.is_leaving() && (nothing_runs || late) {
                self.end_stopped(attempt, nothing_runs);
            }
            return;
        }
        if gang.is_leaving() {
            return;
        }
        if memo.sure == Some(false) && !gang.has_run() {
            return self.sweep_lacking(attempt);
        }
        if let Some((part, fate)) = self.given_up(attempt) {
            return self.gone(attempt, part, &fate);
        }
        if memo.told_gone.is_empty() && self.is_partial_for(gang, PARTIAL_AT_MOST) {
            return match lost_part(gang).filter(|_| self.is_partial_for(gang, WHOLE_ONCE)) {
                // It went while nobody looked.
                Some(part) => self.gone(attempt, part, &fate::deleted(&PodStatus::default(), true)),
                None => self.take_back(attempt),
            };
        }
        if says(gang).is_some_and(wants_a_claim) && !gang.has_run() {
            return self.take_back(attempt);
        }
        if gang.job.as_ref().is_some_and(|job| job.over) && gang.pods.is_empty() {
            let why = "Volcano ended the job before all of its pods were made".to_owned();
            return self.gone(attempt, 0, &Fate { code: "EndedByVolcano", why, retryable: true });
        }
        self.rehearse(attempt);
    }

    /// A node that does not answer, where all that is left of the gang is on such ones.
    fn cut_off_on<'g>(&self, gang: &'g Gang) -> Option<&'g str> {
        let mut live = gang.pods.values().filter(|part| !matches!(part.verdict, Verdict::Over(_))).peekable();
        let first = live.peek()?.node.as_deref()?;
        let answers = |part: &Part| {
            part.node.as_ref().is_none_or(|node| self.world.nodes.get(node).is_some_and(|node| node.ready))
        };
        (!live.any(answers)).then_some(first)
    }

    fn end_stopped(&mut self, attempt: &AttemptId, nothing_ran: bool) {
        let Some(namespace) = self.world.gangs.get(attempt).map(|gang| gang.namespace.clone()) else { return };
        let grace = if nothing_ran { 0 } else { STOP_GRACE_SECONDS };
        if nothing_ran {
            let why = "it was stopped before anything of it ran".to_owned();
            self.gone(attempt, 0, &Fate { code: "Stopped", why, retryable: false });
        } else {
            self.note_on(attempt, "Stopping", "its agent did not end it in time; the pods are deleted");
        }
        self.memos.entry(attempt.clone()).or_default().stop_since = Some(Instant::now());
        self.remove(namespace, vec![attempt.clone()], grace);
    }

    /// What was made only in part is either launched again or left over.
    fn sweep_lacking(&mut self, attempt: &AttemptId) {
        let memo = self.memos.entry(attempt.clone()).or_default();
        let since = *memo.lacking.get_or_insert_with(Instant::now);
        if since.elapsed() > LACKING_AT_MOST {
            memo.taken_back = true;
            memo.lacking = None;
            let namespace = self.world.gangs[attempt].namespace.clone();
            self.remove(namespace, vec![attempt.clone()], 0);
        }
    }

    /// A part that could not start for longer than it is given.
    fn given_up(&self, attempt: &AttemptId) -> Option<(u32, Fate)> {
        let (gang, memo) = (self.world.gangs.get(attempt)?, self.memo(attempt));
        let late = memo.stalled.iter().filter(|(part, _)| !memo.told_gone.contains(part));
        late.filter_map(|(part, since)| match &gang.pods.get(part)?.verdict {
            Verdict::Stalled { fate, patience } if since.elapsed() > *patience => Some((*part, fate.clone())),
            _ => None,
        })
        .next()
    }

    fn is_partial_for(&self, gang: &Gang, time: Duration) -> bool {
        gang.partial_since().is_some_and(|since| self.cx.cluster_now().since(since) > time)
    }

    fn take_back(&mut self, attempt: &AttemptId) {
        let Some(gang) = self.world.gangs.get(attempt).cloned() else { return };
        self.note_on(
            attempt,
            "TakenBack",
            "a part of the gang found no node in time; it is made anew, and waits until all of it fits",
        );
        let memo = self.memos.entry(attempt.clone()).or_default();
        (memo.busy, memo.taken_back) = (true, true);
        let taken = Taken { fitted: memo.fitted, says: says(&gang).unwrap_or_default().to_owned() };
        let (client, attempt) = (self.cx.client.clone(), attempt.clone());
        self.start(async move {
            let result = act::take_back(&client, &attempt, &gang).await;
            Done::TakenBack { attempt, taken, result }
        });
    }

    /// Where Volcano may make pods and there are none, the cluster is asked why.
    fn rehearse(&mut self, attempt: &AttemptId) {
        let gang = &self.world.gangs[attempt];
        let Some(job) = gang.job.as_ref().filter(|job| job.enqueued && !job.over) else { return };
        let memo = self.memo(attempt);
        let lately = memo.rehearsed.is_some_and(|at| at.elapsed() < REHEARSE_AGAIN);
        let fresh = self.cx.cluster_now().since(gang.since) < Duration::from_secs(3);
        let early = self.rehearse_after.get(&gang.namespace).is_some_and(|after| *after > Instant::now());
        if gang.pods.len() >= gang.parts as usize || lately || fresh || early || !memo.told_gone.is_empty() {
            return;
        }
        let (client, namespace, name) = (self.cx.client.clone(), gang.namespace.clone(), job.name.clone());
        let memo = self.memos.entry(attempt.clone()).or_default();
        (memo.busy, memo.rehearsed) = (true, Some(Instant::now()));
        // One at a time; how it ends says when the next may be.
        self.rehearse_after.insert(namespace.clone(), Instant::now() + REHEARSE_AGAIN);
        let attempt = attempt.clone();
        self.start(async move {
            let refusal = act::rehearse(&client, &namespace, &name).await;
            Done::Rehearsed { attempt, namespace, refusal }
        });
    }

    /// Gives gangs to the scheduler, whole.
    fn release(&mut self) {
        self.freeing.retain(|attempt| {
            self.world.gangs.get(attempt).is_some_and(|gang| gang.pods.values().any(|part| part.gated))
        });
        let waiting: Vec<_> = self.world.gangs.iter().filter(|(attempt, gang)| self.may_go(attempt, gang)).collect();
        if waiting.is_empty() {
            return;
        }
        // What an operator before began is finished: some of it is with the scheduler already.
        let (mut chosen, gated): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, gang)| gang.is_free());
        let mut rooms = self.world.rooms_left();
        let going = self.freeing.iter().filter_map(|attempt| self.world.gangs.get(attempt));
        for gang in going.chain(chosen.iter().map(|(_, gang)| *gang)) {
            promise(&gang.need, gated_pods(gang).len() as u64, &mut rooms);
        }
        let now = self.cx.cluster_now();
        let candidates = gated.iter().map(|(attempt, gang)| Gated {
            attempt: (*attempt).clone(),
            need: Arc::clone(&gang.need),
            parts: gang.parts.into(),
            priority: gang.priority,
            waited: now.since(gang.since),
            rest: self.rests.get(*attempt).map_or(release::Rest::None, Rest::now),
            preempts: gang.parts == 1 && gang.pods.values().any(|part| part.preempts),
        });
        let settings = &self.cx.settings;
        let manner = Manner { grow: settings.node_autoscaling, reserves: settings.memory_reservation };
        let freed = release::release(candidates.collect(), &mut rooms, manner);
        let freed: HashMap<_, _> = freed.into_iter().map(|freed| (freed.attempt, freed.fits)).collect();
        chosen.extend(gated.into_iter().filter(|(attempt, _)| freed.contains_key(*attempt)));
        let chosen: Vec<_> = chosen
            .into_iter()
            .map(|(attempt, gang)| (attempt.clone(), gang.namespace.clone(), gated_pods(gang)))
            .collect();
        for (attempt, namespace, pods) in chosen {
            self.freeing.insert(attempt.clone());
            self.memos.entry(attempt.clone()).or_default().fitted = freed.get(&attempt).copied().unwrap_or_default();
            let client = self.cx.client.clone();
            self.start(async move {
                let result = act::free(&client, &namespace, pods).await;
                Done::Freed { attempt, result }
            });
        }
    }

    fn may_go(&self, attempt: &AttemptId, gang: &Gang) -> bool {
        let memo = self.memo(attempt);
        let gated = gang.job.is_none() && gang.is_whole() && gang.pods.values().any(|part| part.gated);
        let wanted = !memo.is_quiet() && memo.stop_since.is_none() && memo.told_gone.is_empty() && !gang.is_leaving();
        gated && wanted && memo.sure == Some(true) && !memo.busy && !self.freeing.contains(attempt)
    }

    /// What the server is told with the next poll.
    pub(super) fn held(&self) -> Holding {
        let gangs = self.world.gangs.iter().map(|(attempt, gang)| (attempt, gang, self.memo(attempt)));
        let (mut holds, mut leaving) = (self.departed.clone(), Vec::new());
        holds.extend(self.launches.keys().chain(self.made.keys()).cloned());
        for (attempt, gang, memo) in gangs {
            if memo.is_held(gang) {
                holds.insert(attempt.clone());
            }
            // What was stopped and has ended is to be removed, so the server must hear that it is still here.
            let stopping = memo.stop_since.is_some() && !gang.is_over();
            // What others delete may have to be stopped all the same, and what we did in an earlier life is removed once more.
            if memo.removing.is_some() || stopping {
                leaving.push(attempt.clone());
            }
        }
        Holding { holds: holds.into_iter().collect(), leaving, facts: self.facts.digest.clone() }
    }

    /// Sends the facts when they changed, and no more often than every few seconds.
    fn report(&mut self) {
        self.measure();
        let lately = self.facts.at.is_some_and(|at| at.elapsed() < FACTS_EVERY);
        if lately || !(self.facts.dirty || self.facts.wanted) {
            return;
        }
        let facts = facts::facts(&self.world, &self.cx.about);
        let digest = facts.digest();
        if digest != self.facts.digest || self.facts.wanted {
            self.cx.outbox.facts(facts);
        }
        self.facts = FactsSent { digest, at: Some(Instant::now()), dirty: false, wanted: false };
    }

    fn measure(&self) {
        let metrics = &self.cx.metrics;
        let placed = self.world.gangs.values().filter(|gang| gang.is_placed()).count();
        metrics.attempts([
            ("placed", placed),
            ("waiting", self.world.gangs.len() - placed),
            ("to make", self.launches.len()),
        ]);
        let mut phases = [("gated", 0), ("pending", 0), ("running", 0), ("ended", 0)];
        for part in self.world.gangs.values().flat_map(|gang| gang.pods.values()) {
            let at = match part {
                part if matches!(part.verdict, Verdict::Over(_)) => 3,
                part if part.ran => 2,
                part if part.gated => 0,
                _ => 1,
            };
            phases[at].1 += 1;
        }
        metrics.pods(phases);
        metrics.nodes.set(self.world.nodes.len() as i64);
    }

    /// Has a pod on each node that holds a share of its memory.
    fn reserve(&mut self) {
        if !self.cx.settings.memory_reservation || self.reserve_at > Instant::now() {
            return;
        }
        self.reserve_at = Instant::now() + RESERVE_EVERY;
        let image = self.cx.options.image.clone();
        self.reserving.retain(|_, at| at.elapsed() < RESERVE_AGAIN);
        let mut pods = Vec::new();
        let selector = &self.cx.settings.node_selector;
        let ours = |node: &&fit::Node| selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
        for node in self.world.nodes.values().filter(ours).filter(|node| !self.reserving.contains_key(&node.uid)) {
            let memory = BTreeMap::from([("memory".to_owned(), Quantity(node.memory_bytes.to_string()))]);
            let metadata =
                ObjectMeta { name: Some(node.name.clone()), uid: Some(node.uid.clone()), ..ObjectMeta::default() };
            let status = NodeStatus { capacity: Some(memory), ..NodeStatus::default() };
            let node_view = Node { metadata, status: Some(status), ..Node::default() };
            let Some(pod) = reservation::pod(&node_view, &self.cx.settings, &self.cx.namespace, &image) else {
                continue;
            };
            let mark =
                pod.metadata.labels.as_ref().and_then(|all| all.get(reservation::LABEL)).cloned().unwrap_or_default();
            if !self.world.is_reserved(&mark) && pods.len() < RESERVING {
                pods.push((node.uid.clone(), pod));
            }
        }
        for (uid, pod) in pods {
            self.reserving.insert(uid, Instant::now());
            let api: Api<Pod> = Api::namespaced(self.cx.client.clone(), &self.cx.namespace);
            self.start(async move {
                if let Err(error) = reservation::keep(&api, &pod).await {
                    tracing::warn!(error = %error, "cannot hold back memory of a node");
                }
                Done::Other
            });
        }
    }
}

/// The part that a gang had and has no more: pods behind gates are all made before the first is let go.
fn lost_part(gang: &Gang) -> Option<u32> {
    let all_placed = gang.job.is_none() && gang.pods.values().all(|part| part.node.is_some());
    (0..gang.parts).find(|part| all_placed && !gang.pods.contains_key(part))
}

/// The scheduler waits for a volume claim that was deleted since the pod was made; made anew, it does without.
fn wants_a_claim(says: &str) -> bool {
    says.contains("persistentvolumeclaim") && (says.contains("not found") || says.contains("is being deleted"))
}

fn gated_pods(gang: &Gang) -> Vec<String> {
    gang.pods.values().filter(|part| part.gated).map(|part| part.pod.clone()).collect()
}
