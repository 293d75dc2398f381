//! Why gangs wait, told when the reason changes.

use super::{
    Desk,
    memo::{Memo, Rest},
};
use crate::operator::{explain::explain, fate::Verdict, world::Gang};
use domain::AttemptId;
use std::{collections::HashMap, time::Duration};
use tokio::time::Instant;

const EVERY: Duration = Duration::from_secs(2);
/// What is placed within a moment needs no reason.
const FRESH: Duration = Duration::from_secs(3);

impl Desk {
    pub(super) fn explain(&mut self) {
        if self.waits_at > Instant::now() {
            return;
        }
        self.waits_at = Instant::now() + EVERY;
        let now = self.cx.cluster_now();
        let waits = |(attempt, gang): &(&AttemptId, &Gang)| {
            let memo = self.memo(attempt);
            let wanted =
                !memo.is_quiet() && memo.told_gone.is_empty() && memo.stop_since.is_none() && !gang.is_leaving();
            // Who was told of a wait is told when it is over.
            let starts = !memo.said.is_empty() && !gang.has_run();
            wanted && now.since(gang.since) > FRESH && (!gang.is_placed() || starts || stalls(gang, memo).is_some())
        };
        let waiting: Vec<_> = self.world.gangs.iter().filter(waits).collect();
        if waiting.is_empty() {
            return;
        }
        let rooms = self.world.rooms_left();
        // Thousands of gangs may be alike; what is said of one is said of all.
        let mut texts: HashMap<_, String> = HashMap::new();
        let mut said = Vec::new();
        for (attempt, gang) in waiting {
            let (memo, says) = (self.memo(attempt), says(gang));
            let known = match gang.is_placed() {
                true => stalls(gang, memo).or(Some("its pods have nodes and are starting")),
                false => Some(memo.refused.as_str()).filter(|text| !text.is_empty()),
            };
            if let Some(text) = self.rests.get(attempt).filter(|_| !gang.is_free()).and_then(Rest::why) {
                said.push((attempt.clone(), text));
                continue;
            }
            if let Some(text) = known {
                said.push((attempt.clone(), text.to_owned()));
                continue;
            }
            let key = (std::sync::Arc::as_ptr(&gang.need), gang.parts, says);
            let text = texts.entry(key).or_insert_with(|| explain(&gang.need, gang.parts, &rooms, says));
            let grows = self.cx.settings.node_autoscaling && gang.job.is_none() && gang.is_free();
            said.push((
                attempt.clone(),
                if grows { format!("waits for the cluster to grow: {text}") } else { text.clone() },
            ));
        }
        for (attempt, text) in said {
            self.say(&attempt, text);
        }
    }
}

/// Why a pod that has a node does not start; what may pass in a moment is not told.
fn stalls<'g>(gang: &'g Gang, memo: &Memo) -> Option<&'g str> {
    gang.pods.iter().find_map(|(number, part)| match &part.verdict {
        Verdict::Stalled { fate, patience } => {
            let lasts = memo.stalled.get(number).is_some_and(|since| since.elapsed() > *patience / 12);
            lasts.then_some(fate.why.as_str())
        }
        _ => None,
    })
}

/// What the scheduler itself says of a gang that it was given.
pub(super) fn says(gang: &Gang) -> Option<&str> {
    let job = gang.job.as_ref().map(|job| job.says.as_str());
    let pods = gang.pods.values().filter(|part| !part.held).map(|part| part.says.as_str());
    pods.chain(job).find(|words| !words.is_empty())
}
