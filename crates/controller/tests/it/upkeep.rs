//! Upkeep: uploads that nobody finished go, what someone refers to stays.

use domain::Timestamp;
use store::{AssetKey, files::SNAPSHOT_LIFE};

#[tokio::test]
async fn a_snapshot_that_no_code_refers_to_is_removed_a_week_later() {
    let home = crate::Home::new();
    let store = home.open();
    let files = store.files().clone();
    for container in ["snap-used", "snap-lost", "azureml"] {
        std::fs::create_dir_all(files.container("w", container)).unwrap();
    }
    drop(files.draft().unwrap());
    let key = AssetKey { workspace: "w".into(), kind: "codes".into(), name: "c".into(), version: "1".into() };
    let body = r#"{"codeUri": "https://h/blob/w.blob.x/snap-used/src"}"#;
    store.write(move |tx| tx.insert_asset(&key, body, None, "me", Timestamp(0))).await.unwrap();
    let made = std::fs::metadata(files.container("w", "snap-lost")).unwrap().modified().unwrap();
    let made = i64::try_from(made.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let week = i64::try_from(SNAPSHOT_LIFE.as_millis()).unwrap();
    let left = || ["snap-used", "snap-lost", "azureml"].map(|container| files.container("w", container).exists());
    assert_eq!(controller::sweep(&store, Timestamp(made + week - 60_000)).await.unwrap().snapshots, 0);
    assert_eq!(left(), [true, true, true]);
    assert_eq!(controller::sweep(&store, Timestamp(made + week + 60_000)).await.unwrap().snapshots, 1);
    assert_eq!(left(), [true, false, true]);
}
