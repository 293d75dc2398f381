//! Requests as an attacker writes them: raw text over the plain listener, nothing put right on the way.

use crate::harness::Home;
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
};

/// The plain listener of a home's server.
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
}

impl Home {
    /// Starts the server with a plain listener beside its own.
    pub(crate) fn open_door(&self) -> Door {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        self.ok(&["server", "start", "--http", &address.to_string(), "-o", "none"]);
        Door { address }
    }

    /// The token of a role.
    pub(crate) fn token(&self, role: &str) -> String {
        fs::read_to_string(self.home().join(format!("keys/{role}.token"))).unwrap().trim().to_owned()
    }
}

impl Door {
    /// Sends one request exactly as written; status and body of the answer, 0 and nothing where there is none.
    pub(crate) fn ask(&self, method: &str, target: &str, token: Option<&str>, body: &str) -> (u16, String) {
        self.try_ask(method, target, token, body).unwrap_or_default()
    }

    /// The same of a server that may be gone; nothing where there was no answer.
    pub(crate) fn try_ask(&self, method: &str, target: &str, token: Option<&str>, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{token}");
        let length = body.len();
        write!(stream, "{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned())))
    }
}
