//! Heads of requests: one pass over the fields, everything a router must know, and every reason to refuse.

use super::{
    MAX_FIELDS,
    body::Body,
    chunks::Chunks,
    names::{Name, lists, name, words},
};
use httparse::{Error, Header, Status};
use std::mem::MaybeUninit;

/// Room for the fields of one head; on the stack, and never across an await.
pub(crate) type Room<'b> = [MaybeUninit<Header<'b>>; MAX_FIELDS];

/// A request's head, understood.
#[derive(Debug)]
pub(crate) struct Request<'h, 'b> {
    pub(crate) method: &'b str,
    pub(crate) target: &'b str,
    /// HTTP/1.1 rather than 1.0.
    pub(crate) modern: bool,
    pub(crate) fields: &'h [Header<'b>],
    pub(crate) framing: Framing,
    /// The connection may serve another request.
    pub(crate) persistent: bool,
    /// The caller waits for `100 Continue`.
    pub(crate) expects: bool,
    pub(crate) websocket: bool,
    pub(crate) host: Option<&'b [u8]>,
    pub(crate) authorization: Option<&'b [u8]>,
    pub(crate) deployment: Option<&'b [u8]>,
    pub(crate) client_request_id: Option<&'b [u8]>,
    pub(crate) traceparent: Option<&'b [u8]>,
    pub(crate) origin: Option<&'b [u8]>,
    pub(crate) asked_method: Option<&'b [u8]>,
    pub(crate) forwarded_proto: bool,
    /// The `connection` field, where it names fields that end here.
    pub(crate) nominated: Option<&'b [u8]>,
}

/// How a request says where its body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// It says nothing: there is no body.
    Absent,
    Length(u64),
    Chunked,
}

/// Why a head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadHead {
    #[error("the request is malformed: {0}")]
    Malformed(&'static str),
    #[error("the request has too many or too long header fields")]
    TooLarge,
    #[error("only HTTP/1.0, HTTP/1.1 and HTTP/2 are spoken here")]
    Version,
    #[error("the only transfer coding understood is `chunked`")]
    Coding,
    #[error("the only expectation understood is `100-continue`")]
    Expectation,
    #[error("this method is not served")]
    Method,
}

impl Framing {
    pub(crate) fn body(self) -> Body {
        match self {
            Framing::Absent => Body::EMPTY,
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::Chunked(Box::new(Chunks::strict())),
        }
    }
}

/// Reads a whole head, as [`scan`](super::scan) found it.
pub(crate) fn parse<'h, 'b>(bytes: &'b [u8], room: &'h mut Room<'b>) -> Result<Request<'h, 'b>, BadHead> {
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(bytes, room) {
        Ok(Status::Complete(length)) if length == bytes.len() => {}
        Ok(_) => return Err(BadHead::Malformed("the head ends too early")),
        Err(error) => return Err(because(error, bytes)),
    }
    let (Some(method), Some(target), Some(minor)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(BadHead::Malformed("the request line is incomplete"));
    };
    if matches!(method, "CONNECT" | "TRACE") {
        return Err(BadHead::Method);
    }
    let mut request = Request {
        method,
        target,
        modern: minor == 1,
        fields: parsed.headers,
        framing: Framing::Absent,
        persistent: minor == 1,
        expects: false,
        websocket: false,
        host: None,
        authorization: None,
        deployment: None,
        client_request_id: None,
        traceparent: None,
        origin: None,
        asked_method: None,
        forwarded_proto: false,
        nominated: None,
    };
    let mut upgrade = Upgrade::default();
    for field in request.fields {
        request.note(field, &mut upgrade)?;
    }
    request.websocket = upgrade.asked && upgrade.websocket && request.modern;
    request.complete()
}

#[derive(Default)]
struct Upgrade {
    asked: bool,
    websocket: bool,
}

