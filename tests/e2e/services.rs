//! Services of jobs that run: a port the command listens on, and a shell beside it, reached through the agent's own
//! connection.

use crate::{harness::Home, skip::skip};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A program that serves a page on a port.
const SITE: &str = "import http.server, os, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'hello from ' + os.environ['AZUREML_RUN_ID'].encode())
server = http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Page)
print('up', flush=True)
server.serve_forever()
";

#[test]
fn a_port_of_a_job_is_reached_through_its_agent_and_only_while_it_runs() {
    let home = Home::new();
    let port = free_port();
    write_site(&home);
    home.begin("site", &format!("python3 site.py {port}"), &services(port));
    home.until("the site", || home.log("site") == "up\n");
    assert_eq!(page(&home, "site"), "hello from site");
    let shown = home.json(&["job", "show-services", "-n", "site"]);
    assert_eq!((shown["web"]["status"].as_str(), shown["web"]["port"].as_u64()), (Some("Running"), Some(port.into())));
    let closed = home.run(&["job", "connect", "-n", "site", "--service", "closed"]);
    closed.must(2, &["cannot reach service `closed`", "nothing answers on port 1 "]);
    home.run(&["job", "connect", "-n", "site", "--service", "none"])
        .must(2, &["no such service `none`", "closed, web"]);
    home.run(&["job", "connect", "-n", "site", "--service", "web", "--node-index", "1"]).must(2, &["on node 1"]);
    assert!(home.ok(&["job", "why", "-n", "site"]).contains("connects to service `web` on node 0"));
    home.ok(&["job", "cancel", "-n", "site"]);
    home.until_status("site", "Canceled");
    let over = home.run(&["job", "connect", "-n", "site", "--service", "web"]);
    over.must(2, &["job `site` is Canceled", "while it runs"]);
}

#[test]
fn a_shell_beside_a_command_has_its_variables_and_ends_with_it() {
    if !Path::new("/usr/sbin/sshd").exists() {
        return skip("a shell beside a command (no OpenSSH server here)");
    }
    let home = Home::new();
    let key = key_pair(&home);
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    let more = format!("services:\n  shell: {{type: ssh, ssh_public_keys: '{}'}}", public.trim());
    home.begin("open", "echo up; while [ ! -e enough ]; do sleep 0.1; done", &more);
    home.until("the command", || home.log("open") == "up\n");
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let enter = ["job", "connect-ssh", "-n", "open", "-i", key.to_str().unwrap(), "-l", user.trim(), "--"];
    // What is left behind in the session has to go with the job.
    let left = "setsid sleep 4242 > /dev/null 2>&1 & echo $AZUREML_RUN_ID; cd $AZ_BATCHAI_JOB_WORK_DIR && touch enough; exit 7";
    let said = home.run(&[&enter[..], &[left]].concat());
    assert_eq!((said.code, said.out.as_str()), (Some(7), "open\n"), "{}", said.err);
    assert_eq!(home.ended("open")["status"], "Completed");
    assert!(!runs("sleep 4242"), "what a session started ends with the job");
}

/// A page of a job's service `web`, got through `job connect`.
pub(crate) fn page(home: &Home, job: &str) -> String {
    let connect = ["job", "connect", "-n", job, "--service", "web", "--query", "address", "-o", "tsv"];
    let mut child = Running(home.command(&connect).stdout(Stdio::piped()).spawn().unwrap());
    let mut address = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let mut page = String::new();
    let mut stream = TcpStream::connect(address.trim()).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    stream.read_to_string(&mut page).unwrap();
    page.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The code and the services of a job that serves [`SITE`].
pub(crate) fn services(port: u16) -> String {
    format!("code: src\nservices:\n  web: {{type: custom, port: {port}}}\n  closed: {{type: custom, port: 1}}")
}

/// Writes the program of a job that serves a page.
pub(crate) fn write_site(home: &Home) {
    home.file("src/site.py", SITE);
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn key_pair(home: &Home) -> PathBuf {
    let key = home.path().join("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status().unwrap();
    assert!(made.success());
    key
}

fn runs(command: &str) -> bool {
    let wanted: Vec<u8> = command.bytes().map(|byte| if byte == b' ' { 0 } else { byte }).chain([0]).collect();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|process| fs::read(process.path().join("cmdline")).is_ok_and(|line| line == wanted))
}
