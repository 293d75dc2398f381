//! The guard before every handler: who calls, whether they may, and what of it is written down.
//!
//! Invariant: no handler is reached without it.

use crate::{
    app::App,
    auth::{Caller, Claim, Shown, Who, sessions, unauthorized},
    http,
    listen::Peer,
    metrics::Request as Counted,
    problem::Problem,
};
use api::routes::{self, Access, Route};
use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use domain::{Role, access::EVERYWHERE};
use std::{collections::HashMap, sync::LazyLock};
use store::Act;
use tokio::time::Instant;

/// The routes by path and method.
fn table() -> &'static HashMap<(&'static str, &'static str), &'static Route> {
    static TABLE: LazyLock<HashMap<(&'static str, &'static str), &'static Route>> =
        LazyLock::new(|| routes::all().map(|route| ((route.path, route.method), route)).collect());
    &TABLE
}

/// The route that answers a method at a path. Whoever may get something may ask for its head.
fn route_of(path: &str, method: &str) -> Option<&'static Route> {
    let own = table().get(&(path, method)).copied();
    own.or_else(|| table().get(&(path, "GET")).copied().filter(|_| method == "HEAD"))
}

/// Who, and may they; then the handler, on their behalf, counted.
pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().as_str();
    let route = matched.as_deref().and_then(|path| route_of(path, method));
    let id = route.map_or("none", |route| route.id);
    let started = Instant::now();
    let long = is_long(&request);
    let place = route.map_or_else(String::new, |route| match place_of(route.path, request.uri().path()) {
        // Without a workspace in its address, MLflow's API is that of the default one.
        place if place == EVERYWHERE && route.id.starts_with("mlflow_") => app.settings.workspace.clone(),
        place => place,
    });
    let mut act = Act {
        at: app.now(),
        caller: String::new(),
        workspace: if place == EVERYWHERE { String::new() } else { place.clone() },
        route: id,
        method: method.to_owned(),
        path: request.uri().path().chars().take(1000).collect(),
    };
    let readable = percent_encoding::percent_decode_str(request.uri().path()).decode_utf8().is_ok();
    // What anyone may ask, anyone may be told how not to ask.
    let open = route.is_none()
        && routes::all().any(|route| route.access == Access::Open && Some(route.path) == matched.as_deref());
    if open {
        return http::meta::wrong_method(request.uri().clone()).await;
    }
    let allowed = match allow(&app, &mut request, route, &place) {
        Ok(caller) => {
            let who = request.extensions().get::<Caller>().map(|caller| caller.who.clone());
            still_good(&app, who).await.map(|()| caller).map_err(|problem| (String::new(), problem))
        }
        refused => refused,
    };
    let mut answer = match allowed {
        Ok(_) if !readable => Problem::bad("the address is not UTF-8 text").into_response(),
        Ok(caller) => {
            act.caller = caller.unwrap_or_default();
            // What is logged to a run is on record in the run.
            let own = matches!(
                route.map(|route| route.access),
                Some(Access::Agent | Access::Attempt | Access::Cluster | Access::Node | Access::Router)
            );
            let silent = own || method_is_read(&act.method) || api::mlflow::is_logging(id);
            let seen = act.clone();
            let answer = if silent { next.run(request).await } else { store::acting(act, next.run(request)).await };
            let tells = matches!(id, "online_endpoint_keys" | "online_endpoint_token") && answer.status().is_success();
            // Some handlers learn only from the body or a link whether the caller may.
            if tells || answer.status() == StatusCode::FORBIDDEN {
                record(&app, seen, answer.status()).await;
            }
            answer
        }
        Err((caller, problem)) => {
            act.caller = caller;
            record(&app, act, problem.status).await;
            match id.starts_with("mlflow_") {
                true => http::mlflow::Fault::from(problem).into_response(),
                false => problem.into_response(),
            }
        }
    };
    if long && (answer.status().is_client_error() || answer.status().is_server_error()) {
        // Part of the body may be unread, so the connection cannot carry another request.
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let waits = matches!(
        id,
        "agent_poll"
            | "cluster_poll"
            | "node_poll"
            | "router_exchange"
            | "job_artifact"
            | "job_metrics_stream"
            | "job_connect"
    );
    if !waits {
        app.metrics.request_seconds.observe(started.elapsed().as_secs_f64());
    }
    app.metrics.requests.get_or_create(&Counted { route: id.to_owned(), status: answer.status().as_u16() }).inc();
    answer
}

