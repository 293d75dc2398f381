//! A login shell beside the command: an `sshd` of one session, spoken to through a tunnel.
//!
//! It listens nowhere. Its host key is made for the attempt; whoever has one of the job's keys enters as the user the
//! command runs as, with the command's variables.

use super::{super::RunMark, Near};
use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::process::Command;

pub(super) async fn session(folder: &Path, run: &RunMark, keys: &str) -> Result<Near, String> {
    let like = run.processes.first().ok_or("the command does not run")?;
    let sshd = program("sshd")?;
    let config = prepare(folder, &like.variables, keys).await?;
    let mut command = Command::new(&sshd);
    command.arg("-i").arg("-e").arg("-f").arg(&config).stdin(Stdio::piped()).stdout(Stdio::piped());
    let log = fs::File::options().create(true).append(true).open(folder.join("sshd.log"));
    command.stderr(log.map_or_else(|_| Stdio::null(), Stdio::from)).kill_on_drop(true);
    for (name, value) in &like.variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut process = command.spawn().map_err(|error| format!("`{}` cannot be started: {error}", sshd.display()))?;
    if let Some(pid) = process.id() {
        // Where the command has limits, so has this.
        like.cgroups.iter().for_each(|file| drop(fs::write(file, pid.to_string())));
    }
    let ends = process.stdout.take().zip(process.stdin.take());
    let (output, input) = ends.expect("both are pipes, and taken once");
    Ok(Near { stream: Box::new(tokio::io::join(output, input)), _process: Some(process) })
}

/// Writes what `sshd` reads.
async fn prepare(folder: &Path, variables: &[(String, Option<String>)], keys: &str) -> Result<PathBuf, String> {
    let disk = |error: io::Error| format!("the node cannot use its disk: {error}");
    let host = folder.join("host_key");
    if !host.exists() {
        let mut keygen = Command::new(program("ssh-keygen")?);
        let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&host).stdin(Stdio::null()).status().await;
        if !made.is_ok_and(|status| status.success()) {
            return Err("`ssh-keygen` cannot make a host key".to_owned());
        }
    }
    if rustix::process::geteuid().is_root() {
        // Where it locks itself up before anyone has entered.
        fs::create_dir_all("/run/sshd").map_err(disk)?;
    }
    fs::write(folder.join("keys"), keys).map_err(disk)?;
    let config = folder.join("sshd_config");
    let mut file = fs::File::options();
    let mut file = file.create(true).write(true).truncate(true).mode(0o600).open(&config).map_err(disk)?;
    io::Write::write_all(&mut file, text(folder, variables).as_bytes()).map_err(disk)?;
    Ok(config)
}

fn text(folder: &Path, variables: &[(String, Option<String>)]) -> String {
    let at = |name: &str| folder.join(name).display().to_string();
    // What its reader would take for something else stays away.
    let plain = |text: &str| !text.contains(['"', '\\', '\n', '\r']);
    let set: Vec<String> = variables
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_ref()?)))
        .filter(|(name, value)| plain(name) && plain(value))
        .map(|(name, value)| format!("\"{name}={value}\""))
        .collect();
    let set = if set.is_empty() { String::new() } else { format!("SetEnv {}\n", set.join(" ")) };
    format!(
        "HostKey \"{}\"\nAuthorizedKeysFile \"{}\"\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         StrictModes no\nPidFile none\nPermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n{set}",
        at("host_key"),
        at("keys")
    )
}

/// Where a program of OpenSSH is; `sshd` wants to be called by its whole path, which is seldom on `PATH`.
fn program(name: &str) -> Result<PathBuf, String> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin", "/usr/bin"].into_iter().map(PathBuf::from);
    let mut all = std::env::split_paths(&paths).chain(usual).map(|folder| folder.join(name));
    all.find(|path| path.is_file())
        .ok_or_else(|| format!("there is no `{name}` where the job runs; its image needs openssh-server"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_the_variables_of_the_command_but_none_that_could_be_misread() {
        let some = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        let variables =
            [some("A", "b c"), some("Q", "a\" PermitRootLogin"), some("N", "a\nHostKey x"), ("GONE".into(), None)];
        let text = text(Path::new("/attempt"), &variables);
        assert!(text.ends_with("SetEnv \"A=b c\"\n"), "{text}");
        assert!(text.starts_with("HostKey \"/attempt/host_key\"\nAuthorizedKeysFile \"/attempt/keys\"\n"));
    }
}
