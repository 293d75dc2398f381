//! Nodes on machines that are there already: this one, carved up, or others reached by SSH, one node each.
//!
//! Each machine is spoken to by itself, so that one that cannot be reached, or hangs, holds up no other. Invariant: where a node
//! was started is remembered from its order or the first list that shows it; it is asked after there, and nowhere else.

use super::{Found, Health, Listing, Order, Provider};
use crate::{
    Login, Trouble,
    shell::{Shell, quote},
    ssh::{self, Connection, scripts},
};
use domain::{Resources, cluster::Finding};
use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc, Mutex as Guard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{sync::Mutex, task::JoinSet};

/// A machine and how it is spoken to.
struct Place {
    host: String,
    /// Many nodes share this machine; any other has one.
    here: bool,
    /// It could not be asked, the last time.
    blind: AtomicBool,
    line: Mutex<Line>,
}

/// The way to a machine. One at a time uses it.
struct Line {
    shell: Shell,
    /// Of our program there; empty until it was reached.
    digest: String,
}

/// Machines on which nodes are processes of ours.
#[derive(Clone)]
pub struct Machines(Arc<Inner>);

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
    /// On which machine each node is, as far as it is known.
    homes: Guard<HashMap<String, usize>>,
}

/// What was seen on one machine.
struct Seen {
    /// This cluster's nodes, with the folders they lie in.
    nodes: Vec<(String, Found)>,
    /// Whether a node of another cluster works there.
    others: bool,
}

impl Machines {
    /// This machine; as many nodes as are wanted share it. Their folders lie in `top`.
    pub fn here(key: String, top: PathBuf, program: PathBuf, server: (String, String), authority: String) -> Machines {
        let place = Place::new("this machine".to_owned(), Shell::Here);
        Machines::of(key, vec![place], program, server, (authority, Some(top)))
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
            Ok(Place::new(host, Shell::There(Box::new(connection))))
        };
        let places = logins.into_iter().enumerate().map(place).collect::<Result<Vec<_>, Trouble>>()?;
        Ok(Machines::of(key, places, program, server, (authority, None)))
    }

    fn of(
        key: String,
        places: Vec<Place>,
        program: PathBuf,
        server: (String, String),
        (authority, top): (String, Option<PathBuf>),
    ) -> Machines {
        let homes = Guard::default();
        Machines(Arc::new(Inner { key, places, program, server, authority, top, homes }))
    }

    /// What each machine answers to the same question, all asked at once; in the order of the machines.
    async fn each<T, F>(&self, ask: impl Fn(Arc<Inner>, usize) -> F) -> Vec<Result<T, Trouble>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Trouble>> + Send + 'static,
    {
        let mut asked = JoinSet::new();
        for at in 0..self.0.places.len() {
            let answer = ask(Arc::clone(&self.0), at);
            asked.spawn(async move { (at, answer.await) });
        }
        let mut answers = asked.join_all().await;
        answers.sort_by_key(|(at, _)| *at);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }
}

impl Place {
    fn new(host: String, shell: Shell) -> Place {
        let here = matches!(shell, Shell::Here);
        let line = Mutex::new(Line { shell, digest: String::new() });
        Place { host, here, blind: AtomicBool::new(false), line }
    }
}

impl Inner {
    /// What comes before every script: where the folders of nodes lie.
    fn top(&self) -> String {
        self.top
            .as_ref()
            .map_or_else(String::new, |top| format!("PEREGRINE_TOP={}\n", quote(&top.display().to_string())))
    }

