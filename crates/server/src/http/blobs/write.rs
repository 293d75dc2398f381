//! Writing a blob in one request, its note, and its end.

use super::{
    KEPT,
    condition::{self, Conditions},
    facts, no_blob, on_disk,
    receive::{Incoming, Promised, Sink, receive},
    text, whole_note,
};
use crate::{app::App, problem::Problem};
use axum::{
    extract::Request,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use std::collections::BTreeMap;
use store::files::{Draft, Note, Put, Room, Spot};

/// The most letters of metadata a blob may have.
const METADATA: usize = 8 << 10;

/// `PUT` of a whole blob.
pub(super) async fn blob(app: &App, spot: Spot, request: Request) -> Result<Response, Problem> {
    let headers = request.headers();
    let wish = Wish::of(headers)?;
    let promised = Promised::of(headers, &["content-md5", "x-ms-blob-content-md5"])?;
    let expected = length(headers);
    refuse_other_kinds(headers)?;
    let mut body = Incoming::begin(app, request.into_body());
    let room = wish.let_in(app, &spot, expected.unwrap_or(0)).await?;
    let first = body.pieces().await?;
    let files = app.files.clone();
    let digest = promised.any();
    let begin = move || -> Result<(Draft, Sink), Problem> {
        let draft = files.draft()?;
        let sink = Sink::new(draft.file().try_clone()?, draft.path().to_owned(), 0, u64::MAX, digest);
        Ok((draft, sink))
    };
    if body.over() {
        // A small one: all of its work on the disk is one errand.
        let (files, place) = (app.files.clone(), spot.clone());
        let put = on_disk(move || {
            let (draft, mut sink) = begin()?;
            let room = grown(room, first.iter().map(|piece| piece.len() as u64).sum())?;
            sink.write(&first)?;
            sink.check(&promised)?;
            let put = wish.publish(&files, draft, &place);
            drop(room);
            put
        });
        return answer(app, &spot, put.await?).await;
    }
    let (draft, sink) = on_disk(begin).await?;
    let (sink, room) = receive(body, first, sink, room).await?;
    let (files, place) = (app.files.clone(), spot.clone());
    let put = on_disk(move || {
        sink.check(&promised)?;
        let put = wish.publish(&files, draft, &place);
        drop(room);
        put
    });
    answer(app, &spot, put.await?).await
}

/// Room for all that came, also where no length was told before.
fn grown(mut room: Room, bytes: u64) -> Result<Room, Problem> {
    room.grow(bytes.saturating_sub(room.bytes()))?;
    Ok(room)
}

pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A request for something else than a block blob must not leave an empty one behind.
fn refuse_other_kinds(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key("x-ms-copy-source") {
        let message = "copying on the server is not supported; read the source and write it here";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "UnsupportedHeader", message));
    }
    match headers.get("x-ms-blob-type") {
        Some(kind) if kind != "BlockBlob" => {
            let message = "only block blobs are kept here; send `x-ms-blob-type: BlockBlob`";
            Err(Problem::new(StatusCode::BAD_REQUEST, "InvalidBlobType", message))
        }
        _ => Ok(()),
    }
}

/// What a writer wants the blob to be, and over what it may be written.
pub(super) struct Wish {
    note: Note,
    conditions: Conditions,
}

impl Wish {
    /// From the headers of a whole blob or of a list of blocks.
    pub(super) fn of(headers: &HeaderMap) -> Result<Wish, Problem> {
        let mut note = Note::default();
        note.set_metadata(metadata(headers)?);
        describe_as(&mut note, headers);
        if note.header("content-type").is_none()
            && let Some(kind) = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok())
        {
            note.set_header("content-type", kind);
        }
        let md5 = headers.get("x-ms-blob-content-md5").or_else(|| headers.get("content-md5"));
        note.set_md5(md5.and_then(|md5| md5.to_str().ok()));
        Ok(Wish { note, conditions: Conditions::of(headers) })
    }

    /// From the headers of a list of blocks, whose own type and digest are those of the list.
    pub(super) fn of_list(headers: &HeaderMap) -> Result<Wish, Problem> {
        let mut own = headers.clone();
        own.remove("content-md5");
        own.remove(header::CONTENT_TYPE);
        Wish::of(&own)
    }

    /// Refuses a write before its bytes are taken, where that can be known; finds room for them.
    pub(super) async fn let_in(&self, app: &App, spot: &Spot, bytes: u64) -> Result<Room, Problem> {
        let limit = app.settings.storage_quota;
        let looks = self.conditions.only_new() || self.conditions.look_first();
        if limit == 0 && !looks {
            return Ok(app.files.room(spot.workspace(), 0, 0)?);
        }
        let (files, spot, conditions) = (app.files.clone(), spot.clone(), self.conditions.clone());
        on_disk(move || {
            if looks {
                let fits = |current: Option<(&_, &_)>| conditions.to_write(current);
                if conditions.only_new() && files.open(&spot)?.is_some() {
                    return Err(exists(&spot));
                }
                if !files.is_as(&spot, &fits)? {
                    return Err(condition::unmet());
                }
            }
            Ok(files.room(spot.workspace(), bytes, limit)?)
        })
        .await
    }

    pub(super) fn publish(self, files: &store::files::Files, draft: Draft, spot: &Spot) -> Result<Put, Problem> {
        let fits = |current: Option<(&_, &_)>| self.conditions.to_write(current);
        let expected: store::files::Expected<'_> = if self.conditions.look_first() { Some(&fits) } else { None };
        let only_new = self.conditions.only_new();
        Ok(files.publish(draft, spot, self.note, only_new, expected)?)
    }
}

