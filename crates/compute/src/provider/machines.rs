//! Nodes on machines that are there already: this one, carved up, or others reached by SSH, one node each.

use super::{Found, Health, Order, Provider};
use crate::{
    Login, Trouble,
    shell::{Shell, quote},
    ssh::{self, Connection, scripts},
};
use domain::{Resources, cluster::Finding};
use std::{collections::HashSet, path::PathBuf, sync::Arc};
use tokio::sync::Mutex;

/// A machine and how it is spoken to.
struct Place {
    host: String,
    shell: Shell,
    /// Of our program there; empty until it was reached.
    digest: String,
}

/// Machines on which nodes are processes of ours.
#[derive(Clone)]
pub struct Machines(Arc<Mutex<Inner>>);

struct Inner {
    /// Tells this cluster's folders from those of others.
    key: String,
    places: Vec<Place>,
    program: PathBuf,
    /// Where the server listens, as `https` and `127.0.0.1:7423`.
    server: (String, String),
    authority: String,
    /// On this machine: the folder of all nodes.
    top: Option<PathBuf>,
}

impl Machines {
    /// This machine; as many nodes as are wanted share it. Their folders lie in `top`.
    pub fn here(key: String, top: PathBuf, program: PathBuf, server: (String, String), authority: String) -> Machines {
        let place = Place { host: "this machine".to_owned(), shell: Shell::Here, digest: String::new() };
        let inner = Inner { key, places: vec![place], program, server, authority, top: Some(top) };
        Machines(Arc::new(Mutex::new(inner)))
    }

    /// Machines reached by SSH. `folder` is for what is known of them.
    pub fn there(
        key: String,
        (logins, folder): (Vec<Login>, PathBuf),
        program: PathBuf,
        server: (String, String),
        authority: String,
    ) -> Result<Machines, Trouble> {
        let place = |(at, login): (usize, Login)| {
            let host = login.host.clone();
            let connection = Connection::new(login, folder.join(at.to_string()))?;
            Ok(Place { host, shell: Shell::There(Box::new(connection)), digest: String::new() })
        };
        let places = logins.into_iter().enumerate().map(place).collect::<Result<Vec<_>, Trouble>>()?;
        Ok(Machines(Arc::new(Mutex::new(Inner { key, places, program, server, authority, top: None }))))
    }
}

impl Inner {
    /// What comes before every script: where the folders of nodes lie.
    fn top(&self) -> String {
        self.top
            .as_ref()
            .map_or_else(String::new, |top| format!("PEREGRINE_TOP={}\n", quote(&top.display().to_string())))
    }

    async fn reach(&mut self, at: usize) -> Result<(), Trouble> {
        let (scheme, listens) = self.server.clone();
        let url = format!("{scheme}://{listens}");
        let (top, key) = (self.top(), self.key.clone());
        let place = &mut self.places[at];
        if place.shell.is_open() && !place.digest.is_empty() {
            return Ok(());
        }
        place.digest = match place.shell {
            Shell::Here => {
                // Nodes that are there already may have known another address.
                let folder = scripts::folder(&key);
                let script = format!(
                    "{top}{}{folder}mkdir -p \"$d\" && printf %s {} > \"$d/server.new\" && mv \"$d/server.new\" \"$d/server\"\n",
                    scripts::WORDS,
                    quote(&url)
                );
                place.shell.script(&script).await?;
                "here".to_owned()
            }
            Shell::There(_) => ssh::reach(&mut place.shell, &key, &(scheme, listens), &self.program).await?.digest,
        };
        Ok(())
    }

    /// This cluster's nodes on one machine, with the folders they lie in.
    async fn nodes(&mut self, at: usize) -> Result<Vec<(String, Found)>, Trouble> {
        self.all_nodes(at).await.map(|(nodes, _)| nodes)
    }

