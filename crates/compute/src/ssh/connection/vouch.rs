//! Whose keys are trusted: nothing is told to a host that is not known here and that nobody has vouched for.

use super::{COMMAND, CONNECT_SECONDS, Connection, Hop, Input, output, trouble_of};
use crate::Trouble;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::process::Command;

struct HostKey {
    /// As a file of known hosts has it.
    line: String,
    fingerprint: String,
}

impl Connection {
    /// Sees to it that the key of every host is known before anything is told to it.
    pub(super) async fn vouch(&self) -> Result<(), Trouble> {
        let hops = self.login.hops();
        for at in 0..hops.len() {
            self.vouch_for(&hops[..=at]).await?;
        }
        Ok(())
    }

    /// The same for the last of some hops.
    async fn vouch_for(&self, hops: &[Hop]) -> Result<(), Trouble> {
        let known = self.known_hosts();
        let Some(hop) = hops.last() else { return Ok(()) };
        if self.knows(hop, &known).await? {
            return Ok(());
        }
        let shown = self.scan(hops).await?;
        let list: Vec<&str> = shown.iter().map(|key| key.fingerprint.as_str()).collect();
        let (host, list, first) = (&hop.host, list.join(" or "), list.first().copied().unwrap_or("SHA256:…"));
        let Some(expected) = &self.login.host_key else {
            return Err(Trouble::new(
                "host key",
                format!(
                    "nobody has vouched for `{host}`, which shows the key {list}; compare it with the machine's own (`ssh-keygen -lf \
                     /etc/ssh/ssh_host_ed25519_key.pub`) and attach again with `--host-key {first}`"
                ),
            ));
        };
        let Some(key) = shown.iter().find(|key| self.login.vouches_for(&key.fingerprint)) else {
            let why = format!("`{host}` shows the key {list} and not {expected}");
            return Err(Trouble::new(
                "host key",
                format!("{why}; if its key was changed on purpose, attach again with the new one"),
            ));
        };
        let before = fs::read_to_string(&known).unwrap_or_default();
        let others = before.lines().filter(|line| line.split_whitespace().next() != Some(&hop.name()));
        let lines: String = others.chain([key.line.as_str()]).map(|line| format!("{line}\n")).collect();
        fs::write(&known, lines)
            .map_err(|error| Trouble::new("host key", format!("cannot write down the host's key: {error}")))
    }

    /// Whether a key of the host is among those known here.
    async fn knows(&self, hop: &Hop, known: &Path) -> Result<bool, Trouble> {
        for file in files_of(known) {
            let mut command = Command::new("ssh-keygen");
            command.arg("-F").arg(hop.name()).arg("-f").arg(&file);
            let found = output(command, Input::Text(""), COMMAND).await?;
            if found.status.success() {
                // Which of them is right is for ssh to say; ours give way to a key that was vouched for since.
                let ours = file == known;
                let other = ours && self.login.host_key.is_some() && !self.is_vouched(hop, known).await?;
                return Ok(!other);
            }
        }
        Ok(false)
    }

    async fn is_vouched(&self, hop: &Hop, known: &Path) -> Result<bool, Trouble> {
        let keys = fingerprints(known).await?;
        let name = format!("{} ", hop.name());
        Ok(keys.iter().any(|key| key.line.starts_with(&name) && self.login.vouches_for(&key.fingerprint)))
    }

    /// The keys a host shows to whoever asks; nothing is told to it.
    async fn scan(&self, hops: &[Hop]) -> Result<Vec<HostKey>, Trouble> {
        let Some(hop) = hops.last() else { return Ok(Vec::new()) };
        let file = self.socket.path().join("shown");
        let _ = fs::remove_file(&file);
        let asks = ["-S", "none", "-o", "BatchMode=yes", "-o", "PreferredAuthentications=none"];
        let mut command = self.command(&asks, hops, (&file, "accept-new"));
        command.args(["-o", "GlobalKnownHostsFile=/dev/null"]).arg("--").arg(&hop.host).arg("true");
        let ran = output(command, Input::Text(""), Duration::from_secs(CONNECT_SECONDS + 5)).await;
        let shown = fingerprints(&file).await?;
        if shown.is_empty() {
            let said = ran.as_ref().map(|ran| String::from_utf8_lossy(&ran.stderr).into_owned()).unwrap_or_default();
            return Err(trouble_of(&said, &self.login, ran.is_err()));
        }
        Ok(shown)
    }
}

/// What a file of known hosts holds, one key a line.
async fn fingerprints(file: &Path) -> Result<Vec<HostKey>, Trouble> {
    let lines = fs::read_to_string(file).unwrap_or_default();
    let mut keys = Vec::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let mut command = Command::new("ssh-keygen");
        command.args(["-l", "-f", "-"]);
        let ran = output(command, Input::Text(line), COMMAND).await?;
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let fingerprint = said.split_whitespace().find(|word| word.starts_with("SHA256:"));
        keys.extend(fingerprint.map(|word| HostKey { line: line.to_owned(), fingerprint: word.to_owned() }));
    }
    Ok(keys)
}

/// Where keys of hosts are looked for: ours, then those of whoever runs this server.
fn files_of(own: &Path) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".ssh").join("known_hosts"));
    std::iter::once(own.to_owned()).chain(home).collect()
}

/// The same, as ssh is told of them.
pub(super) fn known_files(own: &Path) -> String {
    let quoted = |path: &PathBuf| format!("\"{}\"", path.display());
    files_of(own).iter().map(quoted).collect::<Vec<_>>().join(" ")
}
