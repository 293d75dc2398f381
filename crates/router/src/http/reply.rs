//! Heads of replicas' answers.

use super::{
    body::Body,
    chunks::Chunks,
    head::{self, Room},
    names::{Name, lists, name},
};
use httparse::{Header, Status};

/// An answer's head, understood.
#[derive(Debug)]
pub(crate) struct Reply<'h, 'b> {
    pub(crate) status: u16,
    pub(crate) reason: &'b str,
    pub(crate) fields: &'h [Header<'b>],
    pub(crate) body: Body,
    /// The length it announces; kept where there is no body to go with it.
    pub(crate) length: Option<u64>,
    /// The connection may be used again.
    pub(crate) persistent: bool,
}

/// An answer that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is malformed: {0}")]
pub(crate) struct BadReply(pub(crate) &'static str);

/// Reads a whole head. `bodiless`: the request was one whose answer has no body, whatever it announces.
pub(crate) fn parse<'h, 'b>(
    bytes: &'b [u8],
    room: &'h mut Room<'b>,
    bodiless: bool,
) -> Result<Reply<'h, 'b>, BadReply> {
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut parsed, bytes, room) {
        Ok(Status::Complete(length)) if length == bytes.len() => {}
        _ => return Err(BadReply("its head cannot be read")),
    }
    let (Some(status), Some(minor)) = (parsed.code, parsed.version) else {
        return Err(BadReply("its status line is incomplete"));
    };
    let fields: &[Header] = parsed.headers;
    let (mut length, mut chunked, mut persistent) = (None, false, minor == 1);
    for field in fields {
        match name(field.name) {
            Name::ContentLength => {
                let found = head::length(field.value).map_err(|_| BadReply("its length is not a number"))?;
                if length.replace(found).is_some_and(|before| before != found) {
                    return Err(BadReply("it has two lengths"));
                }
            }
            Name::TransferEncoding if chunked || !field.value.eq_ignore_ascii_case(b"chunked") => {
                return Err(BadReply("its transfer coding is not `chunked`"));
            }
            Name::TransferEncoding => chunked = true,
            Name::Connection if lists(field.value, "close") => persistent = false,
            Name::Connection if minor == 0 && lists(field.value, "keep-alive") => persistent = true,
            _ => {}
        }
    }
    let body = match length {
        _ if bodiless || status < 200 || status == 204 || status == 304 => Body::EMPTY,
        Some(_) if chunked => return Err(BadReply("it has a length and chunks")),
        Some(length) => Body::Length(length),
        None if chunked => Body::Chunked(Box::new(Chunks::lenient())),
        None => Body::UntilClose,
    };
    let persistent = persistent && !matches!(body, Body::UntilClose);
    Ok(Reply { status, reason: parsed.reason.unwrap_or_default(), fields, body, length, persistent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::MAX_FIELDS;
    use std::mem::MaybeUninit;

    fn read(text: &str, bodiless: bool) -> Result<(u16, String, bool), BadReply> {
        let mut room = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let text = format!("{text}\r\n");
        parse(text.as_bytes(), &mut room, bodiless).map(|reply| {
            let body = match reply.body {
                Body::Length(length) => length.to_string(),
                Body::Chunked(_) => "chunks".to_owned(),
                Body::UntilClose => "close".to_owned(),
            };
            (reply.status, body, reply.persistent)
        })
    }

    #[test]
    fn where_an_answer_ends_is_known_from_its_head() {
        for (text, bodiless, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n", false, (200, "5", true)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n", true, (200, "0", true)),
            ("HTTP/1.1 204 None\r\n", false, (204, "0", true)),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n", false, (200, "chunks", true)),
            ("HTTP/1.1 200 OK\r\n", false, (200, "close", false)),
            ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n", false, (200, "1", false)),
            ("HTTP/1.1 200\r\ncontent-length: 1\r\nconnection: close\r\n", false, (200, "1", false)),
        ] {
            assert_eq!(read(text, bodiless), Ok((expected.0, expected.1.to_owned(), expected.2)), "{text}");
        }
    }

    #[test]
    fn an_answer_that_could_be_read_in_two_ways_is_refused() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: x\r\n",
            "HTTP/1.1 2000 OK\r\n",
            "hello\r\n",
        ] {
            assert!(read(text, false).is_err(), "{text}");
        }
    }
}
