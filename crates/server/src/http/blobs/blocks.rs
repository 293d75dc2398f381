//! Uploads in blocks: each block by itself, then the list that makes a blob of them.

use super::{
    envelope::escape,
    on_disk,
    receive::{Incoming, Promised, Sink, receive},
    write::{Wish, answer, length},
};
use crate::{app::App, problem::Problem};
use axum::{
    extract::Request,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use md5::{Digest, Md5};
use quick_xml::{Reader, events::Event};
use std::{fmt::Write, os::unix::fs::MetadataExt};
use store::files::{Draft, Spot};

/// The most blocks a blob is made of.
const MOST_BLOCKS: usize = 50_000;
/// The most bytes a list of them takes.
const LIST_BYTES: usize = 16 << 20;
/// The longest name of a block, in base64.
const LONGEST_ID: usize = 256;

/// `PUT ?comp=block`: one block, to be listed later.
pub(super) async fn stage(app: &App, spot: Spot, id: &str, request: Request) -> Result<Response, Problem> {
    let id = block_id(id)?;
    let headers = request.headers();
    let promised = Promised::of(headers, &["content-md5"])?;
    let told = length(headers);
    let body = Incoming::begin(app, request.into_body());
    let (files, limit, workspace) = (app.files.clone(), app.settings.storage_quota, spot.workspace().to_owned());
    let room = on_disk(move || Ok(files.room(&workspace, told.unwrap_or(0), limit)?)).await?;
    // Its place in the upload's file depends on its length; one that does not tell it is measured beside that file first.
    let (mut body, aside, bytes) = match told {
        Some(bytes) => (body, None, bytes),
        None => {
            let (draft, bytes) = put_aside(app, body).await?;
            (Incoming::begin(app, axum::body::Body::empty()), Some(draft), bytes)
        }
    };
    let files = app.files.clone();
    let staging = on_disk(move || {
        let block = files.stage(&spot, &id, bytes, room)?;
        let file = block.file().try_clone()?;
        Ok((block, file))
    });
    let (block, file) = staging.await?;
    let sink = Sink::new(file, "a block".into(), block.offset(), bytes, promised.any());
    let free = app.files.room("", 0, 0)?;
    let sink = match aside {
        Some(draft) => on_disk(move || copied(&draft, sink)).await?,
        None => {
            let first = body.pieces().await?;
            receive(body, first, sink, free).await?.0
        }
    };
    let done = on_disk(move || {
        if sink.bytes() != bytes {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "IncompleteBody",
                "the block is shorter than its `Content-Length`",
            ));
        }
        sink.check(&promised)?;
        Ok(block.finish()?)
    });
    if !done.await? {
        let message = "the blob was committed while this block was on its way; upload it again";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "ServerBusy", message));
    }
    Ok((StatusCode::CREATED, [("x-ms-request-server-encrypted", "false")]).into_response())
}

async fn put_aside(app: &App, mut body: Incoming) -> Result<(Draft, u64), Problem> {
    let files = app.files.clone();
    let (draft, sink) = on_disk(move || {
        let draft = files.draft()?;
        let sink = Sink::new(draft.file().try_clone()?, draft.path().to_owned(), 0, u64::MAX, false);
        Ok((draft, sink))
    })
    .await?;
    let first = body.pieces().await?;
    let (sink, _) = receive(body, first, sink, app.files.room("", 0, 0)?).await?;
    Ok((draft, sink.bytes()))
}

fn copied(from: &Draft, mut sink: Sink) -> Result<Sink, Problem> {
    use std::os::unix::fs::FileExt;
    let (mut at, end) = (0, from.file().metadata()?.size());
    while at < end {
        let mut piece = vec![0; usize::try_from(end - at).unwrap_or(usize::MAX).min(1 << 20)];
        from.file().read_exact_at(&mut piece, at)?;
        at += piece.len() as u64;
        sink.write(&[piece.into()])?;
    }
    Ok(sink)
}

