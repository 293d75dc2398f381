//! The Bayesian sampler: where the next trial should look, given how the earlier ones did.
//!
//! It keeps nothing: a suggestion follows from the seed, the number of the trial and the history. The first trials are
//! spread evenly; then a Gaussian process says what is believed everywhere and the next trial goes where an improvement
//! is expected most. Trials in flight are believed to come out as they are guessed, so that several at once look at
//! different places; those that failed count as bad as the worst.

mod acquire;
mod descent;
mod linear;
mod process;

use super::{
    axes::{Axes, Kind, Point},
    chance::Chance,
    draw,
};
use acquire::Hope;
use process::{Belief, Likeness, Weights};

/// How a trial did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Result {
    /// Its cost: lower is better.
    Cost(f64),
    /// It has none, and never will.
    Failed,
    /// It is still on its way.
    Pending,
}

/// The most trials that are looked at: the cost grows with the cube of their number.
const MOST: usize = 160;

/// The most trials that the weights are fitted to.
const MOST_FITTED: usize = 100;

/// The point for trial `number`, given where the others looked and how they did.
pub(crate) fn suggest(axes: &Axes, seed: u64, number: u32, history: &[(Point, Result)]) -> Point {
    let even = || draw::even(axes, seed, number);
    let first = (2 * axes.each.len()).clamp(5, 10);
    let known = history.iter().filter(|(_, result)| matches!(result, Result::Cost(_))).count();
    if known < first {
        return even();
    }
    let chance = Chance::at(seed, u64::from(number));
    let alone = history.iter().all(|(_, result)| *result != Result::Pending);
    let elsewhere = number.is_multiple_of(if alone { ELSEWHERE } else { ELSEWHERE_IN_FLIGHT });
    informed(axes, chance, history, elsewhere).unwrap_or_else(even)
}

/// `None` when nothing can be concluded, or everything was tried.
fn informed(axes: &Axes, mut chance: Chance, history: &[(Point, Result)], elsewhere: bool) -> Option<Point> {
    let (points, heights, pending) = seen(history);
    let likeness: Vec<Likeness> = axes.each.iter().map(|axis| likeness(&axis.kind)).collect();
    let from = points.len().saturating_sub(MOST_FITTED);
    let weights = Weights::fit(&points[from..], &heights[from..], &likeness, LOOKS);
    let belief = Belief::new(&weights, &likeness, points.clone(), &heights)?;
    let mut seen: Vec<(f64, Point)> = belief.believed(&heights).zip(points.clone()).collect();
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    let fixed = if elsewhere { neglected(axes, &seen, &pending) } else { None };
    if let Some((at, value)) = fixed {
        seen.retain(|(_, point)| point[at] == value);
    }
    let belief = if pending.is_empty() {
        belief
    } else {
        let guessed: Vec<f64> = pending.iter().map(|point| belief.at(point, false).mean).collect();
        let all = [points.as_slice(), &pending].concat();
        Belief::new(&weights, &likeness, all, &[heights.as_slice(), &guessed].concat())?
    };
    let good: Vec<Point> = seen.iter().take(5).map(|(_, point)| point.clone()).collect();
    let hope = Hope { axes, belief: &belief, lowest: seen.first()?.0, fixed };
    let tried = |point: &Point| history.iter().any(|(other, _)| other == point);
    hope.highest(&mut chance, &good).into_iter().find(|point| !tried(point))
}

/// The choice to look at instead of the best point's: seldom tried, and not much worse. Its axis and the index on it;
/// `seen` has the best first, and `pending` are being tried.
fn neglected(axes: &Axes, seen: &[(f64, Point)], pending: &[Point]) -> Option<(usize, f64)> {
    let (lowest, best) = seen.first()?;
    let mut found: Option<(f64, (usize, f64))> = None;
    for (at, axis) in axes.each.iter().enumerate().filter(|(at, _)| axes.has(best, *at)) {
        let Kind::Choice { count, ordered: false } = axis.kind else { continue };
        for value in (0..count).map(|index| index as f64).filter(|value| *value != best[at]) {
            let mut with = seen.iter().filter(|(_, point)| point[at] == value).map(|(height, _)| *height);
            let Some(least) = with.next() else { continue };
            let tried = 1 + with.count() + pending.iter().filter(|point| point[at] == value).count();
            let trust = tried as f64 * (1.0 + least - lowest);
            if found.is_none_or(|(other, _)| trust < other) {
                found = Some((trust, (at, value)));
            }
        }
    }
    found.map(|(_, choice)| choice)
}

/// One trial in so many looks at a choice other than the best: a belief that all of one kind is bad is hard to shake
/// by looking where it is good.
const ELSEWHERE: u32 = 4;

/// The same while others are in flight: less is known of each choice when the next trial is drawn.
const ELSEWHERE_IN_FLIGHT: u32 = 2;

/// How many looks at the likelihood a fit may take.
const LOOKS: usize = 25;

fn likeness(kind: &Kind) -> Likeness {
    match kind {
        Kind::Choice { ordered: false, .. } => Likeness::Same,
        Kind::Choice { ordered: true, .. } | Kind::Number(_) => Likeness::Near,
    }
}

/// Points and heights of trials that are over, the worst first, and points of those in flight.
fn seen(history: &[(Point, Result)]) -> (Vec<Point>, Vec<f64>, Vec<Point>) {
    let costs = history.iter().filter_map(|(_, result)| match result {
        Result::Cost(cost) => Some(*cost),
        Result::Failed | Result::Pending => None,
    });
    let worst = costs.clone().fold(f64::NEG_INFINITY, f64::max);
    let mut over: Vec<(Point, f64)> = Vec::new();
    let mut pending = Vec::new();
    for (point, result) in history {
        match result {
            Result::Cost(cost) => over.push((point.clone(), *cost)),
            Result::Failed => over.push((point.clone(), worst)),
            Result::Pending => pending.push(point.clone()),
        }
    }
    over.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (points, costs): (Vec<Point>, Vec<f64>) = over.split_off(over.len().saturating_sub(MOST)).into_iter().unzip();
    (points, standard(&compressed(&costs)), pending)
}

/// Costs, the worst first, with the large ones drawn together: what is far worse than most need not be known well, and
/// one such value would hide the rest.
fn compressed(costs: &[f64]) -> Vec<f64> {
    let (Some(least), Some(middle)) = (costs.last(), costs.get((costs.len() / 2).min(12))) else { return Vec::new() };
    let unit = middle - least;
    if unit <= 0.0 {
        return costs.to_vec();
    }
    costs.iter().map(|cost| ((cost - least) / unit).ln_1p()).collect()
}

/// Costs with mean 0 and deviation 1.
fn standard(costs: &[f64]) -> Vec<f64> {
    let count = costs.len() as f64;
    let mean = costs.iter().sum::<f64>() / count;
    let deviation = (costs.iter().map(|cost| (cost - mean).powi(2)).sum::<f64>() / count).sqrt();
    let unit = if deviation > 1e-300 { deviation } else { 1.0 };
    costs.iter().map(|cost| (cost - mean) / unit).collect()
}
