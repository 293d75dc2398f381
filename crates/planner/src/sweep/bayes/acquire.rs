//! Where an improvement is expected most: the expected improvement, and the search for its highest place.
//!
//! The logarithm is what is searched: far from anything good the improvement itself is 0 to the last digit, and a
//! search would not know which way is up.

use super::{
    descent::descend,
    process::{Belief, Guess},
};
use crate::sweep::{
    axes::{Axes, Kind, Point},
    chance::{Chance, density, share_below},
};

pub(super) struct Hope<'h> {
    pub(super) axes: &'h Axes,
    pub(super) belief: &'h Belief<'h>,
    /// What is to be improved on.
    pub(super) lowest: f64,
    /// A choice that is not open: the axis and the index on it.
    pub(super) fixed: Option<(usize, f64)>,
}

/// Places looked at before the best few are climbed from.
const SCATTERED: usize = 300;
const BESIDE: usize = 30;
const CLIMBS: usize = 4;

impl Hope<'_> {
    /// Places in the order of what is hoped of them. `good` are the best that were tried.
    pub(super) fn highest(&self, chance: &mut Chance, good: &[Point]) -> Vec<Point> {
        let mut places: Vec<Point> = (0..SCATTERED).map(|_| self.settled(self.axes.drawn(|_| chance.unit()))).collect();
        for near in good {
            places.extend((0..BESIDE).map(|_| self.beside(near, chance)));
        }
        let mut rated: Vec<(f64, Point)> = places.into_iter().map(|place| (self.of(&place), place)).collect();
        sort(&mut rated);
        let mut starts: Vec<Point> = Vec::new();
        for (_, place) in &rated {
            if starts.len() == CLIMBS {
                break;
            }
            if starts.iter().all(|other| apart(other, place) > 0.05) {
                starts.push(place.clone());
            }
        }
        starts.extend(good.first().cloned());
        rated.extend(starts.into_iter().map(|start| self.climb(start)));
        sort(&mut rated);
        rated.into_iter().map(|(_, place)| place).collect()
    }

    /// The logarithm of the improvement that is expected here.
    fn of(&self, place: &[f64]) -> f64 {
        let guess = self.belief.at(place, false);
        let (height, _) = log_improvement((self.lowest - guess.mean) / guess.deviation);
        height + guess.deviation.ln()
    }

    /// The same, with its slope by each axis.
    fn with_slopes(&self, place: &[f64], slope: &mut [f64]) -> f64 {
        let Guess { mean, deviation, slopes } = self.belief.at(place, true);
        let z = (self.lowest - mean) / deviation;
        let (height, rise) = log_improvement(z);
        for (slope, (by_mean, by_deviation)) in slope.iter_mut().zip(slopes) {
            *slope = by_deviation / deviation - rise * (by_mean + z * by_deviation) / deviation;
        }
        height + deviation.ln()
    }

    /// A place near another: most numbers moved a little, now and then a choice changed.
    fn beside(&self, near: &[f64], chance: &mut Chance) -> Point {
        let width = 0.2 * chance.unit().powi(2);
        let mut place = near.to_vec();
        for (at, axis) in self.axes.each.iter().enumerate() {
            match &axis.kind {
                Kind::Number(_) => place[at] = (place[at] + width * chance.normal()).clamp(0.0, 1.0),
                Kind::Choice { count, .. } if chance.unit() < 0.15 => place[at] = chance.below(*count) as f64,
                Kind::Choice { .. } => {}
            }
        }
        self.settled(place)
    }

    fn settled(&self, mut place: Point) -> Point {
        if let Some((at, value)) = self.fixed {
            place[at] = value;
        }
        self.axes.settled(place)
    }

    /// Uphill from here: along all numbers at once, then each choice and step in turn, until nothing helps.
    fn climb(&self, start: Point) -> (f64, Point) {
        let (mut height, mut place) = (self.of(&start), start);
        for _ in 0..3 {
            let (higher, there) = self.slide(&place);
            if higher > height {
                (height, place) = (higher, there);
            }
            let before = height;
            for at in 0..place.len() {
                for other in self.others(&place, at) {
                    let rating = self.of(&other);
                    if rating > height {
                        (height, place) = (rating, other);
                    }
                }
            }
            if height <= before + 1e-9 {
                break;
            }
        }
        (height, place)
    }

    fn slide(&self, from: &Point) -> (f64, Point) {
        let moves = |at: usize| matches!(self.axes.each[at].kind, Kind::Number(_)) && self.axes.has(from, at);
        let free: Vec<usize> = (0..from.len()).filter(|at| moves(*at)).collect();
        if free.is_empty() {
            return (f64::NEG_INFINITY, from.clone());
        }
        let start: Vec<f64> = free.iter().map(|at| from[*at]).collect();
        let mut place = from.clone();
        let mut all = vec![0.0; from.len()];
        let (end, _) = descend(&start, &vec![(0.0, 1.0); free.len()], 40, |numbers, slope| {
            free.iter().zip(numbers).for_each(|(at, number)| place[*at] = *number);
            let height = self.with_slopes(&place, &mut all);
            free.iter().zip(slope).for_each(|(at, slope)| *slope = -all[*at]);
            -height
        });
        let mut there = from.clone();
        free.iter().zip(end).for_each(|(at, number)| there[*at] = number);
        let there = self.settled(there);
        (self.of(&there), there)
    }

    /// The same place with another value on one axis, where there are few.
    fn others(&self, place: &Point, at: usize) -> Vec<Point> {
        if !self.axes.has(place, at) {
            return Vec::new();
        }
        let with = |number: f64| {
            let mut other = place.clone();
            other[at] = number;
            self.settled(other)
        };
        match &self.axes.each[at].kind {
            Kind::Choice { count, .. } => {
                (0..*count).map(|index| index as f64).filter(|index| *index != place[at]).map(with).collect()
            }
            Kind::Number(scale) => match scale.count() {
                Some(count) if count > 1.0 && count <= 100.0 => {
                    let step = 1.0 / count;
                    [-2.0, -1.0, 1.0, 2.0].iter().map(|n| (place[at] + n * step).clamp(0.0, 1.0)).map(with).collect()
                }
                _ => Vec::new(),
            },
        }
    }
}

/// `ln(φ(z) + z Φ(z))` and its slope.
fn log_improvement(z: f64) -> (f64, f64) {
    if z > -6.0 {
        let share = share_below(z);
        let improvement = density(z) + z * share;
        return (improvement.ln(), share / improvement);
    }
    // Both terms cancel to the last digit here; this is what is left of them.
    let q = 1.0 / (z * z);
    let log = -0.5 * z * z - 0.5 * (2.0 * std::f64::consts::PI).ln() + q.ln() + (1.0 - 3.0 * q + 15.0 * q * q).ln();
    (log, -z * (1.0 - q + 3.0 * q * q) / (1.0 - 3.0 * q + 15.0 * q * q))
}

fn sort(rated: &mut [(f64, Point)]) {
    rated.sort_by(|a, b| b.0.total_cmp(&a.0));
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_of_the_improvement_is_smooth_where_its_forms_meet() {
        let (above, below) = (log_improvement(-6.0 + 1e-9), log_improvement(-6.0 - 1e-9));
        assert!((above.0 - below.0).abs() < 1e-2 && (above.1 - below.1).abs() < 1e-1, "{above:?} {below:?}");
        let (height, rise) = log_improvement(-40.0);
        assert!(height < -700.0 && rise > 39.0);
        assert!((log_improvement(3.0).0 - 3.0004_f64.ln()).abs() < 1e-4);
    }
}
