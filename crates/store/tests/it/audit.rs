//! The audit: what was changed is on record with the change, and found by the workspace however it is written.

use super::{NOW, fresh, new_job};
use store::{Act, Store, acting};

#[tokio::test]
async fn a_change_is_on_record_once_and_what_changes_nothing_is_not() {
    let (_home, store) = fresh();
    on_behalf(&store, "Team-A", async |store| {
        store.write(|tx| tx.job("w", "none").map(drop)).await.unwrap();
        store.write(|tx| tx.insert_job(&new_job("a")).map(drop)).await.unwrap();
        store.write(|tx| tx.insert_job(&new_job("b")).map(drop)).await.unwrap();
    })
    .await;
    on_behalf(&store, "team-b", async |store| {
        store.write(|tx| tx.put_note(99, "of no job")).await.unwrap();
    })
    .await;
    let lines = |workspace: Option<&'static str>, before| store.read(move |tx| tx.audit(workspace, before, 10));
    for (workspace, expect) in [(None, 1), (Some("TEAM-a"), 1), (Some("team-b"), 0)] {
        assert_eq!(lines(workspace, None).await.unwrap().len(), expect, "{workspace:?}");
    }
    let first = lines(None, None).await.unwrap()[0].id;
    assert!(lines(None, Some(first)).await.unwrap().is_empty());
}

async fn on_behalf(store: &Store, workspace: &str, work: impl AsyncFnOnce(&Store)) {
    let act = Act {
        at: NOW,
        caller: "me".into(),
        workspace: workspace.into(),
        route: "r",
        method: "PUT".into(),
        path: "/".into(),
    };
    acting(act, work(store)).await;
}
