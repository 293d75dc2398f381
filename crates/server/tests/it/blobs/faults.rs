//! Faults: clients that stop, lie, flood or never read; quotas; disks.

use super::{Container, drafts, numbered, refused, soon};
use crate::{Server, send, settings};
use reqwest::Method;
use server::Settings;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

type Stream = tokio_rustls::client::TlsStream<TcpStream>;

/// A connection that is written to by hand.
async fn dial(server: &Server) -> Stream {
    let mut roots = rustls::RootCertStore::empty();
    let authority = std::fs::read(server.home.path().join("keys/authority.pem")).unwrap();
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = server.user.url().trim_start_matches("https://").to_owned();
    let stream = TcpStream::connect(&address).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from("127.0.0.1").unwrap();
    tokio_rustls::TlsConnector::from(std::sync::Arc::new(config)).connect(name, stream).await.unwrap()
}

fn head(container: &Container, method: &str, path: &str, query: &str, length: usize) -> String {
    let at = container.url.split_once("://").unwrap().1.split_once('/').unwrap().1;
    format!("{method} /{at}/{path}?{query}{} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n", container.link)
}

#[tokio::test]
async fn a_client_that_leaves_half_way_leaves_nothing_behind() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.put("f", "before", &[]).await;
    for query in ["", "comp=block&blockid=AA==&"] {
        let mut stream = dial(&server).await;
        stream.write_all(head(&container, "PUT", "f", query, 50_000_000).as_bytes()).await.unwrap();
        stream.write_all(&vec![1; 4_000_000]).await.unwrap();
        let home = server.home.path().join("blobs/.drafts");
        let begun = || std::fs::read_dir(&home).is_ok_and(|mut entries| entries.next().is_some());
        soon("a draft", begun).await;
        drop(stream);
        if query.is_empty() {
            soon("its end", || drafts(&server).is_empty()).await;
        }
    }
    assert_eq!(container.get("f").await.text(), "before");
    refused(&container.commit("f", "Latest", &["AA==".to_owned()], &[]).await, 400, "InvalidBlockList");
}

#[tokio::test]
async fn a_client_that_stops_sending_is_given_up() {
    let server = Server::start_with(Settings { idle: Duration::from_millis(300), ..settings() }).await;
    let container = Container::open(&server).await;
    for query in ["", "comp=block&blockid=AA==&", "comp=blocklist&"] {
        let mut stream = dial(&server).await;
        stream.write_all(head(&container, "PUT", "f", query, 50_000_000).as_bytes()).await.unwrap();
        stream.write_all(b"<BlockList>").await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("<Code>RequestTimeout</Code>"), "{answer}");
    }
    refused(&container.get("f").await, 404, "BlobNotFound");
}

#[tokio::test]
async fn a_client_that_never_reads_is_let_go() {
    let server = Server::start_with(Settings { idle: Duration::from_millis(300), ..settings() }).await;
    let container = Container::open(&server).await;
    let bytes = vec![5; 40_000_000];
    assert_eq!(container.put("f", bytes, &[]).await.status, 201);
    let file = container.folder(&server).join("f").canonicalize().unwrap();
    let held = || {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to == file)).count()
    };
    let mut stream = dial(&server).await;
    stream.write_all(head(&container, "GET", "f", "", 0).as_bytes()).await.unwrap();
    soon("the answer to begin", || held() > 0).await;
    soon("the answer to be given up", || held() == 0).await;
    drop(stream);
}

#[tokio::test]
async fn many_clients_that_stop_do_not_keep_others_from_being_served() {
    let server = Server::start_with(Settings { idle: Duration::from_secs(5), ..settings() }).await;
    let container = Container::open(&server).await;
    let mut stalled = Vec::new();
    for n in 0..100 {
        let mut stream = dial(&server).await;
        stream.write_all(head(&container, "PUT", &format!("stalled-{n}"), "", 1_000_000).as_bytes()).await.unwrap();
        stream.write_all(&[0; 1000]).await.unwrap();
        stalled.push(stream);
    }
    assert_eq!(container.put("f", vec![1; 2_000_000], &[]).await.status, 201);
    assert_eq!(container.get("f").await.bytes.len(), 2_000_000);
    drop(stalled);
    soon("their drafts to go", || drafts(&server).is_empty()).await;
}