    fn home_of(&self, name: &str) -> Option<usize> {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    fn settles(&self, name: &str, at: usize) {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), at);
    }

    fn forget(&self, name: &str) {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    async fn reach(&self, at: usize, line: &mut Line) -> Result<(), Trouble> {
        if line.shell.is_open() && !line.digest.is_empty() {
            return Ok(());
        }
        let (scheme, listens) = self.server.clone();
        let url = format!("{scheme}://{listens}");
        let reached = match line.shell {
            Shell::Here => {
                // Nodes that are there already may have known another address.
                let folder = scripts::folder(&self.key);
                let script = format!(
                    "{}{}{folder}mkdir -p \"$d\" && printf %s {} > \"$d/server.new\" && mv \"$d/server.new\" \"$d/server\"\n",
                    self.top(),
                    scripts::WORDS,
                    quote(&url)
                );
                line.shell.script(&script).await.map(|_| "here".to_owned())
            }
            Shell::There(_) => ssh::reach(&mut line.shell, &self.key, &(scheme, listens), &self.program)
                .await
                .map(|reached| reached.digest),
        };
        self.places[at].blind.store(reached.is_err(), Ordering::Relaxed);
        line.digest = reached?;
        Ok(())
    }

    /// What is on a machine now.
    async fn look(&self, at: usize, line: &mut Line) -> Result<Seen, Trouble> {
        self.reach(at, line).await?;
        let script = format!("{}{}{}", self.top(), scripts::WORDS, scripts::nodes(&self.key));
        let said = line.shell.script(&script).await;
        self.places[at].blind.store(said.is_err(), Ordering::Relaxed);
        let said = said?;
        let nodes: Vec<(String, Found)> = said.lines().filter_map(read).collect();
        for (_, found) in &nodes {
            self.settles(&found.name, at);
        }
        Ok(Seen { nodes, others: said.lines().any(|line| line.starts_with("other ")) })
    }

    /// Starts a node on a machine if it is there already or the machine has none; whether it did.
    async fn start(&self, at: usize, order: &Order) -> Result<bool, Trouble> {
        let place = &self.places[at];
        let line = &mut *place.line.lock().await;
        let seen = self.look(at, line).await?;
        // One that was there stays there, and is started again if it has ended.
        let own = seen.nodes.iter().any(|(_, found)| found.name == order.name);
        let empty = place.here || seen.nodes.is_empty() && !seen.others;
        if !own && !empty {
            return Ok(false);
        }
        let program = match place.here {
            true => quote(&self.program.display().to_string()),
            false => scripts::program(&line.digest),
        };
        let file = format!("\"$top/\"{}/server", quote(&self.key));
        let node = (order.name.as_str(), order.token.as_str());
        let keys = (self.key.as_str(), short(&order.name));
        // Nodes that share a machine share its GPUs; any other has them all.
        let devices = match order.amounts.gpus {
            _ if !place.here => None,
            0 => Some((0, 0)),
            count => Some((count, ssh::amounts(&mut line.shell).await?.gpus)),
        };
        let start = scripts::start_node(keys, node, &self.authority, (&file, &program), devices);
        let address = match place.here {
            true => String::new(),
            // A node knows no way but the one back to the server; others find it where we did.
            false => format!("export PEREGRINE_ADDRESS={}\n", quote(&place.host)),
        };
        // Whatever comes of it, this is where it would be.
        self.settles(&order.name, at);
        line.shell.script(&format!("{}{address}{start}", self.top())).await?;
        Ok(true)
    }

    /// Ends a node if it is on this machine; whether it was.
    async fn stop(&self, at: usize, name: &str) -> Result<bool, Trouble> {
        let line = &mut *self.places[at].line.lock().await;
        let seen = self.look(at, line).await?;
        let Some((folder, _)) = seen.nodes.into_iter().find(|(_, found)| found.name == name) else { return Ok(false) };
        line.shell.script(&format!("{}{}", self.top(), scripts::end_node(&folder))).await?;
        Ok(true)
    }

    /// Machines in the order in which room is looked for: those that could not be asked the last time come last.
    fn in_turn(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by_key(|at| self.places[*at].blind.load(Ordering::Relaxed));
        order
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
        let inner = &self.0;
        // An order is repeated only for what was found, so that one whose home is not known is new.
        let turn = inner.home_of(&order.name).map_or_else(|| inner.in_turn(), |home| vec![home]);
        let mut why = Vec::new();
        for at in turn {
            match inner.start(at, order).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // The script may have started it before it was cut off.
                Err(trouble) if inner.home_of(&order.name).is_some() => return Err(trouble),
                Err(trouble) => why.push(format!("`{}`: {trouble}", inner.places[at].host)),
            }
        }
        let why = if why.is_empty() { "each has a node already".to_owned() } else { why.join("; ") };
        Err(Trouble::new("hosts", format!("none of the {} machines can be had: {why}", inner.places.len())))
    }

    async fn delete(&self, name: &str) -> Result<(), Trouble> {
        if let Some(at) = self.0.home_of(name) {
            self.0.stop(at, name).await?;
            self.0.forget(name);
            return Ok(());
        }
        let wanted = name.to_owned();
        let answers = self.each(|inner, at| {
            let name = wanted.clone();
            async move { inner.stop(at, &name).await }
        });
        let answers = answers.await;
        let ended = answers.iter().any(|answer| matches!(answer, Ok(true)));
        if let Some(trouble) = answers.into_iter().find_map(Result::err).filter(|_| !ended) {
            // A machine that cannot be asked may have it.
            return Err(trouble);
        }
        self.0.forget(name);
        Ok(())
    }

    async fn list(&self) -> Result<Listing, Trouble> {
        let answers = self
            .each(|inner, at| async move {
                let line = &mut *inner.places[at].line.lock().await;
                inner.look(at, line).await
            })
            .await;
        let asked: Vec<bool> = answers.iter().map(Result::is_ok).collect();
        let mut all: Vec<Found> =
            answers.into_iter().flatten().flat_map(|seen| seen.nodes.into_iter().map(|(_, found)| found)).collect();
        // What was started twice, because a machine could not be asked in between, is well where one of them is.
        let well: HashSet<String> =
            all.iter().filter(|found| !is_dead(found)).map(|found| found.name.clone()).collect();
        all.retain(|found| !is_dead(found) || !well.contains(&found.name));
        let names: HashSet<&str> = all.iter().map(|found| found.name.as_str()).collect();
        let homes = self.0.homes.lock().unwrap_or_else(PoisonError::into_inner);
        let absent = homes.iter().filter(|(name, at)| asked[**at] && !names.contains(name.as_str()));
        let absent = absent.map(|(name, _)| name.clone()).collect();
        Ok(Listing { blind: asked.contains(&false), absent, found: all })
    }

    async fn offers(&self, size: &Resources) -> Result<Resources, Trouble> {
        let Some(place) = self.0.places.first().filter(|_| self.0.top.is_some()) else { return Ok(*size) };
        // A node is never larger than the machine it is a part of.
        let has = ssh::amounts(&mut place.line.lock().await.shell).await?;
        Ok(Resources {
            cpu_milli: size.cpu_milli.min(has.cpu_milli),
            memory_bytes: size.memory_bytes.min(has.memory_bytes),
            gpus: size.gpus.min(has.gpus),
        })
    }

    async fn end(&self) {
        let script = format!("{}{}rm -rf \"$top/shared\"\n", self.0.top(), scripts::WORDS);
        // What others of ours use there too is theirs.
        for place in self.0.places.iter().filter(|place| place.here) {
            let _left_behind = place.line.lock().await.shell.script(&script).await;
        }
    }

    async fn check(&self) -> Vec<Finding> {
        let reached = self
            .each(|inner, at| async move {
                let line = &mut *inner.places[at].line.lock().await;
                inner.reach(at, line).await
            })
            .await;
        let finding = |(place, reached): (&Place, Result<(), Trouble>)| {
            let (passed, detail) = match reached {
                Ok(()) => (true, format!("{} can have nodes", place.host)),
                Err(trouble) => (false, format!("`{}`: {trouble}", place.host)),
            };
            Finding { check: "hosts".to_owned(), passed, detail }
        };
        self.0.places.iter().zip(reached).map(finding).collect()
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
        let (token, size) = (String::new(), String::new());
        Order { name: name.to_owned(), token, size, amounts: Resources::default(), tier: Default::default() }
    }

    async fn names(machines: &Machines) -> Vec<String> {
        let found = machines.list().await.unwrap().found;
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

    /// This machine beside one that nobody answers at.
    fn beside_one_that_is_away(top: &Path) -> Machines {
        let mut inner = Arc::try_unwrap(cluster(top, "aaaa1111").0).ok().unwrap();
        let login = Login {
            host: "127.0.0.1".to_owned(),
            port: 1,
            user: "nobody".to_owned(),
            jump: None,
            password: None,
            private_key: None,
            host_key: None,
        };
        let connection = Connection::new(login, top.join("away")).unwrap();
        inner.places.insert(0, Place::new("away".to_owned(), Shell::There(Box::new(connection))));
        Machines(Arc::new(inner))
    }

    #[tokio::test]
    async fn a_machine_that_is_away_keeps_no_node_of_another_from_coming_being_listed_and_going() {
        let folder = tempfile::tempdir().unwrap();
        let machines = beside_one_that_is_away(folder.path());
        machines.create(&order("crew-000001")).await.unwrap();
        machines.create(&order("crew-000002")).await.unwrap();
        machines.0.settles("crew-000003", 0);
        let listing = machines.list().await.unwrap();
        assert_eq!(listing.found.len(), 2);
        assert!(listing.blind);
        // Of what may be where nobody answers nothing is known; and what was on this machine is not there any more.
        machines.delete("crew-000001").await.unwrap();
        machines.0.settles("crew-000001", 1);
        let listing = machines.list().await.unwrap();
        assert_eq!(listing.found.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), ["crew-000002"]);
        assert!(listing.lacks("crew-000001"));
        assert!(!listing.lacks("crew-000003") && !listing.lacks("crew-000004"));
        // Nor is what may be there said to have gone.
        assert!(machines.delete("crew-000003").await.is_err());
        assert!(machines.delete("crew-000004").await.is_err());
        // After a restart nobody remembers where a node was, and it is found.
        machines.0.forget("crew-000002");
        machines.delete("crew-000002").await.unwrap();
        assert!(machines.list().await.unwrap().found.is_empty());
        // One of which it is not known whether it was started is asked for where it would be, and not begun again elsewhere.
        assert!(machines.create(&order("crew-000003")).await.is_err());
        assert!(machines.list().await.unwrap().found.is_empty());
    }
}
