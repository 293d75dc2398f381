//! The way to a cluster from outside: a kubeconfig, and what can go wrong on the way, in words.

mod portable;

pub use portable::portable;

use kube::{
    Client, Config,
    client::AuthError,
    config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use std::{error::Error as StdError, path::Path, time::Duration};

/// How the API server begins to say that an object does not go with its definition.
const UNTYPED: &str = "failed to create typed patch object";

/// A cluster someone may speak to.
#[derive(Clone)]
pub struct Cluster {
    pub client: Client,
    /// Address of its API server.
    pub url: String,
}

/// Why something could not be done on a cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no kubeconfig can be used")]
    Kubeconfig(#[source] KubeconfigError),
    #[error("the kubeconfig is of no use on another machine: {why}")]
    NotPortable { why: String },
    #[error("no kubeconfig was given, and this server does not run in a pod")]
    NotInside(#[source] InClusterError),
    #[error("the kubeconfig's credentials cannot be used")]
    Credentials(#[source] kube::Error),
    #[error("the cluster at {url} does not answer")]
    Unreachable {
        url: String,
        #[source]
        source: kube::Error,
    },
    #[error("the cluster at {url} does not accept these credentials")]
    Unauthorized { url: String },
    #[error("not allowed to {doing}: {message}")]
    Forbidden { doing: String, message: String },
    #[error("the cluster refused to {doing}")]
    Refused { doing: String, code: u16, reasons: Vec<String> },
    #[error("the operator did not become ready within {seconds} s")]
    NotReady { seconds: u64, reasons: Vec<String> },
}

impl Cluster {
    /// Reads a kubeconfig (the given one, or what `kubectl` would take) and makes a client. Nothing is asked yet.
    pub async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Cluster, Error> {
        let read = match kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        Cluster::by(read.map_err(Error::Kubeconfig)?, context).await
    }

    /// The same by the text of a kubeconfig that somebody else has sent: it may lead nowhere but to the cluster.
    pub async fn sent(kubeconfig: &str, context: Option<&str>) -> Result<Cluster, Error> {
        // What a parser says may have a piece of it in it.
        let unread = |_| Error::NotPortable { why: "it cannot be read".to_owned() };
        let read = Kubeconfig::from_yaml(kubeconfig).map_err(unread)?;
        portable::is(&read)?;
        Cluster::by(read, context).await
    }

    /// The cluster that this process runs in, as the service account of its pod.
    pub fn inside() -> Result<Cluster, Error> {
        Cluster::of(Config::incluster().map_err(Error::NotInside)?)
    }

    async fn by(read: Kubeconfig, context: Option<&str>) -> Result<Cluster, Error> {
        let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        Cluster::of(Config::from_custom_kubeconfig(read, &options).await.map_err(Error::Kubeconfig)?)
    }

    fn of(mut config: Config) -> Result<Cluster, Error> {
        config.connect_timeout = Some(Duration::from_secs(10));
        config.read_timeout = Some(Duration::from_secs(60));
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = Client::try_from(config).map_err(Error::Credentials)?;
        Ok(Cluster { client, url })
    }

    /// What went wrong while `doing` something, as `apply Deployment x`.
    pub fn told(&self, doing: impl Into<String>, error: kube::Error) -> Error {
        let doing = doing.into();
        match error {
            // An unknown field of something applied is the caller's mistake, though the API server calls it its own.
            kube::Error::Api(status) if status.message.starts_with(UNTYPED) => {
                let field = status.message.split_once("): ").map_or(status.message.as_str(), |(_, field)| field);
                Error::Refused {
                    doing,
                    code: 422,
                    reasons: vec![format!("unknown field: `{}`", field.trim_start_matches('.'))],
                }
            }
            kube::Error::Api(status) => match status.code {
                401 => Error::Unauthorized { url: self.url.clone() },
                403 => Error::Forbidden { doing, message: status.message },
                code => {
                    let causes = status.details.iter().flat_map(|details| &details.causes);
                    let causes: Vec<String> = causes
                        .map(|cause| match cause.field.as_str() {
                            "" | "<nil>" => cause.message.clone(),
                            field => format!("`{field}`: {}", cause.message),
                        })
                        .collect();
                    let reasons = if causes.is_empty() { vec![status.message] } else { causes };
                    Error::Refused { doing, code, reasons }
                }
            },
            error @ (kube::Error::Auth(_) | kube::Error::RustlsTls(_)) => Error::Credentials(error),
            error if is_auth(&error) => Error::Credentials(error),
            source => Error::Unreachable { url: self.url.clone(), source },
        }
    }
}

/// A plugin that should have given a token hides below the transport.
fn is_auth(error: &kube::Error) -> bool {
    let mut next = error.source();
    while let Some(cause) = next {
        if cause.is::<AuthError>() {
            return true;
        }
        next = cause.source();
    }
    false
}

impl Error {
    /// More about it, one reason each.
    pub fn reasons(&self) -> Vec<String> {
        match self {
            Error::Refused { reasons, .. } | Error::NotReady { reasons, .. } => reasons.clone(),
            _ => {
                let mut all: Vec<String> = Vec::new();
                let mut next = self.source();
                while let Some(cause) = next {
                    let words = cause.to_string();
                    // Each layer repeats what it wraps; the innermost says it best.
                    all.retain(|known| !known.contains(&words));
                    all.push(words);
                    next = cause.source();
                }
                all
            }
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            Error::Kubeconfig(_) => {
                "name one with `--kubeconfig` and `--context`; `kubectl config get-contexts` lists them"
            }
            Error::NotPortable { .. } => {
                "use one with the token of a service account: `kubectl create token` makes it, and it holds for as long as `--duration` says"
            }
            Error::NotInside(_) => "name a kubeconfig with `kubeconfig_file`",
            Error::Credentials(_) => "check the kubeconfig with `kubectl get nodes`",
            Error::Unreachable { .. } => "check the address and the network with `kubectl version`",
            Error::Unauthorized { .. } => {
                "the token may have expired: renew it (`az aks get-credentials`, `aws eks update-kubeconfig`, `oc login`)"
            }
            Error::Forbidden { .. } => "ask for the role `cluster-admin` for the time of the installation",
            Error::Refused { .. } => "mend what is named above and run the command again; it may be repeated",
            Error::NotReady { .. } => "`kubectl -n peregrine describe pods` tells more; `--timeout` waits longer",
        }
    }
}
