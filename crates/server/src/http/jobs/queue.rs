//! What waits in a workspace, in one answer: why each job waits, how many stand before it, and when there may be room.

use super::wait::Room;
use crate::{app::App, http::At, problem::Problem};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::Plan;
use serde_json::{Value, json};
use std::collections::HashMap;
use store::{HERE, JobRow};

/// How many jobs are told of.
const SHOWN: usize = 50;

pub(crate) async fn queue(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?.name.clone();
    let then = app.clone();
    let look = app.store.read(move |tx| {
        let mut rows = tx.waiting_jobs(&workspace, SHOWN as i64 + 1)?;
        let more = rows.len() > SHOWN;
        rows.truncate(SHOWN);
        let room = Room::look(&then, tx)?;
        let ahead = tx.ahead_of_each(&rows)?;
        let here: Vec<i64> = rows.iter().filter(|row| row.cluster == HERE).map(|row| row.job.seq).collect();
        let plans = if room.is_some() { tx.plans(&here)? } else { HashMap::new() };
        let one = |row: &JobRow| view(row, ahead.get(&row.job.seq), room.as_ref().zip(plans.get(&row.job.seq)));
        Ok(json!({"value": rows.iter().map(one).collect::<Vec<_>>(), "more": more}))
    });
    Ok(Json(look.await?))
}

fn view(row: &JobRow, ahead: Option<&i64>, room: Option<(&Room, &Plan)>) -> Value {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    json!({
        "name": row.job.name, "displayName": body["displayName"].as_str().unwrap_or(row.job.name.as_str()),
        "user": row.created_by, "target": row.target, "since": row.job.created_at.iso(), "note": row.note,
        "ahead": ahead, "expected": room.and_then(|(room, plan)| room.expected_for(plan)),
    })
}
