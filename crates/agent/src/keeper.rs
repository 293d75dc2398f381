//! The keeper: a small process that is the parent of every job process and of the agent.
//!
//! It knows how to start a process, pass on a signal and remember how a process ended, it holds the server's sockets while
//! there is no server, and nothing else, so it has little reason ever to stop. The agent may die and come back: its processes run on, and their exit
//! codes wait here. Invariants: a key is started at most once in a keeper's life; an end is remembered until the
//! agent says to forget it.

mod link;
mod protocol;

pub use link::{Link, LinkError};
pub use protocol::{Ask, Ended, Spawn, Tell};

use crate::doors::{self, Doors};
use rustix::process::{Pid, Signal, WaitOptions};
use std::{
    collections::HashMap,
    fs, io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream, unix::OwnedReadHalf, unix::OwnedWriteHalf},
    signal::unix::{SignalKind, signal},
    time::Instant,
};

/// What the keeper needs to know to start the agent again.
pub struct Keeper {
    pub program: PathBuf,
    pub home: PathBuf,
    pub of: Of,
}

/// Whose keeper it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Of a machine: it and its jobs outlive whoever started it.
    Node,
    /// Of a pod, as its first process: it goes when the attempt is over, and hears first when the pod has to go.
    Pod,
}

/// An agent that ends this often as soon as it is started never will run.
const QUICK_ENDS: u32 = 20;

/// A process started for a key.
struct Child {
    pid: Pid,
    ended: Option<Ended>,
}

struct Running {
    keeper: Keeper,
    /// Tells one keeper's life from the next.
    instance: String,
    children: HashMap<String, Child>,
    by_pid: HashMap<Pid, String>,
    agent: Option<Pid>,
    agent_started: Instant,
    agent_left: bool,
    /// How the last agent ended.
    agent_code: Option<i32>,
    quick_ends: u32,
    /// The pod has been told to go.
    told_to_go: bool,
    to_agent: Option<OwnedWriteHalf>,
    /// Sockets of the server.
    doors: Doors,
}

/// The socket on which the agent speaks to its keeper.
pub fn socket(home: &Path) -> PathBuf {
    home.join("agent").join("keeper.sock")
}

/// Runs until the agent leaves in good order and nothing of its runs any more; the agent's exit code, if it had one.
/// `Ok(None)`: another keeper is there already.
pub async fn run(keeper: Keeper) -> io::Result<Option<i32>> {
    let folder = keeper.home.join("agent");
    fs::create_dir_all(&folder)?;
    let lock = fs::File::create(folder.join("keeper.lock"))?;
    if rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    // A session of its own, so that no terminal's hang-up reaches the jobs.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let path = socket(&keeper.home);
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    fs::write(folder.join("keeper.pid"), std::process::id().to_string())?;
    let doors = match keeper.of {
        Of::Node => Doors::open(&doors::of_server(&keeper.home))?,
        Of::Pod => Doors::default(),
    };
    let instance = format!("{}-{}", std::process::id(), start_time(rustix::process::getpid()).unwrap_or(0));
    let mut running = Running {
        keeper,
        instance,
        children: HashMap::new(),
        by_pid: HashMap::new(),
        agent: None,
        agent_started: Instant::now(),
        agent_left: false,
        agent_code: None,
        quick_ends: 0,
        told_to_go: false,
        to_agent: None,
        doors,
    };
    running.serve(listener).await?;
    let _ = fs::remove_file(&path);
    drop(lock);
    Ok(Some(running.agent_code.unwrap_or(0)))
}

impl Running {
    async fn serve(&mut self, listener: UnixListener) -> io::Result<()> {
        let mut child_signal = signal(SignalKind::child())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut from_agent: Option<tokio::io::Lines<BufReader<OwnedReadHalf>>> = None;
        self.start_agent()?;
        loop {
            tokio::select! {
                _ = child_signal.recv() => self.reap().await,
                _ = terminate.recv() => self.pass_terminate(),
                connected = listener.accept() => {
                    let (stream, _) = connected?;
                    from_agent = Some(self.greet(stream).await);
                }
                line = next_line(&mut from_agent) => match line {
                    Some(line) => self.answer(&line).await,
                    None => { from_agent = None; self.to_agent = None; }
                },
                () = tokio::time::sleep(Duration::from_millis(100)), if self.agent.is_none() && !self.agent_left => {
                    self.start_agent()?;
                }
                () = tokio::time::sleep(Duration::from_secs(1)), if self.agent_left && self.agent.is_none() => {}
            }
            let busy = self.children.values().any(|child| child.ended.is_none());
            if self.agent_left && self.agent.is_none() && !busy && !self.doors.is_waiting() {
                return Ok(());
            }
        }
    }

