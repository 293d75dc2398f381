//! Finding the server of this machine, starting it where none runs, stopping it.
//!
//! A server holds a lock for as long as it lives and leaves its address beside it. Whether one runs is read off the lock,
//! so an address left behind by a crash misleads nobody, and of two servers started at once exactly one stays.

use crate::{
    config::Config,
    failure::{Done, Exit, Failure},
    roles,
};
use agent::server::{Address, address, address_file, authority_file, connect as connect_as, token_file};
use api::{Client, Connection};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tokio::time::Instant;

const READY_WITHIN: Duration = Duration::from_secs(20);
const STOPPED_WITHIN: Duration = Duration::from_secs(75);

/// A server that runs.
pub(crate) struct Running {
    pub(crate) pid: u32,
    pub(crate) url: String,
    pub(crate) version: String,
    pub(crate) home: PathBuf,
}

/// A client for the configured server. With none running and `start`, starts one and says so in one line.
pub(crate) async fn connect(config: &Config, start: bool) -> Done<Client> {
    if let Some(url) = &config.url {
        return Ok(Client::new(remote(config, url)?)?);
    }
    if status(&config.home).is_none() {
        if !start {
            return Err(none_runs(config));
        }
        start_detached(config).await?;
        let url = status(&config.home).map(|running| running.url).unwrap_or_default();
        eprintln!("started a server in the background ({url}); `peregrine server stop` ends it");
    }
    connect_as(&config.home, "user").ok_or_else(|| {
        let token = token_file(&config.home, "user");
        Failure::new(Exit::NotAllowed, "cannot read the keys of the running server")
            .because(format!("`{}` is readable by its owner only", token.display()))
            .hint("run the command as the user who started the server, or set PEREGRINE_HOME to your own")
    })
}

/// The server that runs for this home.
pub(crate) fn status(home: &Path) -> Option<Running> {
    let lock = fs::File::open(lock_file(home)).ok()?;
    if flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    let Address { pid, url, version, home, .. } = address(home)?;
    (!is_dying(pid)).then_some(Running { pid, url, version, home })
}

/// Whether a process was killed and is not yet gone: it holds its lock until its last thread has ended, and answers nobody.
fn is_dying(pid: u32) -> bool {
    const KILL: u64 = 1 << 8;
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    text.lines().filter_map(|line| line.split_once(":\t")).any(|(key, value)| match key {
        "State" => value.starts_with(['Z', 'X']),
        "SigPnd" | "ShdPnd" => u64::from_str_radix(value, 16).is_ok_and(|signals| signals & KILL != 0),
        _ => false,
    })
}

/// Where other machines find the server of this one.
pub(crate) fn outside(config: &Config) -> Option<String> {
    let here = config.url.is_none();
    here.then(|| status(&config.home))?.map(|running| running.url)
}

/// Starts a server in the background and waits until it answers. When someone else was faster, theirs will do.
pub(crate) async fn start_detached(config: &Config) -> Done {
    roles::prepare_home(&config.home)?;
    let log = config.home.join("logs").join("start.log");
    let mut child = spawn(config, &log)?;
    let deadline = Instant::now() + READY_WITHIN;
    loop {
        if status(&config.home).is_some() && answers(config).await {
            return Ok(());
        }
        let ended = child.try_wait().ok().flatten();
        let lost_race = status(&config.home).is_some();
        if let Some(code) = ended.filter(|code| !code.success())
            && !lost_race
            && !is_locked(&config.home)
        {
            return Err(did_not_start(&log, code.code()));
        }
        if Instant::now() > deadline {
            return Err(Failure::new(
                Exit::Unreachable,
                format!("the server did not answer within {} s", READY_WITHIN.as_secs()),
            )
            .hint(format!("its log is `{}`", config.home.join("logs").join("server.log").display())));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Asks the server to stop and waits until it has.
pub(crate) async fn stop(home: &Path) -> Done {
    let Some(running) = status(home) else { return Ok(()) };
    let pid = i32::try_from(running.pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).map_err(|errno| {
            Failure::file(format!("cannot stop the server (process {})", running.pid), &errno.into())
        })?;
    }
    let deadline = Instant::now() + STOPPED_WITHIN;
    // The lock goes last: after it nothing of the server touches the home any more.
    while is_locked(home) {
        if Instant::now() > deadline {
            return Err(Failure::new(Exit::Ours, format!("the server (process {}) did not stop", running.pid)));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Copies the database of this home; safe while a server runs on it.
pub(crate) async fn backup(config: &Config, to: &Path) -> Done {
    let fail = |error: store::Error| {
        Failure::new(Exit::Ours, format!("cannot back up to `{}`", to.display())).because(error.to_string())
    };
    let store = store::Store::open(&config.home).map_err(fail)?;
    store.backup(to.to_owned()).await.map_err(fail)?;
    // Sealed secrets and people's work are in it: its owner's alone, like the database.
    Ok(fs::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(0o600))?)
}

/// The right to be the server of a home; `None` when another server has it. One that is about to go is waited for.
pub(crate) fn wait_for_lock(home: &Path) -> Done<Option<fs::File>> {
    let deadline = Instant::now() + STOPPED_WITHIN;
    loop {
        match take_lock(home)? {
            // A server without an address is on its way up or down.
            None if status(home).is_none() && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10))
            }
            taken => return Ok(taken),
        }
    }
}

fn take_lock(home: &Path) -> Done<Option<fs::File>> {
    let path = lock_file(home);
    let lock = fs::File::options().create(true).write(true).truncate(false).open(&path);
    let lock = lock.map_err(|error| Failure::file(format!("cannot open `{}`", path.display()), &error))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(_) => Ok(None),
    }
}

