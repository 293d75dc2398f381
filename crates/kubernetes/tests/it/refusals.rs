//! What administrators and nodes do to jobs: namespaces deleted, pods refused, images missing, nodes drained or silent.

use crate::stage::Stage;
use domain::{AttemptId, cluster::ClusterWhat};
use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

pub(crate) fn a_namespace_deleted_under_a_job_is_told_and_waited_for(stage: &Stage) {
    let place = format!("{}-gone", stage.namespace());
    let there = || stage.cluster.ok(&["create", "namespace", &place]);
    there();
    let want = || stage.want(2, |launch| launch.target.namespace.clone_from(&place));
    let first = want();
    stage.until("it to run", || stage.wire.bound(&first) == 2);
    stage.cluster.ok(&["delete", "namespace", &place, "--wait=false"]);
    stage.until("word of it", || stage.wire.gone(&first).is_some());
    let (code, why, retryable) = stage.wire.gone(&first).unwrap();
    assert!(code == "Deleted" && retryable, "{code}: {why}");
    stage.wire.with().wanted.remove(&first);
    stage.until("the namespace to be gone", || !stage.cluster.kubectl(&["get", "namespace", &place]).status.success());
    let second = want();
    stage.until("the reason", || stage.wire.waiting(&second).contains("namespace does not exist"));
    there();
    stage.until("it to run after all", || stage.wire.bound(&second) == 2);
    assert_eq!(stage.wire.gone(&second), None, "a namespace that is not furnished yet is no refusal");
    stage.wire.with().wanted.remove(&second);
    stage.until("the server to hear that nothing is left", || !stage.wire.with().holds.contains(&second));
    stage.cluster.ok(&["delete", "namespace", &place, "--wait=false"]);
}

pub(crate) fn a_webhook_that_does_not_answer_is_waited_for_and_one_that_refuses_is_final(stage: &Stage) {
    let host = stage.cluster.fact("HOST_ADDRESS").to_owned();
    let folder = std::env::temp_dir().join(stage.namespace());
    let webhook = Webhook::start(&host, folder);
    let silent = TcpListener::bind((host.as_str(), 0)).unwrap();
    webhook.register(stage, &format!("{host}:{}", silent.local_addr().unwrap().port()));
    let waits = stage.want(1, |_| {});
    stage.until("the reason", || stage.wire.waiting(&waits).contains("an admission webhook does not answer"));
    Webhook::forget(stage);
    stage.until("it to run after all", || stage.pods(&waits, "Running").len() == 1);
    webhook.register(stage, &webhook.address);
    let refused = stage.want(1, |_| {});
    stage.until("the refusal", || stage.wire.gone(&refused).is_some());
    let (code, why, retryable) = stage.wire.gone(&refused).unwrap();
    assert!(code == "Refused" && !retryable && why.contains("only on Fridays"), "{code}: {why}");
    Webhook::forget(stage);
    stage.drop_and_see_nothing_left(&waits);
    stage.drop_and_see_nothing_left(&refused);
}

pub(crate) fn an_image_that_cannot_be_pulled_is_told_while_it_is_tried_and_one_without_a_name_is_final(stage: &Stage) {
    let with = |reason: &str| {
        stage.want(1, |launch| drop(launch.labels.insert("fake.peregrine.test/reason".into(), reason.into())))
    };
    let (tried, nameless) = (with("ErrImagePull"), with("InvalidImageName"));
    stage.until("the end of one", || stage.wire.gone(&nameless).is_some_and(|(code, ..)| code == "ImagePullFailed"));
    stage.until("the reason of the other", || stage.wire.waiting(&tried).contains("the image cannot be pulled"));
    assert_eq!(stage.wire.gone(&tried), None);
    stage.drop_and_see_nothing_left(&tried);
    stage.drop_and_see_nothing_left(&nameless);
}

