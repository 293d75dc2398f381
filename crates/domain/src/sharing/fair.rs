//! Fair shares: among jobs of equal priority, who has used less lately goes first.
//!
//! What was used counts half after each half-life. A *turn* is a number that stands for how much someone had used when a
//! job of theirs was handed out; turns of different moments can be compared, because time itself is in them.

use crate::{Resources, Timestamp};

/// A GPU counts as much as this many cores, and as many bytes of memory as one core.
const CORES_A_GPU: u64 = 16;
const BYTES_A_CORE: u64 = 4 << 30;

/// A job counts at least as one that runs for this long, from the moment it is handed out.
pub const AT_LEAST_MS: i64 = 60_000;

/// How many half-lives make what was used as good as forgotten.
pub const HALF_LIVES: i64 = 10;

pub const HOUR_MS: i64 = 3_600_000;

/// What a job uses in a moment, in thousandths of a core: of cores, GPUs and memory, whichever is most.
pub fn weight(needs: &Resources) -> u64 {
    let memory = u64::try_from(u128::from(needs.memory_bytes) * 1000 / u128::from(BYTES_A_CORE)).unwrap_or(u64::MAX);
    needs.cpu_milli.max(u64::from(needs.gpus) * CORES_A_GPU * 1000).max(memory).max(1)
}

/// What was used, in core-milliseconds, as it counts now: `(when, how much)` each.
pub fn decayed(used: impl IntoIterator<Item = (Timestamp, i64)>, now: Timestamp, half_life_ms: i64) -> f64 {
    let one =
        |(at, used): (Timestamp, i64)| used as f64 * (-(now.since(at).as_millis() as f64) / half_life_ms as f64).exp2();
    used.into_iter().map(one).sum()
}

/// The turn of someone who has used so much; lower goes first.
pub fn turn(used: f64, now: Timestamp, half_life_ms: i64) -> i64 {
    ((now.0 as f64 / half_life_ms as f64 + used.max(1000.0).log2()) * 1000.0) as i64
}

/// `1.5 core-hours`, as people read it.
pub fn humane(core_ms: f64) -> String {
    match core_ms / HOUR_MS as f64 {
        hours if hours < 0.05 => format!("{:.1} core-minutes", hours * 60.0),
        hours => format!("{hours:.1} core-hours"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * HOUR_MS;

    #[test]
    fn what_was_used_counts_half_after_each_half_life() {
        let used = [(Timestamp(0), 8000), (Timestamp(DAY), 1000)];
        assert_eq!(decayed(used, Timestamp(2 * DAY), DAY).round(), 2500.0);
    }

    #[test]
    fn turns_of_different_moments_compare_as_what_was_used_would() {
        // Hundred then is fifty a half-life later.
        let then = turn(100e6, Timestamp(0), DAY);
        assert!(then < turn(60e6, Timestamp(DAY), DAY));
        assert!(then > turn(40e6, Timestamp(DAY), DAY));
    }

    #[test]
    fn the_scarcest_thing_counts() {
        let of = |cpu_milli, memory_bytes, gpus| weight(&Resources { cpu_milli, memory_bytes, gpus });
        assert_eq!((of(2000, 1 << 30, 0), of(2000, 0, 1), of(100, 8 << 30, 0)), (2000, 16_000, 2000));
    }
}
