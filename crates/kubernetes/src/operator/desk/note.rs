//! Notes on the objects of a gang, so that `kubectl describe` tells its story: made, why it waits, let go, taken back, gone.
//!
//! Invariants: a note is only a note, so what cannot be written is dropped; however many gangs there are, notes take a small
//! share of what the API server is asked.

use super::{Desk, Done};
use crate::operator::world::Gang;
use domain::AttemptId;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType};
use std::{collections::VecDeque, time::Duration};
use tokio::time::Instant;

/// Reasons change with every pod that comes or goes; of one gang they are noted no more often than this.
const WAIT_EVERY: Duration = Duration::from_secs(60);
/// Notes go out so many at once, and the next ones this much later; one by one while many gangs wait for their pods, which the
/// API server is to make first.
const AT_ONCE: usize = 10;
const CROWD: usize = 50;
const PAUSE: Duration = Duration::from_millis(500);
/// More of them are not kept.
const KEPT: usize = 1000;
/// What an event may say at most is 1,024 bytes.
const LONGEST: usize = 1000;

/// Notes that are still to be written.
#[derive(Default)]
pub(super) struct Notes {
    waiting: VecDeque<(ObjectReference, Event)>,
    /// When some were written.
    pub(super) last: Option<Instant>,
}

impl Desk {
    /// Leaves a note on the object that owns the gang.
    pub(super) fn note_on(&mut self, attempt: &AttemptId, reason: &str, note: &str) {
        let Some(about) = self.world.gangs.get(attempt).and_then(anchor) else { return };
        let type_ = if reason == "Gone" { EventType::Warning } else { EventType::Normal };
        let (note, action) = (Some(shortened(note)), reason.to_owned());
        let event = Event { type_, reason: reason.to_owned(), note, action, secondary: None };
        if self.notes.waiting.len() < KEPT {
            self.notes.waiting.push_back((about, event));
        }
    }

    /// What was made is noted when the watches bring it, which is when it is known by its uid.
    pub(super) fn note_made(&mut self) {
        let seen = self.made.keys().filter(|attempt| self.world.gangs.contains_key(*attempt)).cloned();
        for attempt in seen.collect::<Vec<_>>() {
            let gang = &self.world.gangs[&attempt];
            let pods = if gang.parts == 1 { "1 pod".to_owned() } else { format!("{} pods", gang.parts) };
            let needs = gang.need.amounts.humane();
            self.note_on(&attempt, "Made", &format!("{pods}, {needs} each"));
        }
    }

    /// Notes why a gang waits, unless another reason was noted a moment ago.
    pub(super) fn note_wait(&mut self, attempt: &AttemptId, text: String) {
        if !self.world.gangs.contains_key(attempt) {
            return;
        }
        let memo = self.memos.entry(attempt.clone()).or_default();
        if memo.noted.as_ref().is_some_and(|(noted, at)| *noted == text || at.elapsed() < WAIT_EVERY) {
            return;
        }
        memo.noted = Some((text.clone(), Instant::now()));
        self.note_on(attempt, "Waiting", &text);
    }

    /// Writes some of the notes.
    pub(super) fn publish(&mut self) {
        if self.notes.waiting.is_empty() || self.notes.last.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        self.notes.last = Some(Instant::now());
        let coming = self.launches.len() + self.world.gangs.values().filter(|gang| !gang.is_placed()).count();
        for _ in 0..if coming > CROWD { 1 } else { AT_ONCE } {
            let Some((about, event)) = self.notes.waiting.pop_front() else { return };
            let recorder = self.cx.recorder.clone();
            self.start(async move {
                let _ = recorder.publish(&event, &about).await;
                Done::Other
            });
        }
    }
}

fn shortened(note: &str) -> String {
    match note.char_indices().map(|(at, _)| at).find(|at| *at > LONGEST) {
        Some(at) => format!("{}…", &note[..at]),
        None => note.to_owned(),
    }
}

/// The object that owns all others of a gang.
fn anchor(gang: &Gang) -> Option<ObjectReference> {
    let (api_version, kind, name, uid) = match &gang.job {
        Some(job) => ("batch.volcano.sh/v1alpha1", "Job", &job.name, &job.uid),
        None => gang.pods.values().next().map(|part| ("v1", "Pod", &part.pod, &part.uid))?,
    };
    Some(ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.clone()),
        namespace: Some(gang.namespace.clone()),
        uid: Some(uid.clone()),
        ..ObjectReference::default()
    })
}
