//! A shell that is not ours: of this machine, or of one reached by SSH; and words for it.

use crate::{Trouble, ssh::Connection};
use std::{path::Path, process::Stdio, time::Duration};
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

/// How long a script may take on this machine.
const LIMIT: Duration = Duration::from_secs(40);

/// Where commands are run.
pub(crate) enum Shell {
    Here,
    There(Box<Connection>),
}

impl Shell {
    pub(crate) fn is_open(&mut self) -> bool {
        match self {
            Shell::Here => true,
            Shell::There(connection) => connection.is_open(),
        }
    }

    pub(crate) async fn open(&mut self) -> Result<(), Trouble> {
        match self {
            Shell::Here => Ok(()),
            Shell::There(connection) => connection.open().await,
        }
    }

    /// Has a script run; what it printed.
    pub(crate) async fn script(&mut self, script: &str) -> Result<String, Trouble> {
        match self {
            Shell::Here => here(script).await,
            Shell::There(connection) => connection.script(script).await,
        }
    }

    /// Lets a port there lead to one of ours; this machine needs none.
    pub(crate) async fn forward(&mut self, wanted: u16, to: &str) -> Result<u16, Trouble> {
        match self {
            Shell::Here => Ok(to.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(wanted)),
            Shell::There(connection) => connection.forward(wanted, to).await,
        }
    }

    /// Copies a file of this machine to a path that the shell understands.
    pub(crate) async fn upload(&mut self, file: &Path, to: &str) -> Result<(), Trouble> {
        match self {
            Shell::Here => {
                let from = quote(&file.display().to_string());
                let script = format!(
                    "umask 077; f={to}; mkdir -p \"$(dirname \"$f\")\" && cp {from} \"$f.$$\" && chmod 700 \"$f.$$\" && mv \"$f.$$\" \"$f\"\n"
                );
                here(&script).await.map(drop)
            }
            Shell::There(connection) => connection.upload(file, to).await,
        }
    }
}

async fn here(script: &str) -> Result<String, Trouble> {
    let failed = |why: String| Trouble::new("command", format!("a command on this machine failed: {why}"));
    let mut shell = Command::new("sh");
    shell.arg("-s").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut shell = shell.spawn().map_err(|error| failed(error.to_string()))?;
    let ran = async {
        if let Some(mut stdin) = shell.stdin.take() {
            // A shell that has left early says why on its own.
            let _ = stdin.write_all(script.as_bytes()).await;
        }
        shell.wait_with_output().await
    };
    let ran = timeout(LIMIT, ran).await.map_err(|_| failed(format!("no answer within {} s", LIMIT.as_secs())))?;
    let ran = ran.map_err(|error| failed(error.to_string()))?;
    match ran.status.success() {
        true => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&ran.stderr).trim().to_owned())),
    }
}

/// A word that any POSIX shell reads as exactly this text.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for text in ["", "plain", "it's", "a b\n$(touch x) `y` \\ \"z\" *", "'';'", "ünï-☃"] {
            let said = Command::new("sh").arg("-c").arg(format!("printf %s {}", quote(text))).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), text);
        }
    }
}
