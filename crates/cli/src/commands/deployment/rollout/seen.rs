//! What was seen of a deployment's requests: by the router, in the counters that the server shows, or by this program.

use crate::commands::endpoint::load::Sample;
use planner::rollout::Seen;
use std::{collections::BTreeMap, time::Duration};

/// Requests of an endpoint's deployments, out of Prometheus text. `None` where nobody counts this endpoint.
pub(super) fn by_deployment(text: &str, endpoint: &str) -> Option<BTreeMap<String, Seen>> {
    let mut all: BTreeMap<String, Seen> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("peregrine_router_")) {
        let Some((name, labels, value)) = parts(line) else { continue };
        let deployment = labels.get("deployment").copied().unwrap_or_default();
        if labels.get("endpoint") != Some(&endpoint) || deployment.is_empty() {
            continue;
        }
        let seen = all.entry(deployment.to_owned()).or_default();
        match name {
            "requests_total" => {
                seen.requests += value;
                let failed = labels.get("code").is_some_and(|code| code.starts_with('5'));
                seen.errors += if failed { value } else { 0 };
            }
            "request_seconds_bucket" => seen.within.extend(labels.get("le").map(|bound| (limit(bound), value))),
            _ => {}
        }
    }
    (!all.is_empty()).then_some(all)
}

/// `name{a="b",c="d"} 5`.
fn parts(line: &str) -> Option<(&str, BTreeMap<&str, &str>, u64)> {
    let (name, rest) = line.split_once('{')?;
    let (labels, value) = rest.rsplit_once("} ")?;
    let pair = |label| -> Option<(&str, &str)> {
        let (key, value) = str::split_once(label, '=')?;
        Some((key, value.trim_matches('"')))
    };
    // Counts are whole; the sum of seconds is not, and is not wanted.
    Some((name, labels.split(',').filter_map(pair).collect(), value.trim().parse().ok()?))
}

fn limit(bound: &str) -> Duration {
    bound.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(Duration::MAX)
}

/// Requests that this program has sent itself.
#[derive(Default)]
pub(super) struct Own {
    took: Vec<Duration>,
    errors: u64,
}

impl Own {
    pub(super) fn add(&mut self, sample: &Sample) {
        self.took.push(sample.took);
        self.errors += u64::from(sample.status.is_none_or(|status| status >= 500));
    }

    pub(super) fn seen(&self) -> Seen {
        let mut took = self.took.clone();
        took.sort_unstable();
        let within = took.into_iter().zip(1..).collect();
        Seen { requests: self.took.len() as u64, errors: self.errors, within }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
# HELP peregrine_router_requests_total Requests
peregrine_router_requests_total{endpoint="iris",deployment="",code="401"} 9
peregrine_router_requests_total{endpoint="iris",deployment="blue",code="200"} 90
peregrine_router_requests_total{endpoint="iris",deployment="blue",code="502"} 3
peregrine_router_requests_total{endpoint="other",deployment="blue",code="200"} 7
peregrine_router_request_seconds_bucket{endpoint="iris",deployment="blue",le="0.005"} 80
peregrine_router_request_seconds_bucket{endpoint="iris",deployment="blue",le="+Inf"} 93
peregrine_router_request_seconds_sum{endpoint="iris",deployment="blue"} 1.5
peregrine_router_replicas{endpoint="iris",deployment="green"} 1
"#;

    #[test]
    fn the_router_s_counters_are_read_by_endpoint_and_deployment() {
        let all = by_deployment(TEXT, "iris").unwrap();
        let blue = Seen { requests: 93, errors: 3, within: vec![(Duration::from_millis(5), 80), (Duration::MAX, 93)] };
        assert_eq!(all, BTreeMap::from([("blue".to_owned(), blue), ("green".to_owned(), Seen::default())]));
        assert_eq!(by_deployment(TEXT, "nobody"), None);
    }

    #[test]
    fn own_requests_are_counted_like_the_router_s() {
        let mut own = Own::default();
        for (status, ms) in [(Some(200), 30), (Some(502), 10), (None, 20), (Some(404), 40)] {
            own.add(&Sample { status, took: Duration::from_millis(ms), deployment: None, fault: None });
        }
        let seen = own.seen();
        assert_eq!((seen.requests, seen.errors), (4, 2));
        assert_eq!(seen.percentile(50.0), Some(Duration::from_millis(20)));
    }
}
