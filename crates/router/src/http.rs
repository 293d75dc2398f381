//! HTTP/1.1 by hand: heads, bodies and chunks, read strictly and written anew.
//!
//! Invariant: what leaves this room is framed by us. A message whose length two readers could understand differently
//! (two lengths, length and chunks, bare line feeds, folded lines) never gets past it, in either direction.

pub(crate) mod body;
pub(crate) mod chunks;
pub(crate) mod head;
pub(crate) mod names;
pub(crate) mod reply;
pub(crate) mod target;

/// A head, of a request or an answer, is at most this long.
pub(crate) const MAX_HEAD: usize = 32 << 10;
/// A head has at most this many fields.
pub(crate) const MAX_FIELDS: usize = 128;

/// Whether a head is all there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// Not yet; look again from here.
    More(usize),
    /// Its length, the empty line included.
    End(usize),
    /// A line that does not end in CR LF.
    BareLine,
}

/// Looks for the end of a head, at bytes not seen before `from`.
pub(crate) fn scan(bytes: &[u8], from: usize) -> Scan {
    for at in memchr::memchr_iter(b'\n', &bytes[from..]).map(|at| from + at) {
        if at == 0 || bytes[at - 1] != b'\r' {
            return Scan::BareLine;
        }
        if at >= 3 && bytes[at - 2] == b'\n' {
            return Scan::End(at + 1);
        }
    }
    Scan::More(bytes.len())
}

/// Writes `name: value` and the end of the line.
pub(crate) fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Writes a number in decimal.
pub(crate) fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).expect("below ten");
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_at_its_empty_line_however_it_comes() {
        for (text, expected) in [
            ("GET / HTTP/1.1\r\na: b\r\n\r\nbody", Scan::End(24)),
            ("GET / HTTP/1.1\r\na: b\r\n\r", Scan::More(23)),
            ("GET / HTTP/1.1\na: b\r\n", Scan::BareLine),
            ("GET / HTTP/1.1\r\na: b\r\n\n", Scan::BareLine),
            ("\n", Scan::BareLine),
            ("", Scan::More(0)),
        ] {
            assert_eq!(scan(text.as_bytes(), 0), expected, "{text:?}");
            // Byte by byte it comes to the same.
            let mut from = 0;
            let mut last = Scan::More(0);
            for end in 0..=text.len() {
                last = scan(&text.as_bytes()[..end], from);
                match last {
                    Scan::More(next) => from = next,
                    _ => break,
                }
            }
            assert_eq!(last, expected, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 7, 10, 1024, u64::MAX] {
            let mut out = Vec::new();
            decimal(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }
}
