//! Ways to the services of an attempt: the agent dials out for each and joins it with what is on the node.
//!
//! A program that is a service (`jupyter`, `tensorboard`) is started for the first who asks for it, with the variables and
//! the limits of the command; `sshd` is started for each who does. Invariants: nothing listens anywhere but on loopback
//! or in a folder of its owner's alone; whatever is started ends with the attempt, because it carries its mark.

mod ssh;

use super::{RunMark, process};
use crate::{
    context::Context,
    keeper::{LinkError, Spawn},
    tasks::detach,
};
use domain::{
    AttemptId,
    tunnel::{Tunnel, Unopened, Way},
};
use std::{
    fs, io,
    net::Ipv4Addr,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, copy_bidirectional},
    net::{TcpStream, UnixStream},
    process::Child,
    time::{Instant, timeout},
};

/// How long a program may take until it answers.
const STARTS_WITHIN: Duration = Duration::from_secs(45);

/// A stream of bytes, whatever it is made of.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The node's end of a tunnel, and the process that ends with it.
struct Near {
    stream: Box<dyn Stream>,
    _process: Option<Child>,
}

impl Near {
    fn of(stream: impl Stream + 'static) -> Near {
        Near { stream: Box::new(stream), _process: None }
    }
}

/// Opens a tunnel, or tells whoever waits for it why not.
pub(crate) fn open(cx: Arc<Context>, tunnel: Tunnel) {
    detach("tunnel", async move {
        let path = format!("/agent/v1/tunnels/{}", tunnel.id);
        match reach(&cx, &tunnel).await {
            Ok(mut near) => {
                if let Ok(mut far) = cx.server.call(async |client| client.stream(&path).await).await {
                    // Either end may break it off; that is how most of them end.
                    let _ = copy_bidirectional(&mut near.stream, &mut far).await;
                }
            }
            // Who waits in vain hears nothing, which is as good.
            Err(why) => drop(cx.server.post::<serde_json::Value>(&path, &Unopened { why }).await),
        }
    });
}

/// Where an attempt keeps what its services need; there once one was asked for.
pub(super) fn folder(cx: &Context, attempt: &AttemptId) -> PathBuf {
    cx.folder(attempt).join("services")
}

/// Nothing of the attempt runs any more.
pub(super) fn forget(cx: &Context, attempt: &AttemptId) {
    let folder = folder(cx, attempt);
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        cx.link.forget(&key(attempt, &entry.path()));
    }
    let _ = fs::remove_dir_all(socket_folder(&folder));
    let _ = fs::remove_dir_all(folder);
}

async fn reach(cx: &Context, tunnel: &Tunnel) -> Result<Near, String> {
    let life = cx.journal.life(&tunnel.attempt).filter(|life| life.exit.is_none());
    let run = life.and_then(|life| life.run).ok_or("the command does not run")?;
    if let Way::Port(port) = &tunnel.way {
        let nobody = |error: io::Error| format!("nothing answers on port {port} of the node: {error}");
        return TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await.map(Near::of).map_err(nobody);
    }
    if run.isolation == "container" && !cx.is_contained() {
        let instead = "let the command start it and give the service a `port`";
        return Err(format!("no program can be started beside a command in a container of this machine; {instead}"));
    }
    let folder = folder(cx, &tunnel.attempt);
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| format!("the node cannot use its disk: {error}"))?;
    match &tunnel.way {
        Way::Ssh { keys } => ssh::session(&folder, &run, keys).await,
        way => Program::of(way, &folder, tunnel)?.reach(cx, &run, tunnel).await,
    }
}

/// A program that is a service.
struct Program {
    argv: Vec<String>,
    at: At,
    output: PathBuf,
}

enum At {
    Port(u16),
    /// Its folder is its owner's alone: whoever reaches it may do as the command does.
    Socket(PathBuf),
}

