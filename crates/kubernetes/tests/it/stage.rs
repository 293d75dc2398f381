//! What every test has: a namespace, a server, and an operator that can be killed and started again.
//!
//! An operator sees every gang of its cluster, so stages take turns; what needs no operator of its own is played beside
//! others on one of them. The cluster is asked by a client of ours: a kubectl for every look would be most of the work.

use crate::{
    cluster::Cluster,
    server::{self, Wire},
};
use axum::http::Request;
use domain::{
    AttemptId, Timestamp,
    cluster::{ClusterTarget, Launch},
};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kubernetes::{
    instance_type,
    operator::{self, Operator, Server},
    settings::Settings,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
};

const PATIENCE: Duration = Duration::from_secs(120);
static TURN: Mutex<()> = Mutex::new(());
static NEXT: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) wire: Arc<Wire>,
    pub(crate) settings: Settings,
    /// What operators that are started from now on take for the time.
    pub(crate) clock: fn() -> Timestamp,
    namespace: String,
    url: String,
    pub(crate) token: PathBuf,
    /// What is wanted where nothing else is said.
    usual: &'static str,
    operators: VecDeque<Runtime>,
    client: Client,
    runtime: Arc<Runtime>,
    /// Whose turn it is has the operator; there is none beside it.
    turn: Option<MutexGuard<'static, ()>>,
}

/// A type for fake nodes: with GPUs, so that one fits on one.
pub(crate) const TYPE: &str = "fake-gpus";
/// Many of these fit on one.
pub(crate) const SMALL: &str = "fake-small";
/// For nodes that come when they are asked for.
pub(crate) const SCALED: &str = "fake-scaled";

