//! Certificates of the operator's own, and limits on how often one may ask.

use crate::{Server, WS, ask, settings};
use api::{Client, Connection};
use rcgen::{CertificateParams, KeyPair};
use reqwest::Method;
use serde_json::json;
use server::{Certificates, Settings, make_token};
use std::{fs, path::Path, time::Duration};
use store::Store;
use tokio::sync::watch;

/// Writes a certificate that signs itself; its PEM.
fn certify(folder: &Path) -> Vec<u8> {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    fs::write(folder.join("cert.pem"), certificate.pem()).unwrap();
    certificate.pem().into_bytes()
}

#[tokio::test]
async fn a_renewed_certificate_is_served_without_a_restart_and_a_broken_one_is_not() {
    let home = tempfile::tempdir().unwrap();
    let first = certify(home.path());
    let store = Store::open(home.path()).unwrap();
    let keys = home.path().join("keys");
    let token = make_token(&keys, "user", store.keyring()).unwrap();
    let files = ["cert.pem", "key.pem"].map(|name| home.path().join(name));
    let given = Certificates::Given { certificate: files[0].clone(), key: files[1].clone(), keys: keys.clone() };
    let listening =
        server::listen("127.0.0.1:0".parse().unwrap(), false, None, &given, server::Kept::default()).await.unwrap();
    let (url, local_url) = (listening.url.clone(), listening.local_url.clone());
    let own = fs::read(keys.join("authority.pem")).unwrap();
    let (_stop, stopped) = watch::channel(false);
    let serving = server::serve(listening, store, settings(), &keys, stopped);
    let workspace = async |url: &str, authority: &[u8]| {
        let connection = Connection { url: url.to_owned(), token: token.clone(), authority: Some(authority.to_vec()) };
        Client::new(connection).unwrap().get::<serde_json::Value>(WS).await.ok()
    };
    let reach = async |authority: &[u8]| workspace(&url, authority).await.is_some();
    let story = async {
        assert!(reach(&first).await && !reach(&own).await);
        // What runs on this machine has a door with a certificate of ours, and is told addresses that are good there.
        assert!(workspace(&local_url, &first).await.is_none());
        for (door, authority) in [(&url, &first), (&local_url, &own)] {
            let shown = workspace(door, authority).await.unwrap();
            let told = shown["properties"]["discoveryUrl"].as_str().unwrap();
            assert_eq!(told.strip_suffix("/discovery"), Some(door.as_str()), "{shown}");
        }
        fs::write(&files[0], "not a certificate").unwrap();
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        assert!(reach(&first).await, "a broken file must leave the old certificate in place");
        let second = certify(home.path());
        while !reach(&second).await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(!reach(&first).await);
        assert!(workspace(&local_url, &own).await.is_some());
    };
    tokio::select! {
        over = serving => panic!("the server stopped: {over:?}"),
        told = tokio::time::timeout(Duration::from_secs(20), story) => told.expect("the new certificate is never served"),
    }
}

#[tokio::test]
async fn whoever_asks_too_often_is_told_to_wait_and_nobody_else_is() {
    let server = Server::start_with(Settings { rate_limit: 5, ..settings() }).await;
    let made = server.post("/admin/v1/principals", json!({"name": "eager", "role": "reader"})).await.expect(201);
    let eager = server.with_token(made["token"].as_str().unwrap());
    let mut refused = None;
    for _ in 0..50 {
        let answer = ask(&eager, Method::GET, WS, None).await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("fifty requests at once are too many");
    assert_eq!(refused.refused(429).0, "TooManyRequests");
    assert_eq!(refused.header("retry-after"), "1");
    for _ in 0..50 {
        server.get(WS).await.expect(200);
    }
}

#[tokio::test]
async fn a_thousand_clients_at_once_are_all_answered() {
    let server = Server::start().await;
    server.submit("one").await;
    let mut asking = tokio::task::JoinSet::new();
    for n in 0..1000 {
        let client = server.user.clone();
        asking.spawn(async move {
            let path = if n % 2 == 0 { format!("{WS}/jobs/one") } else { format!("{WS}/data/d{n}/versions/1") };
            let body = (n % 2 == 1)
                .then(|| json!({"properties": {"dataUri": "azureml://datastores/x/paths/y", "dataType": "uri_file"}}));
            let method = if n % 2 == 0 { Method::GET } else { Method::PUT };
            ask(&client, method, &path, body).await.status
        });
    }
    let statuses = asking.join_all().await;
    assert!(statuses.iter().all(|status| matches!(status, 200 | 201)), "{statuses:?}");
    let listed = server.get("data?$top=1000").await.expect(200);
    assert_eq!(listed["value"].as_array().unwrap().len(), 500);
}

#[tokio::test]
async fn a_call_that_is_cut_off_before_it_was_made_is_made_again_once() {
    let server = Server::start().await;
    let behind = server.user.url().strip_prefix("https://").unwrap().to_owned();
    let door = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", door.local_addr().unwrap());
    let authority = fs::read(server.home.path().join("keys/authority.pem")).unwrap();
    let token = make_token(&server.home.path().join("keys"), "user", server.store.keyring()).unwrap();
    let client = || {
        let authority = Some(authority.clone());
        Client::new(Connection { url: url.clone(), token: token.clone(), authority }).unwrap()
    };
    let doorkeeper = async |cut: usize| {
        for at in 0..=cut {
            let (mut caller, _) = door.accept().await.unwrap();
            caller.readable().await.unwrap();
            // What is closed with something unread is reset.
            if at < cut {
                continue;
            }
            let mut server = tokio::net::TcpStream::connect(&behind).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut caller, &mut server).await;
        }
    };
    let one = client();
    tokio::select! {
        answer = one.get::<serde_json::Value>(WS) => assert!(answer.is_ok(), "{answer:?}"),
        () = doorkeeper(1) => panic!("the caller is gone"),
    }
    let two = client();
    tokio::select! {
        answer = two.get::<serde_json::Value>(WS) => assert!(answer.is_err(), "twice is no accident"),
        () = doorkeeper(2) => panic!("it tried a third time"),
    }
}
