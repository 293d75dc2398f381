//! Searching runs: the filter and order of MLflow, by pages. Beyond MLflow's own, `*` among the experiments stands for every one
//! that is not deleted, and who sets `count_total` is told how many runs there are.

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
use serde_json::{Value, json};
use store::{RunCount, RunPlace, RunQuery, RunRow, Tx};

/// Runs that fit a filter are counted up to here.
const COUNTED: usize = 10_000;

pub(super) async fn runs(State(app): State<App>, call: Call) -> Answer {
    let experiments = call.texts("experiment_ids")?;
    let everywhere = experiments.iter().any(|id| id == "*");
    let numbers = || experiments.iter().map(|id| experiment_number(id)).collect::<Result<Vec<_>, _>>();
    let experiments = if everywhere { None } else { Some(numbers()?) };
    let counted = call.flag("count_total")?;
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
        after: after(&call)?,
        limit: most.saturating_add(1),
    };
    fold(&app, &query).await?;
    let (from, by) = (query.from, call.by.clone());
    let (shown, next, total) = read(&app, move |tx| {
        let mut found = tx.search_runs(&query)?;
        let more = found.len() > most;
        found.truncate(most);
        let last = found.last().filter(|_| query.is_plain());
        let next = more.then(|| token_behind(from.saturating_add(most), last));
        let total = if counted { Some(tx.count_runs(&query, COUNTED)?) } else { None };
        if let Who::Job { job, .. } = &by.caller.who {
            let mut own = Vec::new();
            for row in found {
                if belongs(tx, &row, job)? {
                    own.push(row);
                }
            }
            found = own;
        }
        Ok((Shown::read(tx, found)?, next, total))
    })
    .await?;
    let total = total.map(|RunCount { runs, at_least }| json!({"runs": runs, "at_least": at_least}));
    let answer = [("runs", shown.views(&call.by).into()), ("next_page_token", json!(next)), ("total", json!(total))];
    Ok(Json(brief(answer)))
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
    let mut loose = app.store.read(move |tx| tx.runs_with_loose_points(&workspace, numbers.as_deref())).await?;
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
    let Some(place) = place(call)? else { return Ok(0) };
    place.get("offset").and_then(|n| usize::try_from(n.as_u64()?).ok()).ok_or_else(strange)
}

/// The run behind which a page begins, where its token names one.
fn after(call: &Call) -> Result<Option<RunPlace>, Fault> {
    let Some(place) = place(call)? else { return Ok(None) };
    match (&place["started_at"], &place["run_id"]) {
        (Value::Null, Value::Null) => Ok(None),
        (at, Value::String(run_id)) => {
            let started_at = at.as_i64().ok_or_else(strange)?;
            Ok(Some(RunPlace { started_at, run_id: run_id.clone() }))
        }
        _ => Err(strange()),
    }
}

fn place(call: &Call) -> Result<Option<Value>, Fault> {
    let Some(token) = call.text("page_token")?.filter(|token| !token.is_empty()) else { return Ok(None) };
    let decoded = BASE64.decode(token.as_bytes()).map_err(|_| strange())?;
    serde_json::from_slice(&decoded).map(Some).map_err(|_| strange())
}

fn strange() -> Fault {
    Fault::invalid("Invalid page token: it is not one of this server's")
}

/// The token of the page that begins at `offset`, which is behind `last` whatever comes before it meanwhile.
fn token_behind(offset: usize, last: Option<&RunRow>) -> String {
    let Some(last) = last else { return token(offset) };
    BASE64.encode(json!({"offset": offset, "started_at": last.started_at.0, "run_id": last.run_id}).to_string())
}

/// The token of the page that begins at `offset`.
pub(super) fn token(offset: usize) -> String {
    BASE64.encode(json!({"offset": offset}).to_string())
}
