//! Chance that can be had again: the same seed draws the same numbers.

/// A xorshift generator.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn of(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A seed that nobody has chosen.
    pub(super) fn any_seed() -> u64 {
        let drawn = std::fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap();
        u64::from_str_radix(&drawn[..8], 16).unwrap()
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    /// Waits for a while shorter than `ms`, to the microsecond, so that no moment is out of reach.
    pub(super) fn pause(&mut self, ms: u64) {
        std::thread::sleep(std::time::Duration::from_micros(self.below(ms * 1000)));
    }
}
