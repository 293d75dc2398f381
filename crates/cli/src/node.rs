//! The role of a node of a managed cluster: joins, takes what it is given, and leaves when it is told to or not heard any more.
//!
//! What it is and where the server is comes in variables. Attempts of one part are run by an agent like that of the server's own
//! machine, one after another, and parts of larger ones by agents of their own. The machine is the memory: what is told of it was
//! just looked at. What speaks for it is a certificate for a key that never leaves the machine; where that cannot reach the server,
//! because TLS ends before it, a token does.
//! Invariants: nothing is begun twice; without a server work goes on, and a node that has none leaves when its lease is over.

mod first;
mod lending;
mod pass;

use crate::{
    failure::{Done, Exit, Failure},
    pod::DEVICES,
    roles::{log_to, provide_crypto, small_runtime},
};
use agent::outpost::{Pass, Posting};
use api::{Client, ClientError};
use compute::{Driver, Host, LocalDriver, Look, PartState, Site, Trouble};
use domain::{
    kept::Kept,
    machine::{LEASE_SECONDS, MachineFacts, NodeAnswer, NodeJoined, NodePart, NodePoll, PartFate},
};
use lending::Lending;
use std::{
    fs,
    net::{ToSocketAddrs, UdpSocket},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};

/// How often a node with work looks at it.
const LOOK: Duration = Duration::from_secs(2);
/// By then a server has answered that has nothing to say.
const ANSWER: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(2);

/// What a node is told by whoever started it.
struct Told {
    name: String,
    key: String,
    folder: PathBuf,
    /// An address, or the path of a file that has one in it.
    server: String,
    join: String,
    authority: Option<Vec<u8>>,
    /// Where other machines find this one, as whoever started it knows.
    address: Option<String>,
    /// The machine's GPUs that are this node's; absent where all are.
    devices: Option<Vec<u32>>,
}

/// Why a node does not go on.
enum Over {
    /// As it was told.
    Left,
    /// The server knows it no more.
    Unknown(String),
    Failed(String),
}

pub(crate) fn run() -> Done<ExitCode> {
    // Nobody else is there to start it again, and to bury what it leaves.
    if std::process::id() == 1 {
        return first::keep();
    }
    log_to(None)?;
    provide_crypto();
    let told = read(&|name| std::env::var(name).ok().filter(|value| !value.is_empty() || name == DEVICES))?;
    let program =
        std::env::current_exe().map_err(|error| Failure::file("cannot find this program's own file", &error))?;
    match small_runtime()?.block_on(work(&told, program)) {
        Over::Left => Ok(ExitCode::SUCCESS),
        Over::Unknown(why) => {
            Err(Failure::new(Exit::NotAllowed, format!("`{}` is no node any more", told.name)).because(why))
        }
        Over::Failed(why) => {
            Err(Failure::new(Exit::Unreachable, format!("node `{}` cannot work", told.name)).because(why))
        }
    }
}

fn read(variable: &dyn Fn(&str) -> Option<String>) -> Done<Told> {
    let mut missing = Vec::new();
    let text = |file: String| fs::read_to_string(&file).map(|text| text.trim().to_owned()).ok();
    let mut needed = |value: Option<String>, name: &str| {
        if value.is_none() {
            missing.push(format!("`{name}` is not set"));
        }
        value.unwrap_or_default()
    };
    let name = needed(variable("PEREGRINE_NODE"), "PEREGRINE_NODE");
    let server = needed(variable("PEREGRINE_SERVER_FILE").or_else(|| variable("PEREGRINE_SERVER")), "PEREGRINE_SERVER");
    let join = variable("PEREGRINE_JOIN_TOKEN").or_else(|| variable("PEREGRINE_JOIN_FILE").and_then(text));
    let join = needed(join, "PEREGRINE_JOIN_TOKEN");
    let home = variable("HOME").map(|home| format!("{home}/.peregrine-agent"));
    let top = needed(variable("PEREGRINE_TOP").or(home), "HOME");
    if !missing.is_empty() {
        let failure = Failure::input("cannot tell which node this is").because(missing.join("; "));
        return Err(
            failure.hint("`peregrine agent node` is started by the provider of a managed cluster, which sets these")
        );
    }
    let key = variable("PEREGRINE_NODE_KEY").unwrap_or_else(|| name.rsplit('-').next().unwrap_or(&name).to_owned());
    if !key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Failure::input(format!("`{key}` is not the key of a node")).hint("use letters and digits"));
    }
    let authority = variable("PEREGRINE_CA").or_else(|| variable("PEREGRINE_CA_FILE").and_then(text));
    let authority = authority.filter(|pem| !pem.is_empty()).map(String::into_bytes);
    let address = variable("PEREGRINE_ADDRESS");
    let devices = variable(DEVICES).map(|text| agent::outpost::devices(&text)).transpose();
    let devices = devices.map_err(|_| Failure::input("`PEREGRINE_DEVICES` is no list of numbers"))?;
    Ok(Told { devices, folder: Path::new(&top).join(&key), name, key, server, join, authority, address })
}

