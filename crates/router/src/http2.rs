//! HTTP/2 towards callers. Each stream is taken for a connection of HTTP/1.1 that serves one request, so that there is one way
//! for requests, with one set of rules.

mod exchange;

use crate::{
    prepare::Caller,
    serve::Conn,
    worker::{Io, Worker},
};
use bytes::Bytes;
use h2::{RecvStream, server::SendResponse};
use http::Request;
use std::{io::Cursor, rc::Rc};
use tokio::{
    io::{AsyncReadExt, duplex, join, split},
    task::JoinSet,
    time::timeout,
};

/// Streams that one connection may have open.
const STREAMS: u32 = 256;
/// Bytes that may be on their way on one stream, and on all of them.
const WINDOW: u32 = 256 << 10;
const ALL_WINDOWS: u32 = 1 << 20;
/// What stands between a stream and the rest of the router.
const PIPE: usize = 64 << 10;

/// Serves a connection whose first bytes are in `begun`, until it ends or the router stops.
pub(crate) async fn serve<S: Io>(worker: Rc<Worker>, io: S, begun: Vec<u8>, caller: Caller) {
    let (read, write) = split(io);
    let io = join(Cursor::new(begun).chain(read), write);
    let mut settings = h2::server::Builder::new();
    settings
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(crate::http::MAX_HEAD as u32)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(ALL_WINDOWS)
        .max_send_buffer_size(WINDOW as usize);
    let Ok(Ok(mut connection)) = timeout(worker.limits.head, settings.handshake::<_, Bytes>(io)).await else { return };
    let mut streams = JoinSet::new();
    let mut leaving = worker.is_closing();
    if leaving {
        connection.graceful_shutdown();
    }
    loop {
        tokio::select! {
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    streams.spawn_local(stream(Rc::clone(&worker), request, respond, caller));
                }
                _ => break,
            },
            Some(_) = streams.join_next(), if !streams.is_empty() => {}
            () = worker.closed().notified(), if !leaving => {
                leaving = true;
                connection.graceful_shutdown();
            }
            () = tokio::time::sleep(worker.limits.idle), if !leaving && streams.is_empty() => {
                leaving = true;
                connection.graceful_shutdown();
            }
        }
    }
    while streams.join_next().await.is_some() {}
}

async fn stream(worker: Rc<Worker>, request: Request<RecvStream>, respond: SendResponse<Bytes>, caller: Caller) {
    let (ours, theirs) = duplex(PIPE);
    let conn = Conn::new(worker, theirs, caller).without_http2().converse();
    tokio::join!(conn, exchange::exchange(request, respond, ours));
}
