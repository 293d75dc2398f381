//! TLS of both versions, what is spoken over it, and certificates that change.

use super::{
    http2,
    world::{Answer, Replica, Wire, World, eventually, iris, post, settings},
};
use router::TlsFiles;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
    pki_types::{CertificateDer, ServerName},
    version::{TLS12, TLS13},
};
use std::{fs, io::Write, net::TcpStream, path::Path, sync::Arc};
use tokio_rustls::TlsConnector;

/// Writes a fresh pair, and gives the certificate.
fn make(files: &TlsFiles) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(&files.certificate, made.cert.pem()).unwrap();
    fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

fn files(folder: &Path) -> TlsFiles {
    TlsFiles { certificate: folder.join("cert.pem"), key: folder.join("key.pem") }
}

fn client(
    trusted: CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
    spoken: &[&[u8]],
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = spoken.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

fn ask(world: &World, config: &Arc<ClientConfig>) -> Result<Answer, String> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(world.address).unwrap());
    stream.write_all(post("", "private").as_bytes()).map_err(|error| error.to_string())?;
    Wire::default().message(&mut stream).map(Answer::of).ok_or_else(|| "no answer".to_owned())
}

#[test]
fn both_versions_are_spoken_and_the_replica_knows() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let trusted = make(&files);
    let replica = Replica::echo();
    let world = World::with(&iris(&[&replica], ""), router::Settings { tls: Some(files), ..settings() });
    for version in [&TLS12, &TLS13] {
        assert_eq!(ask(&world, &client(trusted.clone(), &[version], &[])).unwrap().text(), "private");
    }
    assert!(replica.seen()[0].head.contains("x-forwarded-proto: https\r\n"));
    // A caller without TLS gets nothing, and the next one is served.
    let mut caller = world.connect();
    caller.send(&post("", "x"));
    assert!(caller.read().is_none());
    assert!(ask(&world, &client(trusted, &[&TLS13], &[b"http/1.1"])).is_ok());
}

#[test]
fn a_certificate_that_changes_is_used_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let old = make(&files);
    let world =
        World::with(&iris(&[&Replica::echo()], ""), router::Settings { tls: Some(files.clone()), ..settings() });
    assert!(ask(&world, &client(old.clone(), &[&TLS13], &[])).is_ok());
    fs::write(&files.key, "nonsense").unwrap();
    let new = make(&files);
    let (old, new) = (client(old, &[&TLS13], &[]), client(new, &[&TLS13], &[]));
    eventually("the new certificate is shown", || ask(&world, &new).is_ok());
    assert!(ask(&world, &old).is_err());
}

#[test]
fn the_second_protocol_is_agreed_on() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let trusted = make(&files);
    let world = World::with(&iris(&[&Replica::echo()], ""), router::Settings { tls: Some(files), ..settings() });
    http2::block_on(async {
        let stream = tokio::net::TcpStream::connect(world.address).await.unwrap();
        let connector = TlsConnector::from(client(trusted, &[&TLS13], &[b"h2", b"http/1.1"]));
        let stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
        let mut session = http2::Session::over(stream).await;
        let answer = session.ask("POST", "/api/v1/endpoint/iris/score", b"over both").await;
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"over both".as_slice()));
    });
}

#[test]
fn files_that_are_no_certificate_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let routes = router::Routes::new(&domain::spec::Routes::default());
    let start =
        || router::start(router::Settings { tls: Some(files.clone()), ..settings() }, routes.clone()).err().unwrap();
    assert!(format!("{:?}", start()).contains("cert.pem"));
    make(&files);
    fs::write(&files.key, "nonsense").unwrap();
    assert!(format!("{:?}", start()).contains("key.pem"));
}
