//! What waits in a workspace, in one answer: why each job waits, how many stand before it, and when there may be room.

use super::wait::Rooms;
use crate::{app::App, http::At, problem::Problem};
use axum::{
    Json,
    extract::{Path, State},
};
use serde_json::{Value, json};
use store::JobRow;

/// How many jobs are told of.
const SHOWN: usize = 50;

pub(crate) async fn queue(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?.name.clone();
    let then = app.clone();
    let look = app.store.read(move |tx| {
        let mut rows = tx.waiting_jobs(&workspace, SHOWN as i64 + 1)?;
        let more = rows.len() > SHOWN;
        rows.truncate(SHOWN);
        let (ahead, mut rooms) = (tx.ahead_of_each(&rows)?, Rooms::default());
        let plans = tx.plans(&rows.iter().map(|row| row.job.seq).collect::<Vec<_>>())?;
        let mut value = Vec::new();
        for row in &rows {
            let expected = match plans.get(&row.job.seq) {
                Some(plan) => rooms.expected(&then, tx, (&row.cluster, plan))?,
                None => None,
            };
            value.push(view(row, ahead.get(&row.job.seq), expected));
        }
        Ok(json!({"value": value, "more": more}))
    });
    Ok(Json(look.await?))
}

fn view(row: &JobRow, ahead: Option<&i64>, expected: Option<String>) -> Value {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    json!({
        "name": row.job.name, "displayName": body["displayName"].as_str().unwrap_or(row.job.name.as_str()),
        "user": row.created_by, "target": row.target, "since": row.job.created_at.iso(), "note": row.note,
        "ahead": ahead, "expected": expected,
    })
}
