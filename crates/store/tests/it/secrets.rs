//! Credentials at rest: no file holds them in the clear, and they open with their own key only.

use super::{NOW, fresh};
use std::{collections::BTreeMap, fs};
use store::{DatastoreRow, Error, Store};

const SECRET: &str = "hunter2-hunter2-hunter2";

#[tokio::test]
async fn no_file_of_the_home_holds_a_secret_in_the_clear() {
    let (home, store) = fresh();
    put(&store, Some(SECRET)).await;
    assert_eq!(secret(&store).await.unwrap().get("account_key").map(String::as_str), Some(SECRET));
    for entry in fs::read_dir(home.path()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = fs::read(entry.path()).unwrap();
        let clear = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!clear, "{} holds the secret", entry.path().display());
    }
}

#[tokio::test]
async fn a_change_without_a_secret_keeps_the_one_there_is() {
    let (_home, store) = fresh();
    put(&store, Some(SECRET)).await;
    put(&store, None).await;
    assert_eq!(secret(&store).await.unwrap().get("account_key").map(String::as_str), Some(SECRET));
    let row = store.read(|tx| tx.datastore("w", "lake")).await.unwrap().unwrap();
    assert!(row.has_secret && !row.body.contains(SECRET));
}

#[tokio::test]
async fn a_database_without_its_key_gives_no_secret_away() {
    let (home, store) = fresh();
    put(&store, Some(SECRET)).await;
    drop(store);
    fs::remove_file(home.path().join("keys/seal.key")).unwrap();
    let other = home.open();
    let error = secret(&other).await.unwrap_err();
    assert!(matches!(&error, Error::Decode(why) if why.contains("w/lake")), "{error}");
    assert!(!error.to_string().contains(SECRET));
}

async fn put(store: &Store, secret: Option<&str>) {
    let secret = secret.map(|text| BTreeMap::from([("account_key".to_owned(), text.to_owned())]));
    let row = DatastoreRow {
        name: "lake".into(),
        body: "{}".into(),
        is_default: false,
        has_secret: secret.is_some(),
        created_at: NOW,
        changed_at: NOW,
    };
    store.write(move |tx| tx.put_datastore("w", &row, secret.as_ref())).await.unwrap();
}

async fn secret(store: &Store) -> Result<BTreeMap<String, String>, Error> {
    store.read(|tx| tx.datastore_secret("w", "lake")).await
}
