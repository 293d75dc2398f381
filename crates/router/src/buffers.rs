//! Buffers that go round: a connection that waits holds none, whether for its caller or for a replica. So the few that are in
//! use stay in the processor's caches, however many connections there are.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    io,
    pin::pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncReadExt};

/// What a message that fits in one read needs.
const SMALL: usize = 16 << 10;
/// What a long body is moved in.
pub(crate) const LARGE: usize = 64 << 10;
/// So many of each are kept for later.
const KEPT: usize = 64;

/// The free buffers of one worker.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    small: RefCell<Vec<Vec<u8>>>,
    large: RefCell<Vec<Vec<u8>>>,
}

impl Buffers {
    /// An empty buffer with room for a head and a small body.
    pub(crate) fn small(&self) -> Vec<u8> {
        self.small.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(SMALL))
    }

    /// An empty buffer for a long body.
    pub(crate) fn large(&self) -> Vec<u8> {
        self.large.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(LARGE))
    }

    /// Reads into a small buffer, which is taken only once there is something to read; one that is empty says that the
    /// other end is done.
    pub(crate) fn poll_read<R: AsyncRead + Unpin>(&self, io: &mut R, cx: &mut Context) -> Poll<io::Result<Vec<u8>>> {
        let mut bytes = self.small();
        match pin!(io.read_buf(&mut bytes)).poll(cx) {
            Poll::Ready(read) => Poll::Ready(read.map(|_| bytes)),
            Poll::Pending => {
                self.put(bytes);
                Poll::Pending
            }
        }
    }

    /// The same, for who can wait.
    pub(crate) async fn read<R: AsyncRead + Unpin>(&self, io: &mut R) -> io::Result<Vec<u8>> {
        poll_fn(|cx| self.poll_read(io, cx)).await
    }

    /// Gives one back. One that has grown beyond measure is let go.
    pub(crate) fn put(&self, mut buffer: Vec<u8>) {
        let kept = match buffer.capacity() {
            SMALL..LARGE => &self.small,
            LARGE..=131_072 => &self.large,
            _ => return,
        };
        let mut kept = kept.borrow_mut();
        if kept.len() < KEPT {
            buffer.clear();
            kept.push(buffer);
        }
    }
}
