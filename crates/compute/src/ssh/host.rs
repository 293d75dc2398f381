//! One machine as a place for work: agents are put there, found again, and removed.

use super::{
    connection::{Connection, Login},
    scripts,
};
use crate::{
    Held, Look, Part, PartState, Site, Started, Trouble,
    shell::{Shell, quote},
};
use domain::{
    AttemptId, Resources, Timestamp,
    cluster::{ClusterFacts, ClusterInstanceType, ClusterNode, Finding, Launch, Places},
    resources::DEFAULT_INSTANCE_TYPE,
};
use ring::digest::{SHA256, digest};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Less than this is not enough for any work.
const DISK_KIB: u64 = 512 << 10;

/// A machine reached by SSH.
pub struct Host {
    /// Tells the folders of this target from those of others on the same machine.
    key: String,
    shell: Shell,
    /// The file that is copied there as the agent.
    program: PathBuf,
    /// Where the server listens, as `https` and `127.0.0.1:7423`.
    server: (String, String),
    /// How many attempts run there at a time.
    slots: u32,
    /// Higher priority may take a slot from lower.
    preempts: bool,
    /// Where other machines find this one.
    address: String,
    /// How long a node stays without a server, and what has ended on it with it.
    lease: Option<Duration>,
    system: System,
}

/// What a machine is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct System {
    name: String,
    kind: String,
    boot: String,
    libc: String,
    python: String,
    cpus: u64,
    memory_kib: u64,
    gpus: u32,
    disk_kib: u64,
    /// Of the agent that lies there.
    pub(crate) digest: String,
}

impl System {
    fn amounts(&self) -> Resources {
        Resources { cpu_milli: self.cpus * 1000, memory_bytes: self.memory_kib << 10, gpus: self.gpus }
    }
}

impl Host {
    /// Nothing is connected yet. `folder` is this target's own on the server's machine.
    pub fn new(
        (key, login, slots): (String, Login, u32),
        folder: PathBuf,
        program: PathBuf,
        server: (String, String),
    ) -> Result<Host, Trouble> {
        let shell = Shell::There(Box::new(Connection::new(login, folder)?));
        let address = "127.0.0.1".to_owned();
        Ok(Host {
            key,
            shell,
            program,
            server,
            slots: slots.max(1),
            preempts: false,
            address,
            lease: None,
            system: System::default(),
        })
    }

    /// Whether a job of higher priority may take the slot of one of lower.
    pub fn preempting(self, preempts: bool) -> Host {
        Host { preempts, ..self }
    }

    /// A node that stays for so long without a server.
    pub fn leased(self, lease: Duration) -> Host {
        Host { lease: Some(lease), ..self }
    }

    /// The machine that this process runs on, as a node: it has one attempt at a time, or parts of one. `server` is an address,
    /// or the path of a file with one in it.
    pub async fn here(key: String, program: PathBuf, server: &str, address: String) -> Result<Host, Trouble> {
        let mut shell = Shell::Here;
        shell.script(&scripts::settle(&key, server)).await?;
        let system = read_system(&shell.script(scripts::SYSTEM).await?);
        fit(&system)?;
        // It lies here already.
        let system = System { digest: "here".to_owned(), ..system };
        let (server, lease) = (Default::default(), None);
        Ok(Host { key, shell, program, server, slots: 1, preempts: false, address, lease, system })
    }

    /// What this machine has.
    pub fn capacity(&self) -> Resources {
        self.system.amounts()
    }

    /// As it calls itself.
    pub fn name(&self) -> &str {
        &self.system.name
    }

    /// Begins these parts of an attempt, unless it was begun already.
    pub async fn begin(&mut self, launch: &Launch, parts: &[u32]) -> Result<(), Trouble> {
        let program = match self.shell {
            Shell::Here => quote(&self.program.display().to_string()),
            Shell::There(_) => scripts::program(&self.system.digest),
        };
        let lease = self.lease.map(|lease| format!("export PEREGRINE_LEASE_SECONDS={}\n", lease.as_secs()));
        let devices = (self.slots > 1).then_some((self.system.gpus / self.slots, self.system.gpus));
        let script = scripts::launch(&self.key, (&program, &self.address), (launch, parts), devices);
        self.shell.script(&format!("{}{script}", lease.unwrap_or_default())).await.map(drop)
    }

    /// Asks everything that runs there to end.
    pub async fn notice(&mut self) -> Result<(), Trouble> {
        self.shell.script(&scripts::notice(&self.key)).await.map(drop)
    }

    /// A connection, the way back and our program are there, or are made.
    async fn ready(&mut self) -> Result<(), Trouble> {
        if self.shell.is_open() && !self.system.digest.is_empty() {
            return Ok(());
        }
        self.system = System::default();
        let (server, program) = (self.server.clone(), self.program.clone());
        self.system = reach(&mut self.shell, &self.key, &server, &program).await?;
        Ok(())
    }