    /// The same, and whether a node of another cluster works there.
    async fn all_nodes(&mut self, at: usize) -> Result<(Vec<(String, Found)>, bool), Trouble> {
        self.reach(at).await?;
        let script = format!("{}{}{}", self.top(), scripts::WORDS, scripts::nodes(&self.key));
        let said = self.places[at].shell.script(&script).await?;
        Ok((said.lines().filter_map(read).collect(), said.lines().any(|line| line.starts_with("other "))))
    }
}

/// `alive|dead FOLDER NAME LAST WORDS…`; `None` of what is another cluster's.
fn read(line: &str) -> Option<(String, Found)> {
    let mut words = line.splitn(4, ' ');
    let (state, folder, name) = (words.next()?, words.next()?, words.next()?);
    let last = words.next().unwrap_or_default().trim();
    let last = if last.is_empty() { "it printed nothing".to_owned() } else { format!("the last it printed: {last}") };
    let health = match state {
        "dead" => Health::Dead(format!("its agent has ended; {last}")),
        "alive" => Health::Well,
        _ => return None,
    };
    Some((folder.to_owned(), Found { name: name.to_owned(), health }))
}

/// Paths below a node's folder are names of sockets, and must be short.
fn short(name: &str) -> &str {
    name.rsplit('-').next().unwrap_or(name)
}

fn is_dead(found: &Found) -> bool {
    matches!(found.health, Health::Dead(_))
}

impl Provider for Machines {
    async fn create(&self, order: &Order) -> Result<(), Trouble> {
        let mut inner = self.0.lock().await;
        let (mut why, mut own, mut empty) = (Vec::new(), None, None);
        for at in 0..inner.places.len() {
            match inner.all_nodes(at).await {
                // One that was there stays there, and is started again if it has ended.
                Ok((nodes, _)) if nodes.iter().any(|(_, found)| found.name == order.name) => own = own.or(Some(at)),
                Ok((nodes, others)) if nodes.is_empty() && !others || matches!(inner.places[at].shell, Shell::Here) => {
                    empty = empty.or(Some(at));
                }
                Ok(_) => {}
                Err(trouble) => why.push(format!("`{}`: {trouble}", inner.places[at].host)),
            }
        }
        if let Some(at) = own.or(empty) {
            let here = matches!(inner.places[at].shell, Shell::Here);
            let program = match here {
                true => quote(&inner.program.display().to_string()),
                false => scripts::program(&inner.places[at].digest),
            };
            let file = format!("\"$top/\"{}/server", quote(&inner.key));
            let node = (order.name.as_str(), order.token.as_str());
            let keys = (inner.key.as_str(), short(&order.name));
            let start = scripts::start_node(keys, node, &inner.authority, (&file, &program));
            let address = match here {
                true => String::new(),
                // A node knows no way but the one back to the server; others find it where we did.
                false => format!("export PEREGRINE_ADDRESS={}\n", quote(&inner.places[at].host)),
            };
            let script = format!("{}{address}{start}", inner.top());
            return inner.places[at].shell.script(&script).await.map(drop);
        }
        let why = if why.is_empty() { "each has a node already".to_owned() } else { why.join("; ") };
        Err(Trouble::new("hosts", format!("none of the {} machines can be had: {why}", inner.places.len())))
    }

    async fn delete(&self, name: &str) -> Result<(), Trouble> {
        let mut inner = self.0.lock().await;
        let mut blind = None;
        for at in 0..inner.places.len() {
            let there = match inner.nodes(at).await {
                Ok(there) => there,
                Err(trouble) => {
                    blind = Some(trouble);
                    continue;
                }
            };
            let Some((folder, _)) = there.into_iter().find(|(_, found)| found.name == name) else { continue };
            let script = format!("{}{}", inner.top(), scripts::end_node(&folder));
            inner.places[at].shell.script(&script).await?;
        }
        // A machine that cannot be asked may have it.
        blind.map_or(Ok(()), Err)
    }

