//! The extension as IT operations meet it: the chart beside the manifests, instance types on a real API server, and the
//! way from install to uninstall.
//!
//! A cluster has one extension, so tests that install it, or that rely on it, hold [`alone`] while they do.

mod chart;
mod life;
mod types;

use crate::{cluster::Cluster, harness::Home};
use std::{
    net::TcpListener,
    path::PathBuf,
    process::Command,
    sync::{Mutex, MutexGuard},
};

static ALONE: Mutex<()> = Mutex::new(());

/// The right to have the cluster's extension to oneself.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A file of the repository.
fn ours(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Starts a server where pods reach it and points the home's commands at it; its address.
pub(crate) fn serve(home: &Home, cluster: &Cluster) -> String {
    let host = cluster.fact("HOST_ADDRESS");
    let port = TcpListener::bind((host, 0)).unwrap().local_addr().unwrap().port();
    let make = |more: &[&str]| {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        let made = openssl.args(["-days", "2"]).args(more).current_dir(home.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    };
    make(&["-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem"]);
    let (names, leaf) = (format!("subjectAltName=IP:{host}"), "basicConstraints=critical,CA:FALSE");
    let subject = ["-subj", "/CN=test server", "-addext", &names, "-addext", leaf];
    make(
        &[&["-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "key.pem", "-out", "certificate.pem"], &subject[..]]
            .concat(),
    );
    let (url, listen) = (format!("https://{host}:{port}"), format!("{host}:{port}"));
    let start = ["server", "start", "--listen", &listen, "--tls-cert", "certificate.pem", "--tls-key", "key.pem"];
    let authority = home.path().join("ca.pem");
    let settings = format!("[server]\nauthority_file = \"{}\"\n", authority.display());
    home.configure(&settings);
    home.ok(&start);
    home.configure(&format!("{settings}url = \"{url}\"\n"));
    url
}
