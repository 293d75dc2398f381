//! A managed cluster as its steward tells of it: what it has, what it holds, and why something waits.

use super::Managed;
use compute::{Held, Part, PartState, Provider};
use domain::{
    AttemptId, Resources,
    cluster::{ClusterFacts, ClusterInstanceType, ClusterNode, Places},
    machine::{PartFate, Standing},
    resources::DEFAULT_INSTANCE_TYPE,
};
use std::collections::BTreeMap;
use store::MachineRow;

impl<P: Provider> Managed<P> {
    pub(super) fn facts(&self) -> ClusterFacts {
        let each = self.offers.unwrap_or(self.settings.size.1);
        let node = |row: &MachineRow| ClusterNode {
            name: row.name.clone(),
            ready: row.standing == Standing::Ready,
            allocatable: each,
            free: if self.is_busy(&row.name) { Resources::default() } else { each },
            ..ClusterNode::default()
        };
        let kind = |name: &str| ClusterInstanceType {
            name: name.to_owned(),
            requests: each,
            limits: each,
            fits_now: u64::from(self.settings.bounds.most),
            fits_ever: true,
            ..ClusterInstanceType::default()
        };
        ClusterFacts {
            uid: self.settings.uid.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            gangs: "steward".to_owned(),
            training: true,
            grows: true,
            nodes: self.rows.iter().filter(|row| row.standing != Standing::Gone).map(node).collect(),
            instance_types: vec![kind(DEFAULT_INSTANCE_TYPE), kind(&self.settings.size.0)],
            places: self.settings.preempts.then_some(Places { most: self.settings.bounds.most, by_part: true }),
            ..ClusterFacts::default()
        }
    }

    pub(super) fn held(&self) -> Vec<Held> {
        let mut held: BTreeMap<&AttemptId, Vec<Part>> = BTreeMap::new();
        for part in &self.parts {
            let state = match &part.fate {
                None => PartState::Waits(format!("node `{}` is about to take it", part.machine)),
                Some(PartFate::Runs) => PartState::Runs(part.machine.clone()),
                Some(PartFate::Own) => PartState::Own,
                Some(PartFate::Left) => PartState::Left,
                Some(PartFate::Gone { code, why, retryable }) => {
                    PartState::Gone { code: code.clone(), why: why.clone(), retryable: *retryable }
                }
            };
            held.entry(&part.attempt).or_default().push(Part { index: part.part, state });
        }
        held.into_iter().map(|(attempt, parts)| Held { attempt: attempt.clone(), parts }).collect()
    }

    /// Why an attempt has no nodes yet, in words.
    pub(super) fn why(&self, parts: usize, free: usize) -> String {
        let nodes = |count: usize| if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
        if let Some(trouble) = &self.trouble {
            return format!("it needs {} and none can be had: {trouble}; it is tried again", nodes(parts));
        }
        let preparing = || self.rows.iter().filter(|row| row.standing == Standing::Preparing);
        let coming = preparing().count();
        let kept = preparing().find(|row| !row.reason.is_empty());
        let kept = kept.map_or_else(String::new, |row| format!(" ({})", row.reason));
        let busy = self.rows.iter().filter(|row| self.is_busy(&row.name)).count();
        let most = self.settings.bounds.most;
        match (coming, busy) {
            (0, 0) => {
                format!("{} asked for", if parts == 1 { "a node is".to_owned() } else { format!("{parts} nodes are") })
            }
            (0, busy) => format!("it needs {}: {free} free, {busy} of at most {most} at work", nodes(parts)),
            (coming, _) => format!("it needs {}: {free} free, {coming} being prepared{kept}", nodes(parts)),
        }
    }
}
