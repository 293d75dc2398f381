//! The server's certificate: the operator's own, or one signed by an authority made at first start.
//!
//! What runs on this machine believes our own authority alone. Where the operator's certificate is shown to others, it is
//! greeted at a door of its own ([`Certificates::inner`]). Invariant: private keys are readable by their owner only, and the
//! authority's never leaves the home.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{
    RootCertStore, ServerConfig,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::{ClientHello, ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
    time::{Duration, SystemTime},
};
use store::secrets::write_owner_only;

/// How often the certificate's files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum Certificates {
    /// Made and kept under this folder.
    Own { keys: PathBuf },
    /// The operator's PEM files, and the folder of our own.
    Given { certificate: PathBuf, key: PathBuf, keys: PathBuf },
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read `{}`", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("`{}` holds no usable PEM", .0.display())]
    Pem(PathBuf, #[source] rustls::pki_types::pem::Error),
    #[error("cannot make a certificate")]
    Make(#[source] rcgen::Error),
    #[error("certificate and key do not go together")]
    Pair(#[source] rustls::Error),
    #[error("cannot ask nodes for their certificates")]
    Ask(#[source] VerifierBuilderError),
}

/// A certificate that is read again when its files change, so that a renewal needs no restart.
#[derive(Debug)]
pub(crate) struct Reloading {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificates {
    /// The PEM files of certificate and key, made if they are our own and not there.
    pub fn files(&self) -> Result<(PathBuf, PathBuf), TlsError> {
        match self {
            Certificates::Own { keys } => make_missing(keys),
            Certificates::Given { certificate, key, .. } => Ok((certificate.clone(), key.clone())),
        }
    }

    /// What greets those on this machine, where that is not what greets everyone: they know no authority but ours, and
    /// call by names that the operator's certificate need not have.
    pub(crate) fn inner(&self) -> Result<Option<Certificates>, TlsError> {
        let Certificates::Given { keys, .. } = self else { return Ok(None) };
        let (certificate, _) = make_missing(keys)?;
        let authority = keys.join("authority.pem");
        // Someone may have put the operator's authority in the place of ours, when that was the only way.
        if !has_signed(&authority, &certificate) {
            tracing::warn!("`{}` did not sign our own certificate; both are made anew", authority.display());
            fs::remove_file(&authority).map_err(|error| TlsError::Read(authority, error))?;
        }
        Ok(Some(Certificates::Own { keys: keys.clone() }))
    }

    /// The folder of our own.
    pub(crate) fn keys(&self) -> &Path {
        match self {
            Certificates::Own { keys } | Certificates::Given { keys, .. } => keys,
        }
    }

    /// What greets callers of a listener.
    pub fn acceptor(&self) -> Result<tokio_rustls::TlsAcceptor, TlsError> {
        self.config().map(|(config, _)| config.into())
    }

    /// The settings of a listener that asks nobody for a certificate, and the one behind them.
    fn config(&self) -> Result<(Arc<ServerConfig>, Arc<Reloading>), TlsError> {
        self.with(WebPkiClientVerifier::no_client_auth())
    }

    /// The same for a listener at which nodes show certificates of our own authority. Nobody else has to show any.
    pub(crate) fn asking(&self) -> Result<(Arc<ServerConfig>, Arc<Reloading>), TlsError> {
        self.files()?;
        let nodes = Arc::new(roots(&self.keys().join("authority.pem"))?);
        let verifier = WebPkiClientVerifier::builder_with_provider(nodes, provider()).allow_unauthenticated();
        self.with(verifier.build().map_err(TlsError::Ask)?)
    }

    fn with(&self, nodes: Arc<dyn ClientCertVerifier>) -> Result<(Arc<ServerConfig>, Arc<Reloading>), TlsError> {
        let (certificate, key) = self.files()?;
        let current = RwLock::new(Arc::new(read_pair(&certificate, &key)?));
        let reloading = Arc::new(Reloading { certificate, key, current });
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Pair)?
            .with_client_cert_verifier(nodes)
            .with_cert_resolver(Arc::clone(&reloading) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok((Arc::new(config), reloading))
    }
}

impl ResolvesServerCert for Reloading {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().expect("nothing panics while it holds the certificate")))
    }
}

impl Reloading {
    /// Looks at the files now and then for as long as it is polled. A pair that cannot be used leaves the old one in place.
    pub(crate) async fn keep_fresh(&self) {
        let mut known = self.stamps();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let found = self.stamps();
            if found == known {
                continue;
            }
            known = found;
            match read_pair(&self.certificate, &self.key) {
                Ok(pair) => {
                    *self.current.write().expect("nothing panics while it holds the certificate") = Arc::new(pair);
                    tracing::info!(certificate = %self.certificate.display(), "read the certificate again");
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "kept the certificate as it was");
                }
            }
        }
    }

    fn stamps(&self) -> [Option<SystemTime>; 2] {
        [&self.certificate, &self.key].map(|path| fs::metadata(path).and_then(|meta| meta.modified()).ok())
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn read_pair(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let read = |path: &Path| fs::read(path).map_err(|error| TlsError::Read(path.to_owned(), error));
    let chain = CertificateDer::pem_slice_iter(&read(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::Pem(certificate.to_owned(), error))?;
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| TlsError::Pem(key.to_owned(), error))?;
    CertifiedKey::from_der(chain, secret, &provider()).map_err(TlsError::Pair)
}

/// Whether the one certificate is good for this machine in the eyes of who believes the other.
fn has_signed(authority: &Path, certificate: &Path) -> bool {
    let checked = || {
        let server = CertificateDer::from_pem_file(certificate).ok()?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots(authority).ok()?), provider());
        let name = ServerName::try_from("localhost").expect("it is a name");
        verifier.build().ok()?.verify_server_cert(&server, &[], &name, &[], UnixTime::now()).ok()
    };
    checked().is_some()
}

