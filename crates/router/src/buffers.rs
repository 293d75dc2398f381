//! Buffers that go round: a connection that waits holds none.

use std::cell::RefCell;

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