/// Leaves the address of a server that listens.
pub(crate) fn announce(address: &Address) -> Done {
    let path = address_file(&address.home);
    let text = serde_json::to_vec(address).expect("an address is plain data");
    store::secrets::write_owner_only(&path, &text)
        .map_err(|error| Failure::file(format!("cannot write `{}`", path.display()), &error))
}

fn lock_file(home: &Path) -> PathBuf {
    home.join("server.lock")
}

async fn answers(config: &Config) -> bool {
    let Some(client) = connect_as(&config.home, "user") else { return false };
    client.send(client.request(reqwest::Method::GET, "/readyz")).await.is_ok()
}

/// Whether some process holds the lock, even if it has not left its address yet.
fn is_locked(home: &Path) -> bool {
    fs::File::open(lock_file(home)).is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockShared).is_err())
}

fn spawn(config: &Config, log: &Path) -> Done<Child> {
    let fail = |error: std::io::Error| Failure::file("cannot start the server", &error);
    let mut command = Command::new(std::env::current_exe().map_err(fail)?);
    command.args(["server", "start", "--detached", "--home"]).arg(&config.home);
    if config.listen_chosen {
        command.arg("--listen").arg(config.listen.to_string());
    }
    if let Some(http) = config.http {
        command.arg("--http").arg(http.to_string());
    }
    for (flag, path) in [("--tls-cert", &config.tls_cert), ("--tls-key", &config.tls_key)] {
        if let Some(path) = path {
            command.arg(flag).arg(path);
        }
    }
    if let Some(address) = &config.postgres {
        // Not a flag: those are seen by everyone on the machine.
        command.env("PEREGRINE_STORE_URL", address.with_secrets());
    }
    let errors = fs::File::create(log).map_err(fail)?;
    command.current_dir(&config.home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().map_err(fail)
}

/// What the server said before it went, with the exit code it went with.
fn did_not_start(log: &Path, code: Option<i32>) -> Failure {
    let said = fs::read_to_string(log).unwrap_or_default();
    let exit = if code == Some(Exit::Input as i32) { Exit::Input } else { Exit::Unreachable };
    let failure = Failure::new(exit, "the server did not start");
    let mut lines =
        said.lines().map(|line| line.trim().trim_start_matches("error: ").trim_start_matches("because: ").to_owned());
    let failure = match lines.next() {
        Some(first) => lines.fold(failure.because(first), |failure, line| match line.strip_prefix("hint: ") {
            Some(hint) => failure.hint(hint),
            None => failure.because(line),
        }),
        None => failure,
    };
    failure.hint("run `peregrine server start --foreground` to see it start")
}

fn none_runs(config: &Config) -> Failure {
    Failure::new(Exit::Unreachable, format!("no server runs for `{}`", config.home.display()))
        .hint("start one with `peregrine server start`")
}

fn remote(config: &Config, url: &str) -> Done<Connection> {
    let read = |path: &Path, what: &str| {
        fs::read(path).map_err(|error| Failure::file(format!("cannot read the {what} `{}`", path.display()), &error))
    };
    let token_path = config.token_file.clone().unwrap_or_else(|| token_file(&config.home, "user"));
    let token = String::from_utf8_lossy(&read(&token_path, "token")?).trim().to_owned();
    let authority = match &config.authority_file {
        Some(path) => Some(read(path, "certificate authority")?),
        None => fs::read(authority_file(&config.home)).ok(),
    };
    Ok(Connection { url: url.trim_end_matches('/').to_owned(), token, authority })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_and_was_not_asked_after_is_no_server() {
        assert!(!is_dying(std::process::id()));
        let mut child = Command::new("true").spawn().expect("`true` is everywhere");
        let mut looks = 0;
        while !is_dying(child.id()) {
            looks += 1;
            assert!(looks < 1000, "it never ended");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(child.wait().expect("it is ours").success());
        assert!(!is_dying(child.id()), "what is gone holds no lock");
    }
}
