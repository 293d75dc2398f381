//! Searching runs: the filter and order of MLflow, by pages.

use super::{Answer, Call, Fault, experiment_number, view::Shown};
use crate::{app::App, auth::Who};
use axum::{Json, extract::State};
use base64::{Engine as _, engine::general_purpose::URL_SAFE as BASE64};
use domain::tracking::{filter, limits, order};
use serde_json::json;
use store::RunQuery;

const PAGE: i64 = 1000;
const PAGE_MOST: i64 = 50_000;

pub(super) async fn runs(State(app): State<App>, call: Call) -> Answer {
    let filter = filter::runs(&call.text("filter")?.unwrap_or_default())?;
    let order = order::runs(&call.texts("order_by")?)?;
    let most = limits::max_results("max_results", call.int("max_results")?, PAGE, PAGE_MOST)?;
    let from = offset(&call)?;
    let shows = limits::view_type(call.text("run_view_type")?.as_deref())?;
    let mut numbers = Vec::new();
    for id in call.texts("experiment_ids")? {
        numbers.extend(experiment_number(&id).ok());
    }
    let only = match &call.caller.who {
        Who::Job { job, .. } => Some(job.clone()),
        _ => None,
    };
    let query = RunQuery { workspace: call.workspace.name.clone(), numbers, filter, order, shows, from, limit: most + 1 };
    // What was logged a moment ago must be found too.
    if app.store.read(|tx| tx.has_loose_points()).await? {
        app.store.write(|tx| tx.fold_all_points()).await?;
    }
    let (shown, more) = app
        .store
        .read(move |tx| {
            let mut found = tx.search_runs(&query)?;
            let more = found.len() > most;
            found.truncate(most);
            if let Some(job) = only {
                let mut kept = Vec::new();
                for row in found {
                    if super::belongs(tx, &row, &job)? {
                        kept.push(row);
                    }
                }
                found = kept;
            }
            Ok((Shown::read(tx, found)?, more))
        })
        .await?;
    let mut answer = json!({"runs": shown.views(&call)});
    if more {
        answer["next_page_token"] = json!(token(from + most));
    }
    Ok(Json(answer))
}

/// Where a page begins.
pub(super) fn offset(call: &Call) -> Result<usize, Fault> {
    let Some(token) = call.text("page_token")?.filter(|token| !token.is_empty()) else { return Ok(0) };
    let decoded = BASE64.decode(token.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let offset = decoded.and_then(|text| text.strip_prefix("from:")?.parse().ok());
    offset.ok_or_else(|| Fault::invalid("Invalid page token, decoded value is not a place in the results"))
}

/// The token of the page that begins at `offset`.
pub(super) fn token(offset: usize) -> String {
    BASE64.encode(format!("from:{offset}"))
}
