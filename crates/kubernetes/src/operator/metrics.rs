//! Counters and gauges in Prometheus text, and whether the operator is well, on one port.

use axum::{Router, http::StatusCode, routing};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, time::Instant};

/// A loop that has not come round for this long hangs.
const ROUND_AT_MOST: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Labelled {
    pub(crate) is: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Phase {
    phase: String,
}

pub(crate) struct Metrics {
    registry: Registry,
    leading: Gauge,
    server: Gauge,
    pub(crate) nodes: Gauge,
    attempts: Family<Labelled, Gauge>,
    pods: Family<Phase, Gauge>,
    pub(crate) made: Counter,
    pub(crate) refused: Counter,
    pub(crate) freed: Counter,
    pub(crate) taken_back: Counter,
    pub(crate) removed: Counter,
    pub(crate) told: Counter,
    gone: Family<Labelled, Counter>,
    synced: AtomicBool,
    /// The last time a leader's loop came round.
    round: Mutex<Option<Instant>>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::with_prefix("peregrine_operator");
        let gauge = Gauge::<i64>::default;
        let (leading, server, nodes) = (gauge(), gauge(), gauge());
        let (attempts, pods, gone) = (Family::default(), Family::default(), Family::default());
        registry.register("leading", "1 on the one that acts", leading.clone());
        registry.register("connected", "1 while the server answers", server.clone());
        registry.register("nodes", "Nodes of the cluster", nodes.clone());
        registry.register("attempts", "Attempts on the cluster, by state", attempts.clone());
        registry.register("pods", "Pods of attempts, by phase", pods.clone());
        registry.register("gone", "Pods that could not report for themselves, by reason", gone.clone());
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::<u64>::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let made = counter("made", "Attempts made as objects of the cluster");
        let refused = counter("refused", "Times the cluster refused to make something");
        let freed = counter("freed", "Gangs given to the scheduler");
        let taken_back = counter("taken_back", "Gangs taken back because only a part found nodes");
        let removed = counter("removed", "Attempts removed");
        let told = counter("told", "News the server was told");
        let (synced, round) = (AtomicBool::new(false), Mutex::new(None));
        Metrics {
            registry,
            leading,
            server,
            nodes,
            attempts,
            pods,
            made,
            refused,
            freed,
            taken_back,
            removed,
            told,
            gone,
            synced,
            round,
        }
    }
}

impl Metrics {
    pub(crate) fn connected(&self, is: bool) {
        self.server.set(is.into());
    }

    /// Whether this one acts. Who does not is well as long as it lives.
    pub(crate) fn leads(&self, is: bool) {
        self.leading.set(is.into());
        *self.round.lock().expect("nothing panics while it holds the time") = is.then(Instant::now);
        if !is {
            self.synced.store(false, Ordering::Relaxed);
        }
    }

    pub(crate) fn came_round(&self, synced: bool) {
        self.synced.store(synced, Ordering::Relaxed);
        *self.round.lock().expect("nothing panics while it holds the time") = Some(Instant::now());
    }

    pub(crate) fn attempts(&self, counts: [(&str, usize); 3]) {
        for (is, count) in counts {
            self.attempts.get_or_create(&Labelled { is: is.to_owned() }).set(count as i64);
        }
    }

    pub(crate) fn pods(&self, counts: [(&str, usize); 4]) {
        for (phase, count) in counts {
            self.pods.get_or_create(&Phase { phase: phase.to_owned() }).set(count as i64);
        }
    }

    pub(crate) fn gone(&self, code: &str) {
        self.gone.get_or_create(&Labelled { is: code.to_owned() }).inc();
    }

    fn is_well(&self) -> bool {
        let round = *self.round.lock().expect("nothing panics while it holds the time");
        round.is_none_or(|at| at.elapsed() < ROUND_AT_MOST)
    }

    fn is_ready(&self) -> bool {
        self.is_well() && (self.leading.get() == 0 || self.synced.load(Ordering::Relaxed))
    }

    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Answers `/metrics`, `/healthz` and `/readyz`, for ever.
pub(crate) async fn serve(listen: SocketAddr, metrics: Arc<Metrics>) -> std::io::Result<()> {
    let answer = |good: bool| if good { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "not yet") };
    let (one, two, three) = (Arc::clone(&metrics), Arc::clone(&metrics), metrics);
    let router = Router::new()
        .route("/metrics", routing::get(async move || one.render()))
        .route("/healthz", routing::get(async move || answer(two.is_well())))
        .route("/readyz", routing::get(async move || answer(three.is_ready())));
    let listener = TcpListener::bind(listen).await?;
    axum::serve(listener, router).await
}
