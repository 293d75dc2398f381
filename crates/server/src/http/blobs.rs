//! Blobs of the workspace's own stores, in the dialect of Azure's blob service.
//!
//! Bodies are streamed both ways, so memory stays flat whatever the size. A blob appears whole or not at all, and what was
//! answered with 201 outlives a power cut. Every refusal under `/blob`, the guard's too, leaves in the dialect's own envelope.

pub(crate) mod address;
mod blocks;
mod condition;
mod containers;
mod envelope;
mod listing;
mod read;
mod receive;
mod write;

use address::{Account, Address};
pub(crate) use envelope::manners;

use super::{Asked, agents::places};
use crate::{
    app::App,
    auth::{Caller, Who, link_opens, unauthorized},
    guard::too_often,
    listen::Peer,
    problem::Problem,
};
use axum::{
    extract::{Path, Query, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use domain::Role;
use std::collections::HashMap;
use store::files::{Found, Note, Spot};

/// The suffix of the account's host name; ours to choose.
pub(crate) const ENDPOINT: &str = "peregrine.local";
/// Headers of a blob that are kept as its writer gave them; all but the type only where they are given.
const KEPT: [&str; 5] =
    ["content-type", "content-encoding", "content-language", "content-disposition", "cache-control"];
const OCTETS: &str = "application/octet-stream";

/// What an address under `/blob` names: a container, or with a path a blob in it.
pub(crate) struct Place {
    pub(crate) workspace: String,
    pub(crate) container: String,
    pub(crate) path: String,
}

impl Place {
    fn spot(&self) -> Result<Spot, Problem> {
        Spot::parse(&self.workspace, &self.container, &self.path).map_err(|bad| {
            let message = format!(
                "{bad}: parts between `/` must not be empty, `.` or `..`, and all of it no longer than 1,024 letters"
            );
            Problem::new(StatusCode::BAD_REQUEST, "InvalidResourceName", message)
        })
    }

    /// The same for a reader. Clients ask whether a folder's name is a blob, and it never is.
    fn spot_to_read(&self) -> Result<Spot, Problem> {
        if self.path.ends_with('/') {
            let message = format!("there is no blob `{}` in container `{}`", self.path, self.container);
            return Err(absent("BlobNotFound", &message));
        }
        self.spot()
    }
}

/// The address of a container for whoever asks now, as clients join blob names to it.
pub(crate) fn container_url(app: &App, workspace: &str, container: &str) -> String {
    format!("{}{}", app.url, container_path(workspace, container))
}

pub(crate) fn container_path(workspace: &str, container: &str) -> String {
    format!("/blob/{}/{container}", address::account(workspace))
}

/// Who asks: someone the guard knows, or the bearer of a link.
struct Visitor {
    caller: Option<Caller>,
    query: String,
    /// What a listing is limited to.
    prefix: String,
    /// Where from.
    peer: String,
}

impl Visitor {
    fn of(request: &Request, asked: &HashMap<String, String>) -> Visitor {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let prefix = if word(asked, "comp") == "list" { word(asked, "prefix") } else { "" };
        let peer = request.extensions().get::<Peer>().map_or_else(String::new, |peer| peer.0.ip().to_string());
        Visitor { caller: request.extensions().get::<Caller>().cloned(), query, prefix: prefix.to_owned(), peer }
    }

    fn by_link(&self) -> bool {
        self.caller.is_none()
    }
}

/// The place of a request, if its visitor may go there.
async fn open(app: &App, path: &str, visitor: &Visitor, write: bool) -> Result<Place, Problem> {
    let Visitor { caller, query, prefix, peer } = visitor;
    // Only those who come with nothing good are counted: uploads of many small files are many requests.
    let stranger = |problem| if app.limits.take(peer, app.now()) { problem } else { too_often() };
    if caller.is_none() && !query.contains("sig=") {
        return Err(stranger(unauthorized("a signed link or a user's token is needed")));
    }
    let nowhere = || stranger(absent("ContainerNotFound", "there is no such container"));
    let (place, missing) = find(app, path).await?.ok_or_else(nowhere)?;
    let opens = |within: &str| {
        link_opens(app.store.keyring(), query, &place.workspace, &place.container, within, write, app.now())
    };
    let within = if place.path.is_empty() { prefix } else { &place.path };
    match caller {
        Some(Caller { who: Who::Attempt(attempt), .. }) => places::may(app, attempt, &place, within, write).await?,
        Some(caller) => {
            may(caller, &place.workspace, write)?;
            if write {
                app.store.record_act().await?;
            }
        }
        // A link to one folder lists that folder and no other.
        None if opens(within) => {}
        None => {
            let message = "the link's signature does not open this container, or its time is over; ask for a new one";
            return Err(stranger(Problem::new(StatusCode::FORBIDDEN, "AuthenticationFailed", message)));
        }
    }
    match missing {
        true => Err(absent("ContainerNotFound", &format!("there is no workspace `{}`", place.workspace))),
        false => Ok(place),
    }
}

/// The place that a path names, by its owner's own name however the path spells it, and whether the owner is missing.
/// That is not told to those who may not know.
async fn find(app: &App, path: &str) -> Result<Option<(Place, bool)>, Problem> {
    let Some(Address { account, container, path }) = Address::split(path) else { return Ok(None) };
    let (workspace, missing) = match account {
        Account::Id(id) => match app.workspace_of_id(&id) {
            Some(row) => (row.name.clone(), false),
            None => return Ok(None),
        },
        Account::Named(name) => match app.owner(&name).await {
            Ok(row) => (row.name.clone(), false),
            Err(problem) if problem.status == StatusCode::NOT_FOUND => (name, true),
            Err(problem) => return Err(problem),
        },
    };
    Ok(Some((Place { workspace, container, path }, missing)))
}

fn may(caller: &Caller, workspace: &str, write: bool) -> Result<(), Problem> {
    let role = if write { Role::Contributor } else { Role::Reader };
    if caller.may(workspace, role) {
        return Ok(());
    }
    let message = format!("`{}` is not {role} of `{workspace}`", caller.name);
    Err(Problem::new(StatusCode::FORBIDDEN, "AuthorizationPermissionMismatch", message))
}

pub(crate) async fn put(
    State(app): State<App>,
    Path(path): Path<String>,
    Query(asked): Asked,
    request: Request,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&request, &asked);
    let place = open(&app, &path, &visitor, true).await?;
    match (word(&asked, "restype"), word(&asked, "comp")) {
        ("container", "") => containers::make(&app, &place, visitor.by_link()).await,
        ("", "") => write::blob(&app, place.spot()?, request).await,
        ("", "block") => blocks::stage(&app, place.spot()?, word(&asked, "blockid"), request).await,
        ("", "blocklist") => blocks::commit(&app, place.spot()?, request).await,
        ("", "metadata" | "properties") => {
            write::describe(&app, place.spot()?, request.headers(), word(&asked, "comp") == "metadata").await
        }
        (restype, comp) => Err(unknown(restype, comp)),
    }
}

pub(crate) async fn get(
    State(app): State<App>,
    Path(path): Path<String>,
    Query(asked): Asked,
    request: Request,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&request, &asked);
    let place = open(&app, &path, &visitor, false).await?;
    match (word(&asked, "restype"), word(&asked, "comp")) {
        ("container" | "", "list") => listing::list(&app, &place, &asked).await,
        ("container", "" | "metadata") => containers::show(&app, &place, visitor.by_link()).await,
        ("account", "properties") => Ok(containers::account()),
        ("", "blocklist") => blocks::show(&app, place.spot()?).await,
        ("", "" | "metadata") => {
            read::blob(&app, place.spot_to_read()?, request.headers(), word(&asked, "comp").is_empty()).await
        }
        (restype, comp) => Err(unknown(restype, comp)),
    }
}

