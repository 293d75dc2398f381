//! What nodes keep of fetched data, and what was moved for jobs.

use super::fresh;
use domain::{
    AttemptId,
    kept::{Kept, Moved},
};

fn kept(key: &str, bytes: u64) -> Kept {
    Kept { key: key.to_owned(), source: format!("s3://b/{key}"), bytes, sum: "sum".to_owned() }
}

#[tokio::test]
async fn a_node_keeps_what_it_told_last_and_goes_with_all_of_it() {
    let (_home, store) = fresh();
    let told = store.write(|tx| {
        tx.put_kept("c", "n", &[kept("a", 1), kept("b", 2)])?;
        tx.put_kept("c", "m", &[kept("a", 1)])?;
        tx.put_kept("d", "n", &[kept("a", 1)])
    });
    told.await.unwrap();
    let nodes = async |source: bool| {
        let found = store.read(move |tx| if source { tx.keepers_of("s3://b/a") } else { tx.keepers("c", "a") });
        let found = found.await.unwrap();
        found.iter().map(|keeper| format!("{}/{}", keeper.cluster, keeper.node)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(nodes(false).await, "c/m c/n");
    assert_eq!(nodes(true).await, "c/m c/n d/n");
    store.write(|tx| tx.put_kept("c", "n", &[kept("b", u64::MAX)])).await.unwrap();
    assert_eq!(nodes(false).await, "c/m");
    let all = store.read(|tx| tx.kept_on("c")).await.unwrap();
    assert_eq!(all, [("m".to_owned(), kept("a", 1)), ("n".to_owned(), kept("b", i64::MAX as u64))]);
    store.write(|tx| tx.drop_machine("c", "m")).await.unwrap();
    store.write(|tx| tx.delete_cluster("d").map(drop)).await.unwrap();
    assert_eq!(nodes(true).await, "");
}

#[tokio::test]
async fn what_was_moved_counts_once_for_each_part_of_each_attempt() {
    let (_home, store) = fresh();
    let one = Moved { store: 1, peers: 10, cache: 100 };
    let added = store.write(move |tx| {
        let (first, second) = (AttemptId::of(3, 0), AttemptId::of(3, 1));
        let told = [(&first, 0), (&first, 0), (&first, 1), (&second, 0), (&AttemptId::of(4, 0), 0)];
        told.into_iter().map(|(attempt, part)| tx.add_moved(attempt, part, &one)).collect::<Result<Vec<_>, _>>()
    });
    assert_eq!(added.await.unwrap(), [true, false, true, true, true]);
    assert_eq!(store.read(|tx| tx.moved(3)).await.unwrap(), Moved { store: 3, peers: 30, cache: 300 });
    assert_eq!(store.read(|tx| tx.moved(5)).await.unwrap(), Moved::default());
}
