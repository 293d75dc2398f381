//! The extension as IT operations meet it: the chart beside the manifests, instance types on a real API server, and the
//! way from install to uninstall.
//!
//! A cluster has one extension, so tests that install it, or that rely on it, hold [`alone`] while they do.

mod chart;
mod life;
mod types;

use crate::{cluster::Cluster, harness::Home};
use std::{
    fs,
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
    let (key, certificate) = (home.path().join("key.pem"), home.path().join("certificate.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=peregrine test", "-addext", &format!("subjectAltName=IP:{host}")]);
    let made = openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let url = format!("https://{host}:{port}");
    let listen = format!("{host}:{port}");
    let start = ["server", "start", "--listen", &listen, "--tls-cert", "certificate.pem", "--tls-key", "key.pem"];
    // Its own clients on this machine find its authority here.
    fs::create_dir_all(home.home().join("keys")).unwrap();
    fs::copy(&certificate, home.home().join("keys/authority.pem")).unwrap();
    home.ok(&start);
    home.configure(&format!(
        "[server]\nurl = \"{url}\"\nauthority_file = \"{}\"\n",
        home.path().join("certificate.pem").display()
    ));
    url
}