pub(crate) fn a_job_whose_node_is_drained_may_be_tried_again(stage: &Stage) {
    let attempt = stage.want(2, |_| {});
    stage.until("it to run", || stage.pods(&attempt, "Running").len() == 2);
    let node = stage.cluster.field(&stage.pods(&attempt, "")[0], ".spec.nodeName");
    let ours = format!("--pod-selector=peregrine.dev/attempt={attempt}");
    stage.cluster.ok(&[
        "drain",
        &node,
        "--force",
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        &ours,
        "--timeout=60s",
    ]);
    stage.until("word of it", || evicted(stage, &attempt));
    stage.cluster.ok(&["uncordon", &node]);
    stage.drop_and_see_nothing_left(&attempt);
}

fn evicted(stage: &Stage, attempt: &AttemptId) -> bool {
    let of_drain =
        |what: &ClusterWhat| matches!(what, ClusterWhat::Gone { code, retryable: true, .. } if code == "Evicted");
    stage.wire.with().news.iter().any(|(about, what)| about == attempt && of_drain(what))
}

pub(crate) fn a_node_that_stops_answering_is_told_and_its_job_is_left_alone(stage: &Stage) {
    let attempt = stage.want(1, |_| {});
    stage.until("it to run", || stage.pods(&attempt, "Running").len() == 1);
    let node = stage.cluster.field(&stage.pods(&attempt, "")[0], ".spec.nodeName");
    // As the platform says of a kubelet that was stopped; the fake one says otherwise with its next heartbeat.
    let lost = r#"{"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}"#;
    stage.cluster.ok(&["patch", "node", &node, "--subresource=status", "-p", lost]);
    stage.until("word of it", || stage.wire.notices(&attempt).contains(&format!("node `{node}` stopped answering")));
    stage.until("better news", || stage.wire.notices(&attempt).contains(&format!("node `{node}` answers again")));
    assert_eq!(stage.wire.gone(&attempt), None);
    stage.drop_and_see_nothing_left(&attempt);
}

/// A webhook that takes no pod.
struct Webhook {
    process: Child,
    address: String,
    folder: PathBuf,
}

const REFUSES: &str = r#"
import http.server, json, ssl, sys
class Gate(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["request"]["uid"]
        response = {"uid": asked, "allowed": False, "status": {"message": "only on Fridays"}}
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.HTTPServer((sys.argv[1], 0), Gate)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("webhook.pem", "webhook.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

impl Webhook {
    fn start(host: &str, folder: PathBuf) -> Webhook {
        std::fs::create_dir_all(&folder).unwrap();
        let mut openssl = Command::new("openssl");
        openssl.args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ]);
        openssl.args(["-subj", "/CN=webhook", "-addext", &format!("subjectAltName=IP:{host}")]);
        let made =
            openssl.args(["-keyout", "webhook.key", "-out", "webhook.pem"]).current_dir(&folder).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut python = Command::new("python3");
        python.args(["-c", REFUSES, host]).current_dir(&folder).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = python.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Webhook { process, address: format!("{host}:{}", port.trim()), folder }
    }

    /// Has the cluster ask this address before it takes a pod of the test's namespace.
    fn register(&self, stage: &Stage, address: &str) {
        let bundle = Command::new("base64").args(["-w0", "webhook.pem"]).current_dir(&self.folder).output().unwrap();
        let (bundle, space) = (String::from_utf8(bundle.stdout).unwrap(), stage.namespace());
        stage.cluster.apply(&format!(
            r#"{{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {{"name": "{space}"}},
            "webhooks": [{{"name": "fridays.peregrine.test", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1,
            "failurePolicy": "Fail", "clientConfig": {{"url": "https://{address}/", "caBundle": "{bundle}"}},
            "namespaceSelector": {{"matchLabels": {{"kubernetes.io/metadata.name": "{space}"}}}},
            "rules": [{{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}}]}}]}}"#
        ));
        // The API server learns of it a moment later.
        let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": {"containers": [{"name": "a", "image": "none"}]}}"#;
        let file = self.folder.join("probe.json");
        std::fs::write(&file, pod).unwrap();
        let create = ["create", "--dry-run=server", "-f", file.to_str().unwrap()];
        stage.until("the webhook to be asked", || !stage.cluster.kubectl(&create).status.success());
    }

    fn forget(stage: &Stage) {
        stage.cluster.ok(&["delete", "validatingwebhookconfiguration", &stage.namespace()]);
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
