//! Draws that look at nothing but the seed and the number of the trial: random, evenly spread, and the grid.

use super::{
    axes::{Axes, Point},
    chance::Chance,
};

/// The sequence repeats after this many, so another scrambling follows.
const LENGTH: u32 = 1 << 16;

/// Each value on its own.
pub(crate) fn random(axes: &Axes, seed: u64, number: u32) -> Point {
    let mut chance = Chance::at(seed, u64::from(number));
    axes.drawn(|_| chance.unit())
}

/// Spread evenly: Sobol's sequence, scrambled by the seed. Axes beyond its dimensions are drawn at random.
pub(crate) fn even(axes: &Axes, seed: u64, number: u32) -> Point {
    let mut chance = Chance::at(seed, u64::from(number));
    let scramble = Chance::at(seed, u64::from(number / LENGTH)).bits() as u32;
    axes.drawn(|at| {
        let beyond = chance.unit();
        match u32::try_from(at).ok().filter(|at| *at < sobol_burley::NUM_DIMENSIONS) {
            Some(at) => f64::from(sobol_burley::sample(number % LENGTH, at, scramble)),
            None => beyond,
        }
    })
}
