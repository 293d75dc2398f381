//! The connection to a machine: how it is made, what goes wrong with it, commands through it, and the way back.

mod vouch;

use crate::{Trouble, shell::quote};
use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
    time::timeout,
};
use vouch::known_files;

/// How long a connection may take to be made.
const CONNECT_SECONDS: u64 = 15;
/// How long a command may take that moves no files.
const COMMAND: Duration = Duration::from_secs(40);
/// How long the program may take on its way to a slow machine.
const UPLOAD: Duration = Duration::from_secs(900);

/// How a machine is reached and what opens it.
#[derive(Clone)]
pub struct Login {
    pub host: String,
    pub port: u16,
    pub user: String,
    /// `user@host:port`, several between commas.
    pub jump: Option<String>,
    pub password: Option<String>,
    pub private_key: Option<String>,
    /// The fingerprints that someone vouched for, `SHA256:…`, of it and of the hosts on the way, between commas.
    pub host_key: Option<String>,
}

/// A host on the way, or the last one.
struct Hop {
    user: String,
    host: String,
    port: u16,
}

impl Hop {
    /// As files of known hosts call it.
    fn name(&self) -> String {
        match self.port {
            22 => self.host.clone(),
            port => format!("[{}]:{port}", self.host),
        }
    }
}

impl Login {
    /// Every host that is passed, this one last. Who is named no other is the same user everywhere.
    fn hops(&self) -> Vec<Hop> {
        let jumps = self.jump.iter().flat_map(|jump| jump.split(','));
        let hop = |text: &str| {
            let (user, place) = text.split_once('@').unwrap_or((&self.user, text));
            let (host, port) = match place.rsplit_once(':') {
                Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse().unwrap_or(22)),
                _ => (place, 22),
            };
            Hop { user: user.to_owned(), host: host.trim_matches(['[', ']']).to_owned(), port }
        };
        let last = Hop { user: self.user.clone(), host: self.host.clone(), port: self.port };
        jumps.map(str::trim).filter(|jump| !jump.is_empty()).map(hop).chain([last]).collect()
    }

    fn vouches_for(&self, fingerprint: &str) -> bool {
        self.host_key.iter().flat_map(|keys| keys.split(',')).any(|key| key.trim() == fingerprint)
    }
}

/// An open connection and the folder that it is kept in.
pub(crate) struct Connection {
    login: Login,
    /// Of this machine alone; holds the keys of hosts that were vouched for.
    folder: PathBuf,
    /// Short enough for the name of a socket.
    socket: tempfile::TempDir,
    master: Option<Child>,
}

