//! The studio: its files, which are part of this binary, and the session of the browser that shows them.
//!
//! Invariant: the page runs no script and loads nothing that is not from here, and nothing else that this server answers
//! is ever shown as a page of its origin: users' files lie at the same address.

use crate::{
    app::{App, scope},
    auth::{Caller, sessions},
    http::Body,
    problem::Problem,
};
use axum::{
    Extension, Json,
    body::Bytes,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
};
use domain::Role;
use serde::Deserialize;
use serde_json::{Value, json};

/// A file of the studio.
struct File {
    path: &'static str,
    plain: &'static [u8],
    /// The same compressed, where that is shorter.
    brotli: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/studio.rs"));

const PAGE: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; \
                    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// For everything that is not the studio: should a browser show it, then alone and lifeless.
const NO_PAGE: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// Adds to every answer what keeps browsers from taking it for something else.
pub(crate) async fn manners(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, NO_PAGE),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    answer
}

/// To the studio, for whoever types the server's address.
pub(crate) async fn home() -> Redirect {
    Redirect::temporary("/studio/")
}

/// A file of the studio; every other address below is a view that the page itself knows.
pub(crate) async fn file(uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().trim_start_matches("/studio").trim_start_matches('/');
    let find = |path: &str| FILES.iter().find(|file| file.path == path);
    let Some(file) = find(path).or_else(|| find("index.html").filter(|_| !path.starts_with("assets/"))) else {
        return if FILES.is_empty() { absent() } else { super::meta::nothing_here(uri).await.into_response() };
    };
    let takes = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let brotli = file.brotli.filter(|_| takes.split(',').any(|one| one.trim().split(';').next() == Some("br")));
    let hashed = file.path.starts_with("assets/");
    let kept = if hashed { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut answer = shown(kind(file.path), Bytes::from_static(brotli.unwrap_or(file.plain)));
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if brotli.is_some() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("br"));
    }
    answer
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// What a binary says that was built without the studio.
fn absent() -> Response {
    let text = format!(
        "This server was built without the studio: {MISSING}.\n\nTo have it, install Node.js 20.19 or newer and build \
         again with\n\n  PEREGRINE_STUDIO=on cargo build --release\n\nEverything else works without it; \
         `peregrine job list` is a beginning.\n"
    );
    (StatusCode::NOT_FOUND, shown("text/plain; charset=utf-8", Bytes::from(text))).into_response()
}

fn shown(kind: &'static str, bytes: Bytes) -> Response {
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, PAGE), (opener, "same-origin")];
    (headers, bytes).into_response()
}

/// A link that opens the studio for the caller, once.
pub(crate) async fn link(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    app.store.record_act().await?;
    let code = app.sessions.link(&caller, app.store.keyring(), app.now());
    let code = code.ok_or_else(|| Problem::forbidden("the studio is for people; jobs and agents have no session"))?;
    // What follows `#` stays in the browser: it is in no log and no other page's hands.
    Ok((StatusCode::CREATED, Json(json!({"url": format!("{}/studio/#enter={code}", app.outside), "code": code}))))
}

/// What a link holds.
#[derive(Deserialize)]
pub(crate) struct Code {
    code: String,
    /// The session of someone else may end by this.
    #[serde(default)]
    replace: bool,
}

/// Turns a link's code into a session. A browser that is signed in as someone else has to say that it means it: a link
/// may come from anybody.
pub(crate) async fn enter(
    State(app): State<App>,
    method: Method,
    headers: HeaderMap,
    Body(Code { code, replace }): Body<Code>,
) -> Result<Response, Problem> {
    sessions::from_our_page(&method, &headers)?;
    let (keyring, now) = (app.store.keyring(), app.now());
    if let (false, Ok(caller)) = (replace, app.sessions.caller(&app.tokens, keyring, (&method, &headers), now))
        && app.sessions.replaces(&caller, &code, now)
    {
        let message = format!("this browser is signed in as `{}`, and the link is someone else's", caller.name);
        return Err(Problem::conflict(message));
    }
    let session = app.sessions.enter(&code, keyring, now).ok_or_else(|| {
        crate::auth::unauthorized("the link was used before or is too old; `peregrine studio` makes a new one")
    })?;
    Ok((StatusCode::CREATED, keep(&app, Some(&session)), Json(json!({}))).into_response())
}

/// Who is signed in, where they may look, and for how long; a browser's session lasts longer by asking.
pub(crate) async fn session(
    State(app): State<App>,
    headers: HeaderMap,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let rows = app.store.read(|tx| tx.workspaces()).await?;
    let may = |name: &str| Role::ALL.into_iter().filter(|role| caller.may(name, *role)).max();
    let places: Vec<Value> = rows
        .iter()
        .filter_map(|row| Some(json!({"name": row.name, "path": scope(row).path(), "role": may(&row.name)?})))
        .collect();
    let now = app.now();
    let session = app.sessions.of(&headers, app.store.keyring(), now).map(|session| sessions::renewed(session, now));
    let body = json!({
        "name": caller.name, "workspaces": places, "workspace": app.settings.workspace, "version": app.settings.version,
        "address": app.outside, "everywhere": may(domain::access::EVERYWHERE), "until": session.as_ref().map(|session| session.until.iso()),
    });
    let kept = session.map(|session| keep(&app, Some(&session)));
    Ok((kept, Json(body)).into_response())
}

/// Ends the browser's session.
pub(crate) async fn leave(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    if let Some(session) = app.sessions.of(&headers, app.store.keyring(), app.now()) {
        let then = app.clone();
        let ended = tokio::task::spawn_blocking(move || then.sessions.end(&session, then.now()));
        let ended = ended.await.map_err(|_| store::Error::Closed)?;
        ended.map_err(|source| store::Error::Io { what: "write", path: "keys/sessions-left".into(), source })?;
    }
    Ok((StatusCode::NO_CONTENT, keep(&app, None)).into_response())
}

fn keep(app: &App, session: Option<&sessions::Session>) -> [(HeaderName, String); 1] {
    [(header::SET_COOKIE, sessions::set_cookie(session, app.store.keyring(), app.now()))]
}
