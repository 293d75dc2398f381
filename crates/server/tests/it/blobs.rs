//! `/blob`: files of the workspace's own stores, in the dialect of Azure's blob service.

use crate::{Answer, Server, send, without_token};
use reqwest::Method;
use serde_json::json;

/// A container opened by a link, as clients upload code.
struct Container {
    client: api::Client,
    url: String,
    link: String,
}

#[tokio::test]
async fn a_signed_link_writes_reads_and_looks_without_a_token() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let bytes: Vec<u8> = (0..5_000_000u32).map(|n| (n % 253) as u8).collect();
    assert_eq!(container.put("src/big.bin", bytes.clone(), &[]).await.status, 201);
    let got = container.ask(Method::GET, "src/big.bin", "", &[]).await;
    assert!(got.bytes == bytes);
    let head = container.ask(Method::HEAD, "src/big.bin", "", &[]).await;
    assert_eq!(
        (head.status, head.header("content-length"), head.header("x-ms-blob-type")),
        (200, "5000000", "BlockBlob")
    );
    assert_eq!(head.header("etag"), got.header("etag"));
}

#[tokio::test]
async fn a_range_is_a_part_and_a_range_outside_is_refused() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.put("f", b"0123456789".to_vec(), &[]).await;
    for (range, status, expected) in
        [("bytes=2-4", 206, "234"), ("bytes=7-", 206, "789"), ("bytes=8-99", 206, "89"), ("bytes=0-0", 206, "0")]
    {
        let part = container.ask(Method::GET, "f", "", &[("x-ms-range", range)]).await;
        assert_eq!((part.status, part.text().as_str()), (status, expected), "{range}");
    }
    let part = container.ask(Method::GET, "f", "", &[("range", "bytes=2-4")]).await;
    assert_eq!(part.header("content-range"), "bytes 2-4/10");
    refused(&container.ask(Method::GET, "f", "", &[("range", "bytes=10-")]).await, 416, "InvalidRange");
}

#[tokio::test]
async fn a_blob_that_must_be_new_is_not_replaced() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let only_new = [("if-none-match", "*")];
    assert_eq!(container.put("f", b"one".to_vec(), &only_new).await.status, 201);
    refused(&container.put("f", b"two".to_vec(), &only_new).await, 409, "BlobAlreadyExists");
    assert_eq!(container.ask(Method::GET, "f", "", &[]).await.text(), "one");
    assert_eq!(container.put("f", b"three".to_vec(), &[]).await.status, 201);
    assert_eq!(container.ask(Method::GET, "f", "", &[]).await.text(), "three");
}

#[tokio::test]
async fn a_container_is_listed_by_prefix_in_order() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    for name in ["b/2", "a/1", "b/1", "b & c/<x>"] {
        container.put(&name.replace(' ', "%20").replace('<', "%3C").replace('>', "%3E"), b"x".to_vec(), &[]).await;
    }
    let names = async |prefix: &str| {
        let listed =
            container.ask(Method::GET, "", &format!("restype=container&comp=list&prefix={prefix}&"), &[]).await;
        assert_eq!(listed.header("content-type"), "application/xml");
        let text = listed.text();
        text.split("<Name>").skip(1).map(|rest| rest.split("</Name>").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["a/1", "b &amp; c/&lt;x&gt;", "b/1", "b/2"]);
    assert_eq!(names("b/").await, ["b/1", "b/2"]);
    assert_eq!(names("none/").await, Vec::<String>::new());
}

#[tokio::test]
async fn metadata_stays_with_its_blob() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.put("f", b"x".to_vec(), &[]).await;
    let marked = container.ask(Method::PUT, "f", "comp=metadata&", &[("x-ms-meta-upload_status", "completed")]).await;
    assert_eq!(marked.status, 200);
    assert_eq!(container.ask(Method::HEAD, "f", "", &[]).await.header("x-ms-meta-upload_status"), "completed");
    refused(&container.ask(Method::PUT, "none", "comp=metadata&", &[]).await, 404, "BlobNotFound");
}

#[tokio::test]
async fn a_link_opens_its_own_container_and_no_other() {
    let server = Server::start().await;
    let (mine, yours) = (Container::open(&server).await, Container::open(&server).await);
    yours.put("f", b"x".to_vec(), &[]).await;
    let crossed = Container { url: yours.url.clone(), ..mine };
    refused(&crossed.ask(Method::GET, "f", "", &[]).await, 403, "AuthenticationFailed");
    let forged = Container { link: yours.link.replace("sig=", "sig=0"), ..yours };
    refused(&forged.ask(Method::GET, "f", "", &[]).await, 403, "AuthenticationFailed");
}

#[tokio::test]
async fn a_path_never_leaves_its_container() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    for path in ["..%2F..%2F..%2Fkeys%2Fuser.token", "a%2F..%2F..%2Fb", "%2Fetc%2Fpasswd", "a%00b"] {
        for method in [Method::GET, Method::PUT] {
            let answer = container.ask(method, path, "", &[]).await;
            assert!((400..500).contains(&answer.status), "{path}: {} {}", answer.status, answer.text());
        }
    }
    refused(&container.ask(Method::GET, "none", "", &[]).await, 404, "BlobNotFound");
}

impl Container {
    async fn open(server: &Server) -> Container {
        let started = server.post("codes/any/versions/1/startPendingUpload", json!({})).await.expect(200);
        let uri = started["blobReferenceForConsumption"]["credential"]["sasUri"].as_str().unwrap();
        let (url, link) = uri.split_once('?').unwrap();
        Container { client: server.with_token("unused"), url: url.to_owned(), link: link.to_owned() }
    }

    async fn put(&self, path: &str, bytes: Vec<u8>, headers: &[(&str, &str)]) -> Answer {
        send(self.request(Method::PUT, path, "", headers).header("x-ms-blob-type", "BlockBlob").body(bytes)).await
    }

    async fn ask(&self, method: Method, path: &str, query: &str, headers: &[(&str, &str)]) -> Answer {
        send(self.request(method, path, query, headers)).await
    }

    /// A request that carries the link and no token.
    fn request(&self, method: Method, path: &str, query: &str, headers: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let slash = if path.is_empty() { "" } else { "/" };
        let url = format!("{}{slash}{path}?{query}{}", self.url, self.link);
        let request = without_token(self.client.request(method, &url));
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    }
}

/// A refusal in the dialect's own envelope.
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("x-ms-error-code"), code);
    assert!(answer.text().contains(&format!("<Code>{code}</Code>")), "{}", answer.text());
}
