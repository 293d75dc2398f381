//! Reading: ranges, conditions, who may.

use super::{Container, md5, refused};
use crate::{Server, ask, send, without_token};
use reqwest::Method;

#[tokio::test]
async fn a_signed_link_writes_reads_and_looks_without_a_token() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let bytes: Vec<u8> = (0..5_000_000u32).map(|n| (n % 253) as u8).collect();
    assert_eq!(container.put("src/big.bin", bytes.clone(), &[]).await.status, 201);
    let got = container.get("src/big.bin").await;
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
    container.put("f", "0123456789", &[("content-md5", &md5(b"0123456789"))]).await;
    for (range, expected) in
        [("bytes=2-4", "234"), ("bytes=7-", "789"), ("bytes=8-99", "89"), ("bytes=0-0", "0"), ("bytes=-3", "789")]
    {
        for header in ["range", "x-ms-range"] {
            let headers = [(header, range), ("x-ms-range-get-content-md5", "true")];
            let part = container.ask(Method::GET, "f", "", &headers).await;
            assert_eq!((part.status, part.text().as_str()), (206, expected), "{range}");
            assert_eq!(part.header("content-md5"), "", "the digest is that of the whole");
            assert_eq!(part.header("x-ms-blob-content-md5"), md5(b"0123456789"));
        }
    }
    let part = container.ask(Method::GET, "f", "", &[("range", "bytes=2-4")]).await;
    assert_eq!(part.header("content-range"), "bytes 2-4/10");
    refused(&container.ask(Method::GET, "f", "", &[("range", "bytes=10-")]).await, 416, "InvalidRange");
    container.put("empty", "", &[]).await;
    refused(&container.ask(Method::GET, "empty", "", &[("x-ms-range", "bytes=0-99")]).await, 416, "InvalidRange");
    let whole = container.get("empty").await;
    assert_eq!((whole.status, whole.header("content-length")), (200, "0"));
}

#[tokio::test]
async fn conditions_decide_what_is_read() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let written = container.put("f", "x", &[]).await;
    let (tag, date) = (written.header("etag").to_owned(), written.header("last-modified").to_owned());
    let (past, future) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 06 Nov 2094 08:49:37 GMT");
    for (name, value, status) in [
        ("if-match", tag.as_str(), 200),
        ("if-match", "\"0x0\", *", 200),
        ("if-match", "\"0x0\"", 412),
        ("if-none-match", &tag, 304),
        ("if-none-match", "\"0x0\"", 200),
        ("if-modified-since", past, 200),
        ("if-modified-since", &date, 304),
        ("if-modified-since", "nonsense", 200),
        ("if-unmodified-since", past, 412),
        ("if-unmodified-since", future, 200),
    ] {
        for method in [Method::GET, Method::HEAD] {
            let answer = container.ask(method.clone(), "f", "", &[(name, value)]).await;
            assert_eq!(answer.status, status, "{method} {name}: {value}");
            if status != 200 {
                assert_eq!(answer.header("x-ms-error-code"), "ConditionNotMet");
            }
        }
    }
}

#[tokio::test]
async fn a_tag_changes_with_every_write_however_quick() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let mut seen = std::collections::HashSet::new();
    for n in 0..40 {
        let answer = container.put("f", format!("{}", n % 2), &[]).await;
        assert!(seen.insert(answer.header("etag").to_owned()), "write {n}");
        assert_eq!(container.ask(Method::HEAD, "f", "", &[]).await.header("etag"), answer.header("etag"));
    }
    let marked = container.ask(Method::PUT, "f", "comp=metadata&", &[("x-ms-meta-a", "b")]).await;
    assert!(seen.insert(marked.header("etag").to_owned()));
}

#[tokio::test]
async fn every_answer_names_its_request_and_repeats_the_version() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let headers = [("x-ms-version", "2026-10-06"), ("x-ms-client-request-id", "mine-1")];
    for (method, path) in [(Method::PUT, "f"), (Method::GET, "f"), (Method::HEAD, "none"), (Method::POST, "f")] {
        let answer = container.ask(method.clone(), path, "", &headers).await;
        let told = ["x-ms-version", "x-ms-client-request-id"].map(|name| answer.header(name));
        assert_eq!(told, ["2026-10-06", "mine-1"], "{method}");
        assert!(answer.header("x-ms-request-id").len() > 30 && !answer.header("date").is_empty());
    }
}