pub(crate) async fn head(
    State(app): State<App>,
    Path(path): Path<String>,
    Query(asked): Asked,
    request: Request,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&request, &asked);
    let place = open(&app, &path, &visitor, false).await?;
    match (word(&asked, "restype"), word(&asked, "comp")) {
        ("container", "" | "metadata") => containers::show(&app, &place, visitor.by_link()).await,
        ("account", "properties") => Ok(containers::account()),
        ("", "" | "metadata") => read::blob(&app, place.spot_to_read()?, request.headers(), false).await,
        (restype, comp) => Err(unknown(restype, comp)),
    }
}

pub(crate) async fn delete(
    State(app): State<App>,
    Path(path): Path<String>,
    Query(asked): Asked,
    request: Request,
) -> Result<Response, Problem> {
    let visitor = Visitor::of(&request, &asked);
    let place = open(&app, &path, &visitor, true).await?;
    match (word(&asked, "restype"), word(&asked, "comp")) {
        ("", "") => write::delete(&app, place.spot()?, request.headers()).await,
        (restype, comp) => Err(unknown(restype, comp)),
    }
}

/// Keeps the body of a request under a name, for those who have their own way of asking.
pub(crate) async fn take(app: &App, spot: Spot, request: Request) -> Result<Response, Problem> {
    write::blob(app, spot, request).await
}

