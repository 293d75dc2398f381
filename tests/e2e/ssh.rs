//! A machine reached by SSH, with a real sshd: it is believed only when somebody vouches for it, and jobs there live through
//! the loss of the connection, of the server and of their agent.

use crate::{
    harness::{Home, binary, is_long, processes_with, said, signal},
    network::Net,
};
use serde_json::Value;
use std::{
    fs,
    io::Write,
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

const SSHD: &str = "/usr/sbin/sshd";

/// An sshd of our own, for whoever runs the tests, whose home is a folder of the test's.
pub(crate) struct Machine {
    pub(crate) folder: PathBuf,
    pub(crate) address: String,
    pub(crate) port: u16,
    daemon: Child,
    pub(crate) user: String,
}

impl Machine {
    /// `None`, said aloud, where there is no sshd.
    pub(crate) fn start(home: &Home) -> Option<Machine> {
        Machine::called(home, "machine", &[], None)
    }

    /// One of several, with more variables for whoever logs in, or in a network of its own.
    pub(crate) fn called(home: &Home, name: &str, variables: &[(&str, String)], net: Option<&Net>) -> Option<Machine> {
        if !Path::new(SSHD).exists() {
            crate::skip::skip("machines reached by SSH (no sshd is installed)");
            return None;
        }
        // Whatever is left behind is found by this path and ended with the test.
        let folder = home.home().join(name);
        fs::create_dir_all(folder.join("user")).unwrap();
        for name in ["host", "id", "stranger"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(name));
            assert!(keygen.status().unwrap().success());
        }
        let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap().trim().to_owned();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = net.map_or("127.0.0.1".to_owned(), |net| net.there.clone());
        let at = folder.display();
        let variables: String = variables.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        let config = format!(
            "Port {port}\nListenAddress {address}\nHostKey {at}/host\nAuthorizedKeysFile {at}/id.pub\nPidFile none\nUsePAM no\n\
             PermitRootLogin yes\nStrictModes no\nPasswordAuthentication no\nSetEnv HOME={at}/user{variables}\n"
        );
        fs::write(folder.join("config"), config).unwrap();
        // Debian's sshd wants this folder, which a service would have made.
        let _ = fs::create_dir_all("/run/sshd");
        let mut daemon = net.map_or_else(|| Command::new(SSHD), |net| net.within(SSHD));
        daemon.args(["-D", "-f"]).arg(folder.join("config")).arg("-E").arg(folder.join("log")).stdin(Stdio::null());
        let daemon = daemon.spawn().unwrap();
        home.until("sshd", || TcpStream::connect((address.as_str(), port)).is_ok());
        Some(Machine { folder, address, port, daemon, user })
    }

    pub(crate) fn fingerprint(&self) -> String {
        let said = Command::new("ssh-keygen").arg("-lf").arg(self.folder.join("host.pub")).output().unwrap();
        String::from_utf8(said.stdout).unwrap().split_whitespace().nth(1).unwrap().to_owned()
    }

    /// What it takes to attach it, with these flags in place of the usual ones.
    pub(crate) fn attach(&self, key: &str, flags: &[(&str, &str)]) -> Vec<String> {
        let (port, key) = (self.port.to_string(), self.folder.join(key).display().to_string());
        let usual =
            [("--address", self.address.as_str()), ("--user", &self.user), ("--port", &port), ("--private-key", &key)];
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

pub(crate) fn words(args: &[String]) -> Vec<&str> {
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
    // Everything there goes at once, and what is left was written by a machine that is not up any more.
    let attempt = machine.attempts().into_iter().find(|folder| folder.join("boot").exists()).unwrap();
    fs::write(attempt.join("boot"), "5c0c5bf0-0000-0000-0000-000000000000\n").unwrap();
    let all = |pid: i32| ours(pid, &machine.folder) && signal(pid, "KILL");
    assert!(processes_with("").into_iter().filter(|(pid, line)| !line.contains("sshd") && all(*pid)).count() > 0);
    home.until("the machine's restart", || why("second").contains("the machine was restarted"));
    home.until_status("second", "Running");
    home.until("one command", || sleeps() == 1);
    home.ok(&["job", "cancel", "-n", "second"]);
    assert_eq!(home.ended("second")["status"], "Canceled");
    home.until("a clean machine", || machine.attempts().is_empty() && sleeps() == 0);
    home.ok(&["compute", "detach", "-n", "box", "--yes"]);
    let left: Value = home.json(&["compute", "list"]);
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
}

#[test]
fn where_its_file_says_so_the_more_important_job_takes_the_slot() {
    let home = Home::new();
    let Some(machine) = Machine::start(&home) else { return };
    home.file(
        "box.yml",
        &format!(
            "name: box\ntype: virtualmachine\naddress: {}\nhost_key: {}\npreemption: lower-priority\n\
             ssh_settings: {{admin_username: {}, ssh_port: {}, ssh_private_key_file: {}}}\n",
            machine.address,
            machine.fingerprint(),
            machine.user,
            machine.port,
            machine.folder.join("id").display()
        ),
    );
    home.ok(&["compute", "attach", "-f", "box.yml"]);
    let begun = home.path().join("begun");
    let low = format!("if [ -e {0} ]; then exit 0; fi\ntouch {0}\nsleep 600", begun.display());
    home.begin("low", &low, "compute: azureml:box\nqueue_settings: {priority: low}");
    home.until("it to begin", || begun.exists());
    home.begin("high", "true", "compute: azureml:box\nqueue_settings: {priority: high}");
    let why = |name: &str| home.ok(&["job", "why", "-n", name]);
    assert_eq!(home.ended("high")["status"], "Completed", "{}", why("high"));
    assert_eq!(home.ended("low")["status"], "Completed", "{}", why("low"));
    assert!(why("low").contains("makes way for `high`"), "{}", why("low"));
}

#[test]
fn a_machine_behind_others_is_reached_through_them() {
    let home = Home::new();
    let Some(machine) = Machine::start(&home) else { return };
    let Some(gate) = Machine::called(&home, "gate", &[], None) else { return };
    fs::copy(machine.folder.join("id.pub"), gate.folder.join("id.pub")).unwrap();
    let jump = format!("{}@127.0.0.1:{}", gate.user, gate.port);
    let both = format!("{},{}", gate.fingerprint(), machine.fingerprint());
    let through = |key: &str, host_key: &str| machine.attach(key, &[("--jump-host", &jump), ("--host-key", host_key)]);
    // Nothing is told to a host on the way that nobody vouches for, and nobody is let in by the wrong key.
    home.run(&words(&machine.attach("id", &[("--jump-host", &jump)])))
        .must(2, &["nobody has vouched", &gate.fingerprint()]);
    home.run(&words(&through("id", &machine.fingerprint()))).must(2, &["shows the key", &gate.fingerprint()]);
    home.run(&words(&through("stranger", &both))).must(2, &[&format!("127.0.0.1:{}` does not let", gate.port)]);
    home.ok(&words(&through("id", &both)));
    let hello = home.stream("echo through $SSH_CONNECTION", "compute: azureml:box");
    assert_eq!(hello.code, Some(0), "{}", hello.err);
    let log = fs::read_to_string(gate.folder.join("log")).unwrap();
    assert!(log.contains("Accepted publickey"), "{log}");
    // The way is lost, and found again.
    home.begin("long", "for i in 1 2 3 4 5 6; do echo step $i; sleep 1; done", "compute: azureml:box");
    home.until_status("long", "Running");
    gate.cut();
    assert_eq!(home.ended("long")["status"], "Completed");
    assert_eq!(home.log("long").lines().count(), 6);
}

#[test]
fn a_host_that_takes_a_connection_and_says_nothing_is_named() {
    let home = Home::new();
    let Some(machine) = Machine::start(&home) else { return };
    home.ok(&["server", "start", "-o", "none"]);
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let banner = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [&mute, &banner].map(|listener| listener.local_addr().unwrap().port().to_string());
    // They are kept open until the test is over.
    std::thread::spawn(move || mute.incoming().map(Result::unwrap).collect::<Vec<_>>());
    let greets = |taken: std::io::Result<TcpStream>| {
        let mut taken = taken.unwrap();
        taken.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap();
        taken
    };
    std::thread::spawn(move || banner.incoming().map(greets).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for (at, port) in ports.iter().enumerate() {
            let mut args = machine.attach("id", &[("--port", port), ("--host-key", "SHA256:any")]);
            args[5] = format!("mute{at}");
            let home = &home;
            scope.spawn(move || {
                let said = home.run(&words(&args));
                said.must(2, &[&format!("127.0.0.1:{port}")]);
                assert!(said.err.contains("says nothing") || said.err.contains("timed out"), "{}", said.err);
            });
        }
        if is_long() {
            scope.spawn(|| {
                let config = fs::read_to_string(machine.folder.join("config")).unwrap();
                let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
                let config = config.replace(&format!("Port {}", machine.port), &format!("Port {port}"));
                fs::write(machine.folder.join("hangs"), config + "ForceCommand sleep 600\n").unwrap();
                let mut daemon = Command::new(SSHD);
                let mut daemon = daemon.args(["-D", "-f"]).arg(machine.folder.join("hangs")).spawn().unwrap();
                home.until("sshd", || TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
                let good = machine.fingerprint();
                let mut args = machine.attach("id", &[("--port", &port), ("--host-key", &good)]);
                args[5] = "hangs".to_owned();
                home.run(&words(&args)).must(2, &["in and then does not answer a command"]);
                daemon.kill().unwrap();
                daemon.wait().unwrap();
            });
        }
    });
    // Others are not kept waiting.
    home.ok(&words(&machine.attach("id", &[("--host-key", &machine.fingerprint())])));
}

#[test]
fn whoever_sits_at_a_terminal_is_asked_for_a_key_that_nobody_knows() {
    let home = Home::new();
    let Some(machine) = Machine::start(&home) else { return };
    home.ok(&["server", "start", "-o", "none"]);
    let line: Vec<String> = machine.attach("id", &[]).iter().map(|word| format!("'{word}'")).collect();
    let line = format!("{} {}", binary().display(), line.join(" "));
    let answers = |answer: &str| {
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &line, "/dev/null"]).env("PEREGRINE_HOME", home.home()).current_dir(home.path());
        let mut terminal =
            terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A terminal is not at its end when all was typed.
        let mut typed = terminal.stdin.take().unwrap();
        typed.write_all(answer.as_bytes()).unwrap();
        let said = said(terminal.wait_with_output().unwrap());
        drop(typed);
        said
    };
    let no = answers("no\n");
    assert_eq!(no.code, Some(2), "{}", no.out);
    assert!(no.out.contains("trust this key?") && no.out.contains(&machine.fingerprint()), "{}", no.out);
    let yes = answers("yes\n");
    assert_eq!(yes.code, Some(0), "{}", yes.out);
    assert_eq!(home.json(&["compute", "show", "-n", "box"])["provisioning_state"], "Succeeded");
}

