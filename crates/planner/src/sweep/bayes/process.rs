//! A Gaussian process: what is believed about the objective, from where it was looked at.
//!
//! The kernel is Matérn 5/2 with a weight of its own for every axis; on the axis of an unordered choice two values are
//! alike or not. Mean and scale follow from the weights in closed form; the weights and the noise are the most likely
//! ones under a prior that keeps few points from saying too much.

use super::{
    descent::descend,
    linear::{Square, add, dot},
};

/// How alike two values on an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
    /// The closer, the more.
    Near,
    /// Only the same.
    Same,
}

impl Likeness {
    /// The square of the distance.
    fn apart(self, a: f64, b: f64) -> f64 {
        match self {
            Likeness::Near => (a - b) * (a - b),
            Likeness::Same => f64::from(u8::from(a != b)),
        }
    }
}

/// What was fitted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weights {
    /// One over the square of the length on which the objective changes, for each axis.
    axes: Vec<f64>,
    /// As a share of the scale.
    noise: f64,
    mean: f64,
    scale: f64,
}

const SQRT5: f64 = 2.236_067_977_499_79;

/// How alike values at this squared distance are, and how that changes with it.
fn kernel(apart: f64) -> (f64, f64) {
    let r = apart.sqrt() * SQRT5;
    let fall = (-r).exp();
    ((1.0 + r + r * r / 3.0) * fall, -5.0 / 6.0 * (1.0 + r) * fall)
}

/// Distances between all pairs, axis by axis: they are needed again at every step of the fit.
struct Pairs {
    size: usize,
    axes: Vec<Vec<f64>>,
}

impl Pairs {
    fn of(points: &[Vec<f64>], likeness: &[Likeness]) -> Pairs {
        let size = points.len();
        let axis = |at: usize| {
            let mut out = Vec::with_capacity(size * size / 2);
            for i in 0..size {
                out.extend((0..i).map(|j| likeness[at].apart(points[i][at], points[j][at])));
            }
            out
        };
        Pairs { size, axes: (0..likeness.len()).map(axis).collect() }
    }
}

/// The prior of the logarithm of a weight: mean and standard deviation; for the noise as well.
const WEIGHT: (f64, f64) = (1.2, 1.6);
const NOISE: (f64, f64) = (-14.0, 3.0);
const BOUNDS: (f64, f64) = (-9.0, 7.0);
const NOISE_BOUNDS: (f64, f64) = (-18.0, -1.0);

impl Weights {
    /// The most likely weights for these points and heights, with at most `looks` at their likelihood.
    pub(super) fn fit(points: &[Vec<f64>], heights: &[f64], likeness: &[Likeness], looks: usize) -> Weights {
        let pairs = Pairs::of(points, likeness);
        let axes = likeness.len();
        // In many dimensions points are far from each other, and lengths must grow with that.
        let middle = WEIGHT.0 - (axes as f64).ln();
        let mut start = vec![middle; axes];
        start.push(NOISE.0);
        let mut bounds = vec![BOUNDS; axes];
        bounds.push(NOISE_BOUNDS);
        let (found, _) = descend(&start, &bounds, looks, |logs, slope| {
            let mut cost = unlikeliness(&pairs, heights, logs, slope);
            for (at, log) in logs.iter().enumerate() {
                let (mean, deviation) = if at < axes { (middle, WEIGHT.1) } else { NOISE };
                let off = (log - mean) / deviation;
                cost += 0.5 * off * off;
                slope[at] += off / deviation;
            }
            cost
        });
        Weights::with(&pairs, heights, &found)
    }

    /// The mean and scale that go with these logarithms.
    fn with(pairs: &Pairs, heights: &[f64], logs: &[f64]) -> Weights {
        let (axes, noise) = logs.split_at(logs.len() - 1);
        let mut weights =
            Weights { axes: axes.iter().map(|log| log.exp()).collect(), noise: noise[0].exp(), mean: 0.0, scale: 1.0 };
        let (kernels, _) = kernels(pairs, &weights.axes, weights.noise);
        if let Some(triangle) = kernels.cholesky() {
            let told = Told::of(&triangle, heights);
            (weights.mean, weights.scale) = (told.mean, told.scale);
        }
        weights
    }

    fn apart(&self, a: &[f64], b: &[f64], likeness: &[Likeness]) -> f64 {
        (0..self.axes.len()).map(|at| self.axes[at] * likeness[at].apart(a[at], b[at])).sum()
    }
}