impl Stage {
    /// `None` where there is no cluster.
    pub(crate) fn set(settings: Settings) -> Option<Stage> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = Cluster::lease()?;
        let wire = Arc::new(Wire::default());
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let url = runtime.block_on(server::serve(Arc::clone(&wire)));
        let token = std::env::temp_dir().join(format!("peregrine-operator-{}", std::process::id()));
        std::fs::write(&token, "secret").unwrap();
        let client = runtime.block_on(client(cluster.fact("KUBECONFIG")));
        let mut stage = Stage {
            namespace: cluster.field("serviceaccount/default", ".metadata.namespace"),
            cluster,
            wire,
            settings,
            clock: now,
            url,
            token,
            usual: TYPE,
            operators: VecDeque::new(),
            client,
            runtime: Arc::new(runtime),
            turn: Some(turn),
        };
        stage.define();
        stage.start();
        Some(stage)
    }

    /// A namespace of its own under the same operator, for what needs no whole nodes.
    pub(crate) fn beside(&self) -> Stage {
        let cluster = Cluster::lease().unwrap();
        Stage {
            namespace: cluster.field("serviceaccount/default", ".metadata.namespace"),
            cluster,
            wire: Arc::clone(&self.wire),
            settings: self.settings.clone(),
            clock: self.clock,
            url: self.url.clone(),
            token: self.token.clone(),
            usual: SMALL,
            operators: VecDeque::new(),
            client: self.client.clone(),
            runtime: Arc::clone(&self.runtime),
            turn: None,
        }
    }

    pub(crate) fn namespace(&self) -> String {
        self.namespace.clone()
    }

    /// Brings the definition of instance types, and those that tests use.
    pub(crate) fn define(&self) {
        self.cluster.apply(&serde_json::to_string(&instance_type::definition()).unwrap());
        // Of one that was just made, kubectl cannot read yet how it is.
        let there = ["wait", "--for=condition=Established", "crd/instancetypes.amlarc.azureml.com", "--timeout=60s"];
        self.until("the definition", || self.cluster.kubectl(&there).status.success());
        let kinds =
            [(TYPE, "fake", "1", "1Gi", 8), (SMALL, "fake", "100m", "64Mi", 0), (SCALED, "scaled", "1", "1Gi", 8)];
        let kind = |(name, nodes, cpu, memory, gpus): (&str, &str, &str, &str, u32)| {
            json!({
                "apiVersion": "amlarc.azureml.com/v1alpha1", "kind": "InstanceType", "metadata": {"name": name},
                "spec": {
                    "nodeSelector": {"peregrine.test/node": nodes},
                    "tolerations": [{"key": "peregrine.test/fake", "operator": "Exists"}],
                    "resources": {
                        "requests": {"cpu": cpu, "memory": memory},
                        "limits": {"cpu": cpu, "memory": memory, "nvidia.com/gpu": gpus},
                    },
                },
            })
        };
        let items: Vec<_> = kinds.into_iter().map(kind).collect();
        self.cluster.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string());
    }

    /// Starts an operator, which need not wait for the lease of one that was killed.
    pub(crate) fn start(&mut self) {
        let _ = self.cluster.kubectl(&["delete", "lease", "peregrine-operator", "--ignore-not-found"]);
        self.join();
    }

    /// Starts one more operator, which waits until the lease is free.
    pub(crate) fn join(&mut self) {
        let operator = Operator {
            server: Server { url: self.url.clone(), token_file: self.token.clone(), authority_file: None },
            settings: self.settings.clone(),
            image: self.cluster.fact("PEREGRINE_IMAGE").to_owned(),
            namespace: self.namespace(),
            identity: "test".to_owned(),
            version: "0".to_owned(),
            listen: "127.0.0.1:0".parse().unwrap(),
            kubeconfig: Some(self.cluster.fact("KUBECONFIG").into()),
            proxy: BTreeMap::new(),
            clock: self.clock,
        };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (stop, told) = watch::channel(false);
        runtime.spawn(async move {
            let _keep = stop;
            operator::run(operator, told).await.unwrap();
        });
        self.operators.push_back(runtime);
    }

    /// Ends all operators between any two of their lines.
    pub(crate) fn kill(&mut self) {
        self.operators.drain(..).for_each(Runtime::shutdown_background);
    }

    /// Ends the one that was started first.
    pub(crate) fn kill_first(&mut self) {
        self.operators.pop_front().unwrap().shutdown_background();
    }

    pub(crate) fn want(&self, parts: u32, change: impl FnOnce(&mut Launch)) -> AttemptId {
        let number = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % 1_000_000;
        let attempt = format!("att_{number}{:03}_0", NEXT.fetch_add(1, Ordering::Relaxed));
        let attempt = AttemptId::parse(&attempt).unwrap();
        let mut launch = launch(attempt.clone(), parts, self.namespace());
        launch.instance_type = self.usual.to_owned();
        change(&mut launch);
        self.wire.with().wanted.insert(attempt.clone(), launch);
        attempt
    }

    /// What the API server has at a path that bears a label.
    fn list(&self, path: &str, query: &str) -> Vec<Value> {
        let request = Request::get(format!("{path}?{query}")).body(Vec::new()).unwrap();
        let mut found: Value = self.runtime.block_on(self.client.request(request)).unwrap();
        serde_json::from_value(found["items"].take()).unwrap()
    }

    /// The same of an attempt in this namespace.
    fn of_attempt(&self, kind: &str, attempt: &AttemptId, more: &str) -> Vec<Value> {
        let group = if kind == "jobs" { "apis/batch.volcano.sh/v1alpha1" } else { "api/v1" };
        let path = format!("/{group}/namespaces/{}/{kind}", self.namespace);
        self.list(&path, &format!("labelSelector=peregrine.dev/attempt={attempt}{more}"))
    }

    /// Names of the pods of an attempt in a certain phase; of all where it is empty.
    pub(crate) fn pods(&self, attempt: &AttemptId, phase: &str) -> Vec<String> {
        let only = if phase.is_empty() { String::new() } else { format!("&fieldSelector=status.phase={phase}") };
        let pods = self.of_attempt("pods", attempt, &only);
        pods.iter().map(|pod| format!("pod/{}", pod["metadata"]["name"].as_str().unwrap())).collect()
    }

    pub(crate) fn count(&self, kind: &str, attempt: &AttemptId) -> usize {
        self.of_attempt(kind, attempt, "").len()
    }

    pub(crate) fn uids(&self, attempt: &AttemptId) -> Vec<String> {
        let pods = self.of_attempt("pods", attempt, "");
        let mut uids: Vec<_> = pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect();
        uids.sort();
        uids
    }

    pub(crate) fn fake_nodes(&self) -> usize {
        self.list("/api/v1/nodes", "labelSelector=peregrine.test/node=fake").len()
    }

    /// Whether nothing of any attempt is left in this namespace.
    pub(crate) fn is_bare(&self) -> bool {
        let bare = |kind: &&str| {
            let path = format!("/api/v1/namespaces/{}/{kind}", self.namespace);
            self.list(&path, "labelSelector=peregrine.dev/attempt&limit=1").is_empty()
        };
        ["pods", "secrets"].iter().all(bare)
    }

    pub(crate) fn until(&self, what: &str, so: impl FnMut() -> bool) {
        self.until_within(PATIENCE, what, so);
    }

    pub(crate) fn until_within(&self, patience: Duration, what: &str, mut so: impl FnMut() -> bool) {
        let deadline = Instant::now() + patience;
        while !so() {
            if Instant::now() > deadline {
                // Not while the news are borrowed: the server must be able to go on.
                let news = format!("{:#?}", self.wire.with().news);
                panic!("waited in vain for {what}; news: {news}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Everything of an attempt is gone when the server no longer wants it.
    pub(crate) fn drop_and_see_nothing_left(&self, attempt: &AttemptId) {
        self.wire.with().wanted.remove(attempt);
        self.until("nothing to be left", || ["pods", "secrets"].iter().all(|kind| self.count(kind, attempt) == 0));
        if self.has_volcano() {
            self.until("no Volcano Job to be left", || self.count("jobs", attempt) == 0);
        }
        self.until("the server to hear so", || !self.wire.with().holds.contains(attempt));
    }

    pub(crate) fn has_volcano(&self) -> bool {
        self.cluster.kubectl(&["get", "crd", "jobs.batch.volcano.sh"]).status.success()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.turn.is_none() {
            return;
        }
        self.kill();
        let _ = std::fs::remove_file(&self.token);
        // Tests of the extension begin with a cluster that has never heard of us.
        let ours = ["-A", "-l", "app.kubernetes.io/part-of=peregrine", "--wait=false"];
        self.cluster.kubectl(&[&["delete", "pods,leases"], &ours[..]].concat());
        self.cluster.kubectl(&["delete", "crd", "instancetypes.amlarc.azureml.com", "--ignore-not-found"]);
    }
}

pub(crate) async fn client(kubeconfig: &str) -> Client {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// How much of something, unless a variable says otherwise.
pub(crate) fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

pub(crate) fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64)
}

fn launch(attempt: AttemptId, parts: u32, namespace: String) -> Launch {
    Launch {
        target: ClusterTarget { workspace: "ws".into(), compute: "lab".into(), namespace, ..ClusterTarget::default() },
        display_name: "calm lion".into(),
        parts,
        instance_type: TYPE.into(),
        image: "none:1".into(),
        server: "https://nobody.invalid".into(),
        ..Launch::fixture(attempt)
    }
}
