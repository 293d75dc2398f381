//! Where replicas of tests live: folders for code, model and logs, and a node or pod that runs one plan.

use crate::pod::{
    attempt,
    house::{House, skipped, wait_for},
    stand_in::StandIn,
};
use agent::environment::{Environments, Log, Ready};
use domain::{
    Assignment, EnvironmentPlan, JobName, Outcome, Place, Plan, Probe, Serving, ServingKind, job::Failure, report::What,
};
use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpStream, UdpSocket},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

pub(crate) struct Site(tempfile::TempDir);

impl Site {
    /// `None`, said aloud, where the inference server cannot be installed.
    pub(crate) fn new() -> Option<Site> {
        let plan = EnvironmentPlan { pip: vec!["azureml-inference-server-http".into()], ..EnvironmentPlan::default() };
        installed(&plan).then(|| Site(tempfile::tempdir().unwrap()))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path().join("artifacts").join(name)).unwrap_or_default()
    }

    /// Runs one plan on a node, its logs being new.
    pub(crate) fn house(&self, mut plan: Plan, variables: &[(&str, &str)]) -> Replica {
        let artifacts = self.path().join("artifacts");
        let _none = fs::remove_dir_all(&artifacts);
        plan.artifacts = Place::Folder { path: artifacts };
        let server = StandIn::start(1, assignment(plan));
        let house = House::node(&server, &cache(), variables);
        Replica { house, server }
    }

    pub(crate) fn pod(&self, mut plan: Plan, variables: &[(&str, &str)]) -> Replica {
        plan.artifacts =
            Place::Object { url: "az://c/p".into(), datastore: "@server".into(), options: BTreeMap::new() };
        let server = StandIn::start(1, assignment(plan));
        let house = House::with(&server, 0, variables);
        Replica { house, server }
    }

    /// The usual programs, behind an engine that does not work.
    pub(crate) fn path_without_engine(&self) -> String {
        let folder = self.path().join("bin");
        fs::create_dir_all(&folder).unwrap();
        for name in ["podman", "docker"] {
            let _there = symlink("/bin/false", folder.join(name));
        }
        format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
    }
}

/// Tools and environments that are kept between runs.
pub(crate) fn cache() -> PathBuf {
    let tools = PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/peregrine/tools");
    let cache = tools.join("serve-1");
    fs::create_dir_all(cache.join("environments")).unwrap();
    fs::create_dir_all(tools.join("agent-1")).unwrap();
    let _there = symlink(tools.join("agent-1"), cache.join("tools"));
    cache
}

/// Whether an environment is there or could be made.
pub(crate) fn installed(plan: &EnvironmentPlan) -> bool {
    prepared(plan, "replicas behind the inference server").is_some()
}

/// An environment, kept between runs; `None`, said aloud, where it cannot be made.
pub(crate) fn prepared(plan: &EnvironmentPlan, what_for: &str) -> Option<Ready> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    struct Quiet;
    impl Log for Quiet {
        fn line(&self, _text: &str) {}
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let made = runtime.block_on(Environments::new(&cache()).prepare(plan, None, false, &Quiet));
    if let Err(error) = &made {
        skipped(&format!("{what_for} ({error})"));
    }
    made.ok()
}

/// Asked often, so that tests are short.
pub(crate) fn probe() -> Probe {
    Probe {
        path: None,
        initial_delay_ms: 0,
        period_ms: 150,
        timeout_ms: 2000,
        success_threshold: 1,
        failure_threshold: 30,
    }
}

fn plan(kind: ServingKind) -> Plan {
    let serving = Serving {
        endpoint: "iris".into(),
        deployment: "blue".into(),
        port: None,
        scoring_path: "/score".into(),
        liveness: probe(),
        readiness: probe(),
        start_seconds: 60,
        kind,
        model_mount: None,
    };
    Plan { serve: Some(serving), ..Plan::default() }
}

