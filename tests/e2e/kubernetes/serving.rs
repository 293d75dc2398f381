//! An endpoint whose replicas are pods, called through the cluster's own router from outside the cluster.

use super::Lab;
use crate::harness::{Home, Said};
use serde_json::{Value, json};

/// What the extension is installed with beyond training. The test machine reaches the node itself.
pub(super) const SETTINGS: [&str; 4] = [
    "enableInference=True",
    "inferenceRouterServiceType=nodePort",
    "allowInsecureConnections=True",
    "inferenceRouterHA=False",
];

/// Answers with its name, its model and what lies on the pod's volume where it has one, in plain Python: the cluster's image has nothing else.
const SERVER: &str = r#"import json, os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = os.environ["NAME"]
WEIGHTS = open(os.path.join(os.environ["AZUREML_MODEL_DIR"], "model", "weights.txt")).read().strip()
DATA = {"data": open("/data/0").read().strip()} if os.path.exists("/data/0") else {}

class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer("alive")

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({"by": NAME, "weights": WEIGHTS, **DATA})

    def log_message(self, *_):
        pass

print(f"{NAME} has loaded {WEIGHTS}", flush=True)
ThreadingHTTPServer(("", int(os.environ["SERVER_PORT"])), Answers).serve_forever()
"#;

pub(super) fn a_model_is_replaced_and_its_pods_killed_without_a_lost_request(lab: &Lab) {
    let home = lab.home;
    home.file("serve/serve.py", SERVER);
    home.file("model/weights.txt", "1 2 3\n");
    home.file("request.json", "{\"x\": 1}");
    create(home);
    deploy(lab, "blue", &["--all-traffic"]);
    let endpoint = home.json(&["online-endpoint", "show", "-n", "iris"]);
    let address = endpoint["scoring_uri"].as_str().unwrap();
    assert!(address.starts_with("http://") && address.ends_with("/api/v1/endpoint/iris/score"), "{address}");
    assert_eq!(answer(home, "iris", &[]), json!({"by": "blue", "weights": "1 2 3"}));
    let pod = lab.cluster.ok(&["get", "pods", "-l", "peregrine.dev/endpoint=iris", "-o", "json"]);
    let pod: Value = serde_json::from_str::<Value>(&pod).unwrap()["items"][0].clone();
    assert_eq!(pod["metadata"]["labels"]["peregrine.dev/deployment"], "blue");
    let container = &pod["spec"]["containers"][0];
    assert_eq!(
        (&container["name"], &container["resources"]["requests"]["cpu"]),
        (&json!("inference-server"), &json!("50m"))
    );
    let logs = || home.ok(&["online-deployment", "get-logs", "-n", "blue", "-e", "iris"]);
    lab.until("its log", || logs().contains("blue has loaded 1 2 3"));

    home.ok(&["online-deployment", "update", "-n", "blue", "-e", "iris", "--set", "instance_count=2", "-o", "none"]);
    lab.until("two pods", || pods(lab, "iris").len() == 2);
    // What is asked to leave answers until no router sends it anything.
    let load = load(home, "iris", "20", "12s", || {
        let pod = pods(lab, "iris").remove(0);
        lab.cluster.ok(&["delete", &pod, "--wait=false"]);
    });
    assert_eq!((&load["failed"], &load["deployments"]["blue"]), (&json!(0), &json!(240)), "{load}");

    home.file("model/weights.txt", "4 5 6\n");
    deploy(lab, "green", &[]);
    assert_eq!(answer(home, "iris", &["-d", "green"])["weights"], "4 5 6");
    assert_eq!(answer(home, "iris", &[])["by"], "blue", "a new deployment has no traffic of its own");
    home.ok(&["online-endpoint", "update", "-n", "iris", "--traffic", "blue=90 green=10", "-o", "none"]);
    let load = self::load(home, "iris", "50", "5s", || {});
    let green = load["deployments"]["green"].as_u64().unwrap_or(0);
    assert!(load["failed"] == 0 && (5..=55).contains(&green), "90/10 of 250 became {load}");
    home.ok(&["online-endpoint", "update", "-n", "iris", "--traffic", "blue=0 green=100", "-o", "none"]);
    home.ok(&["online-deployment", "delete", "-n", "blue", "-e", "iris", "--yes"]);
    assert_eq!(answer(home, "iris", &[])["by"], "green");
    delete(lab);
}

