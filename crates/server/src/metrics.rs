//! Counters and gauges in Prometheus text.

use domain::kept::Moved;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// What the text ends with.
const END: &str = "# EOF";

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Request {
    pub(crate) route: String,
    pub(crate) status: u16,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Labelled {
    pub(crate) is: String,
}

pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) requests: Family<Request, Counter>,
    pub(crate) request_seconds: Histogram,
    pub(crate) accepted: Counter,
    pub(crate) ended: Family<Labelled, Counter>,
    data: Family<Labelled, Counter>,
    phases: Family<Labelled, Gauge>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::with_prefix("peregrine");
        let requests = Family::default();
        let request_seconds = Histogram::new([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]);
        let (accepted, ended, phases) = (Counter::default(), Family::default(), Family::default());
        let data = Family::default();
        registry.register("http_requests", "Requests by route and status", requests.clone());
        registry.register("http_request_seconds", "Time to answer, long polls left out", request_seconds.clone());
        registry.register("jobs_accepted", "Jobs accepted since start", accepted.clone());
        registry.register("jobs_ended", "Jobs ended since start, by status", ended.clone());
        let help = "Bytes that jobs were given before they began: from the store, from peers, or saved by a cache";
        registry.register("data_bytes", help, data.clone());
        registry.register("jobs", "Jobs that have not ended, by phase", phases.clone());
        Metrics { registry, requests, request_seconds, accepted, ended, data, phases }
    }
}

impl Metrics {
    pub(crate) fn moved(&self, moved: &Moved) {
        for (from, bytes) in [("store", moved.store), ("peers", moved.peers), ("cache", moved.cache)] {
            self.data.get_or_create(&Labelled { is: from.to_owned() }).inc_by(bytes);
        }
    }

    /// All of it, with what the router in this process counts.
    pub(crate) fn render(&self, phases: &[(String, i64)], router: &str) -> String {
        for phase in ["queued", "placed", "preparing", "running", "finalizing", "stopping"] {
            let count = phases.iter().find(|(name, _)| name == phase).map_or(0, |(_, count)| *count);
            self.phases.get_or_create(&Labelled { is: phase.to_owned() }).set(count);
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        // The mark of the end stays the end.
        let end = text.rfind(END).unwrap_or(text.len());
        text.insert_str(end, &open(router));
        text
    }
}

/// Prometheus text as OpenMetrics has it, where a counter is described without the end of its name.
fn open(text: &str) -> String {
    let line = |line: &str| match line.starts_with("# ") {
        true => line.replacen("_total ", " ", 1) + "\n",
        false => line.to_owned() + "\n",
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_router_counts_stands_before_the_mark_of_the_end() {
        let router = "# HELP peregrine_router_requests_total Requests\n# TYPE peregrine_router_requests_total counter\n\
                      peregrine_router_requests_total{endpoint=\"iris\",deployment=\"blue\",code=\"200\"} 3\n";
        let text = Metrics::default().render(&[], router);
        assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
        assert!(text.contains("# TYPE peregrine_router_requests counter\nperegrine_router_requests_total{"), "{text}");
        assert!(Metrics::default().render(&[], "").ends_with("# EOF\n"));
    }
}
