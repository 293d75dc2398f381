//! Writing a blob in one request: conditions, digests, notes, names.

use super::{Container, drafts, md5, refused};
use crate::{Server, ask};
use reqwest::Method;

#[tokio::test]
async fn a_blob_that_must_be_new_is_not_replaced() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let only_new = [("if-none-match", "*")];
    assert_eq!(container.put("f", "one", &only_new).await.status, 201);
    refused(&container.put("f", "two", &only_new).await, 409, "BlobAlreadyExists");
    refused(&container.put("f", vec![0; 3_000_000], &only_new).await, 409, "BlobAlreadyExists");
    assert_eq!(container.get("f").await.text(), "one");
    assert_eq!(container.put("f", "three", &[]).await.status, 201);
    assert_eq!(container.get("f").await.text(), "three");
}

#[tokio::test]
async fn of_writers_that_expect_the_same_blob_one_wins() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let tag = container.put("f", "first", &[]).await.header("etag").to_owned();
    refused(&container.put("none", "x", &[("if-match", &tag)]).await, 412, "ConditionNotMet");
    refused(&container.put("f", "x", &[("if-match", "\"0x0\"")]).await, 412, "ConditionNotMet");
    let headers = [("if-match", tag.as_str())];
    let writes = (0..8).map(|n| container.put("f", format!("writer {n}"), &headers));
    let answers = futures_util::future::join_all(writes).await;
    let won: Vec<usize> = (0..8).filter(|n| answers[*n].status == 201).collect();
    assert_eq!(won.len(), 1);
    assert!(answers.iter().all(|answer| matches!(answer.status, 201 | 412)));
    assert_eq!(container.get("f").await.text(), format!("writer {}", won[0]));
    assert!(drafts(&server).is_empty());
}

#[tokio::test]
async fn of_writers_of_a_new_blob_one_wins_and_nothing_is_mixed() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let only_new = [("if-none-match", "*")];
    let writes = (0..16u8).map(|n| container.put("f", vec![b'a' + n; 400_000], &only_new));
    let answers = futures_util::future::join_all(writes).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    let bytes = container.get("f").await.bytes;
    assert!(bytes.len() == 400_000 && bytes.iter().all(|byte| *byte == bytes[0]));
}

#[tokio::test]
async fn a_digest_is_checked_kept_and_told() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let large = vec![7u8; 3_000_000];
    for header in ["content-md5", "x-ms-blob-content-md5"] {
        for bytes in [b"small".to_vec(), large.clone()] {
            let good = md5(&bytes);
            let written =
                container.put("f", bytes.clone(), &[(header, &good), ("x-ms-content-crc64", "AAAAAAAAAAA=")]).await;
            assert_eq!((written.status, written.header("content-md5")), (201, good.as_str()));
            for method in [Method::GET, Method::HEAD] {
                assert_eq!(container.ask(method, "f", "", &[]).await.header("content-md5"), good);
            }
            refused(&container.put("f", bytes.clone(), &[(header, &md5(b"other"))]).await, 400, "Md5Mismatch");
            refused(&container.put("g", bytes, &[(header, "bm9uc2Vuc2U=")]).await, 400, "InvalidMd5");
            assert_eq!(container.ask(Method::HEAD, "f", "", &[]).await.header("content-md5"), good);
        }
    }
    refused(&container.get("g").await, 404, "BlobNotFound");
    assert!(drafts(&server).is_empty());
}

#[tokio::test]
async fn type_and_metadata_stay_with_their_blob_and_go_with_it() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let headers = [
        ("x-ms-blob-content-type", "text/csv"),
        ("content-type", "application/x-other"),
        ("x-ms-blob-cache-control", "no-store"),
        ("x-ms-meta-Name", "train"),
        ("x-ms-meta-note", "grün & <gut>"),
    ];
    container.put("f", "x", &headers).await;
    for method in [Method::GET, Method::HEAD] {
        let answer = container.ask(method, "f", "", &[]).await;
        assert_eq!(answer.header("content-type"), "text/csv");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("x-ms-meta-name"), "train");
        assert_eq!(answer.headers["x-ms-meta-note"].as_bytes(), "grün & <gut>".as_bytes());
    }
    let marked = container.ask(Method::PUT, "f", "comp=metadata&", &[("x-ms-meta-upload_status", "completed")]).await;
    assert_eq!(marked.status, 200);
    let head = container.ask(Method::HEAD, "f", "", &[]).await;
    assert_eq!((head.header("x-ms-meta-upload_status"), head.header("x-ms-meta-name")), ("completed", ""));
    assert_eq!(head.header("content-type"), "text/csv");
    container.ask(Method::PUT, "f", "comp=properties&", &[("x-ms-blob-content-type", "text/plain")]).await;
    let head = container.ask(Method::HEAD, "f", "", &[]).await;
    assert_eq!((head.header("content-type"), head.header("x-ms-meta-upload_status")), ("text/plain", "completed"));
    container.put("f", "y", &[]).await;
    let head = container.ask(Method::HEAD, "f", "", &[]).await;
    assert_eq!((head.header("content-type"), head.header("x-ms-meta-upload_status")), ("application/octet-stream", ""));
    refused(&container.ask(Method::PUT, "none", "comp=metadata&", &[]).await, 404, "BlobNotFound");
    let long = "x".repeat(9000);
    refused(&container.put("f", "z", &[("x-ms-meta-a", &long)]).await, 400, "MetadataTooLarge");
}