    fn facts(&self, running: u32) -> ClusterFacts {
        let (system, all) = (&self.system, self.capacity());
        let slots = u64::from(self.slots);
        let each = Resources {
            cpu_milli: all.cpu_milli / slots,
            memory_bytes: all.memory_bytes / slots,
            gpus: all.gpus / self.slots,
        };
        let free = self.slots.saturating_sub(running);
        let node = ClusterNode {
            name: system.name.clone(),
            ready: true,
            allocatable: all,
            free: each.times(free),
            ..ClusterNode::default()
        };
        let kind = ClusterInstanceType {
            name: DEFAULT_INSTANCE_TYPE.to_owned(),
            requests: each,
            limits: each,
            fits_now: free.into(),
            fits_ever: true,
            ..ClusterInstanceType::default()
        };
        ClusterFacts {
            uid: self.key.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            gangs: "steward".to_owned(),
            training: true,
            // Parts of an attempt share the machine.
            grows: true,
            nodes: vec![node],
            instance_types: vec![kind],
            places: self.preempts.then_some(Places { most: self.slots, by_part: false }),
            ..ClusterFacts::default()
        }
    }

    async fn seen(&mut self) -> Result<Look, Trouble> {
        let said = self.shell.script(&scripts::look(&self.key)).await?;
        let mut look = Look::default();
        for line in said.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["now", seconds] => look.now = seconds.parse().ok().map(|seconds: i64| Timestamp(seconds * 1000)),
                ["attempt", name] => {
                    let attempt = AttemptId::parse(name).ok();
                    look.held.extend(attempt.map(|attempt| Held { attempt, parts: Vec::new() }));
                }
                [what, name, index, ref rest @ ..] => {
                    let Some(held) = look.held.iter_mut().find(|held| held.attempt.to_string() == name) else {
                        continue;
                    };
                    let Ok(index) = index.parse() else { continue };
                    let state = match (what, rest) {
                        ("runs", _) => PartState::Runs(self.system.name.clone()),
                        // It leaves so when the end of the attempt is on record.
                        ("left", _) => PartState::Left,
                        ("rebooted", _) => gone("NodeRestarted", "the machine was restarted".to_owned()),
                        (_, code) => {
                            let log = self.shell.script(&scripts::last_words(&self.key, &held.attempt, index)).await;
                            let log = log.unwrap_or_default();
                            let last = log.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("nothing");
                            let signal =
                                code.first().and_then(|code| code.parse().ok()).is_some_and(|code: u32| code > 128);
                            let how = if signal { "was killed" } else { "failed" };
                            gone("AgentLost", format!("its agent {how}; the last it printed: {last}"))
                        }
                    };
                    held.parts.push(Part { index, state });
                }
                _ => {}
            }
        }
        let running = look.held.iter().filter(|held| held.parts.iter().any(is_at_work)).count();
        look.facts = self.facts(u32::try_from(running).unwrap_or(u32::MAX));
        Ok(look)
    }
}

impl Site for Host {
    async fn look(&mut self) -> Result<Look, Trouble> {
        self.ready().await?;
        self.seen().await
    }

    async fn launch(&mut self, launches: &[Launch], look: &Look) -> Result<Vec<Started>, Trouble> {
        let mut all = Vec::new();
        for launch in launches {
            let at_work = self.seen().await?.held.iter().filter(|held| held.parts.iter().any(is_at_work)).count();
            if at_work >= self.slots as usize {
                let jobs = if at_work == 1 { "another job is".to_owned() } else { format!("{at_work} jobs are") };
                let name = look.facts.nodes.first().map_or("the machine", |node| node.name.as_str());
                let why = format!("{jobs} at work on `{name}`, which takes {} at a time", self.slots);
                all.push(Started::Later(why));
                continue;
            }
            self.begin(launch, &(0..launch.parts).collect::<Vec<_>>()).await?;
            all.push(Started::Yes);
        }
        Ok(all)
    }

    async fn stop(&mut self, _: &[AttemptId]) -> Result<(), Trouble> {
        Ok(())
    }

    async fn remove(&mut self, attempts: &[AttemptId]) -> Result<(), Trouble> {
        for attempt in attempts {
            self.shell.script(&scripts::remove(&self.key, attempt)).await?;
        }
        Ok(())
    }

