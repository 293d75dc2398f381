//! How long a body is, and its bytes one after the other.

use super::chunks::{BadChunk, Chunks};
use std::ops::Range;

/// A body that is being read.
#[derive(Debug)]
pub(crate) enum Body {
    /// So many bytes are still to come.
    Length(u64),
    Chunked(Box<Chunks>),
    /// Until the other end closes the connection; only answers may.
    UntilClose,
}

impl Body {
    pub(crate) const EMPTY: Body = Body::Length(0);

    pub(crate) fn is_done(&self) -> bool {
        match self {
            Body::Length(left) => *left == 0,
            Body::Chunked(chunks) => chunks.is_done(),
            Body::UntilClose => false,
        }
    }

    /// Reads on: how many bytes were used, and where among them the next piece of the body lies.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(usize, Range<usize>), BadChunk> {
        match self {
            Body::Length(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= here as u64;
                Ok((here, 0..here))
            }
            Body::Chunked(chunks) => chunks.take(bytes),
            Body::UntilClose => Ok((bytes.len(), 0..bytes.len())),
        }
    }

    /// The trailers of a body that was read to its end.
    pub(crate) fn trailers(&self) -> Result<Vec<u8>, BadChunk> {
        match self {
            Body::Chunked(chunks) => chunks.trailers(),
            _ => Ok(Vec::new()),
        }
    }
}