    fn start_agent(&mut self) -> io::Result<()> {
        let Keeper { program, home, of } = &self.keeper;
        let mut agent = Command::new(program);
        match of {
            Of::Node => {
                let log = fs::File::options().create(true).append(true).open(home.join("agent").join("agent.log"))?;
                agent.args(["agent", "run"]).stderr(log)
            }
            // Whoever looks at the pod's log sees what the agent says.
            Of::Pod => agent.args(["agent", "part"]).envs(crate::pod::writable_places(home)),
        };
        let child = agent.arg("--home").arg(home).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        self.agent = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        self.agent_started = Instant::now();
        Ok(())
    }

    /// Says what is known, so that an agent that came back can go on where the last one stopped.
    async fn greet(&mut self, stream: UnixStream) -> tokio::io::Lines<BufReader<OwnedReadHalf>> {
        let (read, write) = stream.into_split();
        self.to_agent = Some(write);
        let mut known: Vec<Tell> = Vec::new();
        for (key, child) in &self.children {
            known.push(Tell::Running { key: key.clone(), pid: child.pid.as_raw_nonzero().get() });
            if let Some(ended) = &child.ended {
                known.push(Tell::Ended { key: key.clone(), ended: ended.clone() });
            }
        }
        known.push(Tell::Ready { instance: self.instance.clone() });
        for tell in known {
            self.tell(&tell).await;
        }
        // Heard while there was no agent, or one that was not listening yet.
        if self.told_to_go {
            self.terminate_agent();
        }
        BufReader::new(read).lines()
    }

    async fn tell(&mut self, tell: &Tell) {
        let Some(write) = self.to_agent.as_mut() else { return };
        let mut line = serde_json::to_vec(tell).expect("what the keeper says is plain data");
        line.push(b'\n');
        if write.write_all(&line).await.is_err() {
            self.to_agent = None;
        }
    }

    async fn answer(&mut self, line: &str) {
        let Ok(ask) = serde_json::from_str::<Ask>(line) else {
            tracing::error!("the agent asked something that cannot be read");
            return;
        };
        match ask {
            Ask::Spawn(spawn) => {
                let tell = self.spawn(&spawn);
                self.tell(&tell).await;
            }
            Ask::Signal { key, signal } => self.signal(&key, signal),
            Ask::Sweep { marker } => {
                sweep(&marker);
                self.sweep_strangers(&marker);
            }
            Ask::Forget { key } => {
                if let Some(child) = self.children.remove(&key) {
                    self.by_pid.remove(&child.pid);
                }
            }
            Ask::Leave => self.agent_left = true,
        }
    }

    fn spawn(&mut self, spawn: &Spawn) -> Tell {
        if let Some(child) = self.children.get(&spawn.key) {
            return match &child.ended {
                Some(ended) => Tell::Ended { key: spawn.key.clone(), ended: ended.clone() },
                None => Tell::Running { key: spawn.key.clone(), pid: child.pid.as_raw_nonzero().get() },
            };
        }
        match start(spawn) {
            Ok(pid) => {
                if self.keeper.of == Of::Pod {
                    prefer_to_kill(pid);
                }
                self.by_pid.insert(pid, spawn.key.clone());
                self.children.insert(spawn.key.clone(), Child { pid, ended: None });
                Tell::Running { key: spawn.key.clone(), pid: pid.as_raw_nonzero().get() }
            }
            Err(error) => {
                let missing = error.kind() == io::ErrorKind::NotFound;
                Tell::Unstarted { key: spawn.key.clone(), missing, error: error.to_string() }
            }
        }
    }

    fn signal(&self, key: &str, signal: i32) {
        let Some(child) = self.children.get(key) else { return };
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        let _ = rustix::process::kill_process_group(child.pid, signal);
    }

    async fn reap(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if self.agent == Some(pid) {
                self.agent = None;
                self.agent_code = status.exit_status();
                self.agent_left |= status.exit_status() == Some(0);
                let quick = self.agent_started.elapsed() < Duration::from_millis(300);
                self.quick_ends = if quick { self.quick_ends + 1 } else { 0 };
                // A pod that nothing can come of goes; a machine may be repaired.
                self.agent_left |= self.keeper.of == Of::Pod && self.quick_ends >= QUICK_ENDS;
                // An agent that cannot even start is not started in a tight circle.
                if !self.agent_left && quick {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
                continue;
            }
            let Some(key) = self.by_pid.remove(&pid) else { continue };
            let ended = Ended {
                code: status.exit_status(),
                signal: status.terminating_signal(),
                left_behind: rustix::process::test_kill_process_group(pid).is_ok() || self.has_strangers(),
            };
            if let Some(child) = self.children.get_mut(&key) {
                child.ended = Some(ended.clone());
            }
            self.tell(&Tell::Ended { key, ended }).await;
        }
    }

    /// Whether processes hang on the keeper that it did not start: what jobs left behind.
    fn has_strangers(&self) -> bool {
        own_children().into_iter().any(|pid| self.is_stranger(pid))
    }

