//! The agent's way to the server, found anew whenever the server moved.
//!
//! A local server leaves its address in the home; its port may change from one start to the next, and the
//! agent outlives them all.

use api::{Client, Connection};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
};

/// What a running server leaves in `<home>/server.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Address {
    pub pid: u32,
    pub url: String,
    pub version: String,
    pub home: PathBuf,
}

/// Where the address lies.
pub fn address_file(home: &Path) -> PathBuf {
    home.join("server.json")
}

/// The address of the server of this home, if one has left it.
pub fn address(home: &Path) -> Option<Address> {
    serde_json::from_slice(&fs::read(address_file(home)).ok()?).ok()
}

/// The authority that local certificates are signed by.
pub fn authority_file(home: &Path) -> PathBuf {
    home.join("keys").join("authority.pem")
}

/// The token file of a role: `user` or `agent`.
pub fn token_file(home: &Path, role: &str) -> PathBuf {
    home.join("keys").join(format!("{role}.token"))
}

/// A client for the server of this home, in a role whose token this process may read.
pub fn connect(home: &Path, role: &str) -> Option<Client> {
    let url = address(home)?.url;
    let token = fs::read_to_string(token_file(home, role)).ok()?.trim().to_owned();
    let authority = Some(fs::read(authority_file(home)).ok()?);
    Client::new(Connection { url, token, authority }).ok()
}

/// Keeps the client for as long as the address holds.
pub(crate) struct Server {
    home: PathBuf,
    client: Mutex<Option<Client>>,
}

impl Server {
    pub(crate) fn new(home: &Path) -> Server {
        Server { home: home.to_owned(), client: Mutex::new(None) }
    }

    pub(crate) fn client(&self) -> Option<Client> {
        let url = address(&self.home)?.url;
        let mut client = self.client.lock().expect("nothing panics while it holds the client");
        if client.as_ref().is_none_or(|client| client.url() != url) {
            *client = connect(&self.home, "agent");
        }
        client.clone()
    }
}
