//! An operator that has no cluster: it asks and tells as the real one does, and starts what it is to launch here.

use crate::harness::{Home, binary, signal};
use domain::{
    AttemptId, Resources, Timestamp,
    cluster::{
        CheckResult, ClusterAnswer, ClusterFacts, ClusterInstanceType, ClusterNode, ClusterPoll, ClusterReport,
        Finding, Launch,
    },
};
use serde_json::{Value, json};
use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime},
};

pub(crate) struct Cluster<'h> {
    home: &'h Home,
    pods: Arc<Mutex<Vec<Pod>>>,
    over: Arc<AtomicBool>,
    operator: Option<JoinHandle<()>>,
}

struct Pod {
    attempt: AttemptId,
    log: PathBuf,
    process: Child,
    code: Option<i32>,
    /// The server has its end on record.
    removed: bool,
}

impl<'h> Cluster<'h> {
    /// A server with a cluster, and the compute target `lab` on it.
    pub(crate) fn attach(home: &'h Home) -> Cluster<'h> {
        // It is to be found at the same address after it was away.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        home.configure(&format!("[server]\nlisten = \"127.0.0.1:{port}\"\n[local]\ngrace_seconds = 5\n"));
        home.ok(&["server", "start"]);
        let user = Wire::new(home, fs::read_to_string(home.home().join("keys/user.token")).unwrap().trim());
        let token = user.call("PUT", "/clusters/fake", &json!({})).unwrap()["token"].as_str().unwrap().to_owned();
        let pods: Arc<Mutex<Vec<Pod>>> = Arc::default();
        let over: Arc<AtomicBool> = Arc::default();
        let mut operator =
            Operator { wire: Wire::new(home, &token), folder: home.path().join("pods"), pods: Arc::clone(&pods) };
        let done = Arc::clone(&over);
        let operator = std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                operator.turn();
            }
        });
        let cluster = Cluster { home, pods, over, operator: Some(operator) };
        let seen = || user.call("GET", "/clusters/fake", &Value::Null).is_some_and(|fake| fake["nodeCount"] == 1);
        home.until("the cluster to be known", seen);
        let target = json!({
            "location": "here",
            "properties": {"computeType": "Kubernetes", "resourceId": "/connectedClusters/fake",
                "properties": {"namespace": "ml", "default_image": "plain:1"}},
        });
        let scope = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/default/providers/Microsoft.MachineLearningServices/workspaces/default";
        let path = format!("{scope}/computes/lab?api-version=2024-04-01");
        user.call("PUT", &path, &target).expect("the target is taken");
        home.until("the target to be attached", || {
            let state = user.call("GET", &path, &Value::Null);
            state.is_some_and(|lab| lab["properties"]["provisioningState"] == "Succeeded")
        });
        cluster
    }

    /// How the first pods ended, in the order they were started.
    pub(crate) fn exit_codes(&self, count: usize) -> Vec<i32> {
        let codes = || self.pods.lock().unwrap().iter_mut().take(count).filter_map(Pod::ended).collect::<Vec<_>>();
        self.home.until("the pods to end", || codes().len() == count);
        codes()
    }

    /// Asks every pod to leave.
    pub(crate) fn evict(&self) {
        for pod in self.pods.lock().unwrap().iter() {
            signal(i32::try_from(pod.process.id()).unwrap(), "TERM");
        }
    }

    /// What the agents in the pods had to say.
    pub(crate) fn said(&self) -> String {
        self.pods.lock().unwrap().iter().map(|pod| fs::read_to_string(&pod.log).unwrap_or_default()).collect()
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for pod in self.pods.lock().unwrap().iter_mut() {
            if pod.ended().is_none() {
                // Whatever it started names its home, and ends with that of the test.
                let _ended = pod.process.kill().and_then(|()| pod.process.wait());
            }
        }
        let _ = self.operator.take().map(JoinHandle::join);
    }
}

impl Pod {
    fn ended(&mut self) -> Option<i32> {
        if self.code.is_none() {
            self.code = self.process.try_wait().unwrap().map(|status| status.code().unwrap_or(-1));
        }
        self.code
    }
}

struct Operator {
    wire: Wire,
    folder: PathBuf,
    pods: Arc<Mutex<Vec<Pod>>>,
}