impl<'b> Request<'_, 'b> {
    fn note(&mut self, field: &Header<'b>, upgrade: &mut Upgrade) -> Result<(), BadHead> {
        let value = field.value;
        match name(field.name) {
            Name::Host => once(&mut self.host, value, "`host` stands twice")?,
            Name::ContentLength => self.frame(Framing::Length(length(value)?))?,
            Name::TransferEncoding if !value.eq_ignore_ascii_case(b"chunked") => return Err(BadHead::Coding),
            Name::TransferEncoding => self.frame(Framing::Chunked)?,
            Name::Connection => {
                upgrade.asked |= lists(value, "upgrade");
                self.connection(value)?;
            }
            // Only this one: an upgrade to another HTTP would let requests past the router unseen.
            Name::Upgrade => upgrade.websocket |= value.eq_ignore_ascii_case(b"websocket"),
            Name::Expect if !value.eq_ignore_ascii_case(b"100-continue") => return Err(BadHead::Expectation),
            Name::Expect if self.expects => return Err(BadHead::Malformed("`expect` stands twice")),
            Name::Expect => self.expects = true,
            Name::Authorization => once(&mut self.authorization, value, "`authorization` stands twice")?,
            Name::Deployment => once(&mut self.deployment, value, "`azureml-model-deployment` stands twice")?,
            Name::ClientRequestId => self.client_request_id = Some(value),
            Name::TraceParent => self.traceparent = Some(value),
            Name::Origin => self.origin = Some(value),
            Name::AskedMethod => self.asked_method = Some(value),
            Name::ForwardedProto => self.forwarded_proto = true,
            _ => {}
        }
        Ok(())
    }

    fn frame(&mut self, framing: Framing) -> Result<(), BadHead> {
        if self.framing != Framing::Absent {
            return Err(BadHead::Malformed("it says twice how long its body is"));
        }
        self.framing = framing;
        Ok(())
    }

    fn connection(&mut self, value: &'b [u8]) -> Result<(), BadHead> {
        for word in words(value) {
            let is = |known: &str| word.eq_ignore_ascii_case(known.as_bytes());
            if is("close") {
                self.persistent = false;
            } else if is("keep-alive") {
                self.persistent |= !self.modern;
            } else if !is("upgrade") && !word.is_empty() {
                // One list is enough for any client that is sane.
                if self.nominated.replace(value).is_some_and(|list| list != value) {
                    return Err(BadHead::Malformed("`connection` names fields in two places"));
                }
            }
        }
        Ok(())
    }

    fn complete(self) -> Result<Self, BadHead> {
        match self.host {
            None if self.modern => return Err(BadHead::Malformed("`host` is missing")),
            Some(host) if !is_host(host) => return Err(BadHead::Malformed("`host` is not a host")),
            _ => {}
        }
        if self.framing == Framing::Chunked && !self.modern {
            return Err(BadHead::Malformed("HTTP/1.0 knows no chunks"));
        }
        Ok(self)
    }
}

fn is_host(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| b.is_ascii_alphanumeric() || b".-_:[]".contains(b))
}

fn once<'b>(slot: &mut Option<&'b [u8]>, value: &'b [u8], twice: &'static str) -> Result<(), BadHead> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(BadHead::Malformed(twice)),
    }
}

/// Digits and nothing else: no sign, no list, no number that does not fit.
pub(crate) fn length(value: &[u8]) -> Result<u64, BadHead> {
    let digits = !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit);
    match digits {
        true => Ok(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))),
        false => Err(BadHead::Malformed("`content-length` is not a number")),
    }
}