/// The matrix of kernels with noise, and their slopes by squared distance for each pair.
fn kernels(pairs: &Pairs, weights: &[f64], noise: f64) -> (Square, Vec<f64>) {
    let mut slopes = vec![0.0; pairs.size * pairs.size.saturating_sub(1) / 2];
    for (weight, axis) in weights.iter().zip(&pairs.axes) {
        add(&mut slopes, *weight, axis);
    }
    let mut matrix = Square::zero(pairs.size);
    let mut from = 0;
    for i in 0..pairs.size {
        let row = matrix.row_mut(i);
        for (cell, slot) in row[..i].iter_mut().zip(&mut slopes[from..]) {
            (*cell, *slot) = kernel(*slot);
        }
        row[i] = 1.0 + noise;
        from += i;
    }
    (matrix, slopes)
}

/// What the heights say once the kernels are known.
struct Told {
    mean: f64,
    scale: f64,
    /// The inverse of the kernels, times the heights less the mean.
    alpha: Vec<f64>,
}

impl Told {
    fn of(triangle: &Square, heights: &[f64]) -> Told {
        let ones = triangle.solve(vec![1.0; heights.len()]);
        let own = triangle.solve(heights.to_vec());
        let mean = dot(&ones, &own) / dot(&ones, &ones);
        let left: Vec<f64> = own.iter().zip(&ones).map(|(own, one)| own - mean * one).collect();
        let scale = (dot(&left, &left) / heights.len() as f64).max(1e-12);
        Told { mean, scale, alpha: triangle.solve_transposed(left) }
    }
}

/// The negative logarithm of the likelihood, and its slope by the logarithms of weights and noise.
fn unlikeliness(pairs: &Pairs, heights: &[f64], logs: &[f64], slope: &mut [f64]) -> f64 {
    let axes = pairs.axes.len();
    let weights: Vec<f64> = logs[..axes].iter().map(|log| log.exp()).collect();
    let noise = logs[axes].exp();
    let (matrix, mut slopes) = kernels(pairs, &weights, noise);
    let Some(triangle) = matrix.cholesky() else { return f64::INFINITY };
    let told = Told::of(&triangle, heights);
    let inverse = triangle.inverse_of_product();
    let mut from = 0;
    let mut diagonal = 0.0;
    for i in 0..pairs.size {
        let (row, share) = (inverse.row(i), told.alpha[i] / told.scale);
        for (j, slot) in slopes[from..from + i].iter_mut().enumerate() {
            *slot *= row[j] - share * told.alpha[j];
        }
        diagonal += row[i] - share * told.alpha[i];
        from += i;
    }
    for at in 0..axes {
        slope[at] = weights[at] * dot(&slopes, &pairs.axes[at]);
    }
    slope[axes] = 0.5 * noise * diagonal;
    let determinant: f64 = (0..pairs.size).map(|i| triangle.row(i)[i].ln()).sum();
    0.5 * pairs.size as f64 * told.scale.ln() + determinant
}

/// What is believed everywhere, given points, heights and weights.
pub(super) struct Belief<'w> {
    weights: &'w Weights,
    likeness: &'w [Likeness],
    points: Vec<Vec<f64>>,
    triangle: Square,
    alpha: Vec<f64>,
}

/// What is believed about one place.
pub(super) struct Guess {
    pub(super) mean: f64,
    pub(super) deviation: f64,
    /// Their slopes by each axis; empty unless asked for.
    pub(super) slopes: Vec<(f64, f64)>,
}

