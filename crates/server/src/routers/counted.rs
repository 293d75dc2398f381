//! What all routers together have counted of an endpoint, as Prometheus text: what a rollout judges by.

use domain::serving::{Answered, LATENCY_BOUNDS_US};
use std::{collections::BTreeSet, fmt::Write as _};

/// One block of lines for each deployment that is there or was asked, so that who reads them can tell nothing from nobody.
pub(super) fn text(endpoint: &str, there: &BTreeSet<String>, totals: &[Answered]) -> String {
    let mut out = String::new();
    let unasked = there.iter().filter(|name| !totals.iter().any(|one| !one.mirrored && one.deployment == **name));
    let nothing = unasked.map(|name| Answered { deployment: name.clone(), ..Answered::default() });
    for one in nothing.chain(totals.iter().cloned()) {
        lines(&mut out, endpoint, &one);
    }
    out
}

fn lines(out: &mut String, endpoint: &str, one: &Answered) {
    // Names are letters, digits and dashes: nothing to escape.
    let labels = format!("endpoint=\"{endpoint}\",deployment=\"{}\"", one.deployment);
    let kind = if one.mirrored { "mirrored_" } else { "" };
    for (code, count) in &one.codes {
        let _ = writeln!(out, "peregrine_router_{kind}requests_total{{{labels},code=\"{code}\"}} {count}");
    }
    let mut sum = 0;
    let bounds = LATENCY_BOUNDS_US.iter().map(|micros| (*micros as f64 / 1e6).to_string()).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(one.buckets.iter().copied().chain(std::iter::repeat(0))) {
        sum += count;
        let _ = writeln!(out, "peregrine_router_{kind}request_seconds_bucket{{{labels},le=\"{bound}\"}} {sum}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployments_that_nobody_asked_are_shown_with_nothing_and_copies_by_themselves() {
        let mut blue = Answered { deployment: "blue".into(), ..Answered::default() };
        (blue.codes, blue.buckets) = ([(200, 3), (502, 1)].into(), vec![1, 3]);
        let copies = Answered { deployment: "green".into(), mirrored: true, ..blue.clone() };
        let there = BTreeSet::from(["blue".to_owned(), "green".to_owned()]);
        let text = text("iris", &there, &[blue, copies]);
        for line in [
            "peregrine_router_requests_total{endpoint=\"iris\",deployment=\"blue\",code=\"502\"} 1",
            "peregrine_router_request_seconds_bucket{endpoint=\"iris\",deployment=\"blue\",le=\"0.0005\"} 1",
            "peregrine_router_request_seconds_bucket{endpoint=\"iris\",deployment=\"blue\",le=\"+Inf\"} 4",
            "peregrine_router_request_seconds_bucket{endpoint=\"iris\",deployment=\"green\",le=\"+Inf\"} 0",
            "peregrine_router_mirrored_requests_total{endpoint=\"iris\",deployment=\"green\",code=\"200\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("_router_requests_total{endpoint=\"iris\",deployment=\"green\""), "{text}");
    }
}
