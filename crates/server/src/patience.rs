//! Patience has an end: clients that stop half-way are let go.
//!
//! A body of which nothing comes for a while fails with [`Stalled`]; a connection whose client takes nothing of the answer
//! for a while breaks. Waiting for the next request, or for a handler, is nobody's fault and is not counted here.

use axum::{
    BoxError,
    body::{Body, Bytes, HttpBody},
};
use hyper::body::{Frame, SizeHint};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
    time::{Sleep, sleep},
};

/// Nothing came for too long.
#[derive(Debug, thiserror::Error)]
#[error("nothing came for {} s", .0.as_secs())]
pub(crate) struct Stalled(Duration);

/// How long someone has been waiting; started by the first wait, ended by any progress.
struct Waiting {
    idle: Duration,
    until: Option<Pin<Box<Sleep>>>,
}

impl Waiting {
    /// Passes what is ready on, and says when it was not for too long.
    fn over<T>(&mut self, cx: &mut Context<'_>, polled: Poll<T>) -> Poll<Result<T, Stalled>> {
        if let Poll::Ready(ready) = polled {
            self.until = None;
            return Poll::Ready(Ok(ready));
        }
        let until = self.until.get_or_insert_with(|| Box::pin(sleep(self.idle)));
        until.as_mut().poll(cx).map(|()| Err(Stalled(self.idle)))
    }
}

/// A body that must keep coming.
pub(crate) struct Timely<B> {
    inner: B,
    waiting: Waiting,
}

impl<B> Timely<B> {
    pub(crate) fn new(inner: B, idle: Duration) -> Timely<B> {
        Timely { inner, waiting: Waiting { idle, until: None } }
    }
}

impl<B: HttpBody<Error: Into<BoxError>> + Unpin> HttpBody for Timely<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        self.waiting.over(cx, polled).map(|over| match over {
            Ok(frame) => frame.map(|frame| frame.map_err(Into::into)),
            Err(stalled) => Some(Err(stalled.into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A body that goes back, as far as it was read, to whoever lent it.
pub(crate) struct Lent {
    inner: Option<Body>,
    back: Option<oneshot::Sender<Body>>,
}

impl Lent {
    pub(crate) fn new(inner: Body, back: oneshot::Sender<Body>) -> Lent {
        Lent { inner: Some(inner), back: Some(back) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(inner), Some(back)) = (self.inner.take(), self.back.take()) {
            // Nobody may be waiting for it.
            let _ = back.send(inner);
        }
    }
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.inner {
            Some(inner) => Pin::new(inner).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

/// A connection whose other end must keep taking what is written to it.
pub(crate) struct Patient<S> {
    inner: S,
    waiting: Waiting,
}

impl<S> Patient<S> {
    pub(crate) fn new(inner: S, idle: Duration) -> Patient<S> {
        Patient { inner, waiting: Waiting { idle, until: None } }
    }

    fn over<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.waiting.over(cx, polled).map(|over| match over {
            Ok(done) => done,
            Err(stalled) => Err(io::Error::new(io::ErrorKind::TimedOut, stalled)),
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.over(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(cx, bytes);
        self.over(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.over(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.over(cx, polled)
    }
}