impl Operator {
    fn turn(&mut self) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let pods = self.pods.lock().unwrap();
        let mut holds: Vec<_> = pods.iter().filter(|pod| !pod.removed).map(|pod| pod.attempt.clone()).collect();
        drop(pods);
        holds.dedup();
        let now = Timestamp(i64::try_from(now).unwrap());
        let poll = ClusterPoll { now, uid: String::new(), facts: "1".into(), holds, leaving: Vec::new() };
        let Some(answer) = self.wire.call("POST", "/cluster/v1/poll", &serde_json::to_value(poll).unwrap()) else {
            return std::thread::sleep(Duration::from_millis(100));
        };
        let answer: ClusterAnswer = serde_json::from_value(answer).unwrap();
        if answer.send_facts || !answer.checks.is_empty() {
            let finding = Finding { check: "namespace".into(), passed: true, detail: "it is there".into() };
            let found = |id: String| CheckResult { id, done: true, findings: vec![finding.clone()] };
            let checks = answer.checks.into_iter().map(|check| found(check.id)).collect();
            let report = ClusterReport { facts: answer.send_facts.then(facts), news: Vec::new(), checks };
            self.wire.call("POST", "/cluster/v1/report", &serde_json::to_value(report).unwrap());
        }
        for launch in answer.launch {
            self.launch(&launch);
        }
        for pod in self.pods.lock().unwrap().iter_mut() {
            pod.removed |= answer.remove.contains(&pod.attempt);
        }
    }

    fn launch(&self, launch: &Launch) {
        let mut pods = self.pods.lock().unwrap();
        if pods.iter().any(|pod| pod.attempt == launch.attempt) {
            return;
        }
        for part in 0..launch.parts {
            let folder = self.folder.join(format!("{}-{part}", launch.attempt));
            fs::create_dir_all(folder.join("home")).unwrap();
            fs::write(folder.join("token"), &launch.token).unwrap();
            fs::write(folder.join("authority.pem"), &launch.authority).unwrap();
            let log = folder.join("log");
            let mut command = Command::new(binary());
            command
                .args(["agent", "pod"])
                .env("PEREGRINE_HOME", folder.join("home"))
                .env("PEREGRINE_SERVER", &launch.server)
                .env("PEREGRINE_ATTEMPT", launch.attempt.as_str())
                .env("PEREGRINE_PART", part.to_string())
                .env("PEREGRINE_TOKEN_FILE", folder.join("token"))
                .env("PEREGRINE_CA_FILE", folder.join("authority.pem"))
                .env("PEREGRINE_LOCAL_GRACE_SECONDS", "5")
                .env("POD_IP", format!("127.0.0.{}", part + 1))
                .env("NODE_NAME", "fake-node")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(fs::File::create(&log).unwrap());
            let process = command.spawn().unwrap();
            pods.push(Pod { attempt: launch.attempt.clone(), log, process, code: None, removed: false });
        }
    }
}

fn facts() -> ClusterFacts {
    let whole = Resources { cpu_milli: 64_000, memory_bytes: 256 << 30, gpus: 0 };
    let small = Resources { cpu_milli: 100, memory_bytes: 1 << 30, gpus: 0 };
    ClusterFacts {
        uid: "7".into(),
        version: "test".into(),
        training: true,
        nodes: vec![ClusterNode {
            name: "fake-node".into(),
            ready: true,
            allocatable: whole,
            free: whole,
            ..ClusterNode::default()
        }],
        instance_types: vec![ClusterInstanceType {
            name: "defaultinstancetype".into(),
            requests: small,
            limits: small,
            fits_now: 100,
            fits_ever: true,
            ..ClusterInstanceType::default()
        }],
        ..ClusterFacts::default()
    }
}

/// Calls to the server of a home with one token.
struct Wire {
    client: api::Client,
    runtime: tokio::runtime::Runtime,
}

impl Wire {
    fn new(home: &Home, token: &str) -> Wire {
        let url = agent::server::address(&home.home()).expect("the server has left its address").url;
        let authority = Some(fs::read(agent::server::authority_file(&home.home())).unwrap());
        let client = api::Client::new(api::Connection { url, token: token.to_owned(), authority }).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Wire { client, runtime }
    }

    /// The answer; nothing where the server is away. It must not refuse.
    fn call(&self, method: &str, path: &str, body: &Value) -> Option<Value> {
        let asked = async {
            match method {
                "GET" => self.client.get(path).await,
                "PUT" => self.client.put(path, body).await,
                _ => self.client.post(path, body).await,
            }
        };
        match self.runtime.block_on(asked) {
            Ok(answer) => Some(answer),
            Err(api::ClientError::Refused { status, message, .. }) => panic!("{method} {path}: {status} {message}"),
            Err(_) => None,
        }
    }
}

/// The file of that name below a folder.
pub(crate) fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().find_map(|entry| match entry.path() {
        path if path.is_dir() => find(&path, name),
        path => (entry.file_name() == name).then_some(path),
    })
}
