//! A server with its records in Postgres: everything works as with a file, and nothing acknowledged is lost when
//! either of the two is killed.

#[path = "../postgres.rs"]
#[expect(dead_code, reason = "other suites use what this one does not")]
mod real;

use crate::{
    faults::door::Door,
    harness::{Home, processes_with},
    sdk::venv,
};
use real::Server;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
};

const MLFLOW: &str = "3.17.2";
const PASSWORD: &str = "hunter2-hunter2";

/// Logs one step after the other with MLflow's client. A step that is not acknowledged is logged again, and every step
/// that is acknowledged is told.
const LOGGER: &str = r#"
import sys, mlflow
client = mlflow.MlflowClient(sys.argv[1])
def insist(act):
    while True:
        try: return act()
        except Exception as error: print("refused", type(error).__name__, flush=True)
run = insist(lambda: client.create_run("0")).info.run_id
print("run", run, flush=True)
for step in range(1_000_000):
    insist(lambda: client.log_metric(run, "loss", step / 8, timestamp=1_700_000_000_000 + step, step=step))
    print("step", step, flush=True)
"#;

/// A home whose server keeps its records in that Postgres, with a plain address that stays.
fn home(postgres: &Server) -> (Home, Door) {
    let home = Home::new();
    let url = postgres.make("ml").unwrap().replace("postgres@", &format!("postgres:{PASSWORD}@"));
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.configure(&format!("[store]\nurl = \"{url}\"\n[server]\nhttp = \"{address}\"\n"));
    home.ok(&["server", "start", "-o", "none"]);
    (home, Door { address })
}