/// The answer to a write; a note that does not fit beside the bytes goes to the database first.
pub(super) async fn answer(app: &App, spot: &Spot, put: Put) -> Result<Response, Problem> {
    match put {
        Put::Done { found, note, kept } => {
            if !kept {
                keep(app, spot, &note).await?;
            }
            let mut headers = facts(&found, &note);
            if let Some(md5) = note.md5(&found) {
                headers.insert("content-md5", text(md5));
            }
            headers.insert("x-ms-request-server-encrypted", text("false"));
            Ok((StatusCode::CREATED, headers).into_response())
        }
        Put::Exists => Err(exists(spot)),
        Put::Unexpected => Err(condition::unmet()),
        Put::Blocked(name) if name == spot.path() => {
            let message = format!("`{name}` is the beginning of other blobs' names, so it cannot be a blob too");
            Err(Problem::new(StatusCode::CONFLICT, "BlobNameConflict", message))
        }
        Put::Blocked(name) => {
            let message = format!("`{name}` is a blob, so `{}` cannot lie below it; choose another name", spot.path());
            Err(Problem::new(StatusCode::CONFLICT, "BlobNameConflict", message))
        }
    }
}

async fn keep(app: &App, spot: &Spot, note: &Note) -> Result<(), Problem> {
    let (spot, map) = (spot.clone(), note.as_map().clone());
    let kept = app.store.write(move |tx| tx.put_blob_metadata(spot.workspace(), spot.container(), spot.path(), &map));
    Ok(kept.await?)
}

fn exists(spot: &Spot) -> Problem {
    let message = format!("there is a blob `{}` already, and only a new one was asked for", spot.path());
    Problem::new(StatusCode::CONFLICT, "BlobAlreadyExists", message)
}

/// `PUT ?comp=metadata` replaces the clients' words, `PUT ?comp=properties` the headers the blob is shown with.
pub(super) async fn describe(app: &App, spot: Spot, headers: &HeaderMap, words: bool) -> Result<Response, Problem> {
    let given = metadata(headers)?;
    let conditions = Conditions::of(headers);
    let rest = whole_note(app, &spot, Note::default()).await?;
    let (files, place, headers) = (app.files.clone(), spot.clone(), headers.clone());
    let put = on_disk(move || {
        let fits = |current: Option<(&_, &_)>| conditions.to_write(current);
        let change = |note: &mut Note| match words {
            true => note.set_metadata(given),
            false => describe_as(note, &headers),
        };
        Ok(files.annotate(&place, Some(&fits), change, Some(rest))?)
    });
    let put = put.await?.ok_or_else(|| no_blob(&spot))?;
    let mut answer = answer(app, &spot, put).await?;
    *answer.status_mut() = StatusCode::OK;
    Ok(answer)
}

/// `DELETE` of a blob.
pub(super) async fn delete(app: &App, spot: Spot, headers: &HeaderMap) -> Result<Response, Problem> {
    let conditions = Conditions::of(headers);
    let (files, place) = (app.files.clone(), spot.clone());
    let gone = on_disk(move || {
        if conditions.look_first()
            && files.open(&place)?.is_some()
            && !files.is_as(&place, &|is| conditions.to_write(is))?
        {
            return Err(condition::unmet());
        }
        Ok(files.delete(&place)?)
    });
    if !gone.await? {
        return Err(no_blob(&spot));
    }
    let known = whole_note(app, &spot, Note::default()).await?;
    if known != Note::default() {
        app.store.write(move |tx| tx.delete_blob_note(spot.workspace(), spot.container(), spot.path())).await?;
    }
    Ok((StatusCode::ACCEPTED, [("x-ms-delete-type-permanent", "true")]).into_response())
}

fn describe_as(note: &mut Note, headers: &HeaderMap) {
    for name in KEPT {
        let given =
            headers.get(format!("x-ms-blob-{name}")).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
        if let Some(value) = given {
            note.set_header(name, value);
        }
    }
}

fn metadata(headers: &HeaderMap) -> Result<BTreeMap<String, String>, Problem> {
    let mut given = BTreeMap::new();
    for (name, value) in headers {
        let Some(name) = name.as_str().strip_prefix("x-ms-meta-").filter(|name| !name.is_empty()) else { continue };
        let value = std::str::from_utf8(value.as_bytes()).map_err(|_| {
            let message = format!("the metadata `{name}` is not text");
            Problem::new(StatusCode::BAD_REQUEST, "InvalidMetadata", message)
        })?;
        given.insert(name.to_owned(), value.to_owned());
    }
    if given.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > METADATA {
        let message = format!("the metadata has more than {METADATA} letters");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "MetadataTooLarge", message));
    }
    Ok(given)
}