/// The authorities in a file, to be believed.
fn roots(file: &Path) -> Result<RootCertStore, TlsError> {
    let pem = fs::read(file).map_err(|error| TlsError::Read(file.to_owned(), error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| TlsError::Pem(file.to_owned(), error))?;
        roots.add(certificate).map_err(TlsError::Pair)?;
    }
    Ok(roots)
}

/// Where systems keep the authorities they trust.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The file of authorities for Python clients, in `folder`: the system's, those of `REQUESTS_CA_BUNDLE` where someone has
/// set it, and `authority`. Clients that are told to use it still reach everything else.
pub fn write_bundle(folder: &Path, authority: Option<&[u8]>) -> io::Result<PathBuf> {
    let to = folder.join("ca-bundle.pem");
    let chosen = ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let system = SYSTEM_ROOTS.iter().map(PathBuf::from).find(|path| path.exists());
    let mut bundle = Vec::new();
    for path in chosen.chain(system).filter(|path| *path != to) {
        bundle.extend(fs::read(&path).unwrap_or_default());
        bundle.push(b'\n');
    }
    bundle.extend(authority.unwrap_or_default());
    if fs::read(&to).is_ok_and(|there| there == bundle) {
        return Ok(to);
    }
    write_owner_only(&to, &bundle)?;
    Ok(to)
}

/// The paths of our own certificate and key, made if they are not there.
fn make_missing(keys: &Path) -> Result<(PathBuf, PathBuf), TlsError> {
    let (authority, authority_key) = (keys.join("authority.pem"), keys.join("authority.key"));
    let (certificate, key) = (keys.join("server.pem"), keys.join("server.key"));
    let all = [&authority, &authority_key, &certificate, &key];
    if all.iter().all(|path| path.exists()) {
        return Ok((certificate, key));
    }
    let made = make().map_err(TlsError::Make)?;
    for (path, text) in all.into_iter().zip(made) {
        write_owner_only(path, text.as_bytes()).map_err(|error| TlsError::Read(path.to_owned(), error))?;
    }
    Ok((certificate, key))
}

/// Authority, its key, certificate, its key: all in PEM.
fn make() -> Result<[String; 4], rcgen::Error> {
    let authority_key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "Peregrine local authority");
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = params.self_signed(&authority_key)?;
    let issuer = Issuer::new(params, &authority_key);
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend(rustix::system::uname().nodename().to_str().ok().filter(|n| !n.is_empty()).map(str::to_owned));
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "Peregrine server");
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok([authority.pem(), authority_key.serialize_pem(), certificate.pem(), key.serialize_pem()])
}