impl Told {
    /// Where the server is now; the way to it may change.
    fn url(&self) -> String {
        match self.server.starts_with('/') {
            true => fs::read_to_string(&self.server).unwrap_or_default().trim().to_owned(),
            false => self.server.clone(),
        }
    }

    fn client(&self, pass: &Pass) -> Result<Client, ClientError> {
        pass.client(self.url(), self.authority.clone())
    }

    /// Leaves what the agent has to know in its home.
    fn post(&self, address: String, pass: &Pass, away_seconds: u64) -> std::io::Result<()> {
        let bundle = self.authority.as_ref().map(|pem| server::write_bundle(&self.folder, Some(pem))).transpose()?;
        let posting = Posting {
            name: self.name.clone(),
            server: self.server.clone(),
            address,
            authority: self.authority.clone().map(|pem| String::from_utf8_lossy(&pem).into_owned()),
            bundle,
            shared: self.folder.with_file_name("shared"),
            away_seconds,
            devices: self.devices.clone(),
        };
        posting.put(&self.folder, pass)
    }
}

async fn work(told: &Told, program: PathBuf) -> Over {
    let named = told.address.clone().filter(|address| lending::resolved(address).is_some());
    let address = named.unwrap_or_else(|| own_address(&told.url()));
    let driver = LocalDriver::new(program.clone(), told.folder.clone());
    let host = Host::here(told.key.clone(), program, &told.server, address.clone()).await;
    let host = match host {
        Ok(host) => host,
        Err(trouble) => return Over::Failed(trouble.why),
    };
    let mut facts = MachineFacts {
        host: host.name().to_owned(),
        address: address.clone(),
        capacity: host.capacity(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        door: None,
    };
    let held = Pass::of(&told.folder).filter(|pass| pass.identity.is_some());
    let (joined, pass) = match join(told, &facts, held.as_ref()).await {
        Ok(entered) => entered,
        Err(over) => return over,
    };
    let lease = Duration::from_secs(joined.lease_seconds);
    let mut host = host.leased(lease);
    tracing::info!(node = told.name, certificate = pass.identity.is_some(), "joined");
    if let Err(error) = told.post(address, &pass, joined.lease_seconds) {
        return Over::Failed(format!("cannot write to `{}`: {error}", told.folder.display()));
    }
    let lending = Lending::new(told, &joined, &facts.address).await;
    facts.door.clone_from(&lending.door);
    let (kept, keeps) = watch::channel(Vec::new());
    let secret =
        Some(joined.lending.clone()).filter(|secret| !secret.is_empty()).unwrap_or_else(|| joined.token.clone());
    let (renew_at, heard) = (pass::renew_at(&joined), Instant::now());
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => return Over::Failed(format!("cannot hear of signals: {error}")),
    };
    let (leaving, going, client, said) = (false, false, None, None);
    let mut node = Node { told, pass, renew_at, lease, facts, driver, client, heard, leaving, going, keeps, said };
    node.tend();
    tokio::select! {
        over = node.work(&mut host, &mut terminate) => over,
        () = lending.run(&secret, &kept) => Over::Failed("what it keeps cannot be looked at any more".to_owned()),
    }
}

