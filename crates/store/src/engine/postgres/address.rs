//! Where a Postgres is, as people write it, and how it is reached.
//!
//! Invariants: the password is shown nowhere, not even by `Debug`; over a network the connection is encrypted and the
//! server's certificate is checked, unless `sslmode=disable` says otherwise.

use crate::Error;
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Where Debian's and most other packages put the socket.
const SOCKETS: &str = "/var/run/postgresql";

/// A database of a Postgres server, and who we are there.
#[derive(Clone)]
pub struct PostgresAddress {
    config: Arc<Config>,
    /// A file of authorities to trust in place of the system's.
    authorities: Option<PathBuf>,
    text: String,
}

/// Why a text is no address. It never repeats the text, which may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum BadAddress {
    #[error("it does not begin with `postgresql://`")]
    Scheme,
    #[error("it cannot be read; `@`, `/`, `?` and `#` in a name or password are written `%40`, `%2F`, `%3F` and `%23`")]
    Malformed,
    #[error("`sslmode` is none of `disable`, `require` and `verify-full`")]
    SslMode,
}

impl PostgresAddress {
    /// Reads `postgresql://user@host:port/database`, with the options that other clients know.
    pub fn parse(text: &str) -> Result<PostgresAddress, BadAddress> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(BadAddress::Scheme);
        }
        let (place, query) = text.rsplit_once('?').unwrap_or((text, ""));
        let (mut authorities, mut mode, mut options) = (None, None, Vec::new());
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("sslrootcert", path)) => authorities = Some(PathBuf::from(path.replace("%2F", "/"))),
                Some(("sslmode", word)) => mode = Some(word),
                _ => options.push(option),
            }
        }
        let plain = format!("{place}?{}", options.join("&"));
        let mut config: Config = plain.parse().map_err(|_| BadAddress::Malformed)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host_path(SOCKETS);
        }
        // A password that was not escaped leaves a piece of itself in the host.
        if config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(name) if name.contains(['@', '#', ' ']))) {
            return Err(BadAddress::Malformed);
        }
        config.ssl_mode(match mode {
            Some("disable") => SslMode::Disable,
            Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            None | Some("prefer" | "allow") if config.get_hosts().iter().all(is_here) => SslMode::Disable,
            None | Some("prefer" | "allow") => SslMode::Require,
            Some(_) => return Err(BadAddress::SslMode),
        });
        Ok(PostgresAddress { config: Arc::new(with_limits(config)), authorities, text: text.to_owned() })
    }

    /// The same with this password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> PostgresAddress {
        Arc::make_mut(&mut self.config).password(password);
        self
    }

    /// The address as it was written, password and all: for a process of our own, never for people.
    pub fn with_secrets(&self) -> &str {
        &self.text
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// How connections are encrypted, where they are.
    pub(super) fn tls(&self) -> Result<MakeRustlsConnect, Error> {
        let mut roots = RootCertStore::empty();
        if self.config.get_ssl_mode() != SslMode::Disable {
            match &self.authorities {
                Some(path) => {
                    let unreadable = |source: std::io::Error| Error::Io { what: "read", path: path.clone(), source };
                    let pem = std::fs::read(path).map_err(unreadable)?;
                    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem).flatten().collect();
                    if roots.add_parsable_certificates(found).0 == 0 {
                        return Err(unreadable(std::io::Error::other("it holds no certificate")));
                    }
                }
                None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = versions.expect("the provider knows the versions it was built with");
        Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
    }
}

/// What keeps a dead network from being waited for.
fn with_limits(mut config: Config) -> Config {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    config.keepalives_idle(Duration::from_secs(15)).keepalives_interval(Duration::from_secs(5)).keepalives_retries(3);
    config.tcp_user_timeout(Duration::from_secs(30)).application_name("peregrine");
    config
}

/// Whether nothing that is sent there leaves the machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgresql://{}@", self.config.get_user().unwrap_or_default())?;
        for (n, host) in self.config.get_hosts().iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}")?,
                Host::Unix(path) => write!(f, "{comma}{}", path.display().to_string().replace('/', "%2F"))?,
            }
            match self.config.get_ports().get(n).or(self.config.get_ports().first()) {
                None | Some(5432) => {}
                Some(port) => write!(f, ":{port}")?,
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password_and_encrypted_away_from_this_machine() {
        for (text, shown, mode) in [
            ("postgresql://me:hunter2@db.example.org/ml", "postgresql://me@db.example.org/ml", SslMode::Require),
            ("postgres://me:hunter2@127.0.0.1:5433/ml", "postgresql://me@127.0.0.1:5433/ml", SslMode::Disable),
            ("postgresql://me@h/ml?password=hunter2&sslmode=disable", "postgresql://me@h/ml", SslMode::Disable),
            ("postgresql://me@localhost/ml?sslmode=verify-full", "postgresql://me@localhost/ml", SslMode::Require),
            ("postgresql://me:hunter%402@a,b/ml?sslmode=prefer", "postgresql://me@a,b/ml", SslMode::Require),
            ("postgresql:///ml?host=/run/pg&user=me", "postgresql://me@%2Frun%2Fpg/ml", SslMode::Disable),
            ("postgresql://me@/ml", "postgresql://me@%2Fvar%2Frun%2Fpostgresql/ml", SslMode::Disable),
        ] {
            let address = PostgresAddress::parse(text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
            assert_eq!((address.to_string().as_str(), address.config.get_ssl_mode()), (shown, mode), "{text}");
            assert!(!format!("{address:?}").contains("hunter"));
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_repeating_it() {
        for (text, expect) in [
            ("mysql://me:hunter2@h/ml", "does not begin"),
            ("postgresql://me:hunt@er2@h/ml", "%40"),
            ("postgresql://me:hunter2@h:port/ml", "cannot be read"),
            ("postgresql://me:hunter2@h/ml?unknown=1", "cannot be read"),
            ("postgresql://me:hunter2@h/ml?sslmode=maybe", "sslmode"),
        ] {
            let bad = PostgresAddress::parse(text).unwrap_err().to_string();
            assert!(bad.contains(expect) && !bad.contains("hunt"), "{text}: {bad}");
        }
    }
}
