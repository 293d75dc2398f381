//! Blobs of the workspace's own stores, in the dialect of Azure's blob service.
//!
//! Bodies are streamed both ways, so memory stays flat whatever the size. A blob appears whole or not at all.

use super::Asked;
use crate::{
    app::App,
    auth::{Caller, link_opens, unauthorized},
    problem::Problem,
};
use axum::{
    body::Body,
    extract::{Path, Query, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{Role, Timestamp};
use futures_util::StreamExt;
use std::{collections::BTreeMap, fmt::Write, path::PathBuf, time::UNIX_EPOCH};
use store::files::{Found, full_or};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio_util::io::ReaderStream;

/// The suffix of the account's host name; ours to choose.
pub(crate) const ENDPOINT: &str = "peregrine.local";
const PAGE: usize = 5000;

/// A blob's place: whose, in which container, under which name.
struct Spot {
    workspace: String,
    container: String,
    path: String,
}

/// The address of a container, as clients join blob names to it.
pub(crate) fn container_url(app: &App, workspace: &str, container: &str) -> String {
    format!("{}/blob/{workspace}.blob.{ENDPOINT}/{container}", app.url)
}

/// The file on this machine behind a blob's address, if it is one of ours.
pub(crate) fn file_of(app: &App, address: &str) -> Option<PathBuf> {
    let long = super::registries::long_path(address);
    let address = long.as_deref().unwrap_or(address);
    let path = address.split(['?', '#']).next()?.split_once("/blob/")?.1;
    let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    let spot = spot_of(app, &path)?;
    app.files.blob(&spot.workspace, &spot.container, &spot.path).ok()
}

/// Splits `<account>.blob.<endpoint>/<container>/<path>`; without the account the container names its workspace.
fn spot_of(app: &App, path: &str) -> Option<Spot> {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    if let Some((workspace, _)) = first.split_once(".blob.") {
        let (container, path) = rest.split_once('/').unwrap_or((rest, ""));
        return Some(Spot { workspace: workspace.into(), container: container.into(), path: path.into() });
    }
    let id = first.strip_prefix("azureml-blobstore-")?;
    let known = app.workspaces.lock().expect("nothing panics while it holds the table");
    let workspace = known.values().find(|row| row.id == id)?.name.clone();
    Some(Spot { workspace, container: first.into(), path: rest.into() })
}

fn open(app: &App, path: &str, request: &Request, write: bool) -> Result<Spot, Problem> {
    let caller = request.extensions().get::<Caller>();
    let known = caller.is_some();
    let query = request.uri().query().unwrap_or_default();
    if !known && !query.contains("sig=") {
        return Err(unauthorized("a signed link or a user's token is needed"));
    }
    let spot = spot_of(app, path).ok_or_else(|| missing("ContainerNotFound"))?;
    let role = if write { Role::Contributor } else { Role::Reader };
    if caller.is_some_and(|caller| caller.may(&spot.workspace, role))
        || link_opens(app.store.keyring(), query, &spot.workspace, &spot.container, &spot.path, write, app.now())
    {
        return Ok(spot);
    }
    if let Some(caller) = caller {
        let message = format!("`{}` is not {role} of `{}`", caller.name, spot.workspace);
        return Err(Problem::new(StatusCode::FORBIDDEN, "AuthorizationPermissionMismatch", message));
    }
    let message = "the link's signature does not open this container, or its time is over";
    Err(Problem::new(StatusCode::FORBIDDEN, "AuthenticationFailed", message))
}

pub(crate) async fn put(
    State(app): State<App>,
    Path(path): Path<String>,
    Query(asked): Asked,
    request: Request,
) -> Result<Response, Response> {
    let spot = open(&app, &path, &request, true).map_err(dialect)?;
    match asked.get("comp").map(String::as_str) {
        None => write_blob(&app, &spot, request).await.map_err(dialect),
        Some("metadata") => write_metadata(&app, &spot, request.headers()).await.map_err(dialect),
        Some(other) => Err(dialect(Problem::bad(format!("`comp={other}` is not supported here")))),
    }
}

async fn write_blob(app: &App, spot: &Spot, request: Request) -> Result<Response, Problem> {
    let to = app.files.blob(&spot.workspace, &spot.container, &spot.path)?;
    let only_new = request.headers().get(header::IF_NONE_MATCH).is_some_and(|value| value == "*");
    if only_new && tokio::fs::try_exists(&to).await.unwrap_or(false) {
        drain(request.into_body().into_data_stream()).await;
        return Err(exists());
    }
    let draft = app.files.draft(&store::secrets::hex(&app.store.keyring().random::<12>()))?;
    let written = receive(&draft, request.into_body()).await;
    if let Err(problem) = written {
        let _ = tokio::fs::remove_file(&draft).await;
        return Err(problem);
    }
    let (files, target) = (app.files.clone(), to.clone());
    let published = tokio::task::spawn_blocking(move || files.publish(&draft, &target, !only_new)).await;
    if !published.map_err(|_| store::Error::Closed)?? {
        return Err(exists());
    }
    let meta = tokio::fs::metadata(&to).await?;
    Ok((StatusCode::CREATED, facts(&found_of(spot.path.clone(), &meta))).into_response())
}

async fn receive(draft: &std::path::Path, body: Body) -> Result<(), Problem> {
    let mut file = tokio::fs::File::create(draft).await?;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| Problem::bad(format!("the upload broke off: {error}")))?;
        if let Err(error) = file.write_all(&chunk).await {
            drain(chunks).await;
            return Err(Problem::from(full_or(error, "write", draft.to_owned())));
        }
    }
    file.flush().await.map_err(|error| Problem::from(full_or(error, "write", draft.to_owned())))
}

