//! How a Postgres elsewhere is reached: encrypted, its certificate checked, with a password.

use crate::server::Server;
use rcgen::{CertificateParams, KeyPair};
use std::net::TcpListener;
use store::{Database, Error, PostgresAddress, Store};

const PASSWORD: &str = "hunter2 @/?#";

/// A server that lets `far` in over TLS only, and with a password.
fn far_away() -> Result<(Server, u16), String> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Server::start(&["fsync=off", "listen_addresses='127.0.0.1'", &format!("port={port}")])?;
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let (key, certificate) =
        (server.give("key.pem", &key.serialize_pem()), server.give("cert.pem", &certificate.pem()));
    let hba = server.give("hba.conf", "local all all trust\nhostssl all far 127.0.0.1/32 scram-sha-256\n");
    for sql in [
        format!("alter system set ssl_key_file = '{}'", key.display()),
        format!("alter system set ssl_cert_file = '{}'", certificate.display()),
        format!("alter system set hba_file = '{}'", hba.display()),
        "alter system set ssl = on".to_owned(),
        format!("create role far login superuser password '{PASSWORD}'"),
    ] {
        server.ask(&sql)?;
    }
    Ok((server, port))
}

#[tokio::test]
async fn a_server_elsewhere_is_reached_encrypted_and_its_certificate_is_checked() {
    let (mut server, port) = match far_away() {
        Ok(found) => found,
        Err(reason) => return eprintln!("skipped: Postgres ({reason})"),
    };
    server.kill();
    server.resume().unwrap();
    server.make("ml").unwrap();
    let home = tempfile::tempdir().unwrap();
    let open = |options: &str, password: &str| {
        let url = format!("postgresql://far@localhost:{port}/ml?{options}");
        let address = PostgresAddress::parse(&url).unwrap().with_password(password);
        Store::open_at(home.path(), &Database::Postgres(address))
    };
    let trusted = format!("sslmode=verify-full&sslrootcert={}", server.sockets().join("cert.pem").display());
    let refused = |options: &str, password: &str| open(options, password).err().unwrap();
    let untrusted = refused("sslmode=require", PASSWORD);
    assert!(matches!(untrusted, Error::Unreachable { .. }), "{untrusted:?}");
    for (options, password) in [(trusted.as_str(), "wrong"), ("sslmode=disable", PASSWORD)] {
        let error = refused(options, password);
        assert!(matches!(error, Error::Open { .. }), "{options}: {error:?}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
    let store = open(&trusted, PASSWORD).unwrap();
    store.read(|tx| tx.workspaces()).await.unwrap();
    let encrypted =
        "select count(*), bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid) where usename = 'far'";
    assert_eq!(server.ask(encrypted).unwrap(), "4|t");
    let escaped = "hunter2%20%40%2F%3F%23";
    drop(store);
    let url = format!("postgresql://far:{escaped}@localhost:{port}/ml?{trusted}");
    Store::open_at(home.path(), &Database::Postgres(PostgresAddress::parse(&url).unwrap())).unwrap();
}
