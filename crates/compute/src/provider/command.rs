//! Nodes that a program of the administrator's brings: a script around a cloud's own tool, or Terraform.
//!
//! It is called as `PROGRAM create|delete NAME` and `PROGRAM list`, with what it needs in variables. The name is the token that
//! makes a call safe to repeat: whoever makes a machine tags it with the name first. Invariant: a program that hangs is ended,
//! and what it may have done by then is found by the next `list`.

use super::{Found, Health, Order, Provider};
use crate::Trouble;
use domain::{Resources, cluster::Finding};
use std::{path::PathBuf, process::Stdio, time::Duration};
use tokio::{process::Command, time::timeout};

/// How much of what a program prints is read.
const MOST: usize = 1 << 20;

/// A program that makes and deletes machines.
#[derive(Clone)]
pub struct Commands {
    program: PathBuf,
    /// How long one call may take.
    limit: Duration,
    /// Where machines find the server.
    server: String,
    authority: String,
    /// Names of this cluster's nodes begin so.
    prefix: String,
}

impl Commands {
    pub fn new(program: PathBuf, limit: Duration, (server, authority): (String, String), prefix: String) -> Commands {
        Commands { program, limit, server, authority, prefix }
    }

    async fn call(&self, words: &[&str], more: &[(&str, String)]) -> Result<String, Trouble> {
        let shown = format!("`{} {}`", self.program.file_name().unwrap_or_default().display(), words.join(" "));
        let failed = |why: String| Trouble::new("provider", format!("{shown} {why}"));
        let mut command = Command::new(&self.program);
        command.args(words).env_remove("PEREGRINE_STORE_URL").env("PEREGRINE_CLUSTER_PREFIX", &self.prefix);
        command.envs(more.iter().map(|(key, value)| (key, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // What it started goes with it, if it hangs.
        command.process_group(0);
        let child = command.spawn().map_err(|error| failed(format!("does not start: {error}")))?;
        let group = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        let Ok(ran) = timeout(self.limit, child.wait_with_output()).await else {
            if let Some(group) = group {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            return Err(failed(format!("did not end within {} s and was killed", self.limit.as_secs())));
        };
        let ran = ran.map_err(|error| failed(format!("was lost: {error}")))?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr);
            let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it printed nothing");
            let last: String = last.chars().take(500).collect();
            return Err(failed(format!("ended with {}: {last}", ran.status)));
        }
        let end = ran.stdout.len().min(MOST);
        Ok(String::from_utf8_lossy(&ran.stdout[..end]).into_owned())
    }
}

impl Provider for Commands {
    async fn create(&self, order: &Order) -> Result<(), Trouble> {
        let variables = [
            ("PEREGRINE_NODE", order.name.clone()),
            ("PEREGRINE_SERVER", self.server.clone()),
            ("PEREGRINE_JOIN_TOKEN", order.token.clone()),
            ("PEREGRINE_CA", self.authority.clone()),
            ("PEREGRINE_SIZE", order.size.clone()),
            ("PEREGRINE_CPUS", (order.amounts.cpu_milli / 1000).to_string()),
            ("PEREGRINE_MEMORY_BYTES", order.amounts.memory_bytes.to_string()),
            ("PEREGRINE_GPUS", order.amounts.gpus.to_string()),
        ];
        self.call(&["create", &order.name], &variables).await.map(drop)
    }

    async fn delete(&self, name: &str) -> Result<(), Trouble> {
        self.call(&["delete", name], &[]).await.map(drop)
    }

    async fn list(&self) -> Result<Option<Vec<Found>>, Trouble> {
        let said = self.call(&["list"], &[]).await?;
        // What has another name was not made for this cluster.
        let names = said.lines().map(str::trim).filter(|name| name.starts_with(&self.prefix));
        let mut found: Vec<Found> = names.map(|name| Found { name: name.to_owned(), health: Health::Well }).collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found.dedup();
        Ok(Some(found))
    }

    async fn offers(&self, size: &Resources) -> Result<Resources, Trouble> {
        Ok(*size)
    }

    async fn check(&self) -> Vec<Finding> {
        let (passed, detail) = match self.list().await {
            Ok(found) => (true, format!("the provider answers and has {} nodes", found.map_or(0, |found| found.len()))),
            Err(trouble) => (false, trouble.why),
        };
        vec![Finding { check: "provider".to_owned(), passed, detail }]
    }
}