/// A scoring script as the deployment's code.
pub(crate) fn script(site: &Site, text: &str) -> Plan {
    let code = site.path().join("code");
    fs::create_dir_all(&code).unwrap();
    fs::write(code.join("score.py"), text).unwrap();
    let plan = plan(ServingKind::ScoringScript { entry: "score.py".into() });
    Plan { code: Some(Place::Folder { path: code }), ..plan }
}

/// A program that listens where it is told.
pub(crate) fn command(text: &str) -> Plan {
    Plan { command: text.into(), ..plan(ServingKind::Container) }
}

pub(crate) fn mlflow_model() -> Plan {
    plan(ServingKind::MlflowModel)
}

fn assignment(plan: Plan) -> Assignment {
    Assignment {
        attempt: attempt(),
        number: 0,
        workspace: "w".into(),
        job: JobName::parse("iris.blue.x").or_else(|_| JobName::parse("iris_blue_x")).unwrap(),
        priority: 0,
        turn: 0,
        plan,
        part: None,
        secrets: BTreeMap::new(),
        server_variables: BTreeMap::new(),
    }
}

/// A replica that was asked for.
pub(crate) struct Replica {
    pub(crate) house: House,
    pub(crate) server: StandIn,
}

impl Replica {
    /// What was told of it so far.
    pub(crate) fn serving(&self) -> Vec<(bool, String)> {
        let told = self.server.reports(0).into_iter().filter_map(|what| match what {
            What::Serving { ready, text, .. } => Some((ready, text)),
            _ => None,
        });
        told.collect()
    }

    /// Its address, once it is ready.
    pub(crate) fn ready(&self) -> SocketAddr {
        let mut found = None;
        wait_for("the replica to be ready", || {
            let reports = self.server.reports(0);
            assert!(!reports.iter().any(|what| matches!(what, What::Over { .. })), "{reports:?}");
            found = reports.iter().rev().find_map(|what| match what {
                What::Serving { ready: true, address, .. } => *address,
                _ => None,
            });
            found.is_some()
        });
        found.unwrap()
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let mut found = None;
        wait_for("the end of the replica", || {
            found = self.server.reports(0).into_iter().find_map(|what| match what {
                What::Over { outcome, .. } => Some(outcome),
                _ => None,
            });
            found.is_some()
        });
        found.unwrap()
    }

    pub(crate) fn failure(&self) -> Failure {
        match self.outcome() {
            Outcome::Failed(failure) => failure,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        let started = self.server.reports(0).into_iter().find_map(|what| match what {
            What::Started { pid } => Some(pid),
            _ => None,
        });
        started.unwrap().try_into().unwrap()
    }

    /// What the little server says from now on.
    pub(crate) fn answers(&self, status: &str) {
        let (draft, file) = (self.house.files().join("draft"), self.house.files().join("status"));
        fs::write(&draft, status).unwrap();
        fs::rename(draft, file).unwrap();
    }

    /// Returns when the little server was asked so many times more.
    pub(crate) fn wait_for_questions(&self, more: u64) {
        let asked = || fs::metadata(self.house.files().join("asked")).map_or(0, |meta| meta.len());
        let before = asked();
        wait_for("more questions", || asked() >= before + more);
    }

    /// Sends a request and leaves its answer alone.
    pub(crate) fn send(&self, path: &str, body: &str) -> TcpStream {
        self.try_send(path, body).expect("it takes connections")
    }

    fn try_send(&self, path: &str, body: &str) -> Option<TcpStream> {
        let method = if body.is_empty() { "GET" } else { "POST" };
        let mut stream = TcpStream::connect(self.ready()).ok()?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).ok()?;
        Some(stream)
    }

    pub(crate) fn try_post(&self, path: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = self.try_send(path, body)?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.post(path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        self.try_post(path, body).expect("it answers")
    }
}

/// An address of this machine that is not loopback, if it has one.
pub(crate) fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback())
}
