//! Data from real stores: an S3 and an Azure Blob server, web servers and folders, all on loopback.

use crate::servers::{Server, answering_once, azurite, moto, web};
use agent::data::{Data, Error, Eval, Secrets};
use domain::Place;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

const NONE: Secrets = BTreeMap::new();
const MIB: usize = 1 << 20;

struct Nodes {
    data: Data,
    home: tempfile::TempDir,
}

fn node(limit_bytes: u64) -> Nodes {
    let _installed_by_another_test = rustls::crypto::ring::default_provider().install_default();
    let home = tempfile::tempdir().unwrap();
    Nodes { data: Data::new(home.path(), limit_bytes), home }
}

/// An address in a store, as a plan would hold it, and its secrets.
fn object(server: &Server, key: &str) -> (Place, Secrets) {
    let url = format!("{}/{key}", server.bucket);
    let secrets = BTreeMap::from([("store".to_owned(), server.secrets.clone())]);
    (Place::Object { url, datastore: "store".to_owned(), options: server.options.clone() }, secrets)
}

/// A folder with a small file, an empty one, one large enough for several parts, and names that need care.
fn sample(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let large: Vec<u8> = (0..34 * MIB).map(|i| (i / 251) as u8).collect();
    let files = BTreeMap::from([
        ("a.txt".to_owned(), b"alpha".to_vec()),
        ("deep/er/empty".to_owned(), Vec::new()),
        ("deep/name with space + é%20#.bin".to_owned(), vec![7; 1000]),
        ("large.bin".to_owned(), large),
    ]);
    for (name, content) in &files {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), content).unwrap();
    }
    files
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let tree = agent::data::walk(folder).unwrap();
    let files = tree.entries.iter().filter(|entry| folder.join(&entry.name).is_file());
    files.map(|entry| (entry.name.clone(), fs::read(folder.join(&entry.name)).unwrap())).collect()
}

async fn a_store_keeps_what_it_is_sent(server: &Server) {
    let Nodes { data, home } = node(1 << 30);
    let folder = home.path().join("out");
    let files = sample(&folder);
    let (place, secrets) = object(server, "jobs/one");
    let sent = data.send(&folder, &place, &secrets).await.unwrap().bytes;
    assert_eq!(sent, files.values().map(|content| content.len() as u64).sum::<u64>());

    let view = data.view(&place, &secrets, "att_1").await.unwrap();
    assert!(contents(&view) == files, "{:?}", contents(&view).keys());
    assert_eq!(data.view(&place, &secrets, "att_2").await.unwrap(), view, "unchanged data is fetched once");

    let (one, _) = object(server, "jobs/one/a.txt");
    let file = data.view(&one, &secrets, "att_1").await.unwrap();
    assert_eq!((file.file_name().unwrap().to_str(), fs::read(&file).unwrap()), (Some("a.txt"), b"alpha".to_vec()));
    data.send(&folder.join("large.bin"), &one, &secrets).await.unwrap();
    let newer = data.view(&one, &secrets, "att_1").await.unwrap();
    assert!(newer != file && fs::read(newer).unwrap() == files["large.bin"], "a change is seen");

    let copy = data.copy(&place, &secrets, &home.path().join("copy")).await.unwrap();
    assert_eq!(copy, home.path().join("copy"));
    assert_eq!(contents(&copy).len(), files.len());
    fs::write(copy.join("deep/er/empty"), "mine").unwrap();
    let (nothing, _) = object(server, "jobs/on");
    let error = data.view(&nothing, &secrets, "att_1").await.unwrap_err();
    assert!(matches!(&error, Error::Absent { at } if at.ends_with("/jobs/on")), "{error:?}");
}

#[tokio::test]
async fn an_s3_store_keeps_what_it_is_sent() {
    let Some(server) = moto() else { return };
    a_store_keeps_what_it_is_sent(&server).await;
}

#[tokio::test]
async fn an_azure_store_keeps_what_it_is_sent() {
    let Some(server) = azurite() else { return };
    a_store_keeps_what_it_is_sent(&server).await;
}