/// What is kept under a name, or a range of it.
pub(crate) async fn give(app: &App, spot: Spot, headers: &HeaderMap) -> Result<Response, Problem> {
    read::blob(app, spot, headers, true).await
}

fn word<'a>(asked: &'a HashMap<String, String>, key: &str) -> &'a str {
    asked.get(key).map_or("", String::as_str)
}

fn unknown(restype: &str, comp: &str) -> Problem {
    let message = format!("`restype={restype}` with `comp={comp}` is not something this server does");
    Problem::new(StatusCode::BAD_REQUEST, "InvalidQueryParameterValue", message)
}

fn absent(code: &'static str, message: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, code, message)
}

fn no_blob(spot: &Spot) -> Problem {
    absent("BlobNotFound", &format!("there is no blob `{}` in container `{}`", spot.path(), spot.container()))
}

/// Runs what waits for the disk where waiting harms nobody.
async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> Result<T, Problem> + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Problem::from(store::Error::Closed))?
}

/// A blob's whole note, with what the database keeps of it.
async fn whole_note(app: &App, spot: &Spot, own: Note) -> Result<Note, Problem> {
    if !own.lies_elsewhere() {
        return Ok(own);
    }
    let wanted = spot.clone();
    let kept = app
        .store
        .read(move |tx| tx.blob_metadata(wanted.workspace(), wanted.container(), wanted.path()))
        .await
        .map(Note::from_map)?;
    // Another tag is that of a write whose file is not there any more.
    Ok(if own.tag().is_empty() || kept.tag() == own.tag() { kept } else { own })
}

/// Differs whenever content or note of a blob do.
fn etag(found: &Found, note: &Note) -> String {
    format!("0x{:X}{:X}{}", found.modified_ns, found.bytes, note.tag().to_uppercase())
}

/// What every answer about a blob carries.
fn facts(found: &Found, note: &Note) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ETAG, text(&format!("\"{}\"", etag(found, note))));
    headers.insert(header::LAST_MODIFIED, text(&found.modified.http_date()));
    headers
}

/// What a look at a blob carries besides: its type, its clients' words.
fn describe(headers: &mut HeaderMap, note: &Note) {
    headers.insert("x-ms-blob-type", HeaderValue::from_static("BlockBlob"));
    headers.insert("x-ms-lease-status", HeaderValue::from_static("unlocked"));
    headers.insert("x-ms-lease-state", HeaderValue::from_static("available"));
    headers.insert("x-ms-server-encrypted", HeaderValue::from_static("false"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(OCTETS));
    for name in KEPT {
        if let Some(value) = note.header(name) {
            headers.insert(HeaderName::from_static(name), text(value));
        }
    }
    for (name, value) in note.metadata() {
        if let Ok(name) = HeaderName::try_from(format!("x-ms-meta-{name}")) {
            headers.insert(name, text(value));
        }
    }
}

/// A header value; empty where the text cannot be one, which nothing that came in as a header is.
fn text(text: &str) -> HeaderValue {
    HeaderValue::from_bytes(text.as_bytes()).unwrap_or(HeaderValue::from_static(""))
}
