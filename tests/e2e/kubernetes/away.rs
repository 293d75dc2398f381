//! What is between a job and the server, or below it, goes away for a while: the network, the kubelet, the direct way.

use super::Lab;
use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

pub(super) fn a_job_ends_although_its_kubelet_has_stopped(lab: &Lab) {
    lab.begin("steady", "echo up; sleep 4; echo done", "");
    lab.until("the command", || lab.home.log("steady") == "up\n");
    lab.cluster.part("stop", "kubelet");
    let job = lab.ended("steady");
    assert_eq!((job["status"].as_str(), lab.home.log("steady").as_str()), (Some("Completed"), "up\ndone\n"), "{job:#}");
    lab.cluster.part("start", "kubelet");
    gone(lab, "steady");
}

/// For as long as `PEREGRINE_CUT_SECONDS` says, then on and off.
pub(super) fn a_job_that_was_cut_off_runs_once_and_loses_nothing(lab: &Lab) {
    let seconds: u64 = std::env::var("PEREGRINE_CUT_SECONDS").map_or(12, |text| text.parse().unwrap());
    lab.begin("alone", &format!("echo one; sleep {}; echo two; sleep 10; echo three", seconds / 2), "");
    lab.until("the command", || lab.home.log("alone") == "one\n");
    let cut = Cut::of(lab);
    std::thread::sleep(Duration::from_secs(seconds));
    if seconds > 40 {
        let why = lab.why("alone");
        assert!(why.contains("last heard of"), "{why}");
    }
    drop(cut);
    for _ in 0..4 {
        let _cut = Cut::of(lab);
        std::thread::sleep(Duration::from_secs(1));
    }
    let job = lab.ended("alone");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", lab.why("alone"));
    assert_eq!(lab.home.log("alone"), "one\ntwo\nthree\n");
    assert!(!lab.home.artifacts("alone").join("retry-001").exists(), "it ran twice");
    gone(lab, "alone");
}

/// The last step: a way out that was set is kept.
pub(super) fn behind_a_proxy_everything_goes_through_it(lab: &Lab) {
    let proxy = Proxy::start(lab.cluster.fact("HOST_ADDRESS"), &lab.home.path().join("proxy.log"));
    let through = ["--proxy-https", &proxy.url, "--proxy-skip-range", "10.96.0.0/16,localhost,127.0.0.1"];
    let reach = ["extension", "upgrade", "--kubeconfig", lab.cluster.fact("KUBECONFIG")];
    lab.home.ok(&[&reach[..], &through].concat());
    let _cut = Cut::of(lab);
    lab.begin("proxied", "echo through $HTTPS_PROXY", "");
    let job = lab.ended("proxied");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", lab.why("proxied"));
    assert_eq!(lab.home.log("proxied"), format!("through {}\n", proxy.url));
    let asked = fs::read_to_string(lab.home.path().join("proxy.log")).unwrap();
    assert!(asked.lines().count() >= 2, "operator and agent both come this way: {asked}");
    gone(lab, "proxied");
}

/// Nothing of a job is left on the cluster.
pub(super) fn gone(lab: &Lab, job: &str) {
    let label = format!("peregrine.dev/job={job}");
    let of_it = ["get", "pods,vcjob,secrets", "-l", &label, "-o", "name"];
    lab.until("nothing of it to be left", || lab.cluster.ok(&of_it).is_empty());
}

/// While it lives, nothing from the cluster reaches the server.
struct Cut<'a> {
    namespace: &'a str,
    rules: Vec<Vec<String>>,
}

impl<'a> Cut<'a> {
    fn of(lab: &Lab<'a>) -> Cut<'a> {
        let (host, port) = lab.url.trim_start_matches("https://").split_once(':').unwrap();
        let rule =
            |chain: &str| [chain, "-p", "tcp", "-d", host, "--dport", port, "-j", "DROP"].map(str::to_owned).to_vec();
        let cut =
            Cut { namespace: lab.cluster.fact("NETWORK_NAMESPACE"), rules: vec![rule("OUTPUT"), rule("FORWARD")] };
        cut.change("-I");
        cut
    }

    fn change(&self, verb: &str) {
        for rule in &self.rules {
            let mut iptables = Command::new("ip");
            iptables.args(["netns", "exec", self.namespace, "iptables", "-w", verb]).args(rule);
            let done = iptables.output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
    }
}

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        self.change("-D");
    }
}

/// A small proxy that writes a line for each connection it makes.
struct Proxy {
    process: Child,
    url: String,
}

const PROXY: &str = r#"
import socket, sys, threading
def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for end in (a, b):
        try: end.shutdown(socket.SHUT_RDWR)
        except OSError: pass
def serve(client):
    head = b""
    while b"\r\n\r\n" not in head:
        head += client.recv(4096)
    verb, address = head.split()[:2]
    assert verb == b"CONNECT"
    host, port = address.decode().rsplit(":", 1)
    there = socket.create_connection((host, int(port)))
    print(address.decode(), file=log, flush=True)
    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    threading.Thread(target=pump, args=(there, client), daemon=True).start()
    pump(client, there)
log = open(sys.argv[2], "a")
listener = socket.create_server((sys.argv[1], 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

impl Proxy {
    fn start(host: &str, log: &std::path::Path) -> Proxy {
        let mut python = Command::new("python3");
        python.args(["-c", PROXY, host]).arg(log).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = python.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Proxy { process, url: format!("http://{host}:{}", port.trim()) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}
