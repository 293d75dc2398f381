//! What every test has: a namespace, a server, and an operator that can be killed and started again.

use crate::{
    cluster::Cluster,
    server::{self, Wire},
};
use domain::{
    AttemptId, JobName, Timestamp,
    cluster::{ClusterTarget, Launch},
};
use kubernetes::{
    instance_type,
    operator::{self, Operator, Server},
    settings::Settings,
};
use serde_json::json;
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
    operators: VecDeque<Runtime>,
    _server: Runtime,
    _turn: MutexGuard<'static, ()>,
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
        let namespace = cluster.field("serviceaccount/default", ".metadata.namespace");
        let operators = VecDeque::new();
        let mut stage = Stage {
            cluster,
            wire,
            settings,
            clock: now,
            namespace,
            url,
            token,
            operators,
            _server: runtime,
            _turn: turn,
        };
        stage.define();
        stage.start();
        Some(stage)
    }

    pub(crate) fn namespace(&self) -> String {
        self.namespace.clone()
    }

    /// Brings the definition of instance types, and those that tests use.
    pub(crate) fn define(&self) {
        self.cluster.apply(&serde_json::to_string(&instance_type::definition()).unwrap());
        let there = ["wait", "--for=condition=Established", "crd/instancetypes.amlarc.azureml.com", "--timeout=60s"];
        self.cluster.ok(&there);
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
        change(&mut launch);
        self.wire.with().wanted.insert(attempt.clone(), launch);
        attempt
    }

    /// Names of the pods of an attempt in a certain phase; of all where it is empty.
    pub(crate) fn pods(&self, attempt: &AttemptId, phase: &str) -> Vec<String> {
        let mut args = vec!["get", "pods", "-o", "name"];
        let label = format!("peregrine.dev/attempt={attempt}");
        args.extend(["-l", &label]);
        let field = format!("status.phase={phase}");
        if !phase.is_empty() {
            args.extend(["--field-selector", &field]);
        }
        self.cluster.ok(&args).lines().map(str::to_owned).collect()
    }

    pub(crate) fn count(&self, kind: &str, attempt: &AttemptId) -> usize {
        let label = format!("peregrine.dev/attempt={attempt}");
        self.cluster.ok(&["get", kind, "-o", "name", "-l", &label]).lines().count()
    }

    pub(crate) fn uids(&self, attempt: &AttemptId) -> Vec<String> {
        let label = format!("peregrine.dev/attempt={attempt}");
        let text = self.cluster.ok(&[
            "get",
            "pods",
            "-l",
            &label,
            "-o",
            "jsonpath={range .items[*]}{.metadata.uid}{\"\\n\"}{end}",
        ]);
        let mut uids: Vec<_> = text.lines().map(str::to_owned).collect();
        uids.sort();
        uids
    }

    pub(crate) fn fake_nodes(&self) -> usize {
        self.cluster.ok(&["get", "nodes", "-l", "peregrine.test/node=fake", "-o", "name"]).lines().count()
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
            self.until("no Volcano Job to be left", || self.count("vcjob", attempt) == 0);
        }
        self.until("the server to hear so", || !self.wire.with().holds.contains(attempt));
    }

    pub(crate) fn has_volcano(&self) -> bool {
        self.cluster.kubectl(&["get", "crd", "jobs.batch.volcano.sh"]).status.success()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_file(&self.token);
        // Tests of the extension begin with a cluster that has never heard of us.
        let ours = ["-A", "-l", "app.kubernetes.io/part-of=peregrine", "--wait=false"];
        self.cluster.kubectl(&[&["delete", "pods,leases"], &ours[..]].concat());
        self.cluster.kubectl(&["delete", "crd", "instancetypes.amlarc.azureml.com", "--ignore-not-found"]);
    }
}

pub(crate) fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64)
}

fn launch(attempt: AttemptId, parts: u32, namespace: String) -> Launch {
    Launch {
        attempt,
        number: 0,
        target: ClusterTarget { workspace: "ws".into(), compute: "lab".into(), namespace, ..ClusterTarget::default() },
        job: JobName::parse("calm_lion").unwrap(),
        display_name: "calm lion".into(),
        user: "ann".into(),
        priority: 0,
        parts,
        instance_type: TYPE.into(),
        image: "none:1".into(),
        shm_bytes: None,
        deadline_seconds: None,
        server: "https://nobody.invalid".into(),
        authority: String::new(),
        token: "hush".into(),
        labels: BTreeMap::new(),
        replica: None,
    }
}
