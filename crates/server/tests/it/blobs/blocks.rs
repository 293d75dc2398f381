//! Uploads in blocks.

use super::{Container, drafts, md5, numbered, refused};
use crate::Server;
use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::Method;

#[tokio::test]
async fn blocks_sent_32_at_a_time_are_one_blob_in_the_order_of_their_list() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let bytes: Vec<u8> = (0..64 * 50_000 + 17u32).map(|n| (n / 7 % 251) as u8).collect();
    let parts: Vec<&[u8]> = bytes.chunks(50_000).collect();
    let names: [fn(usize) -> String; 3] =
        [|n| numbered(n * 50_000), |n| STANDARD.encode(format!("{n:05}")), |n| STANDARD.encode(format!("part+{n}"))];
    for name in names {
        let ids: Vec<String> = (0..parts.len()).map(name).collect();
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by_key(|n| n * 37 % 65);
        for some in order.chunks(32) {
            let sent = some.iter().map(|n| async {
                container.block("big", &ids[*n], parts[*n], &[("content-md5", &md5(parts[*n]))]).await.status
            });
            assert!(futures_util::future::join_all(sent).await.iter().all(|status| *status == 201));
        }
        refused(&container.ask(Method::GET, "big", "", &[("if-match", "*"), ("x", "y")]).await, 404, "BlobNotFound");
        let headers = [
            ("x-ms-blob-content-md5", md5(&bytes)),
            ("x-ms-meta-a", "b".into()),
            ("x-ms-blob-content-type", "text/x".into()),
        ];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let done = container.commit("big", "Latest", &ids, &headers).await;
        assert_eq!(done.status, 201, "{}", done.text());
        let got = container.get("big").await;
        assert!(got.bytes == bytes);
        let told = ["content-md5", "x-ms-meta-a", "content-type", "etag"].map(|name| got.header(name).to_owned());
        assert_eq!(told, [md5(&bytes), "b".into(), "text/x".into(), done.header("etag").to_owned()]);
        assert_eq!(drafts(&server), Vec::<String>::new());
        assert_eq!(container.ask(Method::DELETE, "big", "", &[]).await.status, 202);
    }
}

#[tokio::test]
async fn a_list_with_a_block_that_never_came_is_refused_and_changes_nothing() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.put("f", "before", &[]).await;
    container.block("f", &numbered(0), "new", &[]).await;
    for (element, ids) in [
        ("Latest", vec![numbered(0), numbered(3)]),
        ("Uncommitted", vec![numbered(9)]),
        ("Committed", vec![numbered(0)]),
    ] {
        refused(&container.commit("f", element, &ids, &[]).await, 400, "InvalidBlockList");
    }
    assert_eq!(container.get("f").await.text(), "before");
    assert_eq!(container.commit("f", "Uncommitted", &[numbered(0)], &[]).await.status, 201);
    assert_eq!(container.get("f").await.text(), "new");
    refused(&container.commit("f", "Latest", &[numbered(0)], &[]).await, 400, "InvalidBlockList");
}

#[tokio::test]
async fn a_repeated_block_replaces_and_a_broken_one_does_not() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.block("f", &numbered(0), "one!", &[]).await;
    container.block("f", &numbered(4), "tail", &[]).await;
    refused(&container.block("f", &numbered(0), "bad!", &[("content-md5", &md5(b"other"))]).await, 400, "Md5Mismatch");
    let listed = container.ask(Method::GET, "f", "comp=blocklist&blocklisttype=all&", &[]).await.text();
    assert_eq!(listed.matches("<Size>4</Size>").count(), 2, "{listed}");
    assert_eq!(container.block("f", &numbered(0), "longer two ", &[]).await.status, 201);
    assert_eq!(container.commit("f", "Latest", &[numbered(0), numbered(4)], &[]).await.status, 201);
    assert_eq!(container.get("f").await.text(), "longer two tail");
}

#[tokio::test]
async fn a_commit_obeys_conditions() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.put("f", "before", &[]).await;
    container.block("f", &numbered(0), "new", &[]).await;
    refused(
        &container.commit("f", "Latest", &[numbered(0)], &[("if-none-match", "*")]).await,
        409,
        "BlobAlreadyExists",
    );
    refused(&container.commit("f", "Latest", &[numbered(0)], &[("if-match", "\"0x0\"")]).await, 412, "ConditionNotMet");
    assert_eq!(container.get("f").await.text(), "before");
    let tag = container.get("f").await.header("etag").to_owned();
    assert_eq!(container.commit("f", "Latest", &[numbered(0)], &[("if-match", &tag)]).await.status, 201);
    assert_eq!(container.get("f").await.text(), "new");
}

#[tokio::test]
async fn an_empty_list_is_an_empty_blob() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.block("f", &numbered(0), "unused", &[]).await;
    assert_eq!(container.commit("f", "Latest", &[], &[]).await.status, 201);
    assert_eq!(container.get("f").await.header("content-length"), "0");
    assert!(drafts(&server).is_empty());
}

#[tokio::test]
async fn nonsense_in_place_of_a_block_or_a_list_is_refused() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    for id in ["", "not base64!", &"A".repeat(300)] {
        refused(&container.block("f", id, "x", &[]).await, 400, "InvalidQueryParameterValue");
    }
    for (list, code) in [
        ("", "InvalidXmlDocument"),
        ("{}", "InvalidXmlDocument"),
        ("<BlockList><Latest>", "InvalidBlockList"),
        ("<BlockList><Newest>AA==</Newest></BlockList>", "InvalidXmlDocument"),
        ("<Latest>AA==</Latest>", "InvalidXmlDocument"),
        ("<BlockList><Latest>AA==</Wrong></BlockList>", "InvalidXmlDocument"),
        ("\u{1}\u{2}", "InvalidXmlDocument"),
    ] {
        let sent = container.request(Method::PUT, "f", "comp=blocklist&", &[]).body(list);
        refused(&crate::send(sent).await, 400, code);
    }
    let many: Vec<String> = (0..50_001).map(|n| STANDARD.encode(format!("{n:05}"))).collect();
    refused(&container.commit("f", "Latest", &many, &[]).await, 400, "BlockListTooLong");
    let sent = container.request(Method::PUT, "f", "comp=blocklist&", &[]).body(vec![b' '; 17 << 20]);
    refused(&crate::send(sent).await, 413, "RequestBodyTooLarge");
    let wrong = [("content-md5", md5(b"other"))];
    refused(&container.commit("f", "Latest", &[], &[(wrong[0].0, &wrong[0].1)]).await, 400, "Md5Mismatch");
    refused(&container.get("f").await, 404, "BlobNotFound");
}

#[tokio::test]
async fn a_block_without_a_length_is_taken_too() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    for (n, text) in ["abc", "defgh"].into_iter().enumerate() {
        let query = format!("comp=block&blockid={}&", STANDARD.encode(format!("{n:03}")));
        let chunks = futures_util::stream::iter(text.bytes().map(|byte| Ok::<_, std::io::Error>(vec![byte])));
        let sent = container.request(Method::PUT, "f", &query, &[]).body(reqwest::Body::wrap_stream(chunks));
        assert_eq!(crate::send(sent).await.status, 201);
    }
    let ids: Vec<String> = (0..2).map(|n| STANDARD.encode(format!("{n:03}"))).collect();
    assert_eq!(container.commit("f", "Latest", &ids, &[]).await.status, 201);
    assert_eq!(container.get("f").await.text(), "abcdefgh");
}
