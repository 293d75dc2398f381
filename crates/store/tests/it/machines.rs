//! What became of the parts of attempts on nodes.

use super::fresh;
use domain::{AttemptId, machine::PartFate};

fn gone(why: &str) -> PartFate {
    PartFate::Gone { code: "NodeLost".to_owned(), why: why.to_owned(), retryable: true }
}

#[tokio::test]
async fn what_has_left_or_gone_stays_so() {
    let (_home, store) = fresh();
    let written = store.write(|tx| {
        let told = AttemptId::of(3, 0);
        tx.assign_parts("c", &told, &["m".to_owned(), "n".to_owned(), "o".to_owned()])?;
        tx.put_fate(&told, 0, &PartFate::Runs)?;
        tx.put_fate(&told, 0, &gone("first"))?;
        tx.put_fate(&told, 0, &PartFate::Left)?;
        tx.put_fate(&told, 1, &PartFate::Left)?;
        tx.put_fate(&told, 1, &gone("second"))?;
        tx.put_fate(&told, 2, &PartFate::Own)?;
        tx.put_fate(&told, 2, &PartFate::Runs)
    });
    written.await.unwrap();
    let parts = store.read(|tx| tx.machine_parts("c")).await.unwrap();
    let fates: Vec<PartFate> = parts.into_iter().filter_map(|part| part.fate).collect();
    assert_eq!(fates, [gone("first"), PartFate::Left, PartFate::Runs]);
}