    async fn check(&mut self) -> Vec<Finding> {
        const ORDER: [&str; 6] = ["connect", "host key", "login", "tunnel", "system", "agent"];
        let finding = |check: &str, passed, detail: String| Finding { check: check.to_owned(), passed, detail };
        match self.ready().await {
            Ok(()) => {
                let system = &self.system;
                let has =
                    format!("{} CPUs, {} MiB of memory, {} GPUs", system.cpus, system.memory_kib >> 10, system.gpus);
                let python = if system.python.is_empty() { "no Python" } else { &system.python };
                vec![
                    finding("connect", true, format!("`{}` answers and its key is the one vouched for", system.name)),
                    finding("tunnel", true, "a port there leads back to this server".to_owned()),
                    finding("system", true, format!("{}, {}, {python}; {has}", system.kind, system.libc)),
                    finding("agent", true, format!("the agent runs there ({})", system.digest)),
                ]
            }
            Err(trouble) => {
                let known = ORDER.contains(&trouble.check);
                vec![finding(if known { trouble.check } else { "connect" }, false, trouble.why)]
            }
        }
    }
}

/// Makes a connection, the way back to the server and our program there; what the machine is.
pub(crate) async fn reach(
    shell: &mut Shell,
    key: &str,
    (scheme, back): &(String, String),
    program: &Path,
) -> Result<System, Trouble> {
    shell.open().await?;
    let last = shell.script(&scripts::arrive(key)).await?;
    let port = shell.forward(last.trim().parse().unwrap_or(0), back).await?;
    shell.script(&scripts::reached_by(key, scheme, port)).await?;
    let system = read_system(&shell.script(scripts::SYSTEM).await?);
    fit(&system)?;
    let digest = place(shell, program).await?;
    Ok(System { digest, ..system })
}

/// What the machine behind a shell has.
pub(crate) async fn amounts(shell: &mut Shell) -> Result<Resources, Trouble> {
    Ok(read_system(&shell.script(scripts::SYSTEM).await?).amounts())
}

/// Copies the program there, unless it lies there already; its digest.
pub(crate) async fn place(shell: &mut Shell, program: &Path) -> Result<String, Trouble> {
    let file = program.to_owned();
    let read = tokio::task::spawn_blocking(move || fs::read(file)).await;
    let bytes = read.map_err(|_| Trouble::new("agent", "interrupted"))?;
    let bytes =
        bytes.map_err(|error| Trouble::new("agent", format!("cannot read this program's own file: {error}")))?;
    let sum = digest(&SHA256, &bytes);
    let name: String = sum.as_ref().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    let mut said = shell.script(&scripts::has_program(&name)).await?;
    if !said.starts_with("yes") {
        shell.upload(program, &scripts::program(&name)).await?;
        said = shell.script(&scripts::has_program(&name)).await?;
    }
    match said.lines().any(|line| line.contains("peregrine")) {
        true => Ok(name),
        false => {
            let why = said.lines().skip(1).collect::<Vec<_>>().join("; ");
            Err(Trouble::new("agent", format!("this server's program does not run there: {why}")))
        }
    }
}

fn is_at_work(part: &Part) -> bool {
    matches!(part.state, PartState::Runs(_))
}

fn gone(code: &str, why: String) -> PartState {
    PartState::Gone { code: code.to_owned(), why, retryable: true }
}

fn read_system(said: &str) -> System {
    let mut system = System::default();
    for line in said.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let number = value.trim().parse().unwrap_or(0);
        match key {
            "name" => system.name = value.to_owned(),
            "kind" => system.kind = value.to_owned(),
            "boot" => system.boot = value.to_owned(),
            "libc" => system.libc = value.to_owned(),
            "python" => system.python = value.to_owned(),
            "cpus" => system.cpus = number,
            "memory" => system.memory_kib = number,
            "gpus" => system.gpus = u32::try_from(number).unwrap_or(0),
            "disk" => system.disk_kib = number,
            _ => {}
        }
    }
    system
}

/// Whether our program could run there at all.
fn fit(system: &System) -> Result<(), Trouble> {
    let ours = format!("Linux {}", std::env::consts::ARCH);
    if system.kind != ours {
        return Err(Trouble::new("system", format!("it is `{}`; this server's agent runs on `{ours}`", system.kind)));
    }
    if system.disk_kib < DISK_KIB {
        let left = system.disk_kib >> 10;
        return Err(Trouble::new("system", format!("its disk has {left} MiB left; {} MiB are needed", DISK_KIB >> 10)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_cannot_run_the_agent_is_told_apart() {
        let said = format!(
            "name box\nkind Linux {}\nboot b\ncpus 8\nmemory 16000000\ngpus 0\nlibc glibc 2.36\npython Python 3.11.2\ndisk 900000\n",
            std::env::consts::ARCH
        );
        let system = read_system(&said);
        assert_eq!((system.name.as_str(), system.cpus, system.memory_kib), ("box", 8, 16_000_000));
        assert_eq!(fit(&system), Ok(()));
        for (change, expect) in [
            (System { kind: "Darwin arm64".into(), ..system.clone() }, "Darwin"),
            (System { disk_kib: 10_000, ..system.clone() }, "9 MiB left"),
        ] {
            assert!(fit(&change).unwrap_err().why.contains(expect));
        }
    }
}
