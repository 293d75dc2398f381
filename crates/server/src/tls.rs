//! The server's certificate: the operator's own, or one signed by an authority made at first start.
//!
//! Invariant: private keys are readable by their owner only, and the authority's never leaves the home.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use store::secrets::write_owner_only;

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum Certificates {
    /// Made and kept under this folder.
    Own { keys: PathBuf },
    /// The operator's PEM files.
    Given { certificate: PathBuf, key: PathBuf },
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
}

impl Certificates {
    pub(crate) fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let (certificate, key) = match self {
            Certificates::Own { keys } => make_missing(keys)?,
            Certificates::Given { certificate, key } => (certificate.clone(), key.clone()),
        };
        let read = |path: &Path| fs::read(path).map_err(|error| TlsError::Read(path.to_owned(), error));
        let chain = CertificateDer::pem_slice_iter(&read(&certificate)?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| TlsError::Pem(certificate.clone(), error))?;
        let secret = PrivateKeyDer::from_pem_slice(&read(&key)?).map_err(|error| TlsError::Pem(key.clone(), error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Pair)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(TlsError::Pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
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
