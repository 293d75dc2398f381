//! The services of jobs: which a node has, and a stream to one of them.

use super::{Asked, At, agents, jobs};
use crate::{
    app::App,
    auth::{Caller, Who},
    problem::Problem,
    tunnels::{self, Opened},
};
use axum::{
    Extension, RequestExt,
    extract::{Path, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use domain::{
    AttemptId, JobState, Role,
    spec::Service,
    tunnel::{Tunnel, Unopened, Way, is_on},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use store::{Bell, JobRow, secrets::hex};

/// How long an agent has to be reached and to reach the service, which it may have to start first.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream between the caller and a service of a job that runs.
pub(crate) async fn connect(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(at): Path<At>,
    asked: Asked,
    mut request: Request,
) -> Result<Response, Problem> {
    let mine = tunnels::stream_of(&mut request).ok_or_else(not_a_stream)?;
    let (_, row) = jobs::find(&app, &at).await?;
    may_enter(&caller, &at.workspace, &row)?;
    let (attempt, node) = (attempt_of(&row)?, node_of(asked.get("node"))?);
    let way = way_to(&row, &at.service, node)?;
    let tunnel =
        Tunnel { id: hex(&app.store.keyring().random::<16>()), attempt: attempt.clone(), service: at.service, way };
    let text = format!("{} connects to service `{}` on node {node}", caller.name, tunnel.service);
    let mut wanted = app.tunnels.ask(tunnel, node);
    let (seq, now) = (row.job.seq, app.now());
    app.store.write(move |tx| tx.add_event(seq, now, "service", &text)).await?;
    app.calls.ring(&attempt);
    app.store.ring(Bell::Agents);
    let silent = || format!("the agent of job `{}` did not answer; `peregrine job why` says how it is", row.job.name);
    let theirs = match tokio::time::timeout(PATIENCE, &mut wanted.opened).await {
        Ok(Ok(opened)) => opened.map_err(unopened)?,
        _ => return Err(unopened(silent())),
    };
    app.tunnels.join(mine, theirs);
    Ok(tunnels::switching())
}

/// The other end: the agent has reached the service, or says why not.
pub(crate) async fn open(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(at): Path<At>,
    mut request: Request,
) -> Result<Response, Response> {
    let own = own(&app, caller.who, &at.id).await.map_err(IntoResponse::into_response)?;
    let opened: Opened = match tunnels::stream_of(&mut request) {
        Some(stream) => Ok(stream),
        None => Err(request.extract::<super::Body<Unopened>, _>().await?.0.why),
    };
    let switches = opened.is_ok();
    let gone = || Problem::not_found("tunnel that waits to be opened", &at.id).into_response();
    app.tunnels.answer(&at.id, own.as_ref()).and_then(|answer| answer.send(opened).ok()).ok_or_else(gone)?;
    Ok(if switches { tunnels::switching() } else { StatusCode::NO_CONTENT.into_response() })
}

/// The attempt that whoever opens a tunnel must have; `None` of the agent of this machine, which has all.
async fn own(app: &App, who: Who, tunnel: &str) -> Result<Option<AttemptId>, Problem> {
    let (cluster, machine) = match who {
        Who::Attempt(attempt) => return Ok(Some(attempt)),
        Who::Machine { cluster, machine, .. } => (cluster, machine),
        _ => return Ok(None),
    };
    let gone = || Problem::not_found("tunnel that waits to be opened", tunnel);
    let attempt = app.tunnels.attempt_of(tunnel).ok_or_else(gone)?;
    let wanted = attempt.clone();
    let has = app.store.read(move |tx| agents::nodes::has(tx, (&cluster, &machine), &wanted)).await?;
    if has { Ok(Some(attempt)) } else { Err(gone()) }
}

/// What the services of a job are on one of its nodes, by name.
pub(crate) fn on_node(row: &JobRow, node: u32) -> Value {
    let runs = matches!(row.job.state, JobState::Running { .. });
    let shown = |(name, service): (&String, &Service)| {
        let way = Way::to(service);
        let status = match (&way, runs) {
            (Err(_), _) => "Failed",
            (Ok(_), true) => "Running",
            (Ok(_), false) => "Pending",
        };
        let verb = if matches!(way, Ok(Way::Ssh { .. })) { "connect-ssh" } else { "connect" };
        let endpoint = runs.then(|| format!("peregrine job {verb} -n {} --service {name}", row.job.name));
        let body = json!({
            "type": service.kind, "port": service.settings.get("port"), "status": status, "error": way.as_ref().err(),
            "endpoint": endpoint.filter(|_| way.is_ok()), "properties": {},
        });
        (name.clone(), body)
    };
    services(row).iter().filter(|(_, service)| is_on(service, node)).map(shown).collect()
}

fn services(row: &JobRow) -> BTreeMap<String, Service> {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    api::arm::job::services(&body)
}

fn way_to(row: &JobRow, name: &str, node: u32) -> Result<Way, Problem> {
    let services = services(row);
    let there: Vec<String> =
        services.iter().filter(|(_, service)| is_on(service, node)).map(|(name, _)| name.clone()).collect();
    let service = services.get(name).filter(|_| there.iter().any(|there| there == name));
    let service = service.ok_or_else(|| {
        let noun = format!("service of job `{}` on node {node} named", row.job.name);
        Problem::missing(&noun, name, &there)
    })?;
    Way::to(service).map_err(|why| Problem::bad(format!("service `{name}` cannot be reached: {why}")))
}

/// A service acts as the job's user, so only they may use it, and whoever owns the workspace.
fn may_enter(caller: &Caller, workspace: &str, row: &JobRow) -> Result<(), Problem> {
    if caller.name == row.created_by || caller.may(workspace, Role::Owner) {
        return Ok(());
    }
    let whose = format!("job `{}` is {}'s; its services are open to them and to owners", row.job.name, row.created_by);
    Err(Problem::forbidden(format!("{whose} of the workspace")))
}

fn attempt_of(row: &JobRow) -> Result<AttemptId, Problem> {
    match &row.job.state {
        JobState::Running { attempt, .. } => Ok(attempt.clone()),
        state => {
            let message = format!("job `{}` is {}; its services are there while it runs", row.job.name, state.status());
            Err(Problem::conflict(message))
        }
    }
}

fn node_of(asked: Option<&String>) -> Result<u32, Problem> {
    let text = asked.map_or("0", String::as_str);
    text.parse().map_err(|_| Problem::bad(format!("`node` must be the index of a node, not `{text}`")))
}

fn not_a_stream() -> Problem {
    let message = format!("ask for a stream: `connection: upgrade`, `upgrade: {}`", api::STREAM);
    Problem::new(StatusCode::UPGRADE_REQUIRED, "UpgradeRequired", message)
}

fn unopened(why: String) -> Problem {
    Problem::new(StatusCode::CONFLICT, "ServiceUnreachable", why)
}