#[tokio::test]
async fn metadata_that_does_not_fit_beside_the_bytes_is_kept_all_the_same() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let long = "x".repeat(7000);
    let tag = container.put("f", "x", &[("x-ms-meta-long", &long)]).await.header("etag").to_owned();
    let head = container.ask(Method::HEAD, "f", "", &[]).await;
    assert!(head.header("x-ms-meta-long") == long && head.header("etag") == tag);
    let listed = container.ask(Method::GET, "", "restype=container&comp=list&include=metadata&", &[]).await;
    assert!(listed.text().contains(&format!("<long>{long}</long>")));
    container.put("f", "y", &[]).await;
    assert_eq!(container.ask(Method::HEAD, "f", "", &[]).await.header("x-ms-meta-long"), "");
    container.put("f", "x", &[("x-ms-meta-long", &long)]).await;
    assert_eq!(container.ask(Method::DELETE, "f", "", &[]).await.status, 202);
    std::fs::write(container.folder(&server).join("f"), "by a job").unwrap();
    assert_eq!(container.ask(Method::HEAD, "f", "", &[]).await.header("x-ms-meta-long"), "");
}

#[tokio::test]
async fn metadata_of_an_older_server_is_still_told() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let folder = container.folder(&server);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("f"), "x").unwrap();
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let map = std::collections::BTreeMap::from([("upload_status".to_owned(), "completed".to_owned())]);
    server.store.write(move |tx| tx.put_blob_metadata("default", &name, "f", &map)).await.unwrap();
    assert_eq!(container.ask(Method::HEAD, "f", "", &[]).await.header("x-ms-meta-upload_status"), "completed");
}

#[tokio::test]
async fn a_blob_is_deleted_once() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.put("a/b/f", "x", &[]).await;
    refused(&container.ask(Method::DELETE, "a/b/f", "", &[("if-match", "\"0x0\"")]).await, 412, "ConditionNotMet");
    assert_eq!(container.ask(Method::DELETE, "a/b/f", "", &[]).await.status, 202);
    refused(&container.ask(Method::DELETE, "a/b/f", "", &[]).await, 404, "BlobNotFound");
    refused(&container.get("a/b/f").await, 404, "BlobNotFound");
    assert_eq!(container.put("a", "now a blob", &[]).await.status, 201);
}

#[tokio::test]
async fn a_path_never_leaves_its_container() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let long = "x".repeat(1025);
    for path in [
        "..%2F..%2F..%2Fkeys%2Fuser.token",
        "a%2F..%2F..%2Fb",
        "%2Fetc%2Fpasswd",
        "a%00b",
        "a%2F%2Fb",
        "a%2F",
        "%2E%2E",
        &long,
    ] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let answer = container.ask(method, path, "", &[]).await;
            assert!((400..500).contains(&answer.status), "{path}: {} {}", answer.status, answer.text());
            assert!(!answer.header("x-ms-error-code").is_empty());
        }
    }
    for path in ["%F0%9F%A6%85", "a%20b%2Bc%25.txt", "%E6%97%A5/x", "a%2Fb", "q%3Fx%23y"] {
        assert_eq!(container.put(path, path, &[]).await.status, 201, "{path}");
        assert_eq!(container.get(path).await.text(), path);
    }
    assert_eq!(container.get("a/b").await.text(), "a%2Fb");
    refused(&container.get("none").await, 404, "BlobNotFound");
}

#[tokio::test]
async fn a_name_that_is_a_folder_of_others_is_a_conflict() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.put("a/b", "x", &[]).await;
    for headers in [&[][..], &[("if-none-match", "*")]] {
        refused(&container.put("a", "x", headers).await, 409, "BlobNameConflict");
        refused(&container.put("a/b/c", "x", headers).await, 409, "BlobNameConflict");
    }
    refused(&container.get("a").await, 404, "BlobNotFound");
    assert!(drafts(&server).is_empty());
}

#[tokio::test]
async fn a_write_of_another_kind_leaves_no_empty_blob_behind() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    let copy = [("x-ms-copy-source", "https://example.org/x")];
    refused(&container.ask(Method::PUT, "f", "", &copy).await, 400, "UnsupportedHeader");
    refused(&container.ask(Method::PUT, "f", "", &[("x-ms-blob-type", "PageBlob")]).await, 400, "InvalidBlobType");
    refused(&container.get("f").await, 404, "BlobNotFound");
}

#[tokio::test]
async fn a_link_a_job_left_is_not_followed_out() {
    let server = Server::start().await;
    let container = Container::open(&server).await;
    container.put("f", "x", &[]).await;
    let folder = container.folder(&server);
    std::os::unix::fs::symlink(server.home.path().join("keys"), folder.join("out")).unwrap();
    refused(&container.get("out/user.token").await, 404, "BlobNotFound");
    refused(&container.put("out/mine", "x", &[]).await, 409, "BlobNameConflict");
    assert!(!server.home.path().join("keys/mine").exists());
    let own = ask(&server.user, Method::GET, "/blob/default.blob.x/azureml/none", None).await;
    refused(&own, 404, "BlobNotFound");
}