#[tokio::test]
async fn cached_data_is_evicted_only_when_nobody_holds_it() {
    let Some(server) = moto() else { return };
    let Nodes { data, home } = node(3 * MIB as u64);
    fs::write(home.path().join("f"), vec![1; 2 * MIB]).unwrap();
    let (first, secrets) = object(&server, "evict/first");
    let (second, _) = object(&server, "evict/second");
    for place in [&first, &second] {
        data.send(&home.path().join("f"), place, &secrets).await.unwrap();
    }
    let held = data.view(&first, &secrets, "att_1").await.unwrap();
    let other = data.view(&second, &secrets, "att_2").await.unwrap();
    assert!(held.exists() && other.exists(), "more than the limit, but all in use");

    // A later agent knows of the first attempt only.
    let data = Data::new(home.path(), 3 * MIB as u64);
    data.keep_only(&["att_1"]);
    let (third, _) = object(&server, "evict/third");
    data.send(&home.path().join("f"), &third, &secrets).await.unwrap();
    data.view(&third, &secrets, "att_3").await.unwrap();
    assert!(held.exists() && !other.exists());
    data.release("att_1");
    let large = data.copy(&second, &secrets, &home.path().join("copy")).await.unwrap();
    assert_eq!((fs::metadata(large).unwrap().len(), held.exists()), (2 * MIB as u64, false));
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_named() {
    let Nodes { data, .. } = node(0);
    let options = [("endpoint", "http://127.0.0.1:9"), ("region", "x"), ("skip_signature", "true")];
    let options: BTreeMap<String, String> = options.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let place = |url: &str| Place::Object { url: url.to_owned(), datastore: "d".to_owned(), options: options.clone() };
    let error = data.view(&place("s3://bucket/key"), &NONE, "a").await.unwrap_err();
    assert_eq!(error.to_string(), "`s3://bucket/key` cannot be read");
    for bad in ["ftp://b/k", "s3:/b", "s3://b/a/../k"] {
        assert!(matches!(data.view(&place(bad), &NONE, "a").await, Err(Error::BadAddress { .. })), "{bad}");
    }
}

#[tokio::test]
async fn a_web_file_is_fetched_once_per_version() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), "a,b\n").unwrap();
    let server = web(folder.path());
    let Nodes { data, home } = node(1 << 20);
    let place = Place::Http { url: format!("{}/t.csv?sig=secret", server.bucket) };
    let first = data.view(&place, &NONE, "att_1").await.unwrap();
    assert_eq!(
        (first.file_name().unwrap().to_str(), fs::read_to_string(&first).unwrap()),
        (Some("t.csv"), "a,b\n".into())
    );
    assert_eq!(data.view(&place, &NONE, "att_1").await.unwrap(), first);
    fs::write(folder.path().join("t.csv"), "a,b\n1,2\n").unwrap();
    let copy = data.copy(&place, &NONE, &home.path().join("in")).await.unwrap();
    assert_eq!((copy.clone(), fs::read_to_string(copy).unwrap()), (home.path().join("in/t.csv"), "a,b\n1,2\n".into()));

    let missing = Place::Http { url: format!("{}/none.csv?sig=secret", server.bucket) };
    let error = data.view(&missing, &NONE, "att_1").await.unwrap_err().to_string();
    assert!(error.contains("/none.csv`") && !error.contains("secret"), "{error}");
    assert!(matches!(data.send(folder.path(), &missing, &NONE).await, Err(Error::ReadOnly { .. })));
}

#[tokio::test]
async fn a_web_server_without_versions_is_asked_each_time_and_a_cut_answer_is_refused() {
    let Nodes { data, home } = node(1 << 20);
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
    let refused = "HTTP/1.1 405 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let url = answering_once(&[
        refused,
        whole,
        refused,
        "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        whole,
    ]);
    let place = Place::Http { url: format!("{url}/f") };
    let first = data.view(&place, &NONE, "a").await.unwrap();
    assert_eq!(data.view(&place, &NONE, "a").await.unwrap(), first, "the same content is the same entry");
    assert_eq!(fs::read_to_string(first).unwrap(), "hi");

    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 20\r\nConnection: close\r\n\r\nhi";
    let place = Place::Http { url: format!("{}/f", answering_once(&[refused, cut, cut, cut, cut])) };
    assert!(data.view(&place, &NONE, "a").await.is_err());
    let left: Vec<PathBuf> = fs::read_dir(home.path().join("cache/data")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test]