/// Takes the rest of a body and forgets it: a client that still sends would not read the answer.
async fn drain(mut chunks: axum::body::BodyDataStream) {
    while let Some(Ok(_)) = chunks.next().await {}
}

async fn write_metadata(app: &App, spot: &Spot, headers: &HeaderMap) -> Result<Response, Problem> {
    let to = app.files.blob(&spot.workspace, &spot.container, &spot.path)?;
    let meta = tokio::fs::metadata(&to).await.map_err(|_| missing("BlobNotFound"))?;
    let given: BTreeMap<String, String> = headers
        .iter()
        .filter_map(|(name, value)| {
            Some((name.as_str().strip_prefix("x-ms-meta-")?.to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect();
    let (workspace, container, path) = (spot.workspace.clone(), spot.container.clone(), spot.path.clone());
    app.store.write(move |tx| tx.put_blob_metadata(&workspace, &container, &path, &given)).await?;
    Ok((StatusCode::OK, facts(&found_of(spot.path.clone(), &meta))).into_response())
}

pub(crate) async fn head(
    State(app): State<App>,
    Path(path): Path<String>,
    request: Request,
) -> Result<Response, Response> {
    let spot = open(&app, &path, &request, false).map_err(dialect)?;
    let found = look(&app, &spot).await.map_err(dialect)?;
    let mut headers = facts(&found);
    headers.insert(header::CONTENT_LENGTH, number(found.bytes));
    headers.insert("x-ms-blob-type", HeaderValue::from_static("BlockBlob"));
    let (workspace, container) = (spot.workspace.clone(), spot.container.clone());
    let metadata = app.store.read(move |tx| tx.blob_metadata(&workspace, &container, &spot.path)).await;
    for (name, value) in metadata.map_err(|error| dialect(error.into()))? {
        let pair = (HeaderName::try_from(format!("x-ms-meta-{name}")), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = pair {
            headers.insert(name, value);
        }
    }
    Ok((StatusCode::OK, headers).into_response())
}

pub(crate) async fn get(
    State(app): State<App>,
    Path(path): Path<String>,
    Query(asked): Asked,
    request: Request,
) -> Result<Response, Response> {
    let spot = open(&app, &path, &request, false).map_err(dialect)?;
    if asked.get("comp").is_some_and(|comp| comp == "list") {
        let word = |key: &str| asked.get(key).cloned().unwrap_or_default();
        return list(&app, &spot, word("prefix"), word("marker")).await.map_err(dialect);
    }
    read(&app, &spot, request.headers()).await.map_err(dialect)
}

async fn read(app: &App, spot: &Spot, headers: &HeaderMap) -> Result<Response, Problem> {
    let found = look(app, spot).await?;
    let range = headers.get("x-ms-range").or_else(|| headers.get(header::RANGE)).and_then(|value| value.to_str().ok());
    let mut file = tokio::fs::File::open(app.files.blob(&spot.workspace, &spot.container, &spot.path)?).await?;
    let mut answer = facts(&found);
    answer.insert("x-ms-blob-type", HeaderValue::from_static("BlockBlob"));
    answer.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let Some((from, to)) = range.and_then(|range| span(range, found.bytes)) else {
        if range.is_some() {
            return Err(Problem::new(
                StatusCode::RANGE_NOT_SATISFIABLE,
                "InvalidRange",
                "the range lies outside of the blob",
            ));
        }
        answer.insert(header::CONTENT_LENGTH, number(found.bytes));
        return Ok(
            (StatusCode::OK, answer, Body::from_stream(ReaderStream::with_capacity(file, 64 << 10))).into_response()
        );
    };
    file.seek(std::io::SeekFrom::Start(from)).await?;
    answer.insert(header::CONTENT_LENGTH, number(to - from + 1));
    let range = format!("bytes {from}-{to}/{}", found.bytes);
    answer.insert(header::CONTENT_RANGE, HeaderValue::try_from(range).expect("digits are a header value"));
    let body = Body::from_stream(ReaderStream::with_capacity(file.take(to - from + 1), 64 << 10));
    Ok((StatusCode::PARTIAL_CONTENT, answer, body).into_response())
}

/// `bytes=a-b`, both ends included, cut to the blob's length.
fn span(range: &str, length: u64) -> Option<(u64, u64)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let from: u64 = from.parse().ok()?;
    let to = if to.is_empty() { u64::MAX } else { to.parse().ok()? };
    (from < length && from <= to).then(|| (from, to.min(length - 1)))
}

async fn list(app: &App, spot: &Spot, prefix: String, marker: String) -> Result<Response, Problem> {
    let (files, workspace, container) = (app.files.clone(), spot.workspace.clone(), spot.container.clone());
    let wanted = prefix.clone();
    let found =
        tokio::task::spawn_blocking(move || files.list(&workspace, &container, &wanted, &marker, PAGE + 1)).await;
    let mut found = found.map_err(|_| store::Error::Closed)??;
    let next = if found.len() > PAGE { found[PAGE - 1].path.clone() } else { String::new() };
    found.truncate(PAGE);
    let mut blobs = String::new();
    for blob in &found {
        let _ = write!(
            blobs,
            "<Blob><Name>{}</Name><Properties><Last-Modified>{}</Last-Modified><Etag>{}</Etag><Content-Length>{}</Content-Length>\
             <Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType><LeaseStatus>unlocked</LeaseStatus>\
             <LeaseState>available</LeaseState></Properties></Blob>",
            escape(&blob.path),
            blob.modified.http_date(),
            escape(&etag(blob)),
            blob.bytes
        );
    }
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ContainerName=\"{}\"><Prefix>{}</Prefix>\
         <Blobs>{blobs}</Blobs><NextMarker>{}</NextMarker></EnumerationResults>",
        escape(&spot.container),
        escape(&prefix),
        escape(&next)
    );
    Ok(([(header::CONTENT_TYPE, "application/xml")], xml).into_response())
}

async fn look(app: &App, spot: &Spot) -> Result<Found, Problem> {
    let path = app.files.blob(&spot.workspace, &spot.container, &spot.path)?;
    let container = app.files.container(&spot.workspace, &spot.container);
    match tokio::fs::metadata(&path).await {
        // Jobs write here directly, and may leave links to anywhere.
        Ok(meta) if meta.is_file() && store::files::stays_inside(&container, &path) => {
            Ok(found_of(spot.path.clone(), &meta))
        }
        _ => Err(missing("BlobNotFound")),
    }
}

fn found_of(path: String, meta: &std::fs::Metadata) -> Found {
    let since = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Found { path, bytes: meta.len(), modified: Timestamp(i64::try_from(since.as_millis()).unwrap_or(0)) }
}

fn etag(found: &Found) -> String {
    format!("\"0x{:X}{:X}\"", found.modified.0, found.bytes)
}

fn facts(found: &Found) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let text = |text: String| HeaderValue::try_from(text).expect("dates and digits are header values");
    headers.insert(header::ETAG, text(etag(found)));
    headers.insert(header::LAST_MODIFIED, text(found.modified.http_date()));
    headers.insert("x-ms-version", HeaderValue::from_static("2021-06-08"));
    headers
}

fn number(n: u64) -> HeaderValue {
    HeaderValue::from(n)
}

fn exists() -> Problem {
    Problem::new(StatusCode::CONFLICT, "BlobAlreadyExists", "the blob is there already")
}

fn missing(code: &'static str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, code, "there is no such blob")
}

/// The envelope blob clients read: XML, and the code again in a header.
pub(crate) fn dialect(problem: Problem) -> Response {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{}</Code><Message>{}</Message></Error>",
        problem.code,
        escape(&problem.message)
    );
    let headers = [(HeaderName::from_static("x-ms-error-code"), HeaderValue::from_static(problem.code))];
    let kind = [(header::CONTENT_TYPE, "application/xml")];
    let status = problem.status;
    if status.is_server_error() {
        // Logs the cause.
        drop(problem.into_response());
    }
    (status, headers, kind, body).into_response()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