/// An identity of a job is good for as long as the job is, and a cluster's token until it is renewed.
async fn still_good(app: &App, who: Option<Who>) -> Result<(), Problem> {
    match who {
        Some(Who::JobIdentity { workspace, job }) => {
            let row = app.store.read(move |tx| tx.job(&workspace, &job)).await?;
            let runs = row.is_some_and(|row| !row.job.state.is_ended());
            if runs { Ok(()) } else { Err(unauthorized("the job whose identity this is has ended")) }
        }
        Some(Who::Cluster { name, generation }) => {
            let known = name.clone();
            let row = app.store.read(move |tx| tx.cluster(&known)).await?;
            let message = format!(
                "the token of cluster `{name}` was renewed, or the cluster is not registered any more; install the extension \
                 again with `peregrine extension install --cluster-name {name}`"
            );
            let current = row.is_some_and(|row| row.generation == generation);
            if current { Ok(()) } else { Err(unauthorized(&message)) }
        }
        Some(Who::Machine { cluster, machine, key }) => {
            let name = machine.clone();
            let row = app.store.read(move |tx| tx.machine(&cluster, &name)).await?;
            let own = row.is_some_and(|row| row.joined == key);
            if own { Ok(()) } else { Err(unauthorized(&format!("there is no node `{machine}` any more"))) }
        }
        _ => Ok(()),
    }
}

fn method_is_read(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}

/// Someone known is turned away, or told a secret; that is written down before they hear of it.
async fn record(app: &App, act: Act, status: StatusCode) {
    if act.caller.is_empty() || status == StatusCode::TOO_MANY_REQUESTS {
        return;
    }
    let status = i64::from(status.as_u16());
    if let Err(error) = app.store.write(move |tx| tx.add_audit(&act, status)).await {
        tracing::error!(error = &error as &dyn std::error::Error, "what was refused or told is not in the audit");
    }
}

/// Whether a body is more than is read along with its head.
pub(crate) fn is_long(request: &Request) -> bool {
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    length.map_or_else(|| request.headers().contains_key(header::TRANSFER_ENCODING), |length| length > 8 << 10)
}

/// The workspace (or, with `@`, the registry) that an address names; everywhere where it names none.
fn place_of(pattern: &str, path: &str) -> String {
    let decoded = |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
    for (pattern, part) in pattern.split('/').zip(path.split('/')) {
        match pattern {
            "{workspace}" => return decoded(part),
            "{registry}" => return format!("@{}", decoded(part)),
            _ => {}
        }
    }
    EVERYWHERE.to_owned()
}

/// The name of the caller who may go on, none where anyone may; or whoever it was, and why not.
fn allow(
    app: &App,
    request: &mut Request,
    route: Option<&Route>,
    place: &str,
) -> Result<Option<String>, (String, Problem)> {
    let access = route.map_or(Access::Known, |route| route.access);
    let stranger = |problem| (String::new(), problem);
    let peer = request.extensions().get::<Peer>().map_or_else(String::new, |peer| peer.0.ip().to_string());
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    // A link is checked by the handler, against the blob it opens; whoever holds a good one is no stranger.
    if access == Access::Signed && header.is_none() {
        return Ok(None);
    }
    if access == Access::Open {
        return if app.limits.take(&peer, app.now()) { Ok(None) } else { Err(stranger(too_often())) };
    }
    let (keyring, now) = (app.store.keyring(), app.now());
    let believed = match header {
        None if sessions::has_cookie(request.headers(), keyring) => {
            app.sessions.caller(&app.tokens, keyring, (request.method(), request.headers()), now)
        }
        header => match header.and_then(Claim::parse) {
            Some(claim) => claim.caller(request.extensions().get::<Shown>(), now),
            None => app.tokens.caller(header, keyring, now),
        },
    };
    let caller = believed.map_err(|problem| {
        let calm = app.limits.take(&peer, app.now());
        stranger(if calm { problem } else { too_often() })
    })?;
    let unlimited =
        matches!(caller.who, Who::Home | Who::Agent | Who::Attempt(_) | Who::Cluster { .. } | Who::Machine { .. });
    if !unlimited && !app.limits.take(&caller.name, app.now()) {
        return Err((caller.name, too_often()));
    }
    let tracking = route.is_some_and(|route| route.id.starts_with("mlflow_"));
    let own = route.is_some_and(|route| match &caller.who {
        Who::Attempt(attempt) => named(route, request, "attempts", "{attempt}") == Some(attempt.as_str()),
        _ => is_own(&caller, route, place, request),
    });
    if let Err(problem) = check(app, &caller, (access, tracking), place, own) {
        return Err((caller.on_record(), problem));
    }
    let name = caller.on_record();
    request.extensions_mut().insert(caller);
    Ok(Some(name))
}