    /// Ends what an attempt left behind without its marker: processes that cleared their environment. One is taken
    /// for the attempt's own when it still stands in the attempt's folder, or when no other attempt runs.
    fn sweep_strangers(&self, marker: &str) {
        let Some((variable, folder)) = marker.split_once('=') else { return };
        // The marker's value is the attempt's folder, which is named by the attempt.
        let attempt = folder.rsplit('/').next().unwrap_or(folder);
        let of_others = |key: &String| key.split_once('/').is_none_or(|(of, _)| of != attempt);
        let alone = !self.children.iter().any(|(key, child)| child.ended.is_none() && of_others(key));
        for pid in own_children().into_iter().filter(|pid| self.is_stranger(*pid)) {
            let at = fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero())).unwrap_or_default();
            let in_folder = at.components().any(|part| part.as_os_str() == attempt);
            if (alone || in_folder) && !carries(pid, variable) {
                kill_tree(pid);
            }
        }
    }

    fn is_stranger(&self, pid: Pid) -> bool {
        self.agent != Some(pid) && !self.by_pid.contains_key(&pid)
    }

    /// A polite end of a node's keeper ends the agent, which comes back with the next keeper; jobs run on. In a pod there
    /// is no next one: the agent ends the job, and leaves by itself.
    fn pass_terminate(&mut self) {
        match self.keeper.of {
            Of::Node => {
                self.agent_left = true;
                self.terminate_agent();
            }
            Of::Pod if self.to_agent.is_some() => self.terminate_agent(),
            Of::Pod => {}
        }
        self.told_to_go = self.keeper.of == Of::Pod;
    }

    fn terminate_agent(&self) {
        if let Some(agent) = self.agent {
            let _ = rustix::process::kill_process(agent, Signal::TERM);
        }
    }
}

/// In a container that runs out of memory the job is to go, and not those who can tell of it. A little is enough, and
/// keeps its place among other pods of the node.
fn prefer_to_kill(pid: Pid) {
    let own = fs::read_to_string("/proc/self/oom_score_adj").ok().and_then(|own| own.trim().parse::<i32>().ok());
    let more = own.unwrap_or(0).saturating_add(100).min(1000);
    let _ = fs::write(format!("/proc/{}/oom_score_adj", pid.as_raw_nonzero()), more.to_string());
}

async fn next_line(from: &mut Option<tokio::io::Lines<BufReader<OwnedReadHalf>>>) -> Option<String> {
    match from {
        Some(lines) => lines.next_line().await.ok().flatten(),
        None => std::future::pending().await,
    }
}

/// Starts a process in a group of its own, in its cgroups, with its output in its log.
fn start(spawn: &Spawn) -> io::Result<Pid> {
    let log = fs::File::options().create(true).append(true).open(&spawn.output)?;
    let (program, arguments) = spawn.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&spawn.folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    for (name, value) in &spawn.variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // The child is born where its parent is: the keeper steps into the cgroup and out again.
    let mut entered = Vec::new();
    for file in &spawn.cgroups {
        let home = own_cgroup_of(file);
        fs::write(file, "0")?;
        entered.push(home);
    }
    let child = command.spawn();
    for home in entered.into_iter().flatten() {
        let _ = fs::write(home, "0");
    }
    let pid = i32::try_from(child?.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("a process without an id"))
}

/// The keeper's own `cgroup.procs` in the hierarchy that `file` belongs to: where it goes back to.
fn own_cgroup_of(file: &Path) -> Option<PathBuf> {
    let mut root = file.parent()?;
    while let Some(parent) = root.parent().filter(|parent| parent.join("cgroup.procs").exists()) {
        root = parent;
    }
    let hierarchy = root.file_name()?.to_str()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let mine = match controllers {
            "" => hierarchy == "cgroup" || hierarchy == "unified",
            list => list.split(',').any(|name| name == hierarchy),
        };
        mine.then_some(path)
    })?;
    Some(root.join(path.trim_start_matches('/')).join("cgroup.procs"))
}

fn own_children() -> Vec<Pid> {
    children_of(rustix::process::getpid())
}

fn children_of(pid: Pid) -> Vec<Pid> {
    let pid = pid.as_raw_nonzero();
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| pid.parse().ok().and_then(Pid::from_raw)).collect()
}

/// Whether a variable is set for a process.
fn carries(pid: Pid, variable: &str) -> bool {
    let environ = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    let set = |pair: &[u8]| pair.strip_prefix(variable.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='));
    environ.split(|b| *b == 0).any(set)
}

/// Kills a process and everything below it, the lowest last: a killed parent starts no more children.
fn kill_tree(pid: Pid) {
    let below = children_of(pid);
    let _ = rustix::process::kill_process(pid, Signal::KILL);
    below.into_iter().for_each(kill_tree);
}

/// Kills every process whose environment carries the marker, wherever it has hidden.
fn sweep(marker: &str) {
    let Ok(entries) = fs::read_dir("/proc") else { return };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        let Ok(environ) = fs::read(entry.path().join("environ")) else { continue };
        if environ.split(|b| *b == 0).any(|variable| variable == marker.as_bytes()) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// When a process was started, in the kernel's ticks: with the pid it names one process for ever.
pub fn start_time(pid: Pid) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}