fn because(error: Error, bytes: &[u8]) -> BadHead {
    let line = bytes.split(|b| *b == b'\r').next().unwrap_or_default();
    let versioned = line.split(|b| *b == b' ').nth(2).is_some_and(|word| word.starts_with(b"HTTP/"));
    match error {
        Error::TooManyHeaders => BadHead::TooLarge,
        Error::Version if versioned => BadHead::Version,
        Error::HeaderName => BadHead::Malformed("a field's name is not one"),
        Error::HeaderValue => BadHead::Malformed("a field's value holds a control character"),
        _ => BadHead::Malformed("the request line cannot be read"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(text: &str, see: impl FnOnce(&Request) -> T) -> Result<T, BadHead> {
        let mut room = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        parse(text.as_bytes(), &mut room).map(|request| see(&request))
    }

    fn post(fields: &str) -> String {
        format!("POST /score HTTP/1.1\r\nhost: a\r\n{fields}\r\n")
    }

    #[test]
    fn a_length_that_two_readers_could_understand_differently_is_refused() {
        let cases = [
            ("content-length: 5\r\ntransfer-encoding: chunked\r\n", "twice"),
            ("transfer-encoding: chunked\r\ncontent-length: 5\r\n", "twice"),
            ("content-length: 5\r\ncontent-length: 5\r\n", "twice"),
            ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", "twice"),
            ("content-length: 5, 5\r\n", "not a number"),
            ("content-length: +5\r\n", "not a number"),
            ("content-length: 0x5\r\n", "not a number"),
            ("content-length: -1\r\n", "not a number"),
            ("content-length:\r\n", "not a number"),
            ("content-length: 99999999999999999999\r\n", "not a number"),
            ("content-length : 5\r\n", "name"),
            ("content-length: 5\r\n folded: x\r\n", "name"),
            ("x: a\0b\r\n", "control"),
            ("x: a\rb\r\n", "control"),
            ("host: b\r\n", "`host` stands twice"),
            ("transfer-encoding: gzip, chunked\r\n", "chunked"),
            ("transfer-encoding: xchunked\r\n", "chunked"),
            ("transfer-encoding: identity\r\n", "chunked"),
            ("transfer-encoding: chunked;q=1\r\n", "chunked"),
        ];
        for (fields, expected) in cases {
            let error = read(&post(fields), |_| ()).expect_err(fields).to_string();
            assert!(error.contains(expected), "{fields:?}: {error}");
        }
    }

    #[test]
    fn what_is_asked_is_understood() {
        type Case = (&'static str, fn(&Request) -> bool);
        let cases: [Case; 7] = [
            ("content-length: 12\r\n", |r| r.framing == Framing::Length(12) && r.persistent),
            ("Transfer-Encoding: Chunked\r\n", |r| r.framing == Framing::Chunked),
            ("", |r| r.framing == Framing::Absent),
            ("connection: close\r\n", |r| !r.persistent),
            ("connection: Upgrade\r\nupgrade: WebSocket\r\n", |r| r.websocket),
            ("connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\n", |r| !r.websocket),
            ("expect: 100-continue\r\nconnection: keep-alive, x-secret\r\n", |r| {
                r.expects && r.nominated == Some(b"keep-alive, x-secret")
            }),
        ];
        for (fields, holds) in cases {
            assert_eq!(read(&post(fields), holds), Ok(true), "{fields:?}");
        }
    }

    #[test]
    fn the_old_protocol_closes_and_knows_no_chunks() {
        assert_eq!(read("GET / HTTP/1.0\r\n\r\n", |r| r.persistent), Ok(false));
        assert_eq!(read("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", |r| r.persistent), Ok(true));
        assert!(read("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n", |_| ()).is_err());
    }

    #[test]
    fn too_many_fields_are_too_large() {
        let fields: String = (0..200).map(|n| format!("x{n}: y\r\n")).collect();
        assert_eq!(read(&post(&fields), |_| ()), Err(BadHead::TooLarge));
        assert_eq!(read("GET / HTTP/3.0\r\n\r\n", |_| ()), Err(BadHead::Version));
        assert_eq!(read("CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n", |_| ()), Err(BadHead::Method));
        assert!(read("GET / HTTP/1.1\r\n\r\n", |_| ()).is_err(), "no host");
        assert!(read("GET / HTTP/1.1\r\nhost: a/b\r\n\r\n", |_| ()).is_err());
    }
}
