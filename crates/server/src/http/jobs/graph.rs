//! The steps of a pipeline: what each waits for, its job, and where it is.

use super::find;
use crate::{app::App, http::At, problem::Problem};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::{JobState, Outcome, pipeline::Graph};
use serde_json::{Value, json};
use std::collections::HashMap;
use store::Child;

pub(crate) async fn graph(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (_, row) = find(&app, &at).await?;
    let (seq, name) = (row.job.seq, row.job.name.clone());
    let found = app.store.read(move |tx| Ok((tx.conductor::<Graph>(seq)?, tx.children(seq)?)));
    let (Some(graph), children) = found.await? else {
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
            view(&step.name, &waits, children.get(step.name.as_str()).copied(), over)
        })
        .collect();
    Ok(Json(json!({"name": name, "status": row.job.state.status(), "note": row.note, "steps": steps})))
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
