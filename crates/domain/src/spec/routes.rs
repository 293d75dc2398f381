//! The routes of a router: which endpoints it answers for, who may call them, and where their replicas are.
//!
//! A static router reads them from a file; one that a server feeds gets the same type. Keys are secrets: they print
//! as dots, and a digest (`sha256:…`) may stand in their place.

use super::{
    Mistake,
    check::{self, Spec},
    shape::Noun,
};
use crate::Timestamp;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, net::SocketAddr};

/// Everything a router knows; swapped whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Routes {
    pub endpoints: BTreeMap<String, EndpointRoute>,
}

/// One endpoint: its callers, its traffic, its deployments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointRoute {
    pub auth_mode: EndpointAuth,
    pub keys: EndpointKeys,
    /// Verifies tokens; required with `aml_token`.
    pub token_key: Option<Secret>,
    /// With `aad_token`: everyone known, by id, and the jobs of a workspace as `job:<workspace>/`.
    pub callers: BTreeMap<String, KnownCaller>,
    /// With `aad_token`: public keys of web tokens by their ids, Ed25519 in URL-safe base64.
    pub signers: BTreeMap<String, String>,
    /// Percent by deployment; together 0 or 100.
    pub traffic: BTreeMap<String, u32>,
    /// Percent of requests of which one deployment gets a copy.
    pub mirror_traffic: BTreeMap<String, u32>,
    /// Host names under which the endpoint answers without its prefix.
    pub hosts: Vec<String>,
    pub max_body_bytes: u64,
    pub cors: Option<Cors>,
    pub deployments: BTreeMap<String, DeploymentRoute>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointAuth {
    #[default]
    Key,
    AmlToken,
    /// Callers prove who they are; a server's routes only.
    AadToken,
}

/// Someone who may hold a token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KnownCaller {
    /// SHA-256 of their secret, in hexadecimal; empty where they have none.
    pub digest: String,
    /// Whether their role lets them call the endpoint.
    pub may_score: bool,
    pub expires_at: Option<Timestamp>,
}

/// Two, so that one can be changed while callers still use the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointKeys {
    pub primary: Option<Secret>,
    pub secondary: Option<Secret>,
}

/// Which web pages may call an endpoint from a browser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cors {
    /// Origins such as `https://app.example`, or `*`.
    pub origins: Vec<String>,
    pub max_age_seconds: u32,
}

/// One deployment: where its replicas are and how much they take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeploymentRoute {
    pub replicas: Vec<SocketAddr>,
    /// The replicas' path behind `/score`.
    pub scoring_path: String,
    pub request_settings: RequestSettings,
    /// How many requests may wait for a slot.
    pub max_queued: u32,
    /// How long a request is held while there is no replica at all.
    pub hold_ms: u64,
}

/// The keys of the same name in a deployment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestSettings {
    pub request_timeout_ms: u64,
    pub max_concurrent_requests_per_instance: u32,
    pub max_queue_wait_ms: u64,
}

/// A text that is never shown. It is written out only to whoever verifies with it, such as a router.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Routes {
    /// Reads and checks a file of routes.
    pub fn read(file: &str, text: &str) -> Result<Routes, Vec<Mistake>> {
        let Spec::Tree(_, tree) = check::read(Noun::Routes, file, text, &[])? else { return Ok(Routes::default()) };
        serde_json::from_value(tree).map_err(|error| vec![Mistake::new("", error.to_string(), "")])
    }
}

impl Cors {
    /// Origins as they are written in one line, with commas between them; otherwise the first that is none.
    pub fn parse(text: &str) -> Result<Cors, String> {
        let origins: Vec<String> = text.split(',').map(|origin| origin.trim().to_owned()).collect();
        match origins.iter().find(|origin| !is_origin(origin)) {
            Some(bad) => Err(bad.clone()),
            None => Ok(Cors { origins, ..Cors::default() }),
        }
    }
}

