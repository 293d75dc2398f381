//! An agent that is not on the server's own machine: its way to the server, and what it finds where it is.

use api::{Client, Connection};
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
    /// Read again for every call: a renewed token takes the place of the old one.
    pub token_file: PathBuf,
    /// The authority that signed the server's certificate, in PEM; the system's are enough where it is absent.
    pub authority: Option<Vec<u8>>,
    /// The system's authorities and the server's in one file, for programs of the user's.
    pub bundle: Option<PathBuf>,
    /// How long it stays without a server.
    pub away: Duration,
    /// The container is the job's own. Otherwise this is a machine that others use too: environments are made and limits
    /// set as on the server's own machine.
    pub contained: bool,
    /// Where environments are kept for all that run on this machine.
    pub shared: Option<PathBuf>,
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
}

impl Posting {
    /// That of this home; there is none where the server's own machine is at work.
    pub fn of(home: &Path) -> Option<Posting> {
        serde_json::from_slice(&fs::read(posting_file(home)).ok()?).ok()
    }

    /// Writes it down, whole or not at all, with the token that speaks for the node.
    pub fn put(&self, home: &Path, token: &str) -> io::Result<()> {
        replace(&token_file(home), token.as_bytes())?;
        replace(&posting_file(home), &serde_json::to_vec(self)?)
    }

    pub fn outpost(&self, home: &Path) -> Outpost {
        Outpost {
            address: self.address.clone(),
            server: match self.server.starts_with('/') {
                true => Address::Written(PathBuf::from(&self.server)),
                false => Address::Known(self.server.clone()),
            },
            token_file: token_file(home),
            authority: self.authority.clone().map(String::into_bytes),
            bundle: self.bundle.clone(),
            away: Duration::from_secs(self.away_seconds),
            contained: false,
            shared: Some(self.shared.clone()),
        }
    }
}

fn posting_file(home: &Path) -> PathBuf {
    home.join("posting.json")
}

fn token_file(home: &Path) -> PathBuf {
    home.join("token")
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("draft");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    io::Write::write_all(&mut file, bytes)?;
    fs::rename(draft, path)
}

impl Outpost {
    pub(crate) fn token(&self) -> Option<String> {
        fs::read_to_string(&self.token_file).ok().map(|token| token.trim().to_owned())
    }

    pub(crate) fn url(&self) -> Option<String> {
        match &self.server {
            Address::Known(url) => Some(url.clone()),
            Address::Written(file) => fs::read_to_string(file).ok().map(|url| url.trim().to_owned()),
        }
    }

    pub(crate) fn connect(&self) -> Option<Client> {
        let connection = Connection { url: self.url()?, token: self.token()?, authority: self.authority.clone() };
        Client::new(connection).ok()
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
