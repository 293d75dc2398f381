//! Addresses of blobs: whose, in which container, under which name.
//!
//! Invariant: an address says whose blob is meant, and nothing of whether the one who wrote it may have it.

use super::ENDPOINT;
use crate::{app::App, http::registries};
use store::files::{BadPath, Spot};

/// What an address names: a container, or with a path a blob in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) account: Account,
    pub(crate) container: String,
    pub(crate) path: String,
}

/// Whose blobs: a workspace or, with `@`, a registry by name, or a workspace by its id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Account {
    Named(String),
    Id(String),
}

impl Address {
    /// What an address names, if it is one of this server's.
    pub(crate) fn parse(app: &App, address: &str) -> Option<Address> {
        Address::at(&app.outside, address)
    }

    fn at(server: &str, address: &str) -> Option<Address> {
        let path = path_here(server, address)?;
        let path = path.split(['?', '#']).next()?;
        let long = registries::long_path(path);
        let path = long.as_deref().unwrap_or(path).strip_prefix("/blob/")?;
        Address::split(&percent_encoding::percent_decode_str(path).decode_utf8().ok()?)
    }

    /// Splits `<account>.blob.<endpoint>/<container>/<path>`; without the account the container names its workspace.
    pub(super) fn split(path: &str) -> Option<Address> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if let Some((name, _)) = first.split_once(".blob.") {
            let (container, path) = rest.split_once('/').unwrap_or((rest, ""));
            let account = Account::Named(name.to_owned());
            return Some(Address { account, container: container.into(), path: path.into() });
        }
        let account = Account::Id(first.strip_prefix("azureml-blobstore-")?.to_owned());
        Some(Address { account, container: first.into(), path: rest.into() })
    }

    /// Its file among those of its owner, by the owner's own name.
    pub(crate) fn file(&self, app: &App, owner: &str) -> Result<std::path::PathBuf, BadPath> {
        let path = self.path.trim_end_matches('/');
        if path.is_empty() {
            // Any name will do to see that the container's is sound.
            Spot::parse(owner, &self.container, "-")?;
            return Ok(app.files.container(owner, &self.container));
        }
        app.files.blob(owner, &self.container, path)
    }
}

/// The path of an address on this server. The port is not compared, nor which of its own names a machine is called by:
/// both differ between one start of a server and the next, and addresses are kept in assets.
fn path_here<'a>(server: &str, address: &'a str) -> Option<&'a str> {
    let (host, path) = host_and_path(address)?;
    let own = host_and_path(server).map_or("", |(host, _)| host);
    let here = ["127.0.0.1", "[::1]", "localhost", own].iter().any(|name| name.eq_ignore_ascii_case(host));
    here.then_some(path)
}

fn host_and_path(address: &str) -> Option<(&str, &str)> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    };
    Some((host, path))
}

/// The host name of an account.
pub(crate) fn account(owner: &str) -> String {
    format!("{owner}.blob.{ENDPOINT}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_server_says_whose_blob_it_is() {
        for (address, expect) in [
            ("https://ml.example:8443/blob/TEAM.blob.peregrine.local/c/a%20b.txt?sig=x", "TEAM c a b.txt"),
            ("https://127.0.0.1:7/blob/team.blob.peregrine.local/c", "team c "),
            ("https://ml.example/blobs~shared~c/d/e", "@shared c d/e"),
            ("http://localhost:1/blob/azureml-blobstore-7/x", "#7 azureml-blobstore-7 x"),
        ] {
            let found = Address::at("https://ml.example", address).unwrap();
            let whose = match found.account {
                Account::Named(name) => name,
                Account::Id(id) => format!("#{id}"),
            };
            assert_eq!(format!("{whose} {} {}", found.container, found.path), expect, "{address}");
        }
    }

    #[test]
    fn an_address_of_someone_else_is_not_ours() {
        for address in [
            "https://other.example/blob/team.blob.peregrine.local/c/x",
            "https://127.0.0.1@other.example/blob/team.blob.peregrine.local/c/x",
            "https://ml.example/x/blob/team.blob.peregrine.local/c/x",
            "https://ml.example?/blob/team.blob.peregrine.local/c/x",
            "azureml://datastores/d/paths/blob/team.blob.peregrine.local/c/x",
        ] {
            assert_eq!(Address::at("https://ml.example", address), None, "{address}");
        }
    }
}
