//! Chunked bodies: taken apart strictly, put together anew.
//!
//! Extensions of chunks are refused from callers, where they serve only to confuse, and skipped from replicas, which
//! may send them. Trailers are collected and checked as fields before anyone passes them on.

use super::names::{Name, name};
use std::ops::Range;

/// Trailers are at most this long.
const MAX_TRAILERS: usize = 8 << 10;
/// So many digits hold any size below 2^60.
const MAX_DIGITS: u8 = 15;

/// A body that breaks the rules of chunking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the chunked body is malformed: {0}")]
pub(crate) struct BadChunk(&'static str);

/// A reader of chunks, fed with whatever comes.
#[derive(Debug)]
pub(crate) struct Chunks {
    state: State,
    extensions: bool,
    trailers: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size { size: u64, digits: u8 },
    Extension { size: u64 },
    SizeEnd { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    Trailers,
    Done,
}

impl Chunks {
    /// Chunks as a caller may send them.
    pub(crate) fn strict() -> Chunks {
        Chunks { state: State::Size { size: 0, digits: 0 }, extensions: false, trailers: Vec::new() }
    }

    /// Chunks as a replica may send them.
    pub(crate) fn lenient() -> Chunks {
        Chunks { extensions: true, ..Chunks::strict() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Reads on: how many bytes were used, and where among them the next piece of the body lies.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(usize, Range<usize>), BadChunk> {
        let mut at = 0;
        while at < bytes.len() {
            if let State::Data { left } = self.state {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - at);
                let left = left - here as u64;
                self.state = if left == 0 { State::DataCr } else { State::Data { left } };
                return Ok((at + here, at..at + here));
            }
            if self.is_done() {
                break;
            }
            self.state = self.after(bytes[at])?;
            at += 1;
        }
        Ok((at, at..at))
    }

    /// The fields after the last chunk, one to a line; only those that may be passed on.
    pub(crate) fn trailers(&self) -> Result<Vec<u8>, BadChunk> {
        let mut fields = [httparse::EMPTY_HEADER; 32];
        if self.trailers.len() <= 2 {
            return Ok(Vec::new());
        }
        let Ok(httparse::Status::Complete((_, found))) = httparse::parse_headers(&self.trailers, &mut fields) else {
            return Err(BadChunk("the trailers are no fields"));
        };
        let mut out = Vec::with_capacity(self.trailers.len());
        // Fields that frame or route a message have no business after it.
        for field in found.iter().filter(|field| name(field.name) == Name::Other) {
            super::field(&mut out, field.name, field.value);
        }
        Ok(out)
    }

    fn after(&mut self, byte: u8) -> Result<State, BadChunk> {
        Ok(match (self.state, byte) {
            (State::Size { size, digits }, b) if b.is_ascii_hexdigit() => {
                if digits == MAX_DIGITS {
                    return Err(BadChunk("a size is too long"));
                }
                let digit = char::from(b).to_digit(16).expect("a hex digit");
                State::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
            }
            (State::Size { digits: 0, .. }, _) => return Err(BadChunk("a size is missing")),
            (State::Size { size, .. }, b'\r') => State::SizeEnd { size },
            (State::Size { size, .. }, b';' | b' ' | b'\t') if self.extensions => State::Extension { size },
            (State::Size { .. }, _) => return Err(BadChunk("a size is followed by something else than CR LF")),
            (State::Extension { size }, b'\r') => State::SizeEnd { size },
            (State::Extension { .. }, b'\n' | 0) => return Err(BadChunk("an extension does not end in CR LF")),
            (State::Extension { size }, _) => State::Extension { size },
            (State::SizeEnd { size: 0 }, b'\n') => State::Trailers,
            (State::SizeEnd { size }, b'\n') => State::Data { left: size },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { size: 0, digits: 0 },
            (State::Trailers, b) => return self.trailer(b),
            _ => return Err(BadChunk("a chunk does not end in CR LF")),
        })
    }

    fn trailer(&mut self, byte: u8) -> Result<State, BadChunk> {
        if byte == b'\n' && self.trailers.last() != Some(&b'\r') {
            return Err(BadChunk("a trailer does not end in CR LF"));
        }
        self.trailers.push(byte);
        if self.trailers.len() > MAX_TRAILERS {
            return Err(BadChunk("the trailers are too long"));
        }
        let over = self.trailers == b"\r\n" || self.trailers.ends_with(b"\r\n\r\n");
        Ok(if over { State::Done } else { State::Trailers })
    }
}

/// Writes one chunk. Nothing for an empty piece, which would end the body.
pub(crate) fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let mut digits = [0; 16];
    let mut at = digits.len();
    let mut size = data.len();
    while size > 0 {
        at -= 1;
        digits[at] = b"0123456789abcdef"[size % 16];
        size /= 16;
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Writes the end of a chunked body, with the trailers as [`Chunks::trailers`] gives them.
pub(crate) fn last_chunk(out: &mut Vec<u8>, trailers: &[u8]) {
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(trailers);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body, the trailers, and what is left over.
    fn read(mut chunks: Chunks, text: &str, step: usize) -> Result<(String, String, usize), BadChunk> {
        let (mut body, mut used) = (Vec::new(), 0);
        let bytes = text.as_bytes();
        while used < bytes.len() && !chunks.is_done() {
            let piece = &bytes[used..(used + step).min(bytes.len())];
            let (taken, data) = chunks.take(piece)?;
            body.extend_from_slice(&piece[data]);
            used += taken;
        }
        assert!(chunks.is_done() || used == bytes.len());
        let trailers = if chunks.is_done() { chunks.trailers()? } else { b"unfinished".to_vec() };
        Ok((String::from_utf8(body).unwrap(), String::from_utf8(trailers).unwrap(), bytes.len() - used))
    }

    #[test]
    fn a_body_reads_the_same_in_any_pieces() {
        let cases = [
            ("3\r\nabc\r\n0\r\n\r\n", ("abc", "", 0)),
            ("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET", ("abcde", "", 3)),
            ("0\r\na: b\r\nContent-Length: 5\r\n\r\n", ("", "a: b\r\n", 0)),
            ("0a\r\n0123456789\r\n", ("0123456789", "unfinished", 0)),
        ];
        for (text, (body, trailers, left)) in cases {
            for step in [1, 2, 3, 7, 100] {
                let expected = (body.to_owned(), trailers.to_owned(), left);
                assert_eq!(read(Chunks::strict(), text, step), Ok(expected), "{text:?} by {step}");
            }
        }
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused() {
        let cases = [
            "\r\n",
            "-3\r\nabc",
            "+3\r\nabc",
            "0x3\r\nabc",
            "3 \r\nabc",
            "3;a=b\r\nabc",
            "3\nabc\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "1000000000000000\r\n",
            "ffffffffffffffffff\r\n",
            "0\r\na: b\n\r\n",
            "0\r\n a: b\r\n\r\n",
            "0\r\n\0: b\r\n\r\n",
            "3\r\r\nabc",
        ];
        for text in cases {
            assert!(read(Chunks::strict(), text, 100).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_replica_may_send_extensions() {
        let got = read(Chunks::lenient(), "3;name=\"v\"\r\nabc\r\n0;x\r\n\r\n", 4);
        assert_eq!(got, Ok(("abc".to_owned(), String::new(), 0)));
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut out = Vec::new();
        for piece in ["", "a", "0123456789abcdef", &"x".repeat(70_000)] {
            chunk(&mut out, piece.as_bytes());
        }
        last_chunk(&mut out, b"a: b\r\n");
        let (body, trailers, left) = read(Chunks::strict(), std::str::from_utf8(&out).unwrap(), 1000).unwrap();
        assert_eq!((body.len(), trailers.as_str(), left), (70_017, "a: b\r\n", 0));
    }
}
