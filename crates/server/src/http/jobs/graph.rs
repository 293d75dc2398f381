//! The steps of a pipeline: what each waits for, its job, and where it is; the trials of a sweep with their values.

use super::find;
use crate::{app::App, http::At, problem::Problem};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::{JobState, Outcome, Search, pipeline::Graph, spec::sweep::text_of};
use serde_json::{Value, json};
use std::collections::HashMap;
use store::{Child, Error, Tx};

pub(crate) async fn graph(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (_, row) = find(&app, &at).await?;
    let (seq, name) = (row.job.seq, row.job.name.clone());
    if row.kind == "Sweep" {
        let steps = app.store.read(move |tx| trials(tx, seq)).await?;
        return Ok(Json(json!({"name": name, "status": row.job.state.status(), "note": row.note, "steps": steps})));
    }
    let leads = row.kind == "Pipeline";
    let found = app.store.read(move |tx| {
        let graph = if leads { tx.conductor::<Graph>(seq)? } else { None };
        Ok((graph, tx.children(seq)?, tx.reuses(seq)?))
    });
    let (Some(graph), children, reuses) = found.await? else {
        let message = format!("job `{name}` has no steps; it is of kind `{}`", row.kind);
        return Err(Problem::bad(message));
    };
    let children: HashMap<&str, &Child> = children.iter().map(|child| (child.step.as_str(), child)).collect();
    let over = row.job.state.is_ended();
    let steps: Vec<Value> = graph
        .steps
        .iter()
        .map(|step| {
            let waits: Vec<&str> = step.waits().into_iter().map(|at| graph.steps[at].name.as_str()).collect();
            let child = children.get(step.name.as_str()).copied();
            let mut out = view(&step.name, &waits, child, over);
            if let Some(text) = child.and_then(|child| reuses.get(&child.job.seq)) {
                out["reuse"] = json!(text);
            }
            out
        })
        .collect();
    Ok(Json(json!({"name": name, "status": row.job.state.status(), "note": row.note, "steps": steps})))
}

/// The trials of a sweep, each with its values.
fn trials(tx: &mut Tx<'_>, seq: i64) -> Result<Vec<Value>, Error> {
    let children = tx.children(seq)?;
    let rows = tx.jobs_by_seq(&children.iter().map(|child| child.job.seq).collect::<Vec<_>>())?;
    let bodies: HashMap<i64, String> = rows.into_iter().map(|row| (row.job.seq, row.body)).collect();
    let one = |child: &Child| {
        let body = bodies.get(&child.job.seq).and_then(|body| serde_json::from_str::<Value>(body).ok());
        let values = body.as_ref().and_then(Search::values_of).unwrap_or_default();
        let shown: Vec<String> = values.iter().map(|(name, value)| format!("{name}={}", text_of(value))).collect();
        view(&format!("{} {}", child.step, shown.join(" ")), &[], Some(child), false)
    };
    Ok(children.iter().map(one).collect())
}

fn view(name: &str, waits: &[&str], child: Option<&Child>, over: bool) -> Value {
    let Some(child) = child else {
        let status = if over { "NotRun" } else { "NotStarted" };
        return json!({"name": name, "after": waits, "status": status});
    };
    let state = &child.job.state;
    let mut out = json!({"name": name, "after": waits, "status": state.status(), "job": child.job.name});
    if let Some(original) = &child.reused {
        out["reused"] = json!(original);
    }
    if let Some(at) = state.started_at() {
        out["startedAt"] = json!(at.iso());
    }
    if let JobState::Ended { outcome, at, .. } = state {
        out["endedAt"] = json!(at.iso());
        match outcome {
            Outcome::Failed(failure) => out["message"] = json!(failure.message),
            Outcome::Canceled { reason } => out["message"] = json!(reason),
            Outcome::Completed => {}
        }
    }
    out
}