    async fn list(&self) -> Result<Option<Vec<Found>>, Trouble> {
        let mut inner = self.0.lock().await;
        let mut all = Vec::new();
        for at in 0..inner.places.len() {
            match inner.nodes(at).await {
                Ok(nodes) => all.extend(nodes.into_iter().map(|(_, found)| found)),
                Err(_) => return Ok(None),
            }
        }
        // What was started twice, because a machine could not be asked in between, is well where one of them is.
        let well: HashSet<String> =
            all.iter().filter(|found| !is_dead(found)).map(|found| found.name.clone()).collect();
        all.retain(|found| !is_dead(found) || !well.contains(&found.name));
        Ok(Some(all))
    }

    async fn offers(&self, size: &Resources) -> Result<Resources, Trouble> {
        let inner = &mut *self.0.lock().await;
        let Some(place) = inner.places.first_mut().filter(|_| inner.top.is_some()) else { return Ok(*size) };
        // A node is never larger than the machine it is a part of.
        let has = ssh::amounts(&mut place.shell).await?;
        Ok(Resources {
            cpu_milli: size.cpu_milli.min(has.cpu_milli),
            memory_bytes: size.memory_bytes.min(has.memory_bytes),
            gpus: size.gpus.min(has.gpus),
        })
    }

    async fn end(&self) {
        let inner = &mut *self.0.lock().await;
        let script = format!("{}{}rm -rf \"$top/shared\"\n", inner.top(), scripts::WORDS);
        // What others of ours use there too is theirs.
        for place in inner.places.iter_mut().filter(|_| inner.top.is_some()) {
            let _left_behind = place.shell.script(&script).await;
        }
    }

    async fn check(&self) -> Vec<Finding> {
        let mut inner = self.0.lock().await;
        let mut findings = Vec::new();
        for at in 0..inner.places.len() {
            let (passed, detail) = match inner.reach(at).await {
                Ok(()) => (true, format!("{} can have nodes", inner.places[at].host)),
                Err(trouble) => (false, format!("`{}`: {trouble}", inner.places[at].host)),
            };
            findings.push(Finding { check: "hosts".to_owned(), passed, detail });
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
        path::Path,
    };

    fn cluster(top: &Path, key: &str) -> Machines {
        let program = top.join("program");
        fs::write(&program, "#!/bin/sh\nexec sleep 60\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let server = ("https".to_owned(), "127.0.0.1:9".to_owned());
        Machines::here(key.to_owned(), top.to_owned(), program, server, String::new())
    }

    fn order(name: &str) -> Order {
        Order { name: name.to_owned(), token: String::new(), size: String::new(), amounts: Resources::default() }
    }

    async fn names(machines: &Machines) -> Vec<String> {
        let found = machines.list().await.unwrap().unwrap();
        found.into_iter().map(|found| found.name).collect()
    }

    #[tokio::test]
    async fn clusters_that_share_a_machine_know_of_their_own_nodes_only() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        let (one, other) = (cluster(top, "aaaa1111"), cluster(top, "bbbb2222"));
        one.create(&order("crew-000001")).await.unwrap();
        other.create(&order("crew-bbbb2222-000002")).await.unwrap();
        // The first is from before owners were written down.
        fs::remove_file(top.join("000001/owner")).unwrap();
        symlink(top.join("aaaa1111/server"), top.join("000001/server")).unwrap();
        assert_eq!(names(&one).await, ["crew-000001"]);
        assert_eq!(names(&other).await, ["crew-bbbb2222-000002"]);
        // What is another's is not taken away, nor is its folder used.
        other.delete("crew-000001").await.unwrap();
        assert_eq!(names(&one).await, ["crew-000001"]);
        assert!(one.create(&order("crew-aaaa1111-000002")).await.is_err());
        one.delete("crew-000001").await.unwrap();
        assert!(names(&one).await.is_empty());
        assert_eq!(names(&other).await, ["crew-bbbb2222-000002"]);
        other.delete("crew-bbbb2222-000002").await.unwrap();
        assert!(names(&other).await.is_empty());
    }
}
