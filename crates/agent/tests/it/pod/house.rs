//! A pod without a cluster: a folder for its home, a keeper as its first process, variables as the operator sets them. Or
//! a node: the same with a home in which a server has left its address.

use super::{StandIn, attempt};
use agent::{
    Settings,
    keeper::{Keeper, Of},
    outpost::{Address, Outpost},
    pod::{Left, Pod},
};
use domain::Timestamp;
use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::Duration,
};

/// How long a test waits for what should take moments.
const TICKS: u32 = 1200;
const TICK: Duration = Duration::from_millis(50);

pub(crate) struct House {
    folder: tempfile::TempDir,
    keeper: Mutex<Child>,
    start: Mutex<Command>,
}

impl House {
    pub(crate) fn new(server: &StandIn, part: u32) -> House {
        House::with(server, part, &[])
    }

    pub(crate) fn with(server: &StandIn, part: u32, variables: &[(&str, &str)]) -> House {
        House::started(server, part, variables, &[], "pod")
    }

    /// An agent of a machine. Tools and environments are those of `cache`, which outlives the test.
    pub(crate) fn node(server: &StandIn, cache: &Path, variables: &[(&str, &str)]) -> House {
        let cache = cache.display().to_string();
        let variables: Vec<(&str, &str)> = variables.iter().copied().chain([("TEST_CACHE", cache.as_str())]).collect();
        House::started(server, 0, &variables, &[], "node")
    }

    /// In control groups, as a container is.
    pub(crate) fn within(server: &StandIn, groups: &[PathBuf]) -> House {
        let join: String = groups.iter().map(|file| format!("echo 0 > {}; ", file.display())).collect();
        House::started(server, 0, &[], &["sh", "-c", &format!("{join} exec \"$@\""), "sh"], "pod")
    }

    /// As nobody, with nothing to write to but the home.
    pub(crate) fn read_only(server: &StandIn) -> Option<House> {
        const SEAL: &str = "mount --make-rprivate / && mount --bind $T $T && mount -o remount,bind,ro / && \
             exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \"$@\"";
        let possible = Command::new("unshare").args(["-m", "setpriv", "--reuid", "65534", "true"]).output();
        if !possible.is_ok_and(|done| done.status.success()) {
            skipped("an image that cannot be written to (no right to unshare)");
            return None;
        }
        let variables = [("HOME", "/root"), ("TMPDIR", "/tmp")];
        Some(House::started(server, 0, &variables, &["unshare", "-m", "sh", "-c", SEAL, "sh"], "pod"))
    }

