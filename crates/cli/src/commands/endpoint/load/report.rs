//! What came of many requests: answers by status and deployment, and how long they took.

use super::{Sample, Sent};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, time::Duration};

/// Parts of the requests, in percent, that a report has a time for.
const PERCENTILES: [(&str, f64); 6] =
    [("p50", 50.0), ("p75", 75.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p99.9", 99.9)];

/// Grows with each request; read at the end.
#[derive(Default)]
pub(super) struct Report {
    /// In microseconds, of those that succeeded.
    took: Vec<u64>,
    codes: BTreeMap<String, u64>,
    deployments: BTreeMap<String, u64>,
    failed: u64,
    fault: Option<String>,
    sent: Sent,
    lasted: Duration,
}

impl Report {
    pub(super) fn add(&mut self, sample: Sample) {
        let code = sample.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        *self.codes.entry(code).or_default() += 1;
        if let Some(name) = sample.deployment {
            *self.deployments.entry(name).or_default() += 1;
        }
        match sample.fault {
            None => self.took.push(u64::try_from(sample.took.as_micros()).unwrap_or(u64::MAX)),
            Some(fault) => {
                self.failed += 1;
                self.fault.get_or_insert(fault);
            }
        }
    }

    /// No more will come.
    pub(super) fn close(&mut self, sent: Sent, lasted: Duration) {
        (self.sent, self.lasted) = (sent, lasted);
        // What was under way when someone pressed Ctrl-C is nobody's fault.
        self.took.sort_unstable();
        if sent.held_back > 0 {
            self.codes.insert("not sent".to_owned(), sent.held_back);
            self.failed += sent.held_back;
            self.fault.get_or_insert_with(|| "too many requests were under way to send another".to_owned());
        }
    }

    pub(super) fn requests(&self) -> u64 {
        self.codes.values().sum()
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    pub(super) fn first_fault(&self) -> String {
        self.fault.as_ref().map_or(String::new(), |fault| format!("; the first: {fault}"))
    }

    /// As a table and as data.
    pub(super) fn shown(&self, endpoint: &str, rps: u32) -> (Vec<Vec<String>>, Value) {
        let seconds = self.lasted.as_secs_f64().max(1e-9);
        let answered = self.requests() - self.sent.held_back;
        let per_second = (answered as f64 / seconds * 10.0).round() / 10.0;
        let latency = self.latency();
        let value = json!({
            "endpoint": endpoint, "rps": rps, "duration_seconds": round(seconds), "requests": self.requests(),
            "failed": self.failed, "answers_per_second": per_second, "codes": self.codes,
            "deployments": self.deployments, "latency_ms": latency,
        });
        let row = |what: &str, much: String| vec![what.to_owned(), much];
        let mut rows = vec![row("REQUESTS", self.requests().to_string())];
        rows.push(row("failed", self.failed.to_string()));
        rows.push(row("answers/s", per_second.to_string()));
        rows.extend(self.codes.iter().map(|(code, count)| row(&format!("code {code}"), count.to_string())));
        rows.extend(self.deployments.iter().map(|(name, count)| row(&format!("by `{name}`"), count.to_string())));
        rows.extend(latency.iter().map(|(name, ms)| row(name, format!("{ms} ms"))));
        (rows, value)
    }

    /// Milliseconds by name; none where nothing succeeded.
    fn latency(&self) -> Map<String, Value> {
        let (Some(least), Some(most)) = (self.took.first(), self.took.last()) else { return Map::new() };
        let mean = self.took.iter().map(|micros| *micros as f64).sum::<f64>() / self.took.len() as f64;
        let inner = PERCENTILES.into_iter().map(|(name, part)| (name, self.percentile(part)));
        let all = [("min", *least as f64), ("mean", mean)].into_iter().chain(inner).chain([("max", *most as f64)]);
        all.map(|(name, micros)| (name.to_owned(), json!(round(micros / 1e3)))).collect()
    }

    /// The time that this part of the requests did not exceed, in microseconds.
    fn percentile(&self, percent: f64) -> f64 {
        let at = (self.took.len() as f64 * percent / 100.0).ceil() as usize;
        self.took.get(at.saturating_sub(1)).copied().unwrap_or_default() as f64
    }
}

/// Two digits behind the point.
fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(status: u16, ms: u64) -> Sample {
        let fault = (status != 200).then(|| "no slot".to_owned());
        Sample { status: Some(status), took: Duration::from_millis(ms), deployment: Some("blue".into()), fault }
    }

    #[test]
    fn times_are_those_of_answers_and_codes_are_those_of_all() {
        let mut report = Report::default();
        (1..=100).for_each(|ms| report.add(sample(200, ms)));
        report.add(sample(503, 5_000));
        report.close(Sent { sent: 101, held_back: 2 }, Duration::from_secs(10));
        let (rows, value) = report.shown("iris", 10);
        assert_eq!(value["codes"], json!({"200": 100, "503": 1, "not sent": 2}));
        assert_eq!((&value["failed"], &value["answers_per_second"]), (&json!(3), &json!(10.1)));
        let latency = &value["latency_ms"];
        assert_eq!((&latency["p50"], &latency["p99"], &latency["max"]), (&json!(50.0), &json!(99.0), &json!(100.0)));
        assert_eq!(value["deployments"], json!({"blue": 101}));
        assert!(rows.iter().any(|row| row == &["code 503", "1"]), "{rows:?}");
        assert_eq!(report.first_fault(), "; the first: no slot");
    }

    #[test]
    fn nothing_answered_has_no_times() {
        let mut report = Report::default();
        report.add(Sample { status: None, took: Duration::ZERO, deployment: None, fault: Some("refused".into()) });
        report.close(Sent { sent: 1, held_back: 0 }, Duration::from_secs(1));
        let (_, value) = report.shown("iris", 1);
        assert_eq!((&value["latency_ms"], &value["codes"]), (&json!({}), &json!({"no answer": 1})));
    }
}