/// Becomes the node. Asks until there is an answer, or the lease is over.
async fn join(told: &Told, facts: &MachineFacts, held: Option<&Pass>) -> Result<(NodeJoined, Pass), Over> {
    let begun = Instant::now();
    let own = pass::Own::of(told).map_err(|error| Over::Failed(format!("cannot keep a key: {error}")))?;
    loop {
        match own.enter(told, facts, held).await {
            Ok(entered) => return Ok(entered),
            Err(ClientError::Refused { status, message, .. }) if status != 429 && status < 500 => {
                return Err(Over::Unknown(message));
            }
            Err(error) if begun.elapsed() >= Duration::from_secs(LEASE_SECONDS) => {
                return Err(Over::Failed(error.to_string()));
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot join yet");
                sleep(AGAIN).await;
            }
        }
    }
}

struct Node<'t> {
    told: &'t Told,
    pass: Pass,
    /// When its certificate is to be another.
    renew_at: Option<Instant>,
    lease: Duration,
    facts: MachineFacts,
    /// Keeps the agent.
    driver: LocalDriver,
    client: Option<Client>,
    /// When the server last answered.
    heard: Instant,
    leaving: bool,
    /// Its machine was told to stop. The server hears of it, and has it leave in good order.
    going: bool,
    /// Fetched data that lies here now, and as the server was last told of it.
    keeps: watch::Receiver<Vec<Kept>>,
    said: Option<Vec<Kept>>,
}

impl Node<'_> {
    async fn work(&mut self, host: &mut Host, terminate: &mut Signal) -> Over {
        loop {
            match self.round(host, terminate).await {
                Ok(()) => {}
                Err(Over::Unknown(why)) => {
                    self.forget(host).await;
                    return Over::Unknown(why);
                }
                Err(over) => return over,
            }
        }
    }

    async fn round(&mut self, host: &mut Host, terminate: &mut Signal) -> Result<(), Over> {
        if self.renew_at.is_some_and(|at| Instant::now() >= at) {
            self.renew().await;
        }
        let look = match host.look().await {
            Ok(look) => look,
            Err(trouble) => {
                tracing::warn!("{trouble}");
                sleep(AGAIN).await;
                return Ok(());
            }
        };
        let holds = parts(&look);
        // Its agent leaves when it is told to, or without work when there has been no server for long.
        let runs = holds.iter().any(|part| part.fate == PartFate::Runs);
        let busy = runs || self.driver.is_kept();
        if self.leaving && !busy {
            // What ended is told once more, if anyone listens.
            let _ = timeout(AGAIN, self.ask(holds)).await;
            return Err(Over::Left);
        }
        let mut news = self.keeps.clone();
        news.mark_unchanged();
        let (renews, due) = (self.renew_at.is_some(), self.renew_at.unwrap_or_else(Instant::now));
        let asked = tokio::select! {
            asked = timeout(if runs { LOOK } else { ANSWER }, self.ask(holds)) => asked,
            _ = news.changed() => return Ok(()),
            () = sleep_until(due), if renews => return Ok(()),
            _ = terminate.recv() => {
                tracing::info!("its machine is told to stop");
                self.going = true;
                return Ok(());
            }
        };
        let answer = match asked {
            // What runs here is looked at before the server has anything to say.
            Err(_) if runs => return Ok(()),
            Err(_) => {
                // Nobody says so where packets are merely lost.
                self.client = None;
                return if busy { Ok(()) } else { self.unheard("the server does not answer") };
            }
            Ok(Ok(answer)) => answer,
            Ok(Err(ClientError::Refused { code, message, .. })) if code.starts_with(server::JOIN_AGAIN) => {
                tracing::warn!("joins again: {message}");
                self.renew().await;
                if !busy {
                    self.unheard(&message)?;
                }
                sleep(AGAIN).await;
                return Ok(());
            }
            Ok(Err(ClientError::Refused { status: 401 | 403 | 410, message, .. })) => {
                return Err(Over::Unknown(message));
            }
            Ok(Err(error)) => {
                self.client = None;
                if !busy {
                    self.unheard(&error.to_string())?;
                }
                sleep(AGAIN).await;
                return Ok(());
            }
        };
        self.heard = Instant::now();
        if let Err(trouble) = self.act(host, answer).await {
            tracing::warn!("{trouble}");
            sleep(AGAIN).await;
        }
        Ok(())
    }

    /// Has a new certificate, if the server can be reached; or else tries again a little later.
    async fn renew(&mut self) {
        let entered = match pass::Own::of(self.told) {
            Ok(own) => match timeout(ANSWER, own.enter(self.told, &self.facts, Some(&self.pass))).await {
                Ok(entered) => entered.map_err(anyhow::Error::from),
                Err(_) => Err(anyhow::anyhow!("the server does not answer")),
            },
            Err(error) => Err(error.into()),
        };
        let kept = entered.and_then(|(joined, pass)| {
            pass.put(&self.told.folder)?;
            Ok((joined, pass))
        });
        self.client = None;
        match kept {
            Ok((joined, pass)) => (self.renew_at, self.pass) = (pass::renew_at(&joined), pass),
            Err(error) => {
                tracing::warn!("the certificate is not renewed yet: {error:#}");
                self.renew_at = Some(Instant::now() + AGAIN);
            }
        }
    }

    /// Whether a node without work may stay.
    fn unheard(&self, why: &str) -> Result<(), Over> {
        match self.heard.elapsed() >= self.lease {
            _ if self.going => Err(Over::Left),
            true => Err(Over::Failed(format!("its lease is over: {why}"))),
            false => Ok(()),
        }
    }

    async fn ask(&mut self, holds: Vec<NodePart>) -> Result<NodeAnswer, ClientError> {
        let url = self.told.url();
        if self.client.as_ref().is_none_or(|client| client.url() != url) {
            self.client = Some(self.told.client(&self.pass)?);
        }
        let client = self.client.clone().expect("it was just made");
        let keeps = Some(self.keeps.borrow().clone()).filter(|keeps| self.said.as_ref() != Some(keeps));
        let poll = NodePoll { facts: self.facts.clone(), holds, keeps, leaving: self.going };
        let answer = client.post("/node/v1/poll", &poll).await?;
        self.said = poll.keeps.or(self.said.take());
        Ok(answer)
    }

    async fn act(&mut self, host: &mut Host, answer: NodeAnswer) -> Result<(), Trouble> {
        for (launch, parts) in &answer.launch {
            host.begin(launch, parts).await?;
        }
        host.remove(&answer.remove).await?;
        if answer.leave && !std::mem::replace(&mut self.leaving, true) {
            host.notice().await?;
        }
        self.tend();
        if self.leaving {
            sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }

    /// Sees to it that the agent runs, while there is work to come.
    fn tend(&self) {
        if !self.leaving
            && let Err(error) = self.driver.tend()
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "the agent does not start");
        }
    }

    /// Nobody waits for what runs here any more.
    async fn forget(&self, host: &mut Host) {
        let held = host.look().await.map(|look| look.held).unwrap_or_default();
        for held in held {
            let _ = host.remove(&[held.attempt]).await;
        }
    }
}