/// Whether a job looks at itself.
fn is_own(caller: &Caller, route: &Route, place: &str, request: &Request) -> bool {
    let Who::Job { workspace, job } = &caller.who else { return false };
    let named = named(route, request, "jobs", "{name}");
    method_is_read(request.method().as_str()) && place.eq_ignore_ascii_case(workspace) && named == Some(job)
}

/// The name that follows a word, in the route as in the address.
fn named<'r>(route: &Route, request: &'r Request, word: &str, name: &str) -> Option<&'r str> {
    let parts = route.path.split('/').zip(request.uri().path().split('/'));
    let mut after = parts.skip_while(|(part, _)| *part != word).skip(1);
    after.next().filter(|(part, _)| *part == name).map(|(_, name)| name)
}

/// `tracking`: the route is one of MLflow's, whose handlers look closer at jobs. `own`: a job or an attempt is at itself.
fn check(
    app: &App,
    caller: &Caller,
    (access, tracking): (Access, bool),
    place: &str,
    own: bool,
) -> Result<(), Problem> {
    let meant = match access {
        Access::Signed => caller.is_meant_for(&http::identity::blob_audiences(app)),
        _ => caller.is_meant_for(&http::identity::resource_audiences(app)),
    };
    if !meant {
        return Err(unauthorized("the token is meant for another service; ask for one with this server's address"));
    }
    let needed = match access {
        Access::Open | Access::Known | Access::Signed => None,
        Access::Reader => Some(Role::Reader),
        Access::Contributor => Some(Role::Contributor),
        Access::Owner => Some(Role::Owner),
        Access::Router if caller.may(EVERYWHERE, Role::Owner) => return Ok(()),
        Access::Agent | Access::Attempt | Access::Cluster | Access::Node | Access::Router => {
            let (fits, whose) = match (access, &caller.who) {
                (Access::Agent, who) => (matches!(who, Who::Agent | Who::Attempt(_) | Who::Machine { .. }), "agents"),
                // Its handler looks whether the attempt is the node's.
                (Access::Attempt, who) => (own || matches!(who, Who::Machine { .. }), "the agent of that attempt"),
                (Access::Router, who) => (matches!(who, Who::Cluster { .. }), "routers: a cluster's, or an owner's"),
                (Access::Node, who) => {
                    (matches!(who, Who::Joining { .. } | Who::Machine { .. }), "nodes of managed clusters")
                }
                (_, who) => (matches!(who, Who::Cluster { .. }), "the operator of a cluster"),
            };
            let message = format!("{} may not do this; it is for {whose}", describe(caller));
            return if fits { Ok(()) } else { Err(Problem::forbidden(message)) };
        }
    };
    let fits = match (&caller.who, needed) {
        // Its handlers look at what of the blobs is the attempt's.
        (Who::Attempt(_), _) => access == Access::Signed,
        (Who::Agent | Who::Cluster { .. } | Who::Joining { .. } | Who::Machine { .. }, _) => false,
        (Who::Job { workspace, .. }, _) if tracking => place.eq_ignore_ascii_case(workspace),
        (Who::Job { .. }, Some(Role::Reader)) => own,
        (Who::Job { .. }, _) => false,
        (_, None) => true,
        (_, Some(role)) => caller.may(place, role),
    };
    if fits {
        return Ok(());
    }
    Err(match (access, needed) {
        (Access::Signed, _) => unauthorized("a signed link or a user's token is needed"),
        (_, Some(role)) if matches!(caller.who, Who::Home | Who::Principal(_) | Who::JobIdentity { .. }) => {
            let whole = "this server as a whole".to_owned();
            let place = if place == EVERYWHERE { whole } else { format!("`{place}`") };
            let hint = "an owner can give it with `peregrine principal grant`";
            Problem::forbidden(format!("{} is not {role} of {place}; {hint}", describe(caller)))
        }
        _ => Problem::forbidden(format!("{} may not do this", describe(caller))),
    })
}

pub(crate) fn too_often() -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "too many requests in a short time; wait a second")
}

fn describe(caller: &Caller) -> String {
    match &caller.who {
        Who::Home | Who::Principal(_) => format!("user `{}`", caller.name),
        Who::Agent => "an agent".to_owned(),
        Who::Attempt(attempt) => format!("the agent of attempt `{attempt}`"),
        Who::Cluster { name, .. } => format!("the operator of cluster `{name}`"),
        Who::Joining { machine, .. } => format!("a machine that is to become node `{machine}`"),
        Who::Machine { machine, .. } => format!("node `{machine}`"),
        Who::Job { job, .. } => format!("the token of job `{job}`"),
        Who::JobIdentity { job, .. } => format!("the identity of job `{job}`"),
    }
}
