//! `…/jobs/{name}/artifacts`: files of a job by byte offset, while it runs and after.

use crate::Server;
use serde_json::json;
use std::{fs, io::Write, path::PathBuf};

const LOG: &str = "jobs/talker/artifacts/user_logs/std_log.txt";

#[tokio::test]
async fn a_log_is_read_from_any_offset() {
    let server = Server::start().await;
    server.submit("talker").await;
    write(&server, "user_logs/std_log.txt", b"one\ntwo\n");
    let whole = server.get(LOG).await;
    assert_eq!((whole.text().as_str(), whole.header("x-peregrine-next")), ("one\ntwo\n", "8"));
    let rest = server.get(&format!("{LOG}?offset=4")).await;
    assert_eq!((rest.text().as_str(), rest.header("x-peregrine-next")), ("two\n", "8"));
    assert_eq!(rest.header("x-peregrine-phase"), "queued");
    let beyond = server.get(&format!("{LOG}?offset=100")).await;
    assert_eq!((beyond.status, beyond.text().as_str(), beyond.header("x-peregrine-over")), (200, "", "false"));
    for far in ["9223372036854775807", "18446744073709551615"] {
        let beyond = server.get(&format!("{LOG}?offset={far}")).await;
        assert_eq!((beyond.status, beyond.header("x-peregrine-next")), (200, far));
    }
    for none in ["jobs/talker/artifacts/user_logs/other.txt", &format!("{LOG}/x"), &format!("{LOG}/x?offset=1")] {
        server.get(none).await.refused(404);
    }
}

#[tokio::test]
async fn whoever_waits_for_more_gets_it_when_it_is_written() {
    let server = Server::start().await;
    server.submit("talker").await;
    write(&server, "user_logs/std_log.txt", b"one\n");
    let after = |offset: u64| format!("{LOG}?offset={offset}&wait=30");
    let (first, second) = (after(4), after(8));
    let (more, ()) = tokio::join!(server.get(&first), async {
        write(&server, "user_logs/std_log.txt", b"two\n");
    });
    assert_eq!(more.text(), "two\n");
    // The end of the job ends the wait, and says that nothing more will come.
    let (end, _) = tokio::join!(server.get(&second), server.post("jobs/talker/cancel", json!({})));
    assert_eq!((end.text().as_str(), end.header("x-peregrine-status")), ("", "Canceled"));
    assert_eq!(end.header("x-peregrine-over"), "true");
}

#[tokio::test]
async fn a_long_file_comes_in_pieces() {
    let server = Server::start().await;
    server.submit("talker").await;
    let long: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    write(&server, "outputs/long.bin", &long);
    let mut got = Vec::new();
    loop {
        let piece = server.get(&format!("jobs/talker/artifacts/outputs/long.bin?offset={}", got.len())).await;
        if piece.bytes.is_empty() {
            break;
        }
        got.extend(piece.bytes);
    }
    assert!(got == long);
}

#[tokio::test]
async fn files_are_listed_and_nothing_outside_the_job_is_served() {
    let server = Server::start().await;
    server.submit("talker").await;
    write(&server, "user_logs/std_log.txt", b"one\n");
    write(&server, "outputs/deep/er/file.txt", b"12345");
    let listed = server.get("jobs/talker/artifacts").await.expect(200);
    let files: Vec<(&str, u64)> = listed["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| (f["path"].as_str().unwrap(), f["size"].as_u64().unwrap()))
        .collect();
    assert_eq!(files, [("outputs/deep/er/file.txt", 5), ("user_logs/std_log.txt", 4)]);
    std::os::unix::fs::symlink(server.home.path().join("keys/user.token"), folder(&server).join("outputs/link"))
        .unwrap();
    for path in ["..%2F..%2F..%2F..%2F..%2Fkeys%2Fuser.token", "%2Fetc%2Fpasswd", "outputs/link"] {
        let answer = server.get(&format!("jobs/talker/artifacts/{path}")).await;
        assert!((400..500).contains(&answer.status), "{path}: {} {}", answer.status, answer.text());
    }
}

fn folder(server: &Server) -> PathBuf {
    server.home.path().join("blobs/default/azureml/ExperimentRun/dcid.talker")
}

/// Adds to a file of the job, as an agent on this machine does.
fn write(server: &Server, path: &str, bytes: &[u8]) {
    let path = folder(server).join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::File::options().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
}