impl Connection {
    pub(crate) fn new(login: Login, folder: PathBuf) -> Result<Connection, Trouble> {
        let cannot =
            |error: std::io::Error| Trouble::new("connect", format!("cannot use a folder of this machine: {error}"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(cannot)?;
        let socket = tempfile::Builder::new().prefix("peregrine-ssh-").tempdir().map_err(cannot)?;
        Ok(Connection { login, folder, socket, master: None })
    }

    /// Whether commands go through at once.
    pub(crate) fn is_open(&mut self) -> bool {
        self.master.as_mut().is_some_and(|master| matches!(master.try_wait(), Ok(None))) && self.control().exists()
    }

    /// Makes the connection anew. The host must be known, or show the key that someone vouched for.
    pub(crate) async fn open(&mut self) -> Result<(), Trouble> {
        self.close().await;
        plain("host", &self.login.host)?;
        plain("user", &self.login.user)?;
        self.login.jump.iter().try_for_each(|jump| plain("jump host", jump))?;
        let cannot = |error| Trouble::new("login", format!("cannot hand the key or password to ssh: {error}"));
        if let Some(private) = &self.login.private_key {
            write_secret(&self.key(), private).map_err(cannot)?;
        }
        if self.login.password.is_some() {
            let answer = "#!/bin/sh\nprintf '%s\\n' \"$PEREGRINE_SSH_ANSWER\"\n";
            write_program(&self.ask(), answer).map_err(cannot)?;
        }
        let opened = async {
            self.vouch().await?;
            self.start().await
        };
        let opened = opened.await;
        // ssh has read it by now, or never will.
        let _ = fs::remove_file(self.key());
        opened
    }

    async fn start(&mut self) -> Result<(), Trouble> {
        let hops = self.login.hops();
        let stays = ["-M", "-N", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"];
        let mut command = self.command(&stays, &hops, (&self.known_hosts(), "yes"));
        command.arg("-S").arg(self.control());
        command.arg("--").arg(&self.login.host).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut master = command.spawn().map_err(|error| no_client(&error))?;
        let mut said = master.stderr.take().expect("it was asked for");
        let mut text = Vec::new();
        let opened = async {
            loop {
                tokio::select! {
                    read = tokio::io::AsyncReadExt::read_buf(&mut said, &mut text) => {
                        if !matches!(read, Ok(n) if n > 0) {
                            return false;
                        }
                    }
                    () = tokio::time::sleep(Duration::from_millis(30)) => {}
                }
                if self.socket.path().join("s").exists() {
                    return true;
                }
            }
        };
        let opened = timeout(Duration::from_secs(CONNECT_SECONDS + 5), opened).await;
        if opened == Ok(true) {
            self.master = Some(master);
            return Ok(());
        }
        let _ = master.kill().await;
        Err(trouble_of(&String::from_utf8_lossy(&text), &self.login, opened.is_err()))
    }

    /// Ends the connection; what runs on the machine runs on.
    pub(crate) async fn close(&mut self) {
        if let Some(mut master) = self.master.take() {
            let _ = master.kill().await;
        }
        let _ = fs::remove_file(self.control());
    }

    /// Has a shell of the machine run a script; what it printed.
    pub(crate) async fn script(&mut self, script: &str) -> Result<String, Trouble> {
        let ran = self.run("sh -s", Input::Text(script), COMMAND).await?;
        match ran.status.success() {
            true => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
            false => Err(self.failed(&ran).await),
        }
    }

    /// Copies a file of this machine to a path there, whole or not at all.
    pub(crate) async fn upload(&mut self, file: &Path, to: &str) -> Result<(), Trouble> {
        let script = format!(
            "umask 077; f={to}; mkdir -p \"$(dirname \"$f\")\" && cat > \"$f.$$\" && chmod 700 \"$f.$$\" && mv \"$f.$$\" \"$f\""
        );
        let ran = self.run(&format!("sh -c {}", quote(&script)), Input::File(file), UPLOAD).await?;
        if ran.status.success() { Ok(()) } else { Err(self.failed(&ran).await) }
    }

    /// Lets a port of the machine lead to one of ours: the one asked for, or another where that is taken; which.
    pub(crate) async fn forward(&mut self, wanted: u16, to: &str) -> Result<u16, Trouble> {
        let mut last = String::new();
        for port in [wanted, 0] {
            let mut command = self.plain_command();
            command.args(["-O", "forward", "-R"]).arg(format!("127.0.0.1:{port}:{to}"));
            command.arg("--").arg(&self.login.host);
            let ran = output(command, Input::Text(""), COMMAND).await?;
            if ran.status.success() {
                let said = String::from_utf8_lossy(&ran.stdout).trim().parse().ok();
                return Ok(said.filter(|_| port == 0).unwrap_or(wanted));
            }
            last = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
        }
        let why = format!("a port there that leads back to this server is refused: {last}");
        Err(Trouble::new("tunnel", format!("{why}; the machine's sshd needs `AllowTcpForwarding yes` (or `remote`)")))
    }

    async fn run(&mut self, remote: &str, input: Input<'_>, limit: Duration) -> Result<Output, Trouble> {
        let mut command = self.plain_command();
        command.arg("--").arg(&self.login.host).arg(remote);
        let late = |_| {
            let why = format!("`{}` lets `{}` in and then does not answer", self.login.host, self.login.user);
            Trouble::new("connect", format!("{why} a command within {} s", limit.as_secs()))
        };
        let ran = timeout(limit, output(command, input, limit * 2)).await;
        ran.map_err(late)?
    }

    /// A command through the open connection, and through no other.
    fn plain_command(&self) -> Command {
        let mut command = Command::new("ssh");
        command.arg("-S").arg(self.control());
        command.args(["-o", "ControlMaster=no", "-o", "BatchMode=yes", "-o", "ProxyCommand=false", "-F", "none"]);
        command.args(["-p", &self.login.port.to_string(), "-l", &self.login.user]).kill_on_drop(true);
        command
    }

    /// A command that makes a connection of its own to the last of some hops.
    fn command(&self, first: &[&str], hops: &[Hop], (known, strict): (&Path, &str)) -> Command {
        let mut command = Command::new("ssh");
        // What is said first counts.
        command.args(first).args(self.words(hops, known, strict)).stdin(Stdio::null()).kill_on_drop(true);
        if let Some(password) = &self.login.password {
            command.env("SSH_ASKPASS", self.ask()).env("SSH_ASKPASS_REQUIRE", "force");
            command.env("PEREGRINE_SSH_ANSWER", password);
        }
        command
    }

    /// What ssh is told of the last of some hops. It goes through those before, which are opened the same way: OpenSSH's own
    /// `-J` would hand on neither the key nor the hosts that are known.
    fn words(&self, hops: &[Hop], known: &Path, strict: &str) -> Vec<String> {
        let Some((hop, before)) = hops.split_last() else { return Vec::new() };
        let mut words: Vec<String> =
            ["-F", "none", "-p", &hop.port.to_string(), "-l", &hop.user].map(str::to_owned).into();
        let mut options = vec![
            format!("ConnectTimeout={CONNECT_SECONDS}"),
            format!("StrictHostKeyChecking={strict}"),
            format!("UserKnownHostsFile={}", known_files(known)),
        ];
        options.extend(
            [
                "UpdateHostKeys=no",
                "HashKnownHosts=no",
                "ForwardAgent=no",
                "LogLevel=ERROR",
                "NumberOfPasswordPrompts=1",
            ]
            .map(str::to_owned),
        );
        match (&self.login.private_key, &self.login.password) {
            (Some(_), _) => {
                options.extend([format!("IdentityFile=\"{}\"", self.key().display()), "IdentitiesOnly=yes".to_owned()])
            }
            (None, Some(_)) => options.push("PubkeyAuthentication=no".to_owned()),
            (None, None) => {}
        }
        options.extend(self.login.password.is_none().then(|| "BatchMode=yes".to_owned()));
        if let Some(last) = before.last() {
            let to = format!("[{}]:{}", hop.host, hop.port);
            let through = self.words(before, &self.known_hosts(), "yes").into_iter();
            let rest = ["-S", "none", "-W", &to, "--", &last.host].map(str::to_owned);
            let line: Vec<String> = through.chain(rest).map(|word| quote(&word)).collect();
            options.push(format!("ProxyCommand=ssh {}", line.join(" ").replace('%', "%%")));
        }
        words.extend(options.into_iter().flat_map(|option| ["-o".to_owned(), option]));
        words
    }

    async fn failed(&mut self, ran: &Output) -> Trouble {
        let said = String::from_utf8_lossy(&ran.stderr);
        let said = said.trim();
        if ran.status.code() == Some(255) {
            self.close().await;
            return Trouble::new("connect", format!("the connection to `{}` was lost: {said}", self.login.host));
        }
        Trouble::new("command", format!("a command on `{}` failed: {}", self.login.host, last_line(said)))
    }

    fn control(&self) -> PathBuf {
        self.socket.path().join("s")
    }

    fn key(&self) -> PathBuf {
        self.socket.path().join("key")
    }

    fn ask(&self) -> PathBuf {
        self.socket.path().join("ask")
    }

    fn known_hosts(&self) -> PathBuf {
        self.folder.join("known_hosts")
    }
}

enum Input<'a> {
    Text(&'a str),
    File(&'a Path),
}

async fn output(mut command: Command, input: Input<'_>, limit: Duration) -> Result<Output, Trouble> {
    let late = || Trouble::new("connect", format!("no answer within {} s", limit.as_secs()));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let text = match input {
        Input::Text(text) => {
            command.stdin(Stdio::piped());
            Some(text)
        }
        Input::File(file) => {
            let opened = fs::File::open(file);
            command.stdin(
                opened.map_err(|error| Trouble::new("agent", format!("cannot read this program's file: {error}")))?,
            );
            None
        }
    };
    let mut child = command.spawn().map_err(|error| no_client(&error))?;
    if let (Some(text), Some(mut stdin)) = (text, child.stdin.take()) {
        // A shell that has left early says why on its own.
        let _ = timeout(limit, stdin.write_all(text.as_bytes())).await.map_err(|_| late())?;
    }
    let done = timeout(limit, child.wait_with_output()).await.map_err(|_| late())?;
    done.map_err(|error| Trouble::new("connect", format!("cannot run ssh: {error}")))
}

/// Names go to ssh as words of their own; still, none may look like an option or hold what no name holds.
fn plain(what: &str, word: &str) -> Result<(), Trouble> {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-@:,[]%".contains(c);
    if word.is_empty() || word.starts_with('-') || !word.chars().all(good) {
        return Err(Trouble::new("connect", format!("`{word}` is not the name of a {what}")));
    }
    Ok(())
}

fn no_client(error: &std::io::Error) -> Trouble {
    let why = match error.kind() {
        ErrorKind::NotFound => {
            "OpenSSH's client is not installed on the server's machine (Debian: `apt install openssh-client`)"
                .to_owned()
        }
        _ => format!("cannot start ssh: {error}"),
    };
    Trouble::new("connect", why)
}

fn trouble_of(said: &str, login: &Login, late: bool) -> Trouble {
    let mut hops = login.hops();
    let denies = |hop: &Hop| said.contains(&format!("{}@{}: Permission denied", hop.user, hop.host));
    let at = hops.iter().position(denies).unwrap_or(hops.len() - 1);
    let Hop { user, host, port } = hops.swap_remove(at);
    let place = format!("{host}:{port}");
    let has = |text: &str| said.contains(text);
    if has("REMOTE HOST IDENTIFICATION HAS CHANGED") || has("Host key verification failed") {
        let why = format!(
            "`{place}` does not show the key it is known by; if it was changed on purpose, attach again with the new one as `--host-key`"
        );
        return Trouble::new("host key", why);
    }
    if has("Permission denied") || has("Too many authentication failures") {
        let with = match (&login.private_key, &login.password) {
            (Some(_), _) => "the key that was given",
            (None, Some(_)) => "the password that was given",
            (None, None) => "the keys of whoever runs this server; none was given",
        };
        return Trouble::new("login", format!("`{place}` does not let `{user}` in with {with}"));
    }
    if has("error in libcrypto") || has("invalid format") {
        return Trouble::new("login", "the private key that was given cannot be read by OpenSSH".to_owned());
    }
    let why = match (late, last_line(said)) {
        (true, _) => format!("`{place}` accepts connections and then says nothing"),
        (false, "") => format!("cannot reach `{place}`"),
        (false, line) => format!("cannot reach `{place}`: {line}"),
    };
    Trouble::new("connect", why)
}

fn last_line(text: &str) -> &str {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default()
}

fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    write(path, &format!("{text}{end}"), 0o600)
}

fn write_program(path: &Path, text: &str) -> std::io::Result<()> {
    write(path, text, 0o700)
}

fn write(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())
}
