//! Listing a container: XML, a page at a time.

use super::{
    OCTETS, Place, containers,
    envelope::{escape, is_xml},
    etag, on_disk, word,
};
use crate::{app::App, problem::Problem};
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::{collections::HashMap, fmt::Write};
use store::files::{Entry, Found, Listing, Note, Spot};

/// The most entries of a page, and how many there are unless fewer are asked for.
const PAGE: usize = 5000;

/// `GET ?restype=container&comp=list`.
pub(super) async fn list(app: &App, place: &Place, asked: &HashMap<String, String>) -> Result<Response, Problem> {
    if !place.path.is_empty() || Spot::parse(&place.workspace, &place.container, "any").is_err() {
        return Err(containers::no_container(place));
    }
    let page = Page::of(asked)?;
    let (files, workspace, container) = (app.files.clone(), place.workspace.clone(), place.container.clone());
    let wanted = page.clone();
    let (mut entries, more) = on_disk(move || {
        let delimiter = Some(wanted.delimiter.as_str()).filter(|delimiter| !delimiter.is_empty());
        let listing = Listing { prefix: &wanted.prefix, delimiter, after: &wanted.after, limit: wanted.limit };
        // A prefix that no name can have is a prefix of none.
        Ok(files.page(&workspace, &container, &listing).unwrap_or_default())
    })
    .await?;
    if page.metadata {
        fill_in(app, place, &mut entries).await?;
    }
    let next = entries.last().filter(|_| more).map(|last| URL_SAFE_NO_PAD.encode(last.name())).unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, "application/xml")], page.show(place, &entries, &next)).into_response())
}

/// What is asked for, checked.
#[derive(Debug, Clone)]
struct Page {
    prefix: String,
    delimiter: String,
    marker: String,
    after: String,
    limit: usize,
    metadata: bool,
}

impl Page {
    fn of(asked: &HashMap<String, String>) -> Result<Page, Problem> {
        let text = |key: &str| word(asked, key).to_owned();
        let bad = |key: &str, fix: &str| {
            let message = format!("`{key}={}` cannot be used: {fix}", word(asked, key));
            Problem::new(StatusCode::BAD_REQUEST, "InvalidQueryParameterValue", message)
        };
        let limit = match word(asked, "maxresults") {
            "" => PAGE,
            most => most
                .parse::<usize>()
                .ok()
                .filter(|most| *most > 0)
                .ok_or_else(|| bad("maxresults", "it must be a whole number above 0"))?,
        };
        let after = URL_SAFE_NO_PAD.decode(word(asked, "marker")).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(Page {
            prefix: text("prefix"),
            delimiter: text("delimiter"),
            marker: text("marker"),
            after: after.ok_or_else(|| bad("marker", "it must be the `NextMarker` of the page before"))?,
            limit: limit.min(PAGE),
            metadata: word(asked, "include").split(',').any(|what| what.trim() == "metadata"),
        })
    }

    fn show(&self, place: &Place, entries: &[Entry], next: &str) -> String {
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ContainerName=\"{}\"><Prefix>{}</Prefix>\
             <Marker>{}</Marker><MaxResults>{}</MaxResults><Delimiter>{}</Delimiter><Blobs>",
            escape(&place.container),
            escape(&self.prefix),
            escape(&self.marker),
            self.limit,
            escape(&self.delimiter),
        );
        for entry in entries {
            match entry {
                Entry::Blob(found, note) => show_blob(&mut xml, found, note, self.metadata),
                Entry::Shared(prefix) => {
                    let _ = write!(xml, "<BlobPrefix>{}</BlobPrefix>", name(prefix));
                }
            }
        }
        let _ = write!(xml, "</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>");
        xml
    }
}

fn show_blob(xml: &mut String, found: &Found, note: &Note, metadata: bool) {
    let date = found.modified.http_date();
    let _ = write!(
        xml,
        "<Blob>{}<Properties><Creation-Time>{date}</Creation-Time><Last-Modified>{date}</Last-Modified><Etag>{}</Etag>\
         <Content-Length>{}</Content-Length><Content-Type>{}</Content-Type>",
        name(&found.path),
        etag(found, note),
        found.bytes,
        escape(note.header("content-type").unwrap_or(OCTETS)),
    );
    if let Some(md5) = note.md5(found) {
        let _ = write!(xml, "<Content-MD5>{}</Content-MD5>", escape(md5));
    }
    xml.push_str(
        "<BlobType>BlockBlob</BlobType><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>\
         <ServerEncrypted>false</ServerEncrypted></Properties>",
    );
    if metadata {
        xml.push_str("<Metadata>");
        for (name, value) in note.metadata().filter(|(name, _)| is_element(name)) {
            let _ = write!(xml, "<{name}>{}</{name}>", escape(value));
        }
        xml.push_str("</Metadata>");
    }
    xml.push_str("</Blob>");
}

/// A name; one with letters that XML cannot hold is percent-encoded and says so.
fn name(text: &str) -> String {
    match text.chars().all(is_xml) {
        true => format!("<Name>{}</Name>", escape(text)),
        false => format!("<Name Encoded=\"true\">{}</Name>", utf8_percent_encode(text, NON_ALPHANUMERIC)),
    }
}

fn is_element(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(letter))
}

/// Notes that the database keeps.
async fn fill_in(app: &App, place: &Place, entries: &mut [Entry]) -> Result<(), Problem> {
    let elsewhere = |entry: &&mut Entry| matches!(entry, Entry::Blob(_, note) if note.lies_elsewhere());
    let mut lacking: Vec<&mut Entry> = entries.iter_mut().filter(elsewhere).collect();
    let (Some(first), Some(last)) = (lacking.first(), lacking.last()) else { return Ok(()) };
    let (from, to) = (first.name().to_owned(), last.name().to_owned());
    let (workspace, container) = (place.workspace.clone(), place.container.clone());
    let mut notes = app.store.read(move |tx| tx.blob_notes(&workspace, &container, &from, &to)).await?;
    for entry in &mut lacking {
        if let Entry::Blob(found, note) = entry
            && let Some(kept) = notes.remove(&found.path).map(Note::from_map)
            && (note.tag().is_empty() || note.tag() == kept.tag())
        {
            *note = kept;
        }
    }
    Ok(())
}
