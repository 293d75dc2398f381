//! Numbers of any size in as few bytes as they need, and a reader that never runs past its end.

use super::Corrupt;

/// Appends a number, seven bits a byte, the low ones first.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// How many bytes `put` appends.
pub(super) fn length(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// A signed number as one whose size is its distance from zero.
pub(super) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// The inverse of `zigzag`.
pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Bytes and how far they have been read.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn is_done(&self) -> bool {
        self.left() == 0
    }

    /// How many bytes have not been read.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn corrupt(&self, reason: &'static str) -> Corrupt {
        Corrupt { at: self.at, reason }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Corrupt> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.corrupt("it ends early"))?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn expect(&mut self, kind: u8) -> Result<(), Corrupt> {
        if self.bytes.get(self.at) != Some(&kind) {
            return Err(self.corrupt("not the start of a block"));
        }
        self.at += 1;
        Ok(())
    }

    /// A number `put` has written.
    pub(super) fn number(&mut self) -> Result<u64, Corrupt> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.corrupt("a number too large"))
    }

    /// The next bytes.
    pub(super) fn take(&mut self, length: u64) -> Result<&'a [u8], Corrupt> {
        let length = usize::try_from(length).ok().filter(|length| *length <= self.left());
        let length = length.ok_or_else(|| self.corrupt("it ends early"))?;
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    /// The next bytes, at most eight, as a number, the low byte first.
    pub(super) fn low_bytes(&mut self, length: usize) -> Result<u64, Corrupt> {
        let mut whole = [0; 8];
        whole[..length].copy_from_slice(self.take(length as u64)?);
        Ok(u64::from_le_bytes(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_the_length_foretold() {
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, u64::MAX >> bit]);
        for number in edges {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(bytes.len(), length(number), "{number}");
            assert_eq!(Reader::new(&bytes).number(), Ok(number));
            let signed = number as i64;
            assert_eq!(unzigzag(zigzag(signed)), signed);
        }
    }

    #[test]
    fn a_number_without_an_end_is_refused() {
        assert!(Reader::new(&[0xff; 20]).number().is_err());
        assert!(Reader::new(&[0x80; 3]).number().is_err());
        assert!(Reader::new(&[1, 2]).take(u64::MAX).is_err());
    }
}
