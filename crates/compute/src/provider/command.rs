//! Nodes that a program of the administrator's brings: a script around a cloud's own tool, or Terraform.
//!
//! It is called as `PROGRAM create|delete NAME` and `PROGRAM list`, with what it needs in variables. The name is the token that
//! makes a call safe to repeat: whoever makes a machine tags it with the name first. Invariant: a program that hangs is ended,
//! and what it may have done by then is found by the next `list`.

use super::{Found, Health, Listing, Order, Provider};
use crate::Trouble;
use domain::{Resources, cluster::Finding};
use std::{io, path::PathBuf, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
    time::timeout,
};

/// How many bytes of what a program prints are kept.
const MOST: u64 = 1 << 20;

/// A program that makes and deletes machines.
#[derive(Clone)]
pub struct Commands {
    program: PathBuf,
    /// How long one call may take.
    limit: Duration,
    /// Where machines find the server.
    server: String,
    authority: String,
    /// Names of this cluster's nodes begin so; those of others may too.
    prefix: String,
    /// And so, unless they were given before names told clusters apart; no other cluster's do.
    own: String,
}

impl Commands {
    /// `uid` tells the cluster from others of the same name.
    pub fn new(
        program: PathBuf,
        limit: Duration,
        (server, authority): (String, String),
        (compute, uid): (&str, &str),
    ) -> Commands {
        let (prefix, own) = (format!("{compute}-"), format!("{compute}-{uid}-"));
        Commands { program, limit, server, authority, prefix, own }
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
        let mut child = command.spawn().map_err(|error| failed(format!("does not start: {error}")))?;
        let group = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let ran = async {
            let (out, err) = tokio::try_join!(drain(out), drain(err))?;
            Ok::<_, io::Error>((child.wait().await?, out, err))
        };
        let Ok(ran) = timeout(self.limit, ran).await else {
            if let Some(group) = group {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            return Err(failed(format!("did not end within {} s and was killed", self.limit.as_secs())));
        };
        let (status, out, err) = ran.map_err(|error| failed(format!("was lost: {error}")))?;
        if !status.success() {
            let said = String::from_utf8_lossy(&err);
            let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it printed nothing");
            let last: String = last.chars().take(500).collect();
            return Err(failed(format!("ended with {status}: {last}")));
        }
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

/// The first that a pipe brings. The rest is let go, so that whoever writes is not held up.
async fn drain(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut said = Vec::new();
    let Some(mut pipe) = pipe else { return Ok(said) };
    AsyncReadExt::take(&mut pipe, MOST).read_to_end(&mut said).await?;
    tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    Ok(said)
}

/// A line of a list: `NAME`, or `NAME leaving WHY…` of one whose owner takes it back.
fn read(line: &str) -> Option<Found> {
    let mut words = line.trim().splitn(3, char::is_whitespace);
    let name = words.next().filter(|name| !name.is_empty())?.to_owned();
    let health = match (words.next(), words.next().map_or("", str::trim)) {
        (None, _) => Health::Well,
        (Some("leaving"), "") => Health::Leaves("whoever owns its machine takes it back".to_owned()),
        (Some("leaving"), why) => Health::Leaves(why.chars().take(500).collect()),
        (Some(_), _) => return None,
    };
    Some(Found { name, health })
}

/// Whether a name is this beginning and what chance adds to it.
fn is_of(name: &str, beginning: &str) -> bool {
    let end = name.strip_prefix(beginning);
    end.is_some_and(|end| end.len() == 6 && end.bytes().all(|byte| byte.is_ascii_hexdigit()))
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
            ("PEREGRINE_TIER", order.tier.as_str().to_owned()),
        ];
        self.call(&["create", &order.name], &variables).await.map(drop)
    }

    async fn delete(&self, name: &str) -> Result<(), Trouble> {
        self.call(&["delete", name], &[]).await.map(drop)
    }

    async fn list(&self) -> Result<Listing, Trouble> {
        let said = self.call(&["list"], &[]).await?;
        if said.len() as u64 >= MOST {
            // What was cut off would seem to be gone.
            return Err(Trouble::new("provider", format!("its `list` prints {MOST} bytes or more, which is too much")));
        }
        // What has another name was not made for this cluster.
        let ours = |found: &Found| is_of(&found.name, &self.own) || is_of(&found.name, &self.prefix);
        let mut found: Vec<Found> = said.lines().filter_map(read).filter(ours).collect();
        // Of what is listed twice the notice counts.
        found.sort_by(|one, other| {
            (&one.name, one.health == Health::Well).cmp(&(&other.name, other.health == Health::Well))
        });
        found.dedup_by(|one, other| one.name == other.name);
        Ok(Listing::all(found))
    }

    fn is_own(&self, name: &str) -> bool {
        is_of(name, &self.own)
    }

    async fn offers(&self, size: &Resources) -> Result<Resources, Trouble> {
        Ok(*size)
    }

    async fn check(&self) -> Vec<Finding> {
        let (passed, detail) = match self.list().await {
            Ok(listing) => (true, format!("the provider answers and has {} nodes", listing.found.len())),
            Err(trouble) => (false, trouble.why),
        };
        vec![Finding { check: "provider".to_owned(), passed, detail }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tier;
    use std::{fs, os::unix::fs::PermissionsExt};

    fn program(folder: &tempfile::TempDir, text: &str) -> PathBuf {
        let program = folder.path().join("program");
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    fn cluster(program: PathBuf, compute: &str, uid: &str) -> Commands {
        Commands::new(program, Duration::from_secs(20), (String::new(), String::new()), (compute, uid))
    }

    #[tokio::test]
    async fn a_program_that_serves_several_clusters_shows_each_its_own_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let all = "gpu-aaaa1111-000001 gpu-bbbb2222-000002 gpu-000003 gpu-big-000004 gpu-big-cccc3333-000005 gpu-spare";
        let program = program(&folder, &format!("#!/bin/sh\nprintf '%s\\n' {all}\n"));
        for (compute, uid, expect) in [
            ("gpu", "aaaa1111", ["gpu-000003", "gpu-aaaa1111-000001"]),
            ("gpu", "bbbb2222", ["gpu-000003", "gpu-bbbb2222-000002"]),
            ("gpu-big", "cccc3333", ["gpu-big-000004", "gpu-big-cccc3333-000005"]),
        ] {
            let commands = cluster(program.clone(), compute, uid);
            let found = commands.list().await.unwrap().found;
            let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
            assert_eq!(names, expect);
            // Another cluster of that name may have had the first before names told them apart.
            let own: Vec<bool> = names.iter().map(|name| commands.is_own(name)).collect();
            assert_eq!(own, [false, true]);
        }
    }

    #[tokio::test]
    async fn a_program_is_told_the_tier_and_may_say_which_machines_are_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let text = "#!/bin/sh\ncase $1 in create) echo \"$PEREGRINE_TIER\" > \"$0.tier\" ;; list) cat <<EOF\n\
            gpu-aaaa1111-000001\ngpu-aaaa1111-000002 leaving  spot price\ngpu-aaaa1111-000003 leaving\n\
            gpu-aaaa1111-000001 leaving soon\ngpu-aaaa1111-000004 something else\n\nEOF\nesac\n";
        let commands = cluster(program(&folder, text), "gpu", "aaaa1111");
        let order = Order {
            name: "gpu-aaaa1111-000005".into(),
            token: String::new(),
            size: String::new(),
            amounts: Resources::default(),
            tier: Tier::LowPriority,
        };
        commands.create(&order).await.unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("program.tier")).unwrap(), "low_priority\n");
        let found = commands.list().await.unwrap().found;
        let leaves = |why: &str| Health::Leaves(why.to_owned());
        let expect = [
            ("gpu-aaaa1111-000001", leaves("soon")),
            ("gpu-aaaa1111-000002", leaves("spot price")),
            ("gpu-aaaa1111-000003", leaves("whoever owns its machine takes it back")),
        ];
        let expect = expect.map(|(name, health)| Found { name: name.to_owned(), health });
        assert_eq!(found, expect);
    }

    #[tokio::test]
    async fn a_program_that_never_stops_talking_fills_no_memory_and_hides_no_node() {
        let folder = tempfile::tempdir().unwrap();
        let text = "#!/bin/sh\nhead -c 3000000 /dev/zero\nhead -c 3000000 /dev/zero >&2\n";
        let commands = cluster(program(&folder, text), "gpu", "aaaa1111");
        assert_eq!(commands.call(&["create", "x"], &[]).await.unwrap().len() as u64, MOST);
        assert!(commands.list().await.unwrap_err().why.contains("too much"));
    }
}