async fn a_folder_is_viewed_in_place_and_sent_whole() {
    let Nodes { data, home } = node(0);
    let (from, to) = (home.path().join("from"), home.path().join("to/deep"));
    let files = sample(&from);
    let place = Place::Folder { path: from.clone() };
    assert_eq!(data.view(&place, &NONE, "a").await.unwrap(), from);
    let bytes = data.send(&from, &Place::Folder { path: to.clone() }, &NONE).await.unwrap().bytes;
    assert_eq!(bytes, files.values().map(|content| content.len() as u64).sum::<u64>());
    assert!(contents(&to) == files);
    assert_eq!(
        data.send(&to, &Place::Folder { path: to.clone() }, &NONE).await.unwrap().bytes,
        bytes,
        "onto itself is no work"
    );
    data.send(&from.join("a.txt"), &Place::Folder { path: home.path().join("x/b.txt") }, &NONE).await.unwrap();
    assert_eq!(fs::read(home.path().join("x/b.txt")).unwrap(), b"alpha");
    let copy = data.copy(&Place::Folder { path: from.join("a.txt") }, &NONE, &home.path().join("c")).await.unwrap();
    assert_eq!(copy, home.path().join("c/a.txt"));

    let missing = Place::Folder { path: home.path().join("none") };
    assert!(matches!(data.view(&missing, &NONE, "a").await, Err(Error::Absent { .. })));
    std::os::unix::fs::symlink("/etc/hostname", from.join("leak")).unwrap();
    assert!(matches!(data.send(&from, &Place::Folder { path: to }, &NONE).await, Err(Error::Leaves { .. })));
}

#[tokio::test]
async fn many_files_are_sent_to_a_folder() {
    let Nodes { data, home } = node(0);
    let from = home.path().join("from");
    fs::create_dir(&from).unwrap();
    (0..300).for_each(|i| fs::write(from.join(format!("{i:03}")), [1]).unwrap());
    assert_eq!(data.send(&from, &Place::Folder { path: home.path().join("to") }, &NONE).await.unwrap().bytes, 300);
    assert_eq!(contents(&home.path().join("to")).len(), 300);
}

#[tokio::test]
async fn an_mltable_is_laid_out_as_the_files_it_names() {
    let Nodes { data, home } = node(1 << 20);
    let server = web(home.path());
    let table = home.path().join("table");
    sample(&table);
    fs::write(home.path().join("web.csv"), "w").unwrap();
    let paths = format!("paths:\n- file: ./a.txt\n- pattern: ./deep/**/emp*\n- file: {}/web.csv\n", server.bucket);
    fs::write(table.join("MLTable"), format!("{paths}transformations:\n- take: 1\n")).unwrap();
    let eval = Eval { copies: false, secrets: &NONE, holder: "a" };
    let evaluated = data.mltable(&table, &home.path().join("mount"), &eval).await.unwrap();
    assert_eq!(evaluated.folder, home.path().join("mount"));
    assert!(evaluated.notices[0].contains("left to the script"));
    let host = server.bucket.strip_prefix("http://").unwrap().replace(':', "_");
    for (name, is_link) in
        [("a.txt", true), ("deep/er/empty", true), (&format!("{host}/web.csv"), true), ("large.bin", false)]
    {
        let laid = home.path().join("mount").join(name);
        assert_eq!(laid.is_symlink() && laid.is_file(), is_link, "{name}");
    }
    let eval = Eval { copies: true, ..eval };
    data.mltable(&table, &home.path().join("copies"), &eval).await.unwrap();
    assert!(!home.path().join("copies/a.txt").is_symlink());

    for (paths, reason) in [
        ("- file: ../secret", "leaves its folder"),
        ("- pattern: ./*.none", "matches no file"),
        ("- file: azureml://datastores/d/paths/x", "no address"),
        ("- folder: ./missing", "nothing at"),
        ("- x: 1", "each of `paths`"),
    ] {
        fs::write(table.join("MLTable"), format!("paths:\n{paths}\n")).unwrap();
        let message = data.mltable(&table, &home.path().join("bad"), &eval).await.unwrap_err().to_string();
        assert!(message.contains(reason), "{message}");
    }
}

/// The agent runs these as tasks, so they must be able to move between threads.
#[test]
fn the_work_can_be_given_to_a_task() {
    fn is_send<T: Send>(_: T) {}
    let Nodes { data, home } = node(0);
    let place = Place::default();
    let eval = Eval { copies: false, secrets: &NONE, holder: "a" };
    is_send(data.view(&place, &NONE, "a"));
    is_send(data.copy(&place, &NONE, home.path()));
    is_send(data.send(home.path(), &place, &NONE));
    is_send(data.mltable(home.path(), home.path(), &eval));
    let environments = agent::environment::Environments::new(home.path());
    let (plan, log) = (domain::EnvironmentPlan::default(), crate::environment::Heard::default());
    is_send(environments.prepare(&plan, None, false, &log));
}