/// The volume that a job wrote to before.
pub(super) fn a_replica_reads_the_volume(lab: &Lab) {
    create(lab.home);
    deploy(lab, "blue", &["--all-traffic"]);
    assert_eq!(answer(lab.home, "iris", &[])["data"], "0 as 1000");
    delete(lab);
}

fn create(home: &Home) {
    home.file("iris.yml", "name: iris\ncompute: azureml:lab\nauth_mode: key\n");
    home.ok(&["online-endpoint", "create", "-f", "iris.yml", "-o", "none"]);
}

fn delete(lab: &Lab) {
    lab.home.ok(&["online-endpoint", "delete", "-n", "iris", "--yes"]);
    lab.until("the replicas' pods to be gone", || pods(lab, "iris").is_empty());
}

fn deploy(lab: &Lab, name: &str, more: &[&str]) {
    let (image, file) = (lab.cluster.fact("PYTHON_IMAGE"), format!("{name}.yml"));
    let route = |path: &str| format!("{{port: 8000, path: {path}}}");
    let text = format!(
        "name: {name}\nendpoint_name: iris\ntype: kubernetes\nmodel: {{path: model}}\n\
         code_configuration: {{code: serve, scoring_script: serve.py}}\n\
         environment:\n  image: '{image}'\n  inference_config:\n    liveness_route: {}\n    readiness_route: {}\n    scoring_route: {}\n\
         environment_variables: {{NAME: {name}}}\nproperties: {{peregrine.command: python3 serve.py}}\n\
         instance_count: 1\nresources: {{requests: {{cpu: 50m, memory: 64Mi}}}}\n\
         request_settings: {{max_concurrent_requests_per_instance: 8, max_queue_wait_ms: 20000, request_timeout_ms: 20000}}\n\
         readiness_probe: {{initial_delay: 0, period: 1, timeout: 2, failure_threshold: 30, success_threshold: 1}}\n",
        route("/"),
        route("/"),
        route("/score"),
    );
    lab.home.file(&file, &text);
    lab.home.ok(&[&["online-deployment", "create", "-f", &file, "-o", "none"], more].concat());
}

/// Pods of the endpoint that are not on their way out, by kind and name.
pub(super) fn pods(lab: &Lab, endpoint: &str) -> Vec<String> {
    let label = format!("peregrine.dev/endpoint={endpoint}");
    let shown = lab.cluster.ok(&["get", "pods", "-l", &label, "-o", "json"]);
    let all: Value = serde_json::from_str(&shown).unwrap();
    let items = all["items"].as_array().cloned().unwrap_or_default();
    let stay = items.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    stay.map(|pod| format!("pod/{}", pod["metadata"]["name"].as_str().unwrap())).collect()
}

fn ask(home: &Home, endpoint: &str, more: &[&str]) -> Said {
    home.run(&[&["online-endpoint", "invoke", "-n", endpoint, "-r", "request.json"], more].concat())
}

pub(super) fn answer(home: &Home, endpoint: &str, more: &[&str]) -> Value {
    let said = ask(home, endpoint, more);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    serde_json::from_str(&said.out).unwrap()
}

/// What came of a load during which something happens.
pub(super) fn load(home: &Home, endpoint: &str, rps: &str, lasts: &str, happens: impl FnOnce()) -> Value {
    let args = ["online-endpoint", "test", "-n", endpoint, "-r", "request.json", "--rps", rps, "--duration", lasts];
    let args = [&args[..], &["-o", "json"]].concat();
    std::thread::scope(|scope| {
        let report = scope.spawn(|| home.run(&args));
        happens();
        let said = report.join().unwrap();
        serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}\n{}", said.out, said.err))
    })
}