fn parts(look: &Look) -> Vec<NodePart> {
    let mut all = Vec::new();
    for held in &look.held {
        for part in &held.parts {
            let fate = match part.state.clone() {
                PartState::Runs(_) | PartState::Waits(_) => PartFate::Runs,
                PartState::Left => PartFate::Left,
                PartState::Own => PartFate::Own,
                PartState::Gone { code, why, retryable } => PartFate::Gone { code, why, retryable },
            };
            all.push(NodePart { attempt: held.attempt.clone(), part: part.index, fate });
        }
    }
    all
}

/// The address by which this machine leaves for the server, at which others find it.
fn own_address(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let target = rest.split('/').next().unwrap_or_default();
    let target = if target.contains(':') { target.to_owned() } else { format!("{target}:443") };
    let found = || {
        let target = target.to_socket_addrs().ok()?.next()?;
        let socket = UdpSocket::bind(if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).ok()?;
        // Nothing is sent: the system only chooses the way.
        socket.connect(target).ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    };
    found().unwrap_or_else(|| "127.0.0.1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_missing_is_told_at_once() {
        let Err(failure) = read(&|_| None) else { panic!("nothing was set") };
        let told = format!("{failure:?}");
        for name in ["PEREGRINE_NODE", "PEREGRINE_SERVER", "PEREGRINE_JOIN_TOKEN", "HOME"] {
            assert!(told.contains(&format!("`{name}` is not set")), "{told}");
        }
    }

    #[test]
    fn a_machine_finds_the_address_that_leads_to_the_server() {
        assert_eq!(own_address("https://127.0.0.1:7423"), "127.0.0.1");
        assert_eq!(own_address("nonsense"), "127.0.0.1");
    }
}
