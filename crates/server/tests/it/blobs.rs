//! `/blob`: files of the workspace's own stores, in the dialect of Azure's blob service.

mod blocks;
mod faults;
mod listing;
mod reading;
mod writing;

use crate::{Answer, Server, send, without_token};
use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::json;

/// A container opened by a link, as clients upload code.
struct Container {
    client: api::Client,
    url: String,
    link: String,
}

impl Container {
    async fn open(server: &Server) -> Container {
        let started = server.post("codes/any/versions/1/startPendingUpload", json!({})).await.expect(200);
        let uri = started["blobReferenceForConsumption"]["credential"]["sasUri"].as_str().unwrap();
        let (url, link) = uri.split_once('?').unwrap();
        Container { client: server.with_token("unused"), url: url.to_owned(), link: link.to_owned() }
    }

    async fn put(&self, path: &str, bytes: impl Into<Vec<u8>>, headers: &[(&str, &str)]) -> Answer {
        let request = self.request(Method::PUT, path, "", headers).header("x-ms-blob-type", "BlockBlob");
        send(request.body(bytes.into())).await
    }

    async fn ask(&self, method: Method, path: &str, query: &str, headers: &[(&str, &str)]) -> Answer {
        send(self.request(method, path, query, headers)).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, "", &[]).await
    }

    async fn block(&self, path: &str, id: &str, bytes: impl Into<Vec<u8>>, headers: &[(&str, &str)]) -> Answer {
        let query = format!("comp=block&blockid={}&", id.replace('+', "%2B").replace('=', "%3D"));
        send(self.request(Method::PUT, path, &query, headers).body(bytes.into())).await
    }

    /// Commits blocks, each as an element of this name.
    async fn commit(&self, path: &str, element: &str, ids: &[String], headers: &[(&str, &str)]) -> Answer {
        let list: String = ids.iter().map(|id| format!("<{element}>{id}</{element}>")).collect();
        let list = format!("<?xml version='1.0' encoding='utf-8'?>\n<BlockList>{list}</BlockList>");
        send(self.request(Method::PUT, path, "comp=blocklist&", headers).body(list)).await
    }

    /// A request that carries the link and no token.
    fn request(&self, method: Method, path: &str, query: &str, headers: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let slash = if path.is_empty() { "" } else { "/" };
        let url = format!("{}{slash}{path}?{query}{}", self.url, self.link);
        let request = without_token(self.client.request(method, &url));
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    }

    /// The folder of this container on the server's disk.
    fn folder(&self, server: &Server) -> std::path::PathBuf {
        server.home.path().join("blobs/default").join(self.url.rsplit('/').next().unwrap())
    }
}

/// A refusal in the dialect's own envelope.
fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("x-ms-error-code"), code);
    assert!(answer.text().contains(&format!("<Code>{code}</Code>")), "{}", answer.text());
    assert!(!answer.header("x-ms-request-id").is_empty());
}

/// The name of a block as the Python client makes it.
fn numbered(offset: usize) -> String {
    STANDARD.encode(STANDARD.encode(format!("{offset:032}")).replace('=', "%3D"))
}

fn md5(bytes: &[u8]) -> String {
    use md5::{Digest, Md5};
    STANDARD.encode(Md5::digest(bytes))
}

/// What is being written on this server, finished or not.
fn drafts(server: &Server) -> Vec<String> {
    let entries = std::fs::read_dir(server.home.path().join("blobs/.drafts")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Waits for something that happens soon.
async fn soon(what: &str, is: impl Fn() -> bool) {
    for _ in 0..500 {
        if is() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen");
}
