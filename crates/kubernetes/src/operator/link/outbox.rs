//! What the server has yet to be told.
//!
//! Invariant: of two things of the same kind about the same part only the later one is kept, so that a server that is away for
//! long costs no more memory than there are attempts.

use domain::{
    AttemptId,
    cluster::{AttemptNews, CheckResult, ClusterFacts, ClusterReport, ClusterWhat},
};
use std::{collections::BTreeMap, sync::Mutex};
use tokio::sync::Notify;

/// More in one report would take the server too long.
pub(super) const AT_ONCE: usize = 1000;

#[derive(Default)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    bell: Notify,
}

#[derive(Default)]
struct Waiting {
    facts: Option<ClusterFacts>,
    checks: Vec<CheckResult>,
    /// In the order a story has: where it went, why it waits, what was noticed, how it ended.
    news: BTreeMap<(AttemptId, u8, u32), AttemptNews>,
}

impl Outbox {
    pub(crate) fn news(&self, news: AttemptNews) {
        self.with(|waiting| drop(waiting.news.insert(key(&news), news)));
    }

    pub(crate) fn facts(&self, facts: ClusterFacts) {
        self.with(|waiting| waiting.facts = Some(facts));
    }

    pub(crate) fn check(&self, result: CheckResult) {
        self.with(|waiting| waiting.checks.push(result));
    }

    /// Returns when there is something to tell.
    pub(crate) async fn filled(&self) {
        while self.is_empty() {
            self.bell.notified().await;
        }
    }

    /// As much of it as `most` says.
    pub(crate) fn take(&self, most: usize) -> ClusterReport {
        let mut waiting = self.waiting.lock().expect("nothing panics while it holds the outbox");
        let mut report = ClusterReport { facts: waiting.facts.take(), ..ClusterReport::default() };
        let checks = waiting.checks.len().min(most.saturating_sub(count(&report)));
        report.checks.extend(waiting.checks.drain(..checks));
        while count(&report) < most
            && let Some((_, one)) = waiting.news.pop_first()
        {
            report.news.push(one);
        }
        report
    }

    /// What could not be told, unless there is something newer.
    pub(crate) fn put_back(&self, report: ClusterReport) {
        self.with(|waiting| {
            waiting.facts = waiting.facts.take().or(report.facts);
            waiting.checks.splice(0..0, report.checks);
            for news in report.news {
                waiting.news.entry(key(&news)).or_insert(news);
            }
        });
    }

    fn is_empty(&self) -> bool {
        let waiting = self.waiting.lock().expect("nothing panics while it holds the outbox");
        waiting.facts.is_none() && waiting.checks.is_empty() && waiting.news.is_empty()
    }

    fn with(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.waiting.lock().expect("nothing panics while it holds the outbox"));
        self.bell.notify_one();
    }
}

/// How many things a report tells.
pub(super) fn count(report: &ClusterReport) -> usize {
    report.facts.iter().len() + report.checks.len() + report.news.len()
}

fn key(news: &AttemptNews) -> (AttemptId, u8, u32) {
    let (kind, part) = match &news.what {
        ClusterWhat::Bound { part, .. } => (0, *part),
        ClusterWhat::Waiting { .. } => (1, 0),
        ClusterWhat::Notice { .. } => (2, 0),
        ClusterWhat::Gone { part, .. } => (3, *part),
    };
    (news.attempt.clone(), kind, part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;

    fn news(at: i64, what: ClusterWhat) -> AttemptNews {
        AttemptNews { attempt: AttemptId::parse("att_1_0").unwrap(), at: Timestamp(at), what }
    }

    fn waits(text: &str) -> ClusterWhat {
        ClusterWhat::Waiting { text: text.to_owned() }
    }

    #[test]
    fn what_could_not_be_told_comes_back_unless_it_is_out_of_date() {
        let outbox = Outbox::default();
        outbox.news(news(1, waits("one")));
        outbox.news(news(2, ClusterWhat::Bound { part: 0, node: "n".into() }));
        outbox.news(news(3, waits("two")));
        let report = outbox.take(AT_ONCE);
        assert_eq!(report.news.iter().map(|news| news.at.0).collect::<Vec<_>>(), [2, 3]);
        outbox.news(news(4, waits("three")));
        outbox.put_back(report);
        assert_eq!(outbox.take(AT_ONCE).news.iter().map(|news| news.at.0).collect::<Vec<_>>(), [2, 4]);
        assert!(outbox.is_empty());
    }
}