/// An sshd that knows a user of its own, who is not root and has a password.
struct Guest {
    folder: tempfile::TempDir,
    port: u16,
    daemon: Child,
}

impl Guest {
    /// `None`, said aloud, where it cannot be had.
    fn start(home: &Home) -> Option<Guest> {
        let folder = tempfile::tempdir().unwrap();
        let (at, port) =
            (folder.path().display(), TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // Users are told to this sshd alone, in a view of the files of its own.
        let script = format!(
            "set -e; mkdir {at}/ada; chown 4242:4242 {at}/ada; ssh-keygen -q -t ed25519 -N '' -f {at}/host\n\
             (cat /etc/passwd; echo 'ada:x:4242:4242::{at}/ada:/bin/sh') > {at}/passwd\n\
             (cat /etc/group; echo 'ada:x:4242:') > {at}/group\n\
             (cat /etc/shadow; echo \"ada:$(openssl passwd -6 'open sesame'):19000:0:99999:7:::\") > {at}/shadow\n\
             chmod 600 {at}/shadow\n\
             printf 'Port {port}\\nListenAddress 127.0.0.1\\nHostKey {at}/host\\nPidFile none\\nUsePAM no\\nPasswordAuthentication yes\\n' > {at}/config\n\
             for f in passwd group shadow; do mount --bind {at}/$f /etc/$f; done\n\
             mkdir -p /run/sshd; exec {SSHD} -D -f {at}/config -E {at}/log"
        );
        let mut daemon = Command::new("unshare");
        let daemon = daemon.args(["-m", "sh", "-c", &script]).stdin(Stdio::null()).spawn();
        let Ok(mut daemon) = daemon.map_err(|_| ()) else {
            crate::skip::skip("a user with a password over SSH (no `unshare`)");
            return None;
        };
        let mut left = None;
        home.until("sshd", || {
            left = daemon.try_wait().unwrap();
            left.is_some() || TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        if left.is_some() {
            crate::skip::skip("a user with a password over SSH (no sshd, or no namespace of mounts)");
            return None;
        }
        Some(Guest { folder, port, daemon })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        for (pid, _) in processes_with(&self.folder.path().display().to_string()) {
            signal(pid, "KILL");
        }
    }
}

#[test]
fn a_user_who_is_not_root_logs_in_with_a_password() {
    let home = Home::new();
    let Some(guest) = Guest::start(&home) else { return };
    let print = Command::new("ssh-keygen").arg("-lf").arg(guest.folder.path().join("host.pub")).output().unwrap();
    let print = String::from_utf8(print.stdout).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let file = |password: &str| {
        format!(
            "type: virtualmachine\nname: box\naddress: 127.0.0.1\nhost_key: {print}\n\
             ssh_settings: {{admin_username: ada, admin_password: '{password}', ssh_port: {}}}\n",
            guest.port
        )
    };
    home.file("wrong.yml", &file("guess"));
    home.run(&["compute", "attach", "-f", "wrong.yml"]).must(2, &["does not let `ada` in with the password"]);
    home.file("box.yml", &file("open sesame"));
    home.ok(&["compute", "attach", "-f", "box.yml"]);
    assert!(!home.json(&["compute", "show", "-n", "box"]).to_string().contains("sesame"));
    let hello = home.stream("echo $(id -un) in $HOME", "compute: azureml:box");
    let expect = format!("ada in {}\n", guest.folder.path().join("ada").display());
    assert_eq!((hello.code, hello.out), (Some(0), expect), "{}", hello.err);
}

/// Whether a process belongs to the machine of this test.
fn ours(pid: i32, folder: &Path) -> bool {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&environ).contains(&folder.display().to_string())
}
