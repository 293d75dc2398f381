//! Searching runs: the filter and order of MLflow, by pages.

use super::{
    Answer, brief,
    call::{Call, belongs, experiment_number},
    experiments::view_type,
    fault::{Fault, read},
    view::Shown,
};
use crate::{app::App, auth::Who};
use axum::{Json, extract::State};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use domain::tracking::{Entity, Filter, Order, Subject, limits::Search};
use serde_json::json;
use store::{RunQuery, Tx};

pub(super) async fn runs(State(app): State<App>, call: Call) -> Answer {
    let experiments = call.texts("experiment_ids")?;
    let experiments = experiments.iter().map(|id| experiment_number(id)).collect::<Result<Vec<_>, _>>()?;
    let most = call.most(Search::Runs)?.unwrap_or(usize::MAX);
    let (filter, order) = (call.word("filter")?, call.texts("order_by")?);
    let (filter, order) = (Filter::parse(Subject::Runs, &filter)?, Order::parse(Subject::Runs, &order)?);
    let query = RunQuery {
        workspace: call.by.workspace().to_owned(),
        experiments,
        filter,
        order,
        shows: view_type(&call, "run_view_type")?,
        from: offset(&call)?,
        limit: most.saturating_add(1),
    };
    fold(&app, &query).await?;
    let (from, by) = (query.from, call.by.clone());
    let (shown, more) = read(&app, move |tx| {
        let mut found = tx.search_runs(&query)?;
        let more = found.len() > most;
        found.truncate(most);
        if let Who::Job { job, .. } = &by.caller.who {
            let mut own = Vec::new();
            for row in found {
                if belongs(tx, &row, job)? {
                    own.push(row);
                }
            }
            found = own;
        }
        Ok((Shown::read(tx, found)?, more))
    })
    .await?;
    let next = more.then(|| token(from + most));
    Ok(Json(brief([("runs", shown.views(&call.by).into()), ("next_page_token", json!(next))])))
}

/// Runs that are folded in one transaction; others write in between.
const FOLDED_AT_ONCE: usize = 100;

/// What was logged a moment ago must be found too, where metrics decide what is found.
async fn fold(app: &App, query: &RunQuery) -> Result<(), Fault> {
    let by_metric = query.filter.clauses.iter().any(|clause| clause.entity == Entity::Metric)
        || query.order.keys.iter().any(|key| key.entity == Entity::Metric);
    if !by_metric {
        return Ok(());
    }
    let (workspace, numbers) = (query.workspace.clone(), query.experiments.clone());
    let mut loose = app.store.read(move |tx| tx.runs_with_loose_points(&workspace, &numbers)).await?;
    while !loose.is_empty() {
        let turn = loose.split_off(loose.len().saturating_sub(FOLDED_AT_ONCE));
        let fold = move |tx: &mut Tx<'_>| {
            let mut more = Vec::new();
            for run in turn {
                if tx.fold_points(run)? {
                    more.push(run);
                }
            }
            Ok(more)
        };
        // Nobody changed anything: this is not written down as an act of the caller's.
        loose.extend(app.store.look(fold).await?);
    }
    Ok(())
}

/// Where a page begins.
pub(super) fn offset(call: &Call) -> Result<usize, Fault> {
    let Some(token) = call.text("page_token")?.filter(|token| !token.is_empty()) else { return Ok(0) };
    let bad = || Fault::invalid("Invalid page token: it is not one of this server's");
    let decoded = BASE64.decode(token.as_bytes()).map_err(|_| bad())?;
    let decoded: serde_json::Value = serde_json::from_slice(&decoded).map_err(|_| bad())?;
    decoded.get("offset").and_then(|n| usize::try_from(n.as_u64()?).ok()).ok_or_else(bad)
}

/// The token of the page that begins at `offset`.
pub(super) fn token(offset: usize) -> String {
    BASE64.encode(json!({"offset": offset}).to_string())
}
