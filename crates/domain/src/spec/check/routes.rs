//! Whether a router's table makes sense. Values of keys never stand in a message.

use super::{names::Found, tree::map};
use crate::{
    names::{DeploymentName, EndpointName},
    spec::{
        Mistake,
        routes::{EndpointAuth, EndpointRoute, Routes, Secret},
        yaml::clip,
    },
};
use serde_json::Value;
use std::{collections::BTreeMap, net::SocketAddr};

/// What makes no sense in a table of routes.
pub(super) fn routes(tree: &Value) -> Vec<Mistake> {
    let mut found = addresses(tree);
    // With an address that is none the table cannot be made; the rest is said when that is mended.
    let Ok(routes) = serde_json::from_value::<Routes>(tree.clone()) else { return found.0 };
    let mut hosts = BTreeMap::new();
    for (name, endpoint) in &routes.endpoints {
        let at = format!("endpoints.{name}");
        found.name(&at, name, EndpointName::parse);
        check(&mut found, &at, endpoint);
        for host in &endpoint.hosts {
            if let Some(other) = hosts.insert(host.to_ascii_lowercase(), name) {
                let message = format!("`{}` already leads to `{other}`", clip(host));
                found.say(format!("{at}.hosts"), message, "keep it in one place");
            }
        }
    }
    found.0
}

fn addresses(tree: &Value) -> Found {
    let mut found = Found::default();
    for (endpoint, route) in map(&tree["endpoints"]) {
        for (deployment, route) in map(&route["deployments"]) {
            let replicas = route["replicas"].as_array().map(Vec::as_slice).unwrap_or_default();
            for (at, replica) in replicas.iter().enumerate() {
                let text = replica.as_str().unwrap_or_default();
                if text.parse::<SocketAddr>().is_err() {
                    let key = format!("endpoints.{endpoint}.deployments.{deployment}.replicas[{at}]");
                    let fix = "write an IP address and a port, such as `127.0.0.1:5001`";
                    found.say(key, format!("`{}` is not an address", clip(text)), fix);
                }
            }
        }
    }
    found
}

fn check(found: &mut Found, at: &str, endpoint: &EndpointRoute) {
    secrets(found, at, endpoint);
    shares(found, at, endpoint);
    for (name, deployment) in &endpoint.deployments {
        let at = format!("{at}.deployments.{name}");
        found.name(&at, name, DeploymentName::parse);
        let path = &deployment.scoring_path;
        if !path.starts_with('/') || path.bytes().any(|b| !(0x21..0x7f).contains(&b) || b == b'#' || b == b'?') {
            let message = format!("`{}` is not a path", clip(path));
            found.say(format!("{at}.scoring_path"), message, "start it with `/`, and use no spaces");
        }
    }
}

fn secrets(found: &mut Found, at: &str, endpoint: &EndpointRoute) {
    let keys = [("primary", &endpoint.keys.primary), ("secondary", &endpoint.keys.secondary)];
    for (which, key) in keys {
        let Some(text) = key.as_ref().map(Secret::reveal) else { continue };
        let key = format!("{at}.keys.{which}");
        match text.strip_prefix("sha256:") {
            Some(hex) if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
                found.say(key, "it is not a SHA-256 digest", "write 64 hex digits after `sha256:`");
            }
            None if text.len() < 8 => found.say(key, "the key is too short", "use at least 8 characters"),
            _ => {}
        }
    }
    let lacking = match endpoint.auth_mode {
        EndpointAuth::Key if keys.iter().all(|(_, key)| key.is_none()) => "keys",
        EndpointAuth::AmlToken if endpoint.token_key.as_ref().is_none_or(|key| key.reveal().len() < 16) => "token_key",
        _ => return,
    };
    found.say(
        format!("{at}.{lacking}"),
        "nobody could call the endpoint",
        format!("add `{lacking}:`; a `token_key` has 16 characters or more"),
    );
}

fn shares(found: &mut Found, at: &str, endpoint: &EndpointRoute) {
    let sum: u32 = endpoint.traffic.values().sum();
    if sum != 0 && sum != 100 {
        let fix = "let them add up to 100, or to 0 for no traffic";
        found.say(format!("{at}.traffic"), format!("the shares add up to {sum}"), fix);
    }
    let mirrored: Vec<u32> = endpoint.mirror_traffic.values().copied().collect();
    if mirrored.len() > 1 || mirrored.iter().any(|share| *share > 50) {
        let fix = "name one deployment, with at most 50";
        found.say(format!("{at}.mirror_traffic"), "copies go to one deployment, of at most 50 of 100 requests", fix);
    }
    for (key, map) in [("traffic", &endpoint.traffic), ("mirror_traffic", &endpoint.mirror_traffic)] {
        for name in map.keys().filter(|name| !endpoint.deployments.contains_key(*name)) {
            let message = format!("there is no deployment `{}`", clip(name));
            found.say(format!("{at}.{key}.{name}"), message, "name one of `deployments`");
        }
    }
}
