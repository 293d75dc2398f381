//! Chance that comes out the same every time: numbers by seed, and the normal distribution.
//!
//! A draw depends on its seed and its place only, never on what was drawn before, so a search that was interrupted goes
//! on with the numbers it would have had. The mixing is SplitMix64, which is written down here because a dependency
//! that changed its stream would change the sweeps of users.

/// A stream of numbers, told by its seed.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Chance {
    #[cfg(test)]
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// The stream for one of many places under the same seed.
    pub(crate) fn at(seed: u64, place: u64) -> Chance {
        Chance(mixed(seed ^ mixed(place.wrapping_add(STEP))))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// From 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Below `count`, which is not 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((self.unit() * count as f64) as usize).min(count - 1)
    }

    pub(crate) fn normal(&mut self) -> f64 {
        quantile(self.unit())
    }
}

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The share of a standard normal distribution below `z`.
pub(crate) fn share_below(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// The density of a standard normal distribution at `z`.
pub(crate) fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Where a standard normal distribution has the share `p` below: Acklam's approximation, mended by a step of Halley's.
pub(crate) fn quantile(p: f64) -> f64 {
    let p = p.clamp(1e-12, 1.0 - 1e-12);
    let z = if p < 0.02425 {
        tail((-2.0 * p.ln()).sqrt())
    } else if p > 1.0 - 0.02425 {
        -tail((-2.0 * (1.0 - p).ln()).sqrt())
    } else {
        let q = p - 0.5;
        q * series(&A, q * q) / (series(&B, q * q) * q * q + 1.0)
    };
    let error = (share_below(z) - p) / density(z);
    z - error / (1.0 + 0.5 * z * error)
}

const A: [f64; 6] = [
    -3.969_683_028_665_376e1,
    2.209_460_984_245_205e2,
    -2.759_285_104_469_687e2,
    1.383_577_518_672_69e2,
    -3.066_479_806_614_716e1,
    2.506_628_277_459_239,
];
const B: [f64; 5] = [
    -5.447_609_879_822_406e1,
    1.615_858_368_580_409e2,
    -1.556_989_798_598_866e2,
    6.680_131_188_771_972e1,
    -1.328_068_155_288_572e1,
];
const C: [f64; 6] = [
    -7.784_894_002_430_293e-3,
    -3.223_964_580_411_365e-1,
    -2.400_758_277_161_838,
    -2.549_732_539_343_734,
    4.374_664_141_464_968,
    2.938_163_982_698_783,
];
const D: [f64; 4] = [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];

fn tail(q: f64) -> f64 {
    series(&C, q) / (series(&D, q) * q + 1.0)
}

fn series(factors: &[f64], x: f64) -> f64 {
    factors.iter().fold(0.0, |sum, factor| sum * x + factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_has_the_same_numbers_and_another_has_others() {
        let first = |seed, place| Chance::at(seed, place).bits();
        assert_eq!(first(7, 3), first(7, 3));
        assert_ne!(first(7, 3), first(7, 4));
        assert_ne!(first(7, 3), first(8, 3));
    }

    #[test]
    fn numbers_fill_the_unit_evenly() {
        let mut chance = Chance::new(1);
        let mut counts = [0; 10];
        (0..10_000).for_each(|_| counts[chance.below(10)] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn quantiles_are_the_inverse_of_shares() {
        for p in [1e-9, 0.001, 0.02425, 0.3, 0.5, 0.9, 0.999_99] {
            assert!((share_below(quantile(p)) - p).abs() < 1e-12 + 1e-9 * p, "{p}");
        }
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-9);
    }
}