#[tokio::test]
async fn a_link_opens_its_own_container_and_no_other() {
    let server = Server::start().await;
    let (mine, yours) = (Container::open(&server).await, Container::open(&server).await);
    yours.put("f", "x", &[]).await;
    let open = |link: String| Container { client: server.with_token("unused"), url: yours.url.clone(), link };
    for link in [
        mine.link.clone(),
        yours.link.replace("sig=", "sig=0"),
        yours.link.replace("se=", "se=9"),
        yours.link.replace("sp=racwdl", "sp=racwdlx"),
        "sig=".to_owned(),
        "sv=2021-06-08&sr=c&sp=rl&se=1&sig=00".to_owned(),
    ] {
        let forged = open(link);
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            refused(&forged.ask(method, "f", "", &[]).await, 403, "AuthenticationFailed");
        }
        let head = forged.ask(Method::HEAD, "f", "", &[]).await;
        assert_eq!((head.status, head.header("x-ms-error-code"), head.bytes.len()), (403, "AuthenticationFailed", 0));
    }
    assert_eq!(yours.get("f").await.text(), "x");
}

#[tokio::test]
async fn the_guards_refusals_are_in_the_dialect_too() {
    let server = Server::start().await;
    let path = "/blob/default.blob.peregrine.local/azureml/f";
    let bare = async |method: Method| send(without_token(server.user.request(method, path))).await;
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        refused(&bare(method).await, 401, "AuthenticationFailed");
    }
    refused(&ask(&server.with_token("wrong"), Method::GET, path, None).await, 401, "AuthenticationFailed");
    refused(&ask(&server.agent, Method::GET, path, None).await, 401, "AuthenticationFailed");
    refused(&ask(&server.user, Method::POST, path, None).await, 405, "UnsupportedHttpVerb");
    refused(&ask(&server.user, Method::GET, path, None).await, 404, "BlobNotFound");
    refused(&ask(&server.user, Method::GET, "/blob/nobody.blob.x/azureml/f", None).await, 404, "ContainerNotFound");
    refused(&ask(&server.user, Method::GET, "/blob/.drafts.blob.x/any/f", None).await, 404, "ContainerNotFound");
    refused(
        &ask(&server.user, Method::GET, &format!("{path}?comp=tags"), None).await,
        400,
        "InvalidQueryParameterValue",
    );
}

#[tokio::test]
async fn containers_are_there_made_and_made_once() {
    let server = Server::start().await;
    let at = |name: &str, query: &str| format!("/blob/default.blob.peregrine.local/{name}?{query}");
    let token = async |method, name: &str| ask(&server.user, method, &at(name, "restype=container"), None).await;
    assert_eq!(token(Method::GET, "azureml").await.status, 200);
    refused(&token(Method::GET, "mine").await, 404, "ContainerNotFound");
    assert_eq!(token(Method::PUT, "mine").await.status, 201);
    refused(&token(Method::PUT, "mine").await, 409, "ContainerAlreadyExists");
    assert_eq!(token(Method::HEAD, "mine").await.status, 200);
    for bad in ["Mine", "a", ".drafts", "a..b"] {
        let answer = token(Method::PUT, bad).await;
        assert!(matches!(answer.status, 400 | 404), "{bad}: {}", answer.status);
    }
    let account = ask(&server.user, Method::GET, &at("", "restype=account&comp=properties"), None).await;
    assert_eq!((account.status, account.header("x-ms-account-kind")), (200, "StorageV2"));
    let container = Container::open(&server).await;
    assert_eq!(container.ask(Method::HEAD, "", "restype=container&", &[]).await.status, 200);
    refused(&container.ask(Method::PUT, "", "restype=container&", &[]).await, 403, "AuthorizationFailed");
}
