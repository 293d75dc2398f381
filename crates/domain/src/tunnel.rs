//! A way from a user to a program beside a job (`services` of its file).
//!
//! Agents are never dialled. The server asks for a [`Tunnel`] in its answer to a poll, the agent dials out with the
//! tunnel's id, and the server joins the two connections. Invariant: the id is known to nobody but server and agent.

use crate::{AttemptId, spec::nouns::Service};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an agent is asked to open: part of [`crate::report::PollAnswer`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tunnel {
    pub id: String,
    pub attempt: AttemptId,
    /// The name that the job gives the service.
    pub service: String,
    pub way: Way,
}

/// What is at the end of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Whatever listens there on the node's loopback.
    Port(u16),
    /// A login shell for whoever has one of these keys, one to a line.
    Ssh {
        keys: String,
    },
    JupyterLab,
    TensorBoard {
        /// Relative to the command's folder.
        log_dir: Option<String>,
    },
}

/// What an agent says instead of opening a tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unopened {
    pub why: String,
}

impl Way {
    /// The way to a service; in words, why there is none.
    pub fn to(service: &Service) -> Result<Way, &'static str> {
        let port = service.settings.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        if let Some(port) = port.filter(|port| *port > 0) {
            return Ok(Way::Port(port));
        }
        let setting = |names: [&str; 2]| {
            let inside = service.settings.get("properties");
            let found = names.iter().find_map(|name| service.settings.get(*name).or_else(|| inside?.get(*name)));
            found.and_then(Value::as_str).map(str::to_owned)
        };
        match service.kind.as_deref() {
            Some("ssh") => setting(["sshPublicKeys", "ssh_public_keys"])
                .map(|keys| Way::Ssh { keys })
                .ok_or("it has no `ssh_public_keys`, so nobody could enter"),
            Some("jupyter_lab") => Ok(Way::JupyterLab),
            Some("tensor_board") => Ok(Way::TensorBoard { log_dir: setting(["logDir", "log_dir"]) }),
            Some("vs_code") => {
                Err("VS Code comes by itself over ssh: give the job a service of type `ssh` and use Remote-SSH")
            }
            _ => Err("it has no `port`"),
        }
    }
}

/// Whether a service is on a node: on the one it names, on all, or on the first where it says nothing.
pub fn is_on(service: &Service, node: u32) -> bool {
    match service.settings.get("nodes") {
        None | Some(Value::Null) => node == 0,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("all") || text.parse() == Ok(node),
        Some(other) => other.as_u64() == Some(node.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service(value: Value) -> Service {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_service_is_found_by_its_port_or_by_what_it_is() {
        let keys = || Way::Ssh { keys: "ssh-ed25519 A".into() };
        for (written, way) in [
            (json!({"type": "custom", "port": 8080}), Ok(Way::Port(8080))),
            (json!({"type": "jupyter_lab", "port": 8888}), Ok(Way::Port(8888))),
            (json!({"type": "jupyter_lab"}), Ok(Way::JupyterLab)),
            (json!({"type": "ssh", "ssh_public_keys": "ssh-ed25519 A"}), Ok(keys())),
            (json!({"type": "ssh", "properties": {"sshPublicKeys": "ssh-ed25519 A"}}), Ok(keys())),
            (json!({"type": "ssh"}), Err("it has no `ssh_public_keys`, so nobody could enter")),
            (json!({"type": "tensor_board", "log_dir": "runs"}), Ok(Way::TensorBoard { log_dir: Some("runs".into()) })),
            (json!({"type": "custom"}), Err("it has no `port`")),
            (json!({}), Err("it has no `port`")),
        ] {
            assert_eq!(Way::to(&service(written.clone())), way, "{written}");
        }
    }

    #[test]
    fn a_service_is_on_the_first_node_unless_it_says_otherwise() {
        for (nodes, on) in [
            (json!(null), [true, false]),
            (json!("all"), [true, true]),
            (json!("1"), [false, true]),
            (json!(1), [false, true]),
            (json!(0), [true, false]),
        ] {
            let service = service(json!({"type": "custom", "port": 1, "nodes": nodes}));
            assert_eq!([is_on(&service, 0), is_on(&service, 1)], on, "{service:?}");
        }
    }
}
