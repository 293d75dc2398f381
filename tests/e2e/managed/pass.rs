//! What speaks for a node: its certificate, or a token where none gets through.

use super::*;
use std::{os::unix::fs::PermissionsExt, path::PathBuf};

/// The files in which nodes keep what speaks for them.
fn passes(home: &Home) -> Vec<PathBuf> {
    let clusters = fs::read_dir(home.home().join("n")).into_iter().flatten().flatten();
    let nodes = clusters.flat_map(|cluster| fs::read_dir(cluster.path()).unwrap().flatten());
    nodes.map(|node| node.path().join("pass")).filter(|file| file.is_file()).collect()
}

#[test]
fn a_node_works_by_a_certificate_that_is_renewed_and_dies_with_the_node() {
    let home = Home::new();
    home.configure("[server]\nnode_certificate_seconds = 10\n");
    create(&home, "max_instances: 1\nidle_time_before_scale_down: 300");
    home.begin("steps", "for i in $(seq 15); do echo step $i; sleep 1; done", ON);
    home.until_status("steps", "Running");
    let file = passes(&home).pop().expect("a node keeps what speaks for it");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let first = fs::read_to_string(&file).unwrap();
    assert!(first.starts_with("node.@default/crew/crew-") && first.contains("PRIVATE KEY"), "no token: {first:.40}");
    // While the job runs it outlives its certificate, and the loss of its node's process and of the server.
    home.until("another certificate", || fs::read_to_string(&file).is_ok_and(|now| now != first));
    assert!(signal(agents(&home)[0], "KILL"));
    // The next server gives certificates that are good for long, however slow this machine is.
    home.configure("[server]\nnode_certificate_seconds = 3600\n");
    assert!(home.kill("server"));
    assert_eq!(home.ended("steps")["status"], "Completed", "{}", why(&home, "steps"));
    let all: String = (1..=15).map(|n| format!("step {n}\n")).collect();
    assert_eq!(home.log("steps"), all, "{}", why(&home, "steps"));
    let hello = home.stream("echo hello", ON);
    assert_eq!((hello.code, hello.out.as_str()), (Some(0), "hello\n"), "{}", hello.err);

    // Whoever has copied everything of a node has nothing once the node is gone.
    let stolen = home.path().join("stolen.pem");
    let mut copied = String::new();
    home.until("one that is good for longer than this test takes", || {
        copied = fs::read_to_string(&file).unwrap_or_default();
        let Some((_, identity)) = copied.split_once('\n') else { return false };
        fs::write(&stolen, identity).unwrap();
        let asked = Command::new("openssl").args(["x509", "-noout", "-checkend", "1200", "-in"]).arg(&stolen).output();
        asked.unwrap().status.success()
    });
    let (claim, _) = copied.split_once('\n').unwrap();
    let poll = || {
        let url = home.json(&["server", "status"])["url"].as_str().unwrap().to_owned();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", "30", "--output", "/dev/null", "--write-out", "%{http_code}"]);
        curl.arg("--cacert").arg(home.home().join("keys/authority.pem")).arg("--cert").arg(&stolen);
        curl.args(["-H", &format!("authorization: Bearer {claim}"), "-H", "content-type: application/json"]);
        curl.args(["-d", r#"{"facts": {}, "holds": [], "keeps": []}"#, &format!("{url}/node/v1/poll")]);
        crate::harness::said(curl.output().unwrap()).out
    };
    assert_eq!(poll(), "200");
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    assert_eq!(poll(), "401");
}

/// Ends TLS and passes on what is in it, as a proxy in front of the server does.
const PROXY: &str = r#"
import socket, ssl, sys, threading
listen, behind, cert, key = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
trust.load_cert_chain(cert, key)
def copy(one, other):
    try:
        while data := one.recv(65536):
            other.sendall(data)
    except OSError:
        pass
    for end in (one, other):
        try: end.shutdown(socket.SHUT_RDWR)
        except OSError: pass
def serve(raw):
    try:
        caller = trust.wrap_socket(raw, server_side=True)
        server = socket.create_connection(("127.0.0.1", behind))
    except OSError:
        return raw.close()
    threading.Thread(target=copy, args=(caller, server), daemon=True).start()
    copy(server, caller)
door = socket.create_server(("127.0.0.1", listen))
while True:
    threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()
"#;

#[test]
fn behind_a_proxy_that_ends_tls_a_node_goes_on_with_a_token() {
    let home = Home::new();
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (front, behind) = (free(), free());
    home.configure(&format!("[server]\nhttp = \"127.0.0.1:{behind}\"\n"));
    home.ok(&["server", "start", "-o", "none"]);
    let script = home.file("home/proxy.py", PROXY);
    let mut proxy = Command::new("python3");
    proxy.arg(script).args([front.to_string(), behind.to_string()]);
    let mut proxy =
        proxy.args(["server.pem", "server.key"].map(|key| home.home().join("keys").join(key))).spawn().unwrap();
    let folder = provider(&home);
    fs::write(folder.join("mode"), "").unwrap();
    let through = format!("server_url: 'https://127.0.0.1:{front}'");
    create(
        &home,
        &format!("max_instances: 1\nprovider: {{type: command, program: lab, timeout_seconds: 5, {through}}}"),
    );
    home.begin("work", "echo done", ON);
    let ended = home.ended("work");
    let node = fs::read_dir(&folder).unwrap().flatten().find(|entry| entry.path().join("log").exists()).unwrap();
    let log = fs::read_to_string(node.path().join("log")).unwrap();
    assert_eq!(ended["status"], "Completed", "{}\n{log}", why(&home, "work"));
    assert!(log.contains("TLS ends before the server"), "{log}");
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    leave_nothing(&folder);
    proxy.kill().unwrap();
    proxy.wait().unwrap();
}
