//! One stream's request written as HTTP/1.1, and the answer to it read back.

use crate::http::{
    self, MAX_FIELDS, Scan,
    body::Body,
    chunks,
    names::{Name, name},
    reply,
};
use ::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, request::Parts};
use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream, server::SendResponse};
use std::{future::poll_fn, mem::MaybeUninit, pin::pin, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, split},
    time::timeout,
};

/// How long a caller may go on sending what nobody needs any more.
const LINGER: Duration = Duration::from_secs(1);

/// Nothing more can be done for a stream.
struct Over;

/// Carries one request to the other end of `pipe`, and the answer back.
pub(super) async fn exchange(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, pipe: DuplexStream) {
    let (mut from, mut to) = split(pipe);
    let (head, body) = request.into_parts();
    let bodiless = head.method == "HEAD";
    let mut up = pin!(upload(&head, body, &mut to));
    let mut sent = false;
    let answered = {
        let mut down = pin!(answer(&mut from, &mut respond, bodiless));
        loop {
            tokio::select! {
                biased;
                answered = &mut down => break answered,
                done = &mut up, if !sent => match done {
                    Ok(()) => sent = true,
                    // The caller gave up; so does the request.
                    Err(Over) => return,
                },
            }
        }
    };
    // A caller may hear of a reset before it has read the answer; one that is nearly done had better finish.
    if answered.is_err() {
        respond.send_reset(Reason::INTERNAL_ERROR);
    } else if !sent && timeout(LINGER, up).await.is_err() {
        respond.send_reset(Reason::NO_ERROR);
    }
}

async fn upload(head: &Parts, mut body: RecvStream, to: &mut (impl AsyncWrite + Unpin)) -> Result<(), Over> {
    let chunked = !body.is_end_stream() && !head.headers.contains_key("content-length");
    let mut out = Vec::with_capacity(1024);
    write_head(head, chunked, &mut out);
    // A replica may answer before it has everything; then nobody reads here any more, and that is no fault.
    let mut open = to.write_all(&out).await.is_ok();
    while let Some(data) = body.data().await {
        let data = data.map_err(|_| Over)?;
        let _ = body.flow_control().release_capacity(data.len());
        out.clear();
        match chunked {
            true => chunks::chunk(&mut out, &data),
            false => out.extend_from_slice(&data),
        }
        open = open && to.write_all(&out).await.is_ok();
    }
    if chunked {
        let mut trailers = Vec::new();
        for (field, value) in body.trailers().await.map_err(|_| Over)?.iter().flatten() {
            http::field(&mut trailers, field.as_str(), value.as_bytes());
        }
        out.clear();
        chunks::last_chunk(&mut out, &trailers);
        let _ = open && to.write_all(&out).await.is_ok();
    }
    Ok(())
}

fn write_head(head: &Parts, chunked: bool, out: &mut Vec<u8>) {
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    for part in [head.method.as_str(), " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    match head.uri.authority() {
        Some(authority) => http::field(out, "host", authority.as_str().as_bytes()),
        None => head.headers.get("host").into_iter().for_each(|host| http::field(out, "host", host.as_bytes())),
    }
    for (field, value) in &head.headers {
        match name(field.as_str()) {
            Name::Host | Name::Connection | Name::TransferEncoding | Name::Upgrade | Name::Hop => {}
            _ => http::field(out, field.as_str(), value.as_bytes()),
        }
    }
    if chunked {
        http::field(out, "transfer-encoding", b"chunked");
    }
    http::field(out, "connection", b"close");
    out.extend_from_slice(b"\r\n");
}

async fn answer(
    from: &mut (impl AsyncRead + Unpin),
    respond: &mut SendResponse<Bytes>,
    bodiless: bool,
) -> Result<(), Over> {
    let mut bytes = Vec::with_capacity(16 << 10);
    let (response, mut body) = loop {
        let length = read_head(from, &mut bytes).await?;
        let head = read_response(&bytes[..length], bodiless)?;
        bytes.drain(..length);
        if !head.0.status().is_informational() {
            break head;
        }
        // An early hint that cannot be passed on is no loss.
        let _ = respond.send_informational(head.0);
    };
    let mut stream = respond.send_response(response, body.is_done()).map_err(|_| Over)?;
    while !body.is_done() {
        let mut at = 0;
        while at < bytes.len() && !body.is_done() {
            let (used, data) = body.take(&bytes[at..]).map_err(|_| Over)?;
            send(&mut stream, &bytes[at + data.start..at + data.end]).await?;
            at += used;
        }
        if body.is_done() {
            return end(&mut stream, &body);
        }
        bytes.clear();
        match from.read_buf(&mut bytes).await {
            Ok(read) if read > 0 => {}
            Ok(_) if matches!(body, Body::UntilClose) => return end(&mut stream, &body),
            _ => return Err(Over),
        }
    }
    Ok(())
}

async fn read_head(from: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> Result<usize, Over> {
    let mut seen = 0;
    loop {
        match http::scan(bytes, seen) {
            Scan::End(length) => return Ok(length),
            Scan::More(to) => seen = to,
            Scan::BareLine => return Err(Over),
        }
        if from.read_buf(bytes).await.unwrap_or(0) == 0 {
            return Err(Over);
        }
    }
}

fn read_response(head: &[u8], bodiless: bool) -> Result<(Response<()>, Body), Over> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let reply = reply::parse(head, &mut room, bodiless).map_err(|_| Over)?;
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(reply.status).map_err(|_| Over)?;
    let fields = reply.fields.iter().map(|field| (field.name, field.value));
    put(response.headers_mut(), fields);
    Ok((response, reply.body))
}

/// Adds fields that HTTP/2 has room for; how a message is framed is its own affair there.
fn put<'f>(map: &mut HeaderMap, fields: impl Iterator<Item = (&'f str, &'f [u8])>) {
    for (field, value) in fields {
        if matches!(name(field), Name::Connection | Name::TransferEncoding | Name::Upgrade | Name::Hop) {
            continue;
        }
        if let (Ok(field), Ok(value)) = (HeaderName::from_bytes(field.as_bytes()), HeaderValue::from_bytes(value)) {
            map.append(field, value);
        }
    }
}

/// Sends as fast as the caller takes it, and no faster.
async fn send(stream: &mut SendStream<Bytes>, mut data: &[u8]) -> Result<(), Over> {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let room = poll_fn(|cx| stream.poll_capacity(cx)).await.and_then(Result::ok).ok_or(Over)?.min(data.len());
        stream.send_data(Bytes::copy_from_slice(&data[..room]), false).map_err(|_| Over)?;
        data = &data[room..];
    }
    Ok(())
}

fn end(stream: &mut SendStream<Bytes>, body: &Body) -> Result<(), Over> {
    let trailers = body.trailers().map_err(|_| Over)?;
    if trailers.is_empty() {
        return stream.send_data(Bytes::new(), true).map_err(|_| Over);
    }
    let mut map = HeaderMap::new();
    let lines = trailers.split(|b| *b == b'\n').filter_map(|line| {
        let colon = line.iter().position(|b| *b == b':')?;
        Some((std::str::from_utf8(&line[..colon]).ok()?, line[colon + 1..].trim_ascii()))
    });
    put(&mut map, lines);
    stream.send_trailers(map).map_err(|_| Over)
}