#[test]
fn nothing_acknowledged_is_lost_when_postgres_and_the_server_are_killed() {
    let Some(python) = venv::with("mlflow", MLFLOW, &[]) else {
        return crate::skip::skip(&format!("mlflow {MLFLOW} is not kept here and the package index cannot be reached"));
    };
    let mut postgres = match Server::start(&[]) {
        Ok(postgres) => postgres,
        Err(reason) => return crate::skip::skip(&format!("Postgres ({reason})")),
    };
    let (home, door) = home(&postgres);
    let gate = home.path().join("gate");
    home.begin("waits", &format!("until [ -e {} ]; do sleep 0.05; done; echo done > outputs/x", gate.display()), "");
    home.until_status("waits", "Running");
    let mut logger = Command::new(python);
    logger
        .args(["-c", LOGGER, &format!("http://{}", door.address)])
        .env("MLFLOW_TRACKING_TOKEN", home.token("user"))
        .env_remove("PYTHONPATH");
    logger.env("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0").env("MLFLOW_HTTP_REQUEST_TIMEOUT", "20");
    let mut logger = logger.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(logger.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (told, heard) = mpsc::channel();
    std::thread::spawn(move || lines.for_each(|line| drop(told.send(line))));
    let mut tally = Tally { heard, run: String::new(), steps: Vec::new(), refused: 0 };
    for round in 0..3 {
        tally.hear(&home, 20);
        postgres.kill();
        if round == 1 {
            home.run(&["server", "stop"]);
            let unreachable = home.run(&["server", "start"]);
            unreachable.must(4, &["postgresql://postgres@", "does not answer", "store.url"]);
            assert!(!unreachable.err.contains(PASSWORD), "{}", unreachable.err);
        } else {
            let body = format!(r#"{{"run_id": "{}", "key": "other", "value": 1, "timestamp": 1}}"#, tally.run);
            let said = door.ask("POST", "/api/2.0/mlflow/runs/log-metric", Some(&home.token("user")), &body);
            assert!(said.0 == 503 && said.1.contains("the server's database does not answer"), "{said:?}");
            assert_eq!(door.ask("GET", "/readyz", Some(&home.token("user")), "").0, 503);
        }
        // While it is down, clients are told so and try again.
        tally.hear_refusal(&home);
        postgres.resume().unwrap();
        if round == 1 {
            home.ok(&["server", "start", "-o", "none"]);
        }
        tally.hear(&home, 20);
        assert!(home.kill("server"));
        home.ok(&["server", "start", "-o", "none"]);
    }
    tally.hear(&home, 20);
    logger.kill().unwrap();
    logger.wait().unwrap();
    tally.hear_rest();
    fs::write(&gate, "").unwrap();
    assert_eq!(home.ended("waits")["status"], "Completed");
    assert_eq!(home.job("waits")["peregrine"]["attempts"], 1);
    let history = format!("/api/2.0/mlflow/metrics/get-history?run_id={}&metric_key=loss", tally.run);
    let (status, history) = door.ask("GET", &history, Some(&home.token("user")), "");
    assert_eq!(status, 200, "{history}");
    let history: Value = serde_json::from_str(&history).unwrap();
    let points: Vec<(i64, f64)> = history["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| (point["step"].as_i64().unwrap(), point["value"].as_f64().unwrap()))
        .collect();
    let kept: BTreeSet<i64> = points.iter().map(|(step, _)| *step).collect();
    let lost: Vec<&i64> = tally.steps.iter().filter(|step| !kept.contains(step)).collect();
    assert!(lost.is_empty(), "{lost:?} were acknowledged and are lost");
    assert_eq!(kept.len(), points.len(), "a step that was sent again is there once");
    assert!(points.iter().all(|(step, value)| *value == *step as f64 / 8.0));
    eprintln!("{} steps acknowledged, {} refused, none lost", tally.steps.len(), tally.refused);
}

#[test]
fn jobs_run_and_the_password_is_seen_nowhere() {
    let postgres = match Server::start(&["fsync=off"]) {
        Ok(postgres) => postgres,
        Err(reason) => return crate::skip::skip(&format!("Postgres ({reason})")),
    };
    let (home, _) = home(&postgres);
    let hello = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hello/job.yml");
    home.ok(&["job", "create", "-f", &hello.display().to_string(), "-n", "hello", "-o", "none"]);
    assert_eq!(home.ended("hello")["status"], "Completed", "{}", home.log("hello"));
    home.begin("environment", "env", "");
    home.ended("environment");
    let config = home.ok(&["config", "show", "-o", "json"]) + &home.ok(&["config", "get", "store.url"]);
    assert!(config.contains("postgresql://postgres@"), "{config}");
    home.run(&["server", "backup", "--to", "copy.db"]).must(2, &["pg_dump --format=custom", "keys", "blobs"]);
    home.run(&["server", "start", "--store-url", &format!("postgres:{PASSWORD}")]).must(2, &["store.url"]);
    let other = Home::new();
    let url = fs::read_to_string(home.home().join("peregrine.toml")).unwrap();
    other.configure(url.lines().take(2).collect::<Vec<_>>().join("\n").as_str());
    let taken = other.run(&["server", "start"]);
    taken.must(2, &["another server uses the database", "a database of its own"]);
    let mut seen = vec![config, taken.err, home.log("environment")];
    for (pid, line) in processes_with(&home.home().display().to_string()) {
        let server = line.contains("--detached");
        let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        seen.extend([line, if server { String::new() } else { String::from_utf8_lossy(&variables).into_owned() }]);
    }
    for folder in ["logs", "agent"] {
        let files = Command::new("grep").args(["-r", PASSWORD]).arg(home.home().join(folder)).output().unwrap();
        seen.push(String::from_utf8_lossy(&files.stdout).into_owned());
    }
    seen.iter().for_each(|text| assert!(!text.contains(PASSWORD), "{text}"));
    assert!(!home.home().join("peregrine.db").exists());
}

/// What the logger has said.
struct Tally {
    heard: mpsc::Receiver<String>,
    run: String,
    steps: Vec<i64>,
    refused: usize,
}

impl Tally {
    /// Listens until this many more steps are acknowledged.
    fn hear(&mut self, home: &Home, more: usize) {
        let wanted = self.steps.len() + more;
        home.until("acknowledged steps", || {
            self.hear_rest();
            self.steps.len() >= wanted
        });
    }

    fn hear_refusal(&mut self, home: &Home) {
        let wanted = self.refused + 1;
        home.until("a refusal", || {
            self.hear_rest();
            self.refused >= wanted
        });
    }

    fn hear_rest(&mut self) {
        for line in self.heard.try_iter() {
            match line.split_once(' ') {
                Some(("run", run)) => self.run = run.to_owned(),
                Some(("step", step)) => self.steps.push(step.parse().unwrap()),
                _ => self.refused += 1,
            }
        }
    }
}
