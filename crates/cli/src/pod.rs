//! The roles inside a pod: its first process, and the agent that it keeps.
//!
//! What the pod was made for comes in the variables its maker has set. Invariant: what is missing or wrong is told at once
//! and whole, before anything is started.

use crate::{
    config::Config,
    failure::{Done, Exit, Failure},
    roles::{agent_settings, keeper, log_to, provide_crypto, small_runtime},
};
use agent::{
    Settings,
    cgroup::Cgroup,
    keeper::Of,
    outpost::{Address, Outpost},
    pod::{Left, Pod},
};
use anyhow::Context as _;
use domain::AttemptId;
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

/// The GPUs of the machine that are for this part; where it is empty, none are.
pub(crate) const DEVICES: &str = "PEREGRINE_DEVICES";
/// How long a command runs on without a server, where nothing else is said.
const AWAY_SECONDS: u64 = 24 * 3600;

/// Runs the attempt that the variables name as the first process of its pod. Exits as the attempt ended.
pub(crate) fn keep(config: &Config) -> Done<ExitCode> {
    fs::create_dir_all(&config.home)
        .map_err(|error| Failure::file(format!("cannot use `{}` as home", config.home.display()), &error))?;
    read(&|name| std::env::var(name).ok(), &config.home)?;
    let code = keeper(config, Of::Pod)?;
    Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(Exit::Ours as u8)))
}

/// Runs the agent of a pod, a child of its first process.
pub(crate) fn run(config: &Config) -> Done<ExitCode> {
    log_to(None)?;
    provide_crypto();
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty() || name == DEVICES);
    let pod = read(&variable, &config.home)?;
    let limit = Cgroup::own().and_then(|own| own.memory_limit());
    let settings = agent_settings(config);
    let settings = Settings {
        node: variable("NODE_NAME").unwrap_or(settings.node),
        memory_bytes: settings.memory_bytes.or(limit),
        ..settings
    };
    let runtime = small_runtime()?;
    let left = runtime.block_on(agent::pod::run(settings, pod)).context("the agent stopped")?;
    runtime.shutdown_timeout(Duration::from_millis(200));
    Ok(match left {
        Left::Completed => ExitCode::SUCCESS,
        Left::Otherwise => ExitCode::from(Exit::JobFailed as u8),
        Left::Orphaned => ExitCode::from(Exit::Ours as u8),
    })
}

/// Copies this program into a folder that a pod's containers share, so that an image need not hold it.
pub(crate) fn place(folder: &Path) -> Done<ExitCode> {
    let copied = || -> std::io::Result<()> {
        let half = folder.join(".peregrine");
        // Permissions come with it.
        fs::copy(std::env::current_exe()?, &half)?;
        fs::rename(half, folder.join("peregrine"))
    };
    copied().map_err(|error| Failure::file(format!("cannot copy the agent to `{}`", folder.display()), &error))?;
    Ok(ExitCode::SUCCESS)
}

