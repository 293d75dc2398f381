//! The agent's way to the server, found anew whenever the server moved.
//!
//! A local server leaves its address in the home; its port may change from one start to the next, and the
//! agent outlives them all. A server elsewhere stays where it is, but may be away for hours, and a connection to it may
//! die without a word. Invariant: no call waits for ever.

use crate::outpost::Outpost;
use api::{Client, ClientError, Connection};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

/// Three times as long as the server lets a poll wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(300);
/// Many agents wait for a server elsewhere, and all of them come back at once.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What a running server leaves in `<home>/server.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Address {
    pub pid: u32,
    /// As everyone reaches it.
    pub url: String,
    /// As this machine reaches it, by a certificate of the home's own authority, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_url: Option<String>,
    pub version: String,
    pub home: PathBuf,
}

impl Address {
    /// The address for what runs on this machine.
    pub fn here(self) -> String {
        self.local_url.unwrap_or(self.url)
    }
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
    let url = address(home)?.here();
    let token = fs::read_to_string(token_file(home, role)).ok()?.trim().to_owned();
    let authority = Some(fs::read(authority_file(home)).ok()?);
    Client::new(Connection { url, token, authority }).ok()
}

/// Keeps the client for as long as the address holds.
pub(crate) struct Server {
    way: Way,
    client: Mutex<Option<(String, Client)>>,
}

enum Way {
    /// Its address lies in the home.
    Home(PathBuf),
    Elsewhere(Outpost),
}

/// Why a call brought no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("no server has left its address")]
    NoAddress,
    #[error("the server did not answer within {} s", ANSWER_WITHIN.as_secs())]
    Silent,
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl CallError {
    /// The status with which the server itself said no: some door in front of it, which is shut while the server is away,
    /// does not speak as the server does. A certificate that is no good any more is about to be renewed by the node.
    pub(crate) fn refused(&self) -> Option<u16> {
        match self {
            CallError::Client(ClientError::Refused { status, code, .. })
                if !code.starts_with(char::is_numeric) && !code.starts_with("Certificate") =>
            {
                Some(*status)
            }
            _ => None,
        }
    }
}

impl Server {
    pub(crate) fn of_home(home: &Path) -> Server {
        Server { way: Way::Home(home.to_owned()), client: Mutex::new(None) }
    }

    pub(crate) fn elsewhere(outpost: &Outpost) -> Server {
        Server { way: Way::Elsewhere(outpost.clone()), client: Mutex::new(None) }
    }

    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, CallError> {
        self.call(async |client: Client| client.post(path, body).await).await
    }

    /// Calls the server, as far as one can be reached.
    pub(crate) async fn call<T>(
        &self,
        ask: impl AsyncFnOnce(Client) -> Result<T, ClientError>,
    ) -> Result<T, CallError> {
        let client = self.client().ok_or(CallError::NoAddress)?;
        let answer = tokio::time::timeout(ANSWER_WITHIN, ask(client)).await;
        Ok(answer.map_err(|_| CallError::Silent)??)
    }

    /// How long to wait before the next try after this many in vain.
    pub(crate) fn pause(&self, tries: u32) -> Duration {
        match self.way {
            Way::Home(_) => PAUSE,
            Way::Elsewhere(_) => PAUSE.saturating_mul(1 << tries.min(10)).min(LONGEST_PAUSE),
        }
    }

    fn client(&self) -> Option<Client> {
        // What would make the client another one: the address of a server that moved, a token that was renewed.
        let mark = match &self.way {
            Way::Home(home) => address(home)?.here(),
            Way::Elsewhere(outpost) => format!("{} {}", outpost.url()?, outpost.pass()?.bearer),
        };
        let mut client = self.client.lock().expect("nothing panics while it holds the client");
        if client.as_ref().is_none_or(|(made_for, _)| *made_for != mark) {
            let made = match &self.way {
                Way::Home(home) => connect(home, "agent"),
                Way::Elsewhere(outpost) => outpost.connect(),
            };
            *client = made.map(|made| (mark, made));
        }
        client.as_ref().map(|(_, client)| client.clone())
    }
}
