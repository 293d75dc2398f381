//! Certificates of the operator's own: other machines see them, and what runs on the server's machine, or comes to it through a
//! tunnel, works all the same.

use crate::{
    harness::{Home, said},
    managed::{create, why},
    ssh::{Machine, words},
};
use std::{
    fs,
    net::{TcpListener, TcpStream},
    process::Command,
};

/// A name that nobody here knows.
const NAME: &str = "ml.example.org";

/// Makes an authority that nobody here trusts, and a certificate of it for this name alone.
pub(crate) fn certify(home: &Home, name: &str) {
    let script = format!(
        "set -e\nopenssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=foreign -keyout ca.key -out ca.pem\n\
         openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -keyout server.key -out server.csr\n\
         printf 'subjectAltName={name}\\nbasicConstraints=CA:FALSE\\n' > ext\n\
         openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out new.pem\nmv new.pem server.pem"
    );
    let made = said(Command::new("sh").args(["-c", &script]).current_dir(home.path()).output().unwrap());
    assert_eq!(made.code, Some(0), "{}", made.err);
}

/// Whether another machine, which knows the operator's authority, reaches the server by its name.
fn reached(home: &Home, port: u16) -> bool {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--max-time", "5", "--cacert", "ca.pem", "--resolve"]).current_dir(home.path());
    curl.arg(format!("{NAME}:{port}:127.0.0.2")).arg(format!("https://{NAME}:{port}/healthz"));
    curl.output().unwrap().status.success()
}

/// Logs a metric, as a client does that knows nothing but its variables.
const LOG: &str = r#"python3 - <<'END'
import json, os, ssl, urllib.request
body = {"run_id": os.environ["MLFLOW_RUN_ID"], "key": "loss", "value": 0.5, "timestamp": 1}
ask = urllib.request.Request(
    os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric", json.dumps(body).encode(),
    {"authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "content-type": "application/json"})
trust = ssl.create_default_context(cafile=os.environ["REQUESTS_CA_BUNDLE"])
print("logged", urllib.request.urlopen(ask, context=trust).status)
END
echo made > ${{outputs.made}}/file"#;

/// A job with code, an output and a metric.
pub(crate) fn works(home: &Home, name: &str, on: &str) {
    home.file("code/note.txt", "noted\n");
    let more = format!("{on}\ncode: code\noutputs: {{made: {{type: uri_folder}}}}");
    home.begin(name, &format!("cat note.txt\n{LOG}"), &more);
    let job = home.ended(name);
    assert_eq!(job["status"], "Completed", "{}\n{}", why(home, name), home.log(name));
    assert_eq!(home.log(name), "noted\nlogged 200\n");
    home.ok(&["job", "download", "-n", name, "--output-name", "made", "-p", name]);
    let found = Command::new("find").arg(home.path().join(name)).args(["-name", "file"]).output().unwrap();
    assert!(!found.stdout.is_empty(), "the output of `{name}` came back");
}

#[test]
fn what_runs_here_needs_no_trust_in_the_operators_certificate() {
    let home = Home::new();
    certify(&home, &format!("DNS:{NAME}"));
    let port = TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
    let at = home.path().display();
    home.configure(&format!(
        "[server]\nlisten = \"0.0.0.0:{port}\"\npublic_url = \"https://{NAME}:{port}\"\ntls_cert = \"{at}/server.pem\"\n\
         tls_key = \"{at}/server.key\"\n"
    ));
    home.ok(&["server", "start", "-o", "none"]);
    assert!(reached(&home, port), "the outside sees the operator's certificate");
    works(&home, "local", "");
    create(&home, "max_instances: 1\nidle_time_before_scale_down: 300");
    works(&home, "managed", "compute: azureml:crew");
    if let Some(machine) = Machine::start(&home) {
        home.ok(&words(&machine.attach("id", &[("--host-key", &machine.fingerprint())])));
        works(&home, "tunnelled", "compute: azureml:box");
    }

    // The inner door is on one address only, and the same after a restart.
    let inner = || {
        let left: serde_json::Value =
            serde_json::from_slice(&fs::read(home.home().join("server.json")).unwrap()).unwrap();
        let url = left["local_url"].as_str().unwrap().to_owned();
        url.strip_prefix("https://127.0.0.1:").unwrap().parse::<u16>().unwrap()
    };
    let before = inner();
    assert!(TcpStream::connect(("127.0.0.1", before)).is_ok() && TcpStream::connect(("127.0.0.2", port)).is_ok());
    assert!(TcpStream::connect(("127.0.0.2", before)).is_err());
    assert!(home.kill("server"));
    home.ok(&["server", "start", "-o", "none"]);
    assert_eq!(inner(), before);

    // Another authority altogether, without a restart.
    certify(&home, &format!("DNS:{NAME}"));
    home.until("the new certificate", || reached(&home, port));
    works(&home, "renewed", "compute: azureml:crew");
    assert!(
        home.ok(&["job", "show", "-n", "renewed", "-o", "json"]).contains(&format!("https://{NAME}:{port}/studio"))
    );
}
