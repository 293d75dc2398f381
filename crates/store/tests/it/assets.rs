//! Assets: versions, what `latest` means, what stays out of sight.

use super::{NOW, fresh};
use store::{AssetKey, Error, Store};

#[tokio::test]
async fn a_version_is_taken_once_and_numbers_count_up() {
    let (_home, store) = fresh();
    for version in ["1", "7", "draft"] {
        add(&store, "data", "d", version, "{}").await.unwrap();
    }
    assert!(matches!(add(&store, "data", "d", "7", "{}").await, Err(Error::Exists)));
    add(&store, "models", "d", "7", "{}").await.unwrap();
    let next =
        store.read(|tx| Ok((tx.next_version("w", "data", "d")?, tx.next_version("w", "data", "none")?))).await.unwrap();
    assert_eq!(next, (8, 1));
}

#[tokio::test]
async fn latest_is_the_newest_that_is_not_archived() {
    let (_home, store) = fresh();
    for version in ["1", "2", "3"] {
        add(&store, "data", "d", version, "{}").await.unwrap();
    }
    assert_eq!(latest(&store).await.as_deref(), Some("3"));
    archive(&store, "3").await;
    assert_eq!(latest(&store).await.as_deref(), Some("2"));
}

#[tokio::test]
async fn lists_show_one_row_a_name_and_no_anonymous_asset() {
    let (_home, store) = fresh();
    add(&store, "environments", "b", "1", "{}").await.unwrap();
    add(&store, "environments", "b", "2", "{}").await.unwrap();
    add(&store, "environments", "a", "1", "{}").await.unwrap();
    add(&store, "environments", "hidden", "1", r#"{"isAnonymous":true}"#).await.unwrap();
    let heads = store.read(|tx| tx.asset_heads("w", "environments", Some(false))).await.unwrap();
    let heads: Vec<String> = heads.iter().map(|row| format!("{}:{}", row.key.name, row.key.version)).collect();
    assert_eq!(heads, ["a:1", "b:2"]);
}

async fn add(store: &Store, kind: &str, name: &str, version: &str, body: &str) -> Result<(), Error> {
    let key = AssetKey { workspace: "w".into(), kind: kind.into(), name: name.into(), version: version.into() };
    let body = body.to_owned();
    store.write(move |tx| tx.insert_asset(&key, &body, None, "me", NOW)).await
}

async fn latest(store: &Store) -> Option<String> {
    store.read(|tx| tx.latest_asset("w", "data", "d")).await.unwrap().map(|row| row.key.version)
}

async fn archive(store: &Store, version: &str) {
    let key = AssetKey { workspace: "w".into(), kind: "data".into(), name: "d".into(), version: version.into() };
    let archived = store.write(move |tx| {
        let row = tx.asset(&key)?.unwrap();
        tx.put_asset(row.seq, &row.body, true, NOW)
    });
    archived.await.unwrap();
}