impl<'w> Belief<'w> {
    /// `None` when the points contradict the weights so much that nothing can be computed.
    pub(super) fn new(
        weights: &'w Weights,
        likeness: &'w [Likeness],
        points: Vec<Vec<f64>>,
        heights: &[f64],
    ) -> Option<Belief<'w>> {
        let mut matrix = Square::zero(points.len());
        for i in 0..points.len() {
            for j in 0..i {
                matrix.row_mut(i)[j] = kernel(weights.apart(&points[i], &points[j], likeness)).0;
            }
            matrix.row_mut(i)[i] = 1.0 + weights.noise;
        }
        let triangle = matrix.cholesky()?;
        let left = heights.iter().map(|height| height - weights.mean).collect();
        let alpha = triangle.solve_transposed(triangle.solve(left));
        Some(Belief { weights, likeness, points, triangle, alpha })
    }

    /// The heights that are believed where it was looked: noise makes them differ from what was seen.
    pub(super) fn believed<'h>(&'h self, heights: &'h [f64]) -> impl Iterator<Item = f64> + 'h {
        heights.iter().zip(&self.alpha).map(|(height, alpha)| height - self.weights.noise * alpha)
    }

    pub(super) fn at(&self, point: &[f64], with_slopes: bool) -> Guess {
        let pairs: Vec<(f64, f64)> =
            self.points.iter().map(|other| kernel(self.weights.apart(point, other, self.likeness))).collect();
        let kernels: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let mean = self.weights.mean + dot(&kernels, &self.alpha);
        let half = self.triangle.solve(kernels);
        let variance = (1.0 - dot(&half, &half)).max(1e-12);
        let scale = self.weights.scale.sqrt();
        let deviation = variance.sqrt() * scale;
        if !with_slopes {
            return Guess { mean, deviation, slopes: Vec::new() };
        }
        let beta = self.triangle.solve_transposed(half);
        let mut slopes = vec![(0.0, 0.0); point.len()];
        for (i, (_, fall)) in pairs.iter().enumerate() {
            let (by_mean, by_variance) = (fall * self.alpha[i], fall * beta[i]);
            for (at, slope) in slopes.iter_mut().enumerate() {
                if self.likeness[at] == Likeness::Near {
                    let lean = 2.0 * self.weights.axes[at] * (point[at] - self.points[i][at]);
                    slope.0 += by_mean * lean;
                    slope.1 -= by_variance * lean;
                }
            }
        }
        slopes.iter_mut().for_each(|slope| slope.1 *= scale / variance.sqrt());
        Guess { mean, deviation, slopes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::chance::Chance;

    const NEAR: [Likeness; 3] = [Likeness::Near, Likeness::Near, Likeness::Same];

    fn seen(count: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut chance = Chance::new(5);
        let points: Vec<Vec<f64>> =
            (0..count).map(|_| vec![chance.unit(), chance.unit(), chance.below(2) as f64]).collect();
        let heights = points.iter().map(|p| (3.0 * p[0]).sin() + p[2] * 0.5 + 0.1 * p[1]).collect();
        (points, heights)
    }

    #[test]
    fn it_agrees_with_what_was_seen_and_is_sure_there() {
        let (points, heights) = seen(20);
        let weights = Weights::fit(&points, &heights, &NEAR, 60);
        let belief = Belief::new(&weights, &NEAR, points.clone(), &heights).unwrap();
        for (point, height) in points.iter().zip(&heights) {
            let guess = belief.at(point, false);
            assert!((guess.mean - height).abs() < 0.01 && guess.deviation < 0.05, "{} {height}", guess.mean);
        }
        let (others, truths) = seen(40);
        let wrong = others[20..].iter().zip(&truths[20..]).map(|(p, h)| (belief.at(p, false).mean - h).abs());
        assert!(wrong.fold(0.0, f64::max) < 0.1);
        assert!(weights.axes[0] > weights.axes[1], "{:?}", weights.axes);
    }

    #[test]
    fn slopes_are_those_of_small_steps() {
        let (points, heights) = seen(15);
        let weights = Weights::fit(&points, &heights, &NEAR, 30);
        let belief = Belief::new(&weights, &NEAR, points, &heights).unwrap();
        let (here, step) = (vec![0.31, 0.62, 1.0], 1e-5);
        let guess = belief.at(&here, true);
        for at in 0..2 {
            let mut there = here.clone();
            there[at] += step;
            let after = belief.at(&there, false);
            assert!(((after.mean - guess.mean) / step - guess.slopes[at].0).abs() < 1e-3);
            assert!(((after.deviation - guess.deviation) / step - guess.slopes[at].1).abs() < 1e-3);
        }
    }

    #[test]
    fn the_likelihood_slopes_as_it_falls() {
        let (points, heights) = seen(12);
        let pairs = Pairs::of(&points, &NEAR);
        let (logs, step) = ([0.4, -0.3, 0.2, -6.0], 1e-6);
        let (mut slope, mut unused) = ([0.0; 4], [0.0; 4]);
        let here = unlikeliness(&pairs, &heights, &logs, &mut slope);
        for at in 0..4 {
            let mut moved = logs;
            moved[at] += step;
            let there = unlikeliness(&pairs, &heights, &moved, &mut unused);
            assert!(((there - here) / step - slope[at]).abs() < 1e-3, "{at}: {} {}", (there - here) / step, slope[at]);
        }
    }
}