/// Browsers send a scheme, a host and perhaps a port, and nothing behind them; what is written otherwise would never fit.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._:[]".contains(&b);
    text == "*" || host.is_some_and(|host| !host.is_empty() && host.bytes().all(fits))
}

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself, for whoever compares or signs with it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Default for EndpointRoute {
    fn default() -> EndpointRoute {
        EndpointRoute {
            auth_mode: EndpointAuth::Key,
            keys: EndpointKeys::default(),
            token_key: None,
            callers: BTreeMap::new(),
            signers: BTreeMap::new(),
            traffic: BTreeMap::new(),
            mirror_traffic: BTreeMap::new(),
            hosts: Vec::new(),
            max_body_bytes: 100 << 20,
            cors: None,
            deployments: BTreeMap::new(),
        }
    }
}

impl Default for Cors {
    fn default() -> Cors {
        Cors { origins: Vec::new(), max_age_seconds: 600 }
    }
}

impl Default for DeploymentRoute {
    fn default() -> DeploymentRoute {
        DeploymentRoute {
            replicas: Vec::new(),
            scoring_path: "/score".to_owned(),
            request_settings: RequestSettings::default(),
            max_queued: 1000,
            hold_ms: 60_000,
        }
    }
}

impl Default for RequestSettings {
    fn default() -> RequestSettings {
        RequestSettings { request_timeout_ms: 5000, max_concurrent_requests_per_instance: 1, max_queue_wait_ms: 500 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "endpoints:\n  iris:\n    keys: {primary: abcdefgh}\n    traffic: {blue: 100}\n    deployments:\n      blue:\n        replicas: ['127.0.0.1:5001']\n";

    #[test]
    fn what_a_file_leaves_out_has_the_documented_default() {
        let routes = Routes::read("r.yml", GOOD).unwrap();
        let blue = &routes.endpoints["iris"].deployments["blue"];
        assert_eq!(blue.request_settings, RequestSettings::default());
        assert_eq!((blue.scoring_path.as_str(), blue.max_queued), ("/score", 1000));
        assert!(!format!("{routes:?}").contains("abcdefgh"), "keys are not printed");
    }

    #[test]
    fn origins_are_read_as_browsers_send_them() {
        let read = |text: &str| Cors::parse(text).map(|cors| cors.origins);
        assert_eq!(read("*"), Ok(vec!["*".to_owned()]));
        assert_eq!(
            read("https://app.example, http://localhost:3000"),
            Ok(vec!["https://app.example".to_owned(), "http://localhost:3000".to_owned()])
        );
        for bad in ["", "app.example", "https://app.example/", "https://App.example", "https://", "ftp://a"] {
            assert_eq!(read(&format!("*,{bad}")), Err(bad.to_owned()));
        }
    }

    #[test]
    fn mistakes_have_their_line_and_never_a_key() {
        for (from, to, expected) in [
            (
                "127.0.0.1:5001",
                "localhost",
                "7:20: `endpoints.iris.deployments.blue.replicas[0]`: `localhost` is not an address",
            ),
            ("blue: 100", "blue: 90", "4:5: `endpoints.iris.traffic`: the shares add up to 90"),
            ("{blue: 100}", "{green: 100}", "there is no deployment `green`"),
            ("abcdefgh", "secret", "`endpoints.iris.keys.primary`: the key is too short"),
            ("abcdefgh", "'sha256:12'", "it is not a SHA-256 digest"),
            ("keys: {primary: abcdefgh}", "auth_mode: aml_token", "nobody could call the endpoint"),
            ("traffic", "trafic", "unknown key `trafic`; did you mean `traffic`?"),
            ("keys", "mirror_traffic: {blue: 60}\n    keys", "of at most 50 of 100 requests"),
            ("  iris", "  x", "`x` is not a valid endpoint name"),
        ] {
            let mistakes = Routes::read("r.yml", &GOOD.replacen(from, to, 1)).unwrap_err();
            let said: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            assert!(said.iter().any(|line| line.contains(expected)), "{expected}: {said:?}");
            assert!(said.iter().all(|line| !line.contains("secret")), "{said:?}");
        }
    }
}