#[tokio::test]
async fn the_name_of_a_folder_is_no_blob_to_its_readers_and_no_name_to_its_writers() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.put("folder/a", "x", &[]).await;
    refused(&container.get("folder/").await, 404, "BlobNotFound");
    refused(&container.put("folder/", "x", &[]).await, 400, "InvalidResourceName");
}

#[tokio::test]
async fn a_refusal_is_heard_also_by_those_who_send_much() {
    let server = Server::start().await;
    let mut container = Container::open(&server).await;
    container.put("a", "x", &[]).await;
    let much = || vec![0; 20_000_000];
    refused(&container.put("a/b", much(), &[]).await, 409, "BlobNameConflict");
    refused(&container.put("..%2Fb", much(), &[]).await, 400, "InvalidResourceName");
    refused(&container.block("b", "?", much(), &[]).await, 400, "InvalidQueryParameterValue");
    container.link = container.link.replace("sig=", "sig=0");
    refused(&container.put("b", much(), &[]).await, 403, "AuthenticationFailed");
    container.link = String::new();
    refused(&container.put("b", much(), &[]).await, 401, "AuthenticationFailed");
}

#[tokio::test]
async fn a_good_link_is_not_counted_and_bad_ones_are() {
    let server = Server::start_with(Settings { rate_limit: 5, ..settings() }).await;
    let mut container = Container::open(&server).await;
    for n in 0..50 {
        assert_eq!(container.put("f", format!("{n}"), &[]).await.status, 201, "write {n}");
    }
    container.link = container.link.replace("sig=", "sig=0");
    let mut statuses = Vec::new();
    for _ in 0..50 {
        statuses.push(container.get("f").await.status);
    }
    assert!(statuses.starts_with(&[403]) && statuses.contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn a_workspace_holds_no_more_than_its_quota() {
    let server = Server::start_with(Settings { storage_quota: 1_000_000, ..settings() }).await;
    let container = Container::open(&server).await;
    assert_eq!(container.put("a", vec![0; 600_000], &[]).await.status, 201);
    for answer in [
        container.put("b", vec![0; 600_000], &[]).await,
        container.put("b", vec![0; 5_000_000], &[]).await,
        container.block("b", &numbered(0), vec![0; 600_000], &[]).await,
    ] {
        refused(&answer, 413, "QuotaExceeded");
        assert!(answer.text().contains("storage.quota"), "{}", answer.text());
    }
    let chunks = (0..60).map(|_| Ok::<_, std::io::Error>(vec![0; 10_000]));
    let unsized_body = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    refused(&send(container.request(Method::PUT, "b", "", &[]).body(unsized_body)).await, 413, "QuotaExceeded");
    assert!(drafts(&server).is_empty());
    assert_eq!(container.ask(Method::DELETE, "a", "", &[]).await.status, 202);
    assert_eq!(container.block("b", &numbered(0), vec![0; 600_000], &[]).await.status, 201);
    refused(&container.put("c", vec![0; 600_000], &[]).await, 413, "QuotaExceeded");
    assert_eq!(container.commit("b", "Latest", &[numbered(0)], &[]).await.status, 201);
    refused(&container.put("c", vec![0; 600_000], &[]).await, 413, "QuotaExceeded");
    assert_eq!(container.put("c", vec![0; 400_000], &[]).await.status, 201);
}

#[tokio::test]
async fn a_server_that_cannot_write_says_so_and_tears_nothing() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.put("f", "before", &[]).await;
    // Stands in for a full disk: blocks of this upload land on a device that is always full.
    container.block("f", &numbered(0), "x", &[]).await;
    let upload = server.home.path().join("blobs/.drafts").join(&drafts(&server)[0]);
    std::fs::remove_file(upload.join("body")).unwrap();
    std::os::unix::fs::symlink("/dev/full", upload.join("body")).unwrap();
    refused(&container.block("f", &numbered(1), vec![1; 3_000_000], &[]).await, 507, "DiskFull");
    assert_eq!(container.get("f").await.text(), "before");
}