/// `PUT ?comp=blocklist`: the blob is these blocks, in this order.
pub(super) async fn commit(app: &App, spot: Spot, request: Request) -> Result<Response, Problem> {
    let wish = Wish::of_list(request.headers())?;
    let promised = Promised::of(request.headers(), &["content-md5"])?;
    let list = Incoming::begin(app, request.into_body()).small(LIST_BYTES).await?;
    if promised.any() {
        promised.check(Md5::digest(&list).into())?;
    }
    let ids = ids(&list)?;
    // What the blocks hold was let in with each of them.
    drop(wish.let_in(app, &spot, 0).await?);
    let (files, place) = (app.files.clone(), spot.clone());
    let put = on_disk(move || {
        let draft = files.assemble(&place, &ids)?;
        let draft = draft.map_err(|unknown| bad_list(format!("{unknown}; upload it before it is listed")))?;
        wish.publish(&files, draft, &place)
    });
    answer(app, &spot, put.await?).await
}

/// `GET ?comp=blocklist`: blocks that wait to be committed. Those of a blob are not kept apart once they are.
pub(super) async fn show(app: &App, spot: Spot) -> Result<Response, Problem> {
    let files = app.files.clone();
    let staged = on_disk(move || Ok(files.staged(&spot))).await?;
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><CommittedBlocks></CommittedBlocks><UncommittedBlocks>",
    );
    for block in staged {
        let _ = write!(xml, "<Block><Name>{}</Name><Size>{}</Size></Block>", escape(&block.id), block.bytes);
    }
    xml += "</UncommittedBlocks></BlockList>";
    Ok(([(header::CONTENT_TYPE, "application/xml")], xml).into_response())
}

fn block_id(id: &str) -> Result<String, Problem> {
    // A `+` that was not escaped arrives as a space.
    let id = id.replace(' ', "+");
    if id.is_empty() || id.len() > LONGEST_ID || STANDARD.decode(&id).is_err() {
        let message = format!("`blockid` must be base64 of 1 to {LONGEST_ID} letters");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "InvalidQueryParameterValue", message));
    }
    Ok(id)
}

fn bad_list(message: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "InvalidBlockList", message)
}

/// The names in a list, in its order.
fn ids(list: &[u8]) -> Result<Vec<String>, Problem> {
    let bad =
        |what: &str| Problem::new(StatusCode::BAD_REQUEST, "InvalidXmlDocument", format!("the list of blocks {what}"));
    let text = std::str::from_utf8(list).map_err(|_| bad("is not UTF-8"))?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let (mut ids, mut open, mut root) = (Vec::new(), false, false);
    loop {
        match reader.read_event().map_err(|_| bad("is not XML"))? {
            Event::Start(tag) | Event::Empty(tag) if tag.name().as_ref() == b"BlockList" => root = true,
            Event::Start(tag) => {
                match tag.name().as_ref() {
                    b"Latest" | b"Uncommitted" if root && !open => {}
                    b"Committed" if root && !open => {
                        return Err(bad_list(
                            "committed blocks are not kept apart here; upload all blocks of the blob again",
                        ));
                    }
                    _ => return Err(bad("has an element that is none of `Latest`, `Uncommitted`, `Committed`")),
                }
                open = true;
                ids.push(String::new());
            }
            Event::Text(id) if open => {
                let id = id.decode().map_err(|_| bad("is not UTF-8"))?;
                if let Some(last) = ids.last_mut() {
                    last.push_str(id.trim());
                }
            }
            Event::End(_) => open = false,
            Event::Eof => break,
            _ => {}
        }
    }
    match ids.len() {
        _ if !root => Err(bad("has no `BlockList`")),
        n if n > MOST_BLOCKS => {
            let message = format!("the list has {n} blocks and may have {MOST_BLOCKS}; use larger blocks");
            Err(Problem::new(StatusCode::BAD_REQUEST, "BlockListTooLong", message))
        }
        _ => Ok(ids),
    }
}