impl Program {
    fn of(way: &Way, folder: &Path, tunnel: &Tunnel) -> Result<Program, String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        // A name is its user's to choose, and need not be one of a file.
        let output = folder.join(format!("{:016x}", process::hash_of(Path::new(&tunnel.service))));
        Ok(match way {
            Way::TensorBoard { log_dir } => {
                let port =
                    port_of(&output.with_extension("port")).map_err(|error| format!("no port is free: {error}"))?;
                let log_dir = log_dir.as_deref().unwrap_or(".");
                let argv = words(&["tensorboard", "--host=127.0.0.1", &format!("--port={port}"), "--logdir", log_dir]);
                Program { argv, at: At::Port(port), output }
            }
            _ => {
                let place = socket_folder(folder);
                own(&place).map_err(|error| format!("the node has no place for a socket: {error}"))?;
                let socket = place.join("jupyter");
                let argv = words(&[
                    "jupyter",
                    "lab",
                    "--no-browser",
                    "--allow-root",
                    "--IdentityProvider.token=",
                    &format!("--ServerApp.sock={}", socket.display()),
                ]);
                Program { argv, at: At::Socket(socket), output }
            }
        })
    }

    /// Starts it unless it was, and waits until it answers.
    async fn reach(self, cx: &Context, run: &RunMark, tunnel: &Tunnel) -> Result<Near, String> {
        let key = key(&tunnel.attempt, &self.output);
        let (name, output) = (self.argv[0].clone(), self.output.clone());
        let like = run.processes.first().ok_or("the command does not run")?;
        let spawn = Spawn {
            key: key.clone(),
            argv: self.argv,
            variables: like.variables.clone(),
            folder: like.folder.clone(),
            output: self.output,
            cgroups: like.cgroups.clone(),
        };
        match cx.link.spawn(spawn).await {
            Ok(_) | Err(LinkError::Gone) => {}
            Err(error) => return Err(format!("`{name}` cannot be started; is it in the job's environment? {error}")),
        }
        let deadline = Instant::now() + STARTS_WITHIN;
        loop {
            let error = match self.at.connect().await {
                Ok(near) => return Ok(near),
                Err(error) => error,
            };
            let ended = timeout(Duration::from_millis(100), cx.link.ended(&key)).await.is_ok();
            if ended {
                // The next who asks for it may have more luck.
                cx.link.forget(&key);
            }
            if ended || Instant::now() > deadline {
                let said = fs::read_to_string(&output).unwrap_or_default();
                let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                return Err(format!("`{name}` does not answer: {error}; the last it said: {last}"));
            }
        }
    }
}

impl At {
    async fn connect(&self) -> io::Result<Near> {
        match self {
            At::Port(port) => TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await.map(Near::of),
            At::Socket(path) => UnixStream::connect(path).await.map(Near::of),
        }
    }
}

/// Makes a folder of its owner's alone. Its name can be guessed: one that others made first is not used.
fn own(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let there = fs::symlink_metadata(folder)?;
            let ours =
                there.is_dir() && there.uid() == rustix::process::geteuid().as_raw() && there.mode() & 0o077 == 0;
            if ours { Ok(()) } else { Err(error) }
        }
        made => made,
    }
}

/// A socket's path has to be short, and that of an attempt need not be.
fn socket_folder(folder: &Path) -> PathBuf {
    std::env::temp_dir().join(format!("peregrine-{:016x}", process::hash_of(folder)))
}

/// The keeper's key for the program whose output goes to this file.
fn key(attempt: &AttemptId, output: &Path) -> String {
    format!("{attempt}/service/{}", output.file_name().unwrap_or_default().to_string_lossy())
}

/// The port in this file; a free one, written there, where there is none yet.
fn port_of(file: &Path) -> io::Result<u16> {
    if let Some(port) = fs::read_to_string(file).ok().and_then(|text| text.parse().ok()) {
        return Ok(port);
    }
    let port = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    fs::write(file, port.to_string()).map(|()| port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_others_can_enter_or_that_is_a_link_holds_no_socket() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, open, link) = (folder.path().join("mine"), folder.path().join("open"), folder.path().join("link"));
        assert!(own(&mine).is_ok() && own(&mine).is_ok());
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        assert!(own(&open).is_err() && own(&link).is_err());
    }

    #[test]
    fn a_program_keeps_its_port() {
        let folder = tempfile::tempdir().unwrap();
        let port = port_of(&folder.path().join("port")).unwrap();
        assert_eq!(port_of(&folder.path().join("port")).unwrap(), port);
    }
}
