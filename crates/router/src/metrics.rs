//! Counters in Prometheus text, rendered when someone asks.

use crate::{
    counts::{BOUNDS_US, Counts},
    table::{Deployment, Routes},
};
use std::{fmt::Write as _, sync::atomic::Ordering::Relaxed};

/// A name, its kind, what it is about, and its value.
type Gauge = (&'static str, &'static str, &'static str, fn(&Deployment) -> u64);

/// Everything that is counted, by endpoint, deployment and status.
pub(crate) fn render(routes: &Routes) -> String {
    let table = routes.table();
    let mut counted: Vec<(&str, &str, &Counts)> = vec![("", "", routes.nowhere())];
    let mut deployments: Vec<&Deployment> = Vec::new();
    for endpoint in table.endpoints() {
        counted.push((&endpoint.name, "", &endpoint.refused));
        deployments.extend(endpoint.deployments().iter().map(AsRef::as_ref));
    }
    deployments.sort_by_key(|deployment| (&deployment.endpoint, &deployment.name));
    counted.extend(deployments.iter().map(|d| (&*d.endpoint, &*d.name, &d.live.counts)));
    let mut out = String::new();
    requests(&mut out, "requests_total", "Requests by endpoint, deployment and status", &counted);
    durations(&mut out, "request_seconds", "Time from head to end, by endpoint and deployment", &counted);
    let copied: Vec<_> = deployments.iter().map(|d| (&*d.endpoint, &*d.name, &d.live.copies)).collect();
    let about = "Copies of requests by endpoint, the deployment that got them, and status";
    requests(&mut out, "mirrored_requests_total", about, &copied);
    durations(&mut out, "mirrored_request_seconds", "Time that copies took, by endpoint and deployment", &copied);
    let gauges: [Gauge; 5] = [
        ("in_flight_requests", "gauge", "Requests that replicas work on", |d| d.live.in_flight.load(Relaxed).into()),
        ("queued_requests", "gauge", "Requests that wait for a slot", |d| d.live.line.length().into()),
        ("replicas", "gauge", "Replicas in the table", |d| d.replicas.len() as u64),
        ("resting_replicas", "gauge", "Replicas left alone for a while because they failed", |d| {
            let now = tokio::time::Instant::now();
            d.replicas.iter().filter(|replica| replica.is_resting(now)).count() as u64
        }),
        ("unmirrored_requests_total", "counter", "Copies not sent for want of room", |d| {
            d.live.unmirrored.load(Relaxed).into()
        }),
    ];
    for (name, kind, about, value) in gauges {
        describe(&mut out, name, kind, about);
        for deployment in &deployments {
            line(&mut out, name, &labels(&deployment.endpoint, &deployment.name), &value(deployment));
        }
    }
    out
}

fn requests(out: &mut String, name: &str, about: &str, counted: &[(&str, &str, &Counts)]) {
    describe(out, name, "counter", about);
    for (endpoint, deployment, counts) in counted {
        for (code, count) in counts.codes() {
            let labels = format!("{},code=\"{code}\"", labels(endpoint, deployment));
            line(out, name, &labels, &count);
        }
    }
}

fn durations(out: &mut String, name: &str, about: &str, counted: &[(&str, &str, &Counts)]) {
    describe(out, name, "histogram", about);
    for (endpoint, deployment, counts) in counted {
        let (labels, buckets) = (labels(endpoint, deployment), counts.buckets());
        let mut sum = 0;
        for (at, bucket) in buckets.iter().enumerate() {
            sum += bucket;
            let bound = BOUNDS_US.get(at).map_or("+Inf".to_owned(), |bound| (*bound as f64 / 1e6).to_string());
            line(out, &format!("{name}_bucket"), &format!("{labels},le=\"{bound}\""), &sum);
        }
        line(out, &format!("{name}_sum"), &labels, &counts.seconds());
        line(out, &format!("{name}_count"), &labels, &sum);
    }
}

fn labels(endpoint: &str, deployment: &str) -> String {
    // Names are letters, digits and dashes: nothing to escape.
    format!("endpoint=\"{endpoint}\",deployment=\"{deployment}\"")
}

fn describe(out: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(out, "# HELP peregrine_router_{name} {about}\n# TYPE peregrine_router_{name} {kind}");
}

fn line(out: &mut String, name: &str, labels: &str, value: &dyn std::fmt::Display) {
    let _ = writeln!(out, "peregrine_router_{name}{{{labels}}} {value}");
}
