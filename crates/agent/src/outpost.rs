//! An agent that is not on the server's own machine: its way to the server, and what it finds where it is.

use api::{Client, ClientError, Connection};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

/// Where an agent elsewhere is, and how it reaches the server.
#[derive(Debug, Clone)]
pub struct Outpost {
    /// Where others reach what runs here.
    pub address: String,
    /// The server's address.
    pub server: Address,
    /// Read again for every call: a renewed token takes the place of the old one. Where a certificate speaks for a node, what
    /// the node says of itself is in the first line, and its key and certificate below it.
    pub token_file: PathBuf,
    /// The authority that signed the server's certificate, in PEM; the system's are enough where it is absent.
    pub authority: Option<Vec<u8>>,
    /// The system's authorities and the server's in one file, for programs of the user's.
    pub bundle: Option<PathBuf>,
    /// How long it stays without a server.
    pub away: Duration,
    /// How long it stays so with nothing left but to tell how it ended.
    pub lease: Duration,
    /// The container is the job's own. Otherwise this is a machine that others use too: environments are made and limits
    /// set as on the server's own machine.
    pub contained: bool,
    /// Where environments are kept for all that run on this machine.
    pub shared: Option<PathBuf>,
    /// The machine's GPUs that are for work here; absent where all are.
    pub devices: Option<Vec<u32>>,
}

/// How the server is found.
#[derive(Debug, Clone)]
pub enum Address {
    Known(String),
    /// In a file, where it may change: the way leads through a tunnel.
    Written(PathBuf),
}

/// What a node of a managed cluster leaves in its home for its agent, which may be started again at any time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posting {
    /// The node's name.
    pub name: String,
    /// An address, or the path of a file that has one in it.
    pub server: String,
    /// As in [`Outpost`].
    pub address: String,
    pub authority: Option<String>,
    pub bundle: Option<PathBuf>,
    pub shared: PathBuf,
    pub away_seconds: u64,
    #[serde(default)]
    pub devices: Option<Vec<u32>>,
}

/// What speaks for whoever calls the server from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// A token, or what a certificate is for.
    pub bearer: String,
    /// Key and certificate in PEM, to be shown.
    pub identity: Option<String>,
}

impl Pass {
    /// The one that a node has kept in its home.
    pub fn of(home: &Path) -> Option<Pass> {
        Pass::read(&pass_file(home))
    }

    fn read(file: &Path) -> Option<Pass> {
        // A node from before there were certificates, which an upgrade left running, keeps a token beside it.
        let text = fs::read_to_string(file).or_else(|_| fs::read_to_string(file.with_file_name("token"))).ok()?;
        let (bearer, rest) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
        Some(Pass { bearer: bearer.to_owned(), identity: Some(rest.to_owned()).filter(|rest| !rest.is_empty()) })
    }

    /// Keeps it where its owner alone can read it, both halves at once: one is of no use without the other.
    pub fn put(&self, home: &Path) -> io::Result<()> {
        let identity = self.identity.as_deref().unwrap_or_default();
        replace(&pass_file(home), format!("{}\n{identity}", self.bearer).as_bytes())
    }

    pub fn client(&self, url: String, authority: Option<Vec<u8>>) -> Result<Client, ClientError> {
        let connection = Connection { url, token: self.bearer.clone(), authority };
        Client::certified(connection, self.identity.as_deref().map(str::as_bytes))
    }
}

impl Posting {
    /// That of this home; there is none where the server's own machine is at work.
    pub fn of(home: &Path) -> Option<Posting> {
        serde_json::from_slice(&fs::read(posting_file(home)).ok()?).ok()
    }

    /// Writes it down, whole or not at all, with the pass that speaks for the node.
    pub fn put(&self, home: &Path, pass: &Pass) -> io::Result<()> {
        pass.put(home)?;
        replace(&posting_file(home), &serde_json::to_vec(self)?)
    }

    pub fn outpost(&self, home: &Path) -> Outpost {
        Outpost {
            address: self.address.clone(),
            server: match self.server.starts_with('/') {
                true => Address::Written(PathBuf::from(&self.server)),
                false => Address::Known(self.server.clone()),
            },
            token_file: pass_file(home),
            authority: self.authority.clone().map(String::into_bytes),
            bundle: self.bundle.clone(),
            away: Duration::from_secs(self.away_seconds),
            lease: Duration::from_secs(self.away_seconds),
            contained: false,
            shared: Some(self.shared.clone()),
            devices: self.devices.clone(),
        }
    }
}

/// The GPUs named in `PEREGRINE_DEVICES`, as `0,2`; none of them where it is empty.
pub fn devices(text: &str) -> Result<Vec<u32>, std::num::ParseIntError> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::parse).collect()
}

fn posting_file(home: &Path) -> PathBuf {
    home.join("posting.json")
}

/// Not called `token`: that is for an agent from before an upgrade, which takes all of the file for one.
fn pass_file(home: &Path) -> PathBuf {
    home.join("pass")
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("draft");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()?;
    fs::rename(draft, path)
}

impl Outpost {
    pub(crate) fn pass(&self) -> Option<Pass> {
        Pass::read(&self.token_file)
    }

    pub(crate) fn url(&self) -> Option<String> {
        match &self.server {
            Address::Known(url) => Some(url.clone()),
            Address::Written(file) => fs::read_to_string(file).ok().map(|url| url.trim().to_owned()),
        }
    }

    pub(crate) fn connect(&self) -> Option<Client> {
        self.pass()?.client(self.url()?, self.authority.clone()).ok()
    }

    /// What the user's process is told about the place it is in.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let bundle = self.bundle.as_ref().map(|path| ("REQUESTS_CA_BUNDLE".to_owned(), path.display().to_string()));
        // The keeper has seen to it that ours are of use.
        let places =
            ["HOME", "TMPDIR"].into_iter().filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
        places.chain(bundle).collect()
    }
}
