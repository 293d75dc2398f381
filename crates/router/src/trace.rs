//! W3C trace context: passed on where it is valid, begun where it is not.

use crate::chance::Chance;

/// Whether a `traceparent` can be passed on: version 00, ids that are not all zero.
pub(crate) fn is_valid(value: &[u8]) -> bool {
    let hex = |part: &[u8]| part.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let filled = |part: &[u8]| hex(part) && part.iter().any(|b| *b != b'0');
    value.len() == 55
        && value.starts_with(b"00-")
        && filled(&value[3..35])
        && value[35] == b'-'
        && filled(&value[36..52])
        && value[52] == b'-'
        && hex(&value[53..])
}

/// A new trace, not sampled: the router itself records no spans.
pub(crate) fn begin(chance: &Chance) -> [u8; 55] {
    let mut value = *b"00-00000000000000000000000000000000-0000000000000000-00";
    value[3..35].copy_from_slice(&chance.hex::<32>());
    value[36..52].copy_from_slice(&chance.hex::<16>());
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_standard_allows_is_passed_on() {
        assert!(is_valid(&begin(&Chance::new())));
        for (value, valid) in [
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", true),
            ("00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false),
            ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", false),
            ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x", false),
            ("", false),
        ] {
            assert_eq!(is_valid(value.as_bytes()), valid, "{value}");
        }
    }
}