    fn started(server: &StandIn, part: u32, variables: &[(&str, &str)], wrapper: &[&str], role: &str) -> House {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let (home, program) = (folder.path().join("home"), folder.path().join("program"));
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(folder.path().join("files")).unwrap();
        if let Some((_, cache)) = variables.iter().find(|(name, _)| *name == "TEST_CACHE") {
            furnish(&home, Path::new(cache), &server.url());
        }
        fs::write(folder.path().join("token"), "secret\n").unwrap();
        // The test binary may lie where nobody else can look.
        let own = folder.path().join("it");
        fs::hard_link(env::current_exe().unwrap(), &own)
            .or_else(|_| fs::copy(env::current_exe().unwrap(), &own).map(drop))
            .unwrap();
        let script = format!("#!/bin/sh\nTEST_ROLE=$2 exec {} --exact pod::role --nocapture -q\n", own.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let line: Vec<&str> = wrapper.iter().copied().chain([program.to_str().unwrap(), "agent", role]).collect();
        let mut start = Command::new(line[0]);
        start
            .args(&line[1..])
            .env("T", folder.path())
            .env("F", folder.path().join("files"))
            .env("TEST_SERVER", server.url())
            .env("TEST_PART", part.to_string())
            .env("PEREGRINE_TOKEN_FILE", folder.path().join("token"))
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let keeper = Mutex::new(start.spawn().unwrap());
        House { folder, keeper, start: Mutex::new(start) }
    }

    /// Where commands of tests leave their marks (`$F`).
    pub(crate) fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    pub(crate) fn journal(&self) -> String {
        fs::read_to_string(self.folder.path().join("home/agent/journal")).unwrap_or_default()
    }

    pub(crate) fn exit_code(&self) -> i32 {
        let mut keeper = self.keeper.lock().unwrap();
        let mut ended = None;
        wait_for("the pod to end", || {
            ended = keeper.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code().unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        kill(i32::try_from(self.keeper.lock().unwrap().id()).unwrap(), name);
    }

    pub(crate) fn agent(&self) -> Option<i32> {
        ["TEST_ROLE=part", "TEST_ROLE=run"].iter().find_map(|role| self.processes(role).first().copied())
    }

    /// What runs for this pod with this variable.
    fn processes(&self, variable: &str) -> Vec<i32> {
        let own = format!("T={}", self.folder.path().display());
        let of_pod = |pid: &i32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let has = |pair: &str| environ.split(|b| *b == 0).any(|one| one == pair.as_bytes());
            has(&own) && has(variable)
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(of_pod).collect()
    }

    /// Kills the keeper and, when its agent has left too, starts another.
    pub(crate) fn replace_keeper(&self) {
        let mut keeper = self.keeper.lock().unwrap();
        keeper.kill().and_then(|()| keeper.wait()).unwrap();
        wait_for("the agent to leave", || self.agent().is_none());
        *keeper = self.start.lock().unwrap().spawn().unwrap();
    }

    pub(crate) fn kill_agent(&self) -> i32 {
        let agent = self.agent().expect("the agent is there");
        kill(agent, "KILL");
        agent
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let keeper = self.keeper.get_mut().unwrap();
        let _ended = keeper.kill().and_then(|()| keeper.wait());
        let own = format!("T={}", self.folder.path().display());
        self.processes(&own).into_iter().for_each(|pid| kill(pid, "KILL"));
    }
}

/// What a home has where a server of it runs.
fn furnish(home: &Path, cache: &Path, url: &str) {
    let address =
        agent::server::Address { pid: 1, url: url.into(), local_url: None, version: "v".into(), home: home.to_owned() };
    fs::write(agent::server::address_file(home), serde_json::to_string(&address).unwrap()).unwrap();
    fs::create_dir(home.join("keys")).unwrap();
    fs::write(agent::server::token_file(home, "agent"), "secret\n").unwrap();
    fs::write(agent::server::authority_file(home), "").unwrap();
    for folder in ["tools", "environments"] {
        symlink(cache.join(folder), home.join(folder)).unwrap();
    }
}

/// Runs the keeper or the agent if this process was started as one.
#[expect(clippy::disallowed_methods, reason = "the exit code is what the keeper reads")]
pub(crate) fn play_role() {
    let (Ok(role), Ok(folder)) = (env::var("TEST_ROLE"), env::var("T")) else { return };
    let folder = PathBuf::from(folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let home = folder.join("home");
    let code = match role.as_str() {
        "pod" | "node" => {
            let of = if role == "pod" { Of::Pod } else { Of::Node };
            let keeper = Keeper { program: folder.join("program"), home, of };
            runtime.block_on(agent::keeper::run(keeper)).unwrap().unwrap()
        }
        "run" => i32::from(!runtime.block_on(agent::run(settings(&home), None)).unwrap()),
        _ => match runtime.block_on(agent::pod::run(settings(&home), pod(&folder))).unwrap() {
            Left::Completed => 0,
            Left::Otherwise => 1,
            Left::Orphaned => 5,
        },
    };
    std::process::exit(code);
}

fn settings(home: &Path) -> Settings {
    Settings {
        home: home.to_owned(),
        node: "n".into(),
        version: "v".into(),
        grace: Duration::from_secs(5),
        cpus_milli: None,
        memory_bytes: None,
        gpus: None,
        cache_bytes: 1 << 30,
        clock: || Timestamp(0),
    }
}

fn pod(folder: &Path) -> Pod {
    let part = env::var("TEST_PART").unwrap().parse().unwrap();
    let away = env::var("TEST_AWAY_SECONDS").map_or(3600, |seconds| seconds.parse().unwrap());
    let lease = env::var("TEST_LEASE_SECONDS").map_or(away, |seconds| seconds.parse().unwrap());
    Pod {
        attempt: attempt(),
        part,
        outpost: Outpost {
            address: env::var("TEST_ADDRESS").unwrap_or_else(|_| format!("10.0.0.{part}")),
            server: Address::Known(env::var("TEST_SERVER").unwrap()),
            contained: env::var("TEST_OUTSIDE").is_err(),
            shared: None,
            devices: env::var("TEST_DEVICES").ok().map(|text| agent::outpost::devices(&text).unwrap()),
            token_file: folder.join("token"),
            authority: None,
            bundle: None,
            away: Duration::from_secs(away),
            lease: Duration::from_secs(lease),
        },
    }
}

pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..TICKS {
        if holds() {
            return;
        }
        std::thread::sleep(TICK);
    }
    panic!("waited in vain for {what}");
}

#[expect(clippy::print_stderr, reason = "a skipped test says so aloud")]
pub(crate) fn skipped(what: &str) {
    eprintln!("skipped: {what}");
}

pub(crate) fn kill(pid: i32, signal: &str) {
    let _gone = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).stderr(Stdio::null()).status();
}
