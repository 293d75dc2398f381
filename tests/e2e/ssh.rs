//! A machine reached by SSH, with a real sshd: it is believed only when somebody vouches for it, and jobs there live through
//! the loss of the connection, of the server and of their agent.

use crate::harness::{Home, processes_with, signal};
use serde_json::Value;
use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

const SSHD: &str = "/usr/sbin/sshd";

/// An sshd of our own, for whoever runs the tests, whose home is a folder of the test's.
pub(crate) struct Machine {
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
    daemon: Child,
    pub(crate) user: String,
}

impl Machine {
    /// `None`, said aloud, where there is no sshd.
    pub(crate) fn start(home: &Home) -> Option<Machine> {
        if !Path::new(SSHD).exists() {
            crate::skip::skip("machines reached by SSH (no sshd is installed)");
            return None;
        }
        // Whatever is left behind is found by this path and ended with the test.
        let folder = home.home().join("machine");
        fs::create_dir_all(folder.join("user")).unwrap();
        for name in ["host", "id", "stranger"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(name));
            assert!(keygen.status().unwrap().success());
        }
        let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap().trim().to_owned();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = folder.display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/id.pub\nPidFile none\nUsePAM no\n\
             PermitRootLogin yes\nStrictModes no\nPasswordAuthentication no\nSetEnv HOME={at}/user\n"
        );
        fs::write(folder.join("config"), config).unwrap();
        // Debian's sshd wants this folder, which a service would have made.
        let _ = fs::create_dir_all("/run/sshd");
        let mut daemon = Command::new(SSHD);
        daemon.args(["-D", "-f"]).arg(folder.join("config")).arg("-E").arg(folder.join("log")).stdin(Stdio::null());
        let daemon = daemon.spawn().unwrap();
        home.until("sshd", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Machine { folder, port, daemon, user })
    }

    pub(crate) fn fingerprint(&self) -> String {
        let said = Command::new("ssh-keygen").arg("-lf").arg(self.folder.join("host.pub")).output().unwrap();
        String::from_utf8(said.stdout).unwrap().split_whitespace().nth(1).unwrap().to_owned()
    }

    /// What it takes to attach it, with these flags in place of the usual ones.
    fn attach(&self, key: &str, flags: &[(&str, &str)]) -> Vec<String> {
        let (port, key) = (self.port.to_string(), self.folder.join(key).display().to_string());
        let usual = [("--address", "127.0.0.1"), ("--user", &self.user), ("--port", &port), ("--private-key", &key)];
        let usual = usual.into_iter().filter(|(name, _)| flags.iter().all(|(other, _)| name != other));
        let all = usual.chain(flags.iter().copied()).map(|(name, value)| format!("{name}={value}"));
        ["compute", "attach", "--type", "virtualmachine", "-n", "box"]
            .map(str::to_owned)
            .into_iter()
            .chain(all)
            .collect()
    }

    fn attempts(&self) -> Vec<PathBuf> {
        let targets = fs::read_dir(self.folder.join("user/.peregrine-agent")).into_iter().flatten().flatten();
        let attempts = targets.filter_map(|target| fs::read_dir(target.path().join("a")).ok());
        attempts.flatten().flatten().map(|entry| entry.path()).collect()
    }

    /// Ends every connection, and not the daemon that takes new ones.
    pub(crate) fn cut(&self) {
        let daemon = self.daemon.id().to_string();
        let children = Command::new("pgrep").args(["-P", &daemon]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        children.split_whitespace().for_each(|pid| assert!(signal(pid.parse().unwrap(), "KILL")));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.cut();
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[test]
fn a_machine_is_attached_only_when_somebody_vouches_for_its_key() {
    let home = Home::new();
    let Some(machine) = Machine::start(&home) else { return };
    let good = machine.fingerprint();
    for (args, expect) in [
        (machine.attach("id", &[]), vec!["nobody has vouched", &good]),
        (machine.attach("id", &[("--host-key", "SHA256:wrong")]), vec!["and not SHA256:wrong"]),
        (machine.attach("stranger", &[("--host-key", &good)]), vec!["does not let", "with the key that was given"]),
        (machine.attach("id.pub", &[]), vec!["is not a private key"]),
        (machine.attach("id", &[("--port", "9")]), vec!["cannot reach `127.0.0.1:9`"]),
        (machine.attach("id", &[("--user", "-oProxyCommand=touch x")]), vec!["is not the name of a user"]),
    ] {
        home.run(&words(&args)).must(2, &expect);
    }
    assert!(!machine.folder.join("user/.peregrine-agent").exists(), "nothing was done there");
    home.job_file("early.yml", "true", "compute: azureml:box");
    home.run(&["job", "create", "-f", "early.yml"]).must(2, &["is not fit for work"]);
    home.ok(&words(&machine.attach("id", &[("--host-key", &good)])));
    let shown = home.json(&["compute", "show", "-n", "box"]);
    assert!(!shown.to_string().contains("PRIVATE KEY"), "{shown}");
    assert_eq!(shown["provisioning_state"], "Succeeded", "{shown}");
    let listed = home.json(&["compute", "list-nodes", "-n", "box"]);
    assert_eq!(listed[0]["node_state"], "idle", "{listed}");
}

#[test]
fn jobs_on_a_machine_outlive_the_way_to_it_and_are_cleaned_up_after() {
    let home = Home::new();
    let Some(machine) = Machine::start(&home) else { return };
    let good = machine.fingerprint();
    home.ok(&words(&machine.attach("id", &[("--host-key", &good)])));
    home.file("data/in.txt", "seven\n");
    let hello = home.stream(
        "cat ${{inputs.data}}/in.txt && mkdir -p ${{outputs.made}} && echo eight > ${{outputs.made}}/out.txt",
        "compute: azureml:box\ninputs: {data: {type: uri_folder, path: data}}\noutputs: {made: {type: uri_folder}}",
    );
    assert_eq!((hello.code, hello.out.as_str()), (Some(0), "seven\n"), "{}", hello.err);

    // One runs, one waits for it; the way is lost, then the server, and nobody notices.
    let steps = "for i in 1 2 3 4 5 6; do echo step $i; sleep 1; done";
    home.begin("first", steps, "compute: azureml:box");
    home.begin("second", "sleep 600", "compute: azureml:box");
    home.until_status("first", "Running");
    let why = |name: &str| home.ok(&["job", "why", "-n", name]);
    home.until("the reason to wait", || why("second").contains("which takes 1 at a time"));
    machine.cut();
    assert!(home.kill("server"));
    let first = home.ended("first");
    assert_eq!(first["status"], "Completed", "{first}");
    let steps: String = (1..=6).map(|n| format!("step {n}\n")).collect();
    assert_eq!(home.log("first"), steps, "{}", why("first"));

    // The agent is killed: what it had started is ended before it is tried again.
    home.until_status("second", "Running");
    let sleeps = || processes_with("sleep 600").into_iter().filter(|(pid, _)| ours(*pid, &machine.folder)).count();
    home.until("the command", || sleeps() == 1);
    let agents = || processes_with(&machine.folder.join("user/.peregrine-agent").display().to_string());
    let killed = agents().into_iter().filter(|(pid, line)| !line.starts_with("sh ") && signal(*pid, "KILL")).count();
    assert!(killed > 0);
    home.until("another try", || why("second").contains("its agent was killed"));
    home.until_status("second", "Running");
    home.until("one command", || sleeps() == 1);
    home.ok(&["job", "cancel", "-n", "second"]);
    assert_eq!(home.ended("second")["status"], "Canceled");
    home.until("a clean machine", || machine.attempts().is_empty() && sleeps() == 0);
    home.ok(&["compute", "detach", "-n", "box", "--yes"]);
    let left: Value = home.json(&["compute", "list"]);
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
}

/// Whether a process belongs to the machine of this test.
fn ours(pid: i32, folder: &Path) -> bool {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&environ).contains(&folder.display().to_string())
}
