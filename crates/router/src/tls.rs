//! TLS 1.2 and 1.3 with a certificate that is read again when its files change.

use crate::{file::Stamp, run::TlsFiles};
use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use std::{fs, io, path::Path, path::PathBuf, sync::Arc, time::Duration};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read `{}`", .0.display())]
    Read(PathBuf, #[source] io::Error),
    #[error("`{}` holds no usable PEM", .0.display())]
    Pem(PathBuf, #[source] rustls::pki_types::pem::Error),
    #[error("certificate and key do not go together")]
    Pair(#[source] rustls::Error),
}

/// What turns a connection into a private one.
#[derive(Clone)]
pub(crate) struct Tls(TlsAcceptor);

/// The certificate in use.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: TlsFiles,
    current: ArcSwap<CertifiedKey>,
}

impl Tls {
    pub(crate) fn new(certificate: &Arc<Certificate>, http2: bool) -> Result<Tls, TlsError> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Pair)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(certificate) as Arc<dyn ResolvesServerCert>);
        let spoken: &[&[u8]] = if http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] };
        config.alpn_protocols = spoken.iter().map(|name| name.to_vec()).collect();
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands within `limit`; also says whether HTTP/2 was agreed on.
    pub(crate) async fn accept(&self, stream: TcpStream, limit: Duration) -> Option<(TlsStream<TcpStream>, bool)> {
        let stream = timeout(limit, self.0.accept(stream)).await.ok()?.ok()?;
        let second = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Some((stream, second))
    }
}

impl Certificate {
    pub(crate) fn read(files: &TlsFiles) -> Result<Certificate, TlsError> {
        Ok(Certificate { files: files.clone(), current: ArcSwap::from_pointee(pair(files)?) })
    }

    /// Looks at the files for as long as it is polled. A pair that cannot be used leaves the old one in place.
    pub(crate) async fn keep_fresh(certificate: Option<&Certificate>) {
        let Some(Certificate { files, current }) = certificate else { return std::future::pending().await };
        let stamps = || [Stamp::of(&files.certificate), Stamp::of(&files.key)];
        let mut known = stamps();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let found = stamps();
            if found == known {
                continue;
            }
            known = found;
            match pair(files) {
                Ok(pair) => {
                    current.store(Arc::new(pair));
                    tracing::info!(certificate = %files.certificate.display(), "read the certificate again");
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "kept the certificate as it was");
                }
            }
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn pair(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let read = |path: &Path| fs::read(path).map_err(|error| TlsError::Read(path.to_owned(), error));
    let pem = |path: &Path| {
        let path = path.to_owned();
        move |error| TlsError::Pem(path, error)
    };
    let chain = CertificateDer::pem_slice_iter(&read(&files.certificate)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(pem(&files.certificate))?;
    let secret = PrivateKeyDer::from_pem_slice(&read(&files.key)?).map_err(pem(&files.key))?;
    CertifiedKey::from_der(chain, secret, &provider()).map_err(TlsError::Pair)
}