/// What the pod was made for, or everything that is missing.
fn read(variable: &dyn Fn(&str) -> Option<String>, home: &Path) -> Done<Pod> {
    let mut bad = Vec::new();
    let mut needed = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        if value.is_none() {
            bad.push(format!("`{name}` is not set"));
        }
        value.unwrap_or_default()
    };
    let server = match variable("PEREGRINE_SERVER_FILE") {
        Some(file) => Address::Written(PathBuf::from(file)),
        None => Address::Known(needed("PEREGRINE_SERVER").trim_end_matches('/').to_owned()),
    };
    let (attempt, part) = (needed("PEREGRINE_ATTEMPT"), needed("PEREGRINE_PART"));
    let (token_file, address) = (PathBuf::from(needed("PEREGRINE_TOKEN_FILE")), needed("POD_IP"));
    let attempt = AttemptId::parse(&attempt).map_err(|_| bad.push(format!("`{attempt}` is no attempt"))).ok();
    let part = part.parse().map_err(|_| bad.push(format!("`{part}` is no number of a part"))).ok();
    if let Err(error) = fs::read(&token_file) {
        bad.push(format!("the token in `{}` cannot be read: {error}", token_file.display()));
    }
    let away = variable("PEREGRINE_AWAY_SECONDS").map_or(Ok(AWAY_SECONDS), |seconds| seconds.parse());
    let away = away.map_err(|_| bad.push("`PEREGRINE_AWAY_SECONDS` is no number of seconds".into())).ok();
    let lease = variable("PEREGRINE_LEASE_SECONDS").map(|seconds| seconds.parse::<u64>()).transpose();
    let lease = lease.map_err(|_| bad.push("`PEREGRINE_LEASE_SECONDS` is no number of seconds".into())).ok();
    let devices = variable(DEVICES).map(|text| agent::outpost::devices(&text)).transpose();
    let devices = devices.map_err(|_| bad.push("`PEREGRINE_DEVICES` is no list of numbers".into())).ok().flatten();
    let authority = match variable("PEREGRINE_CA_FILE").filter(|path| !path.is_empty()).map(fs::read) {
        None => None,
        Some(Ok(pem)) => Some(pem),
        // The cluster mounts the file only where the system's own authorities are not enough.
        Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => None,
        Some(Err(error)) => {
            bad.push(format!("the authority in `PEREGRINE_CA_FILE` cannot be read: {error}"));
            None
        }
    };
    let (Some(attempt), Some(part), Some(away), true) = (attempt, part, away, bad.is_empty()) else {
        let failure = Failure::input("cannot tell what this pod is for").because(bad.join("; "));
        return Err(failure.hint("`peregrine agent pod` is started by the cluster's extension, which sets these"));
    };
    let authority = authority.filter(|pem| !pem.is_empty());
    let bundle = authority.as_ref().map(|pem| server::write_bundle(home, Some(pem))).transpose();
    let bundle = bundle.map_err(|error| Failure::file("cannot write the file of authorities", &error))?;
    let contained = variable("PEREGRINE_OUTSIDE").is_none();
    let shared = variable("PEREGRINE_SHARED").map(PathBuf::from);
    let lease = lease.flatten().map_or(away, |lease| lease.min(away));
    let (away, lease) = (Duration::from_secs(away), Duration::from_secs(lease));
    let outpost = Outpost { address, server, token_file, authority, bundle, away, lease, contained, shared, devices };
    Ok(Pod { attempt, part, outpost })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_missing_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        fs::write(&token, "t").unwrap();
        let some = |name: &str| match name {
            "PEREGRINE_SERVER" => Some("https://s/".to_owned()),
            "PEREGRINE_ATTEMPT" => Some("att_7_0".to_owned()),
            "PEREGRINE_TOKEN_FILE" => Some(token.display().to_string()),
            _ => None,
        };
        let told = read(&some, folder.path()).unwrap_err().to_string();
        assert!(told.contains("`PEREGRINE_PART` is not set") && told.contains("`POD_IP` is not set"), "{told}");
        let all = |name: &str| match name {
            "PEREGRINE_PART" => Some("1".to_owned()),
            "POD_IP" => Some("10.0.0.1".to_owned()),
            name => some(name),
        };
        let pod = read(&all, folder.path()).unwrap();
        let outpost = &pod.outpost;
        assert!(matches!(&outpost.server, Address::Known(url) if url == "https://s"));
        assert_eq!((pod.part, outpost.away.as_secs(), outpost.contained), (1, 86_400, true));
        assert!(outpost.authority.is_none() && outpost.bundle.is_none());
        assert_eq!(outpost.lease, outpost.away, "a pod has no node whose lease it could outlive");
        let leased = |name: &str| if name == "PEREGRINE_LEASE_SECONDS" { Some("60".to_owned()) } else { all(name) };
        let outpost = read(&leased, folder.path()).unwrap().outpost;
        assert_eq!((outpost.away.as_secs(), outpost.lease.as_secs()), (86_400, 60));
        for (text, expect) in [(None, None), (Some(""), Some(vec![])), (Some("1,3"), Some(vec![1, 3]))] {
            let given = |name: &str| if name == DEVICES { text.map(str::to_owned) } else { all(name) };
            assert_eq!(read(&given, folder.path()).unwrap().outpost.devices, expect);
        }
    }
}
