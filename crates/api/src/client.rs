//! A client for the server's routes: what the CLI and the agent speak.
//!
//! Invariant: the only authority it trusts is the one named in its connection; a token goes nowhere else.

use reqwest::{Method, RequestBuilder, StatusCode, Upgraded, header};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{error::Error as _, path::PathBuf, sync::Arc, time::Duration};

/// With the greeting of TLS: a server that restarts keeps its door open and greets late.
const CONNECT: Duration = Duration::from_secs(15);

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct Connection {
    /// `https://127.0.0.1:PORT`.
    pub url: String,
    pub token: String,
    /// The authority that signed the server's certificate, in PEM.
    pub authority: Option<Vec<u8>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server answered with an error envelope.
    #[error("{message}")]
    Refused { status: u16, code: String, message: String, details: Vec<String> },
    #[error("cannot reach the server at {url}")]
    Unreachable {
        url: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("the answer of {url} cannot be read")]
    Garbled {
        url: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("cannot read `{}`", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the server's certificate authority cannot be used")]
    Authority(#[source] rustls::Error),
    #[error("the certificate to show to the server cannot be used")]
    Identity(#[source] rustls::Error),
}

/// Speaks to one server; cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    connection: Arc<Connection>,
}

impl Client {
    pub fn new(connection: Connection) -> Result<Client, ClientError> {
        Client::certified(connection, None)
    }

    /// One that also shows a certificate to a server that asks for it: `identity` has it in PEM, and its key.
    pub fn certified(connection: Connection, identity: Option<&[u8]>) -> Result<Client, ClientError> {
        let unreachable = |source| ClientError::Unreachable { url: connection.url.clone(), source };
        let http = Client::reaching(&connection, identity)?.build().map_err(unreachable)?;
        Ok(Client { http, connection: Arc::new(connection) })
    }

    /// What reaches an address and believes its authority, for requests that are not of this API.
    pub fn builder(connection: &Connection) -> Result<reqwest::ClientBuilder, ClientError> {
        Client::reaching(connection, None)
    }

    fn reaching(connection: &Connection, identity: Option<&[u8]>) -> Result<reqwest::ClientBuilder, ClientError> {
        let mut builder = reqwest::Client::builder().connect_timeout(CONNECT);
        if is_loopback(&connection.url) {
            builder = builder.no_proxy();
        }
        let Some(pem) = &connection.authority else {
            // The system's own authorities; fails only when a provider is there already, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let identity = identity.map(reqwest::Identity::from_pem).transpose();
            let identity = identity.map_err(|source| ClientError::Garbled { url: connection.url.clone(), source })?;
            return Ok(identity.into_iter().fold(builder, reqwest::ClientBuilder::identity));
        };
        Ok(builder.tls_backend_preconfigured(trusting(pem, identity)?))
    }

    pub fn url(&self) -> &str {
        &self.connection.url
    }

    /// The same server, called as someone else.
    pub fn with_token(&self, token: String) -> Client {
        let connection = Connection { token, ..(*self.connection).clone() };
        Client { http: self.http.clone(), connection: Arc::new(connection) }
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.json(self.request(Method::GET, path)).await
    }

    pub async fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        self.json(self.request(Method::PUT, path).json(body)).await
    }

    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        self.json(self.request(Method::POST, path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.send(self.request(Method::DELETE, path)).await.map(drop)
    }

    /// A resource, or `None` where there is none.
    pub async fn find(&self, path: &str) -> Result<Option<Value>, ClientError> {
        match self.get(path).await {
            Ok(value) => Ok(Some(value)),
            Err(ClientError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Follows `nextLink` until `limit` items are there.
    pub async fn list(&self, path: &str, limit: usize) -> Result<Vec<Value>, ClientError> {
        let mut all = Vec::new();
        let mut next = Some(path.to_owned());
        while let Some(path) = next {
            let mut page: Value = self.get(&path).await?;
            if let Some(Value::Array(items)) = page.get_mut("value").map(Value::take) {
                all.extend(items);
            }
            let link = page.get("nextLink").and_then(Value::as_str);
            next = link.filter(|_| all.len() < limit).map(|link| path_of(link).to_owned());
        }
        all.truncate(limit);
        Ok(all)
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = if path.starts_with("https://") || path.starts_with("http://") {
            path.to_owned()
        } else {
            format!("{}{path}", self.connection.url)
        };
        let request = self.http.request(method, &url);
        // A signed link needs no token, and a token must not follow a link elsewhere.
        if url.starts_with(&self.connection.url) { request.bearer_auth(&self.connection.token) } else { request }
    }

    /// Sends a request; anything but success becomes an error with the server's own words.
    pub async fn send(&self, request: RequestBuilder) -> Result<reqwest::Response, ClientError> {
        let again = request.try_clone();
        let mut sent = request.send().await;
        if let (Err(error), Some(again)) = (&sent, again)
            && was_cut_off(error)
        {
            sent = again.send().await;
        }
        let answer = sent.map_err(|source| self.unreachable(source))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        Err(refusal(answer).await)
    }

    /// Turns a call into a stream of bytes both ways.
    pub async fn stream(&self, path: &str) -> Result<Upgraded, ClientError> {
        let request = self.request(Method::POST, path);
        let request = request.header(header::CONNECTION, "upgrade").header(header::UPGRADE, crate::STREAM);
        let answer = request.send().await.map_err(|source| self.unreachable(source))?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refusal(answer).await);
        }
        answer.upgrade().await.map_err(|source| self.unreachable(source))
    }

    /// A request that got no answer. Its own address stays out of the message: a signed link is a secret.
    pub fn unreachable(&self, source: reqwest::Error) -> ClientError {
        ClientError::Unreachable { url: self.url().to_owned(), source: source.without_url() }
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let answer = self.send(request).await?;
        answer.json().await.map_err(|source| match source.is_decode() {
            true => ClientError::Garbled { url: self.url().to_owned(), source: source.without_url() },
            false => self.unreachable(source),
        })
    }
}

/// What an answer that is no success says, in the server's own words.
pub async fn refusal(answer: reqwest::Response) -> ClientError {
    let status = answer.status();
    refused(status, answer.bytes().await.unwrap_or_default().as_ref())
}

/// Whether a connection was taken and cut off before anything was asked, as by a server that is killed at that moment.
fn was_cut_off(error: &reqwest::Error) -> bool {
    error.is_connect() && std::iter::successors(error.source(), |&cause| cause.source()).any(is_cut)
}

fn is_cut(cause: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    cause.downcast_ref::<std::io::Error>().is_some_and(|error| {
        let cut = matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof);
        // One in another is no source of it.
        cut || error.get_ref().is_some_and(|within| is_cut(within))
    })
}

/// This machine is reached without any proxy.
fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
}

/// The path of an address. A server may call itself by another name than the one it was reached by.
fn path_of(link: &str) -> &str {
    let rest = link.split_once("://").map_or(link, |(_, rest)| rest);
    rest.find('/').map_or(rest, |at| &rest[at..])
}

fn refused(status: StatusCode, body: &[u8]) -> ClientError {
    let envelope: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = envelope.get("error").unwrap_or(&Value::Null);
    let word = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
    // MLflow's calls refuse in an envelope of their own.
    let own = |key: &str| envelope.get(key).and_then(Value::as_str).map(str::to_owned);
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    ClientError::Refused {
        status: status.as_u16(),
        code: word("code").or_else(|| own("error_code")).unwrap_or_else(|| status.to_string()),
        message: word("message")
            .or_else(|| own("message"))
            .or_else(|| blob_message(body))
            .unwrap_or_else(|| format!("the server answered {status}")),
        details: details.filter_map(|d| d.get("message")?.as_str().map(str::to_owned)).collect(),
    }
}

/// The message in the envelope of the blob dialect.
fn blob_message(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let (message, _) = text.split_once("<Message>")?.1.split_once("</Message>")?;
    Some(message.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&"))
}

/// TLS that trusts one authority and nobody else, and shows a certificate where there is one.
fn trusting(pem: &[u8], identity: Option<&[u8]>) -> Result<rustls::ClientConfig, ClientError> {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem).flatten() {
        roots.add(certificate).map_err(ClientError::Authority)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ClientError::Authority)?
        .with_root_certificates(roots);
    let Some(identity) = identity else { return Ok(config.with_no_client_auth()) };
    let chain = CertificateDer::pem_slice_iter(identity).flatten().collect();
    let unusable = |_| ClientError::Identity(rustls::Error::General("it holds no private key".to_owned()));
    let key = PrivateKeyDer::from_pem_slice(identity).map_err(unusable)?;
    config.with_client_auth_cert(chain, key).map_err(ClientError::Identity)
}
