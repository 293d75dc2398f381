//! Chance, for choices and for ids. Seeded by the operating system; no secret ever comes from here.

use ring::rand::{SecureRandom, SystemRandom};
use std::cell::Cell;

/// A fast generator of one thread (splitmix64).
#[derive(Debug)]
pub(crate) struct Chance(Cell<u64>);

impl Chance {
    pub(crate) fn new() -> Chance {
        let mut seed = [0; 8];
        SystemRandom::new().fill(&mut seed).expect("the operating system gives random bytes");
        Chance(Cell::new(u64::from_le_bytes(seed)))
    }

    pub(crate) fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`, which is not zero.
    pub(crate) fn below(&self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        usize::try_from(wide >> 64).expect("less than the bound")
    }

    /// So many random bytes in hex.
    pub(crate) fn hex<const N: usize>(&self) -> [u8; N] {
        let mut out = [0; N];
        for part in out.chunks_mut(16) {
            let mut bits = self.next();
            for byte in part {
                *byte = b"0123456789abcdef"[(bits & 15) as usize];
                bits >>= 4;
            }
        }
        out
    }

    /// An id in the form of a random GUID.
    pub(crate) fn guid(&self) -> [u8; 36] {
        let mut id = [b'-'; 36];
        let hex = self.hex::<32>();
        for (from, to, length) in [(0, 0, 8), (8, 9, 4), (12, 14, 4), (16, 19, 4), (20, 24, 12)] {
            id[to..to + length].copy_from_slice(&hex[from..from + length]);
        }
        (id[14], id[19]) = (b'4', b'a');
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_spread_evenly_and_ids_look_like_ids() {
        let chance = Chance::new();
        let mut seen = [0_u32; 10];
        (0..10_000).for_each(|_| seen[chance.below(10)] += 1);
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
        let id = String::from_utf8(chance.guid().to_vec()).unwrap();
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
    }
}
