//! Listing: prefixes, delimiters, pages, notes.

use super::{Container, md5, refused};
use crate::Server;
use reqwest::Method;

fn between<'t>(text: &'t str, open: &str, close: &str) -> Vec<&'t str> {
    text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap()).collect()
}

async fn list(container: &Container, query: &str) -> String {
    let listed = container.ask(Method::GET, "", &format!("restype=container&comp=list&{query}&"), &[]).await;
    assert_eq!((listed.status, listed.header("content-type")), (200, "application/xml"), "{}", listed.text());
    listed.text()
}

#[tokio::test]
async fn a_container_is_listed_by_prefix_in_order() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    for name in ["b/2", "a/1", "b/1", "b%20&%20c/%3Cx%3E", "bell%07"] {
        assert_eq!(container.put(name, "x", &[]).await.status, 201);
    }
    let names = async |prefix: &str| {
        let text = list(&container, &format!("prefix={prefix}")).await;
        between(&text, "<Blob><Name", "</Name>").join(" ")
    };
    assert_eq!(names("").await, ">a/1 >b &amp; c/&lt;x&gt; >b/1 >b/2  Encoded=\"true\">bell%07");
    assert_eq!(names("b/").await, ">b/1 >b/2");
    for none in ["none/", "..%2F", "%2F", "a%2F%2F"] {
        assert_eq!(names(none).await, "");
    }
}

#[tokio::test]
async fn a_delimiter_shows_folders() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    for name in ["a/1", "a/2/3", "top"] {
        container.put(name, "x", &[]).await;
    }
    let text = list(&container, "delimiter=/").await;
    assert!(text.contains("<BlobPrefix><Name>a/</Name></BlobPrefix>") && text.contains("<Name>top</Name>"), "{text}");
    assert_eq!(text.matches("<Name>").count(), 2);
    let text = list(&container, "delimiter=/&prefix=a/").await;
    assert_eq!(between(&text, "<Name>", "</Name>"), ["a/1", "a/2/"]);
}

#[tokio::test]
async fn twelve_thousand_blobs_come_in_pages_that_skip_and_repeat_none() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let folder = container.folder(&server).join("many");
    std::fs::create_dir_all(&folder).unwrap();
    let name = |n: usize| format!("{n:05}");
    (0..12_000).for_each(|n| drop(std::fs::File::create(folder.join(name(n))).unwrap()));
    let (mut marker, mut seen, mut sizes) = (String::new(), Vec::new(), Vec::new());
    loop {
        let text = list(&container, &format!("prefix=many/&marker={marker}")).await;
        let names = between(&text, "<Name>", "</Name>");
        sizes.push(names.len());
        seen.extend(names.iter().map(|name| name.trim_start_matches("many/").to_owned()));
        marker = between(&text, "<NextMarker>", "</NextMarker>")[0].to_owned();
        if marker.is_empty() {
            break;
        }
        // Blobs that come and go before and behind the marker do not move it.
        std::fs::remove_file(folder.join(name(sizes.len()))).unwrap();
        std::fs::write(folder.join("00000a"), "x").unwrap();
    }
    assert_eq!(sizes, [5000, 5000, 2000]);
    assert_eq!(seen, (0..12_000).map(name).collect::<Vec<_>>());
    let text = list(&container, "prefix=many/&maxresults=7").await;
    assert_eq!(text.matches("<Blob>").count(), 7);
}

#[tokio::test]
async fn a_listing_tells_what_a_look_at_the_blob_tells() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let digest = md5(b"x");
    let headers = [("content-md5", digest.as_str()), ("x-ms-blob-content-type", "text/x"), ("x-ms-meta-a", "<1>")];
    let tag = container.put("f", "x", &headers).await.header("etag").trim_matches('"').to_owned();
    let text = list(&container, "include=metadata").await;
    for part in [
        format!("<Etag>{tag}</Etag>"),
        format!("<Content-MD5>{digest}</Content-MD5>"),
        "<Content-Type>text/x</Content-Type>".to_owned(),
        "<Metadata><a>&lt;1&gt;</a></Metadata>".to_owned(),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    assert!(!list(&container, "").await.contains("<Metadata>"));
}

#[tokio::test]
async fn a_page_that_cannot_be_is_refused() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    for query in ["maxresults=0", "maxresults=many", "marker=%3F%3F"] {
        let answer = container.ask(Method::GET, "", &format!("restype=container&comp=list&{query}&"), &[]).await;
        refused(&answer, 400, "InvalidQueryParameterValue");
    }
}
