//! Laws of a series: which point counts as the latest, what is a repetition, what a chart needs.
//!
//! Wherever values are compared, what is not a number counts as zero and an infinity as the largest double,
//! because that is how clients see them stored.

use super::Point;
use crate::tracking::limits::stored;
use std::cmp::Ordering;
use std::collections::HashSet;

/// Whether a point replaces another as the latest: by step, then time, then value. Equal points do not.
pub fn is_later(new: &Point, old: &Point) -> bool {
    let by_value = || total(new).total_cmp(&total(old));
    (new.step, new.timestamp_ms).cmp(&(old.step, old.timestamp_ms)).then_with(by_value).is_gt()
}

/// The point that stands for the series; of equals the first.
pub fn latest(points: &[Point]) -> Option<Point> {
    points.iter().copied().reduce(|old, new| if is_later(&new, &old) { new } else { old })
}

/// The order in which a history is shown: by time, then step, then value.
pub fn history_order(a: &Point, b: &Point) -> Ordering {
    (a.timestamp_ms, a.step).cmp(&(b.timestamp_ms, b.step)).then_with(|| total(a).total_cmp(&total(b)))
}

/// The points without repetitions of time, step and value; the first of each stays where it is.
pub fn dedup(points: &[Point]) -> Vec<Point> {
    let place = |point: &Point| (point.timestamp_ms, point.step);
    if points.windows(2).all(|pair| place(&pair[0]) < place(&pair[1])) {
        return points.to_vec();
    }
    let mut seen = HashSet::with_capacity(points.len());
    points.iter().copied().filter(|point| seen.insert(identity(point))).collect()
}

/// At most `most` points that draw the same line: the first, the last, and of each stretch between them the
/// lowest and the highest, in their order. One point is the last.
pub fn downsample(points: &[Point], most: usize) -> Vec<Point> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    match most {
        _ if points.len() <= most => return points.to_vec(),
        0 => return Vec::new(),
        1 => return vec![*last],
        2 => return vec![*first, *last],
        _ => {}
    }
    let inner = &points[1..points.len() - 1];
    let stretches = ((most - 2) / 2).max(1);
    let mut out = Vec::with_capacity(most);
    out.push(*first);
    for stretch in 0..stretches {
        let bound = |at: usize| (at as u128 * inner.len() as u128 / stretches as u128) as usize;
        let both = extremes(&inner[bound(stretch)..bound(stretch + 1)]);
        // With room for one point between first and last, the highest is it.
        match both {
            (Some(a), Some(b)) if most == 3 => out.push(if a.value > b.value { a } else { b }),
            (earlier, later) => out.extend(earlier.into_iter().chain(later)),
        }
    }
    out.push(*last);
    out
}

/// The lowest and highest point in their order; the second is absent if one is both. Values that are not
/// numbers count only when there is nothing else.
fn extremes(points: &[Point]) -> (Option<Point>, Option<Point>) {
    let numbers = || points.iter().enumerate().filter(|(_, point)| !point.value.is_nan());
    let by_value = |a: &(usize, &Point), b: &(usize, &Point)| a.1.value.total_cmp(&b.1.value);
    match (numbers().min_by(by_value), numbers().max_by(by_value)) {
        (Some((low, a)), Some((high, b))) if low < high => (Some(*a), Some(*b)),
        (Some((low, a)), Some((high, b))) if low > high => (Some(*b), Some(*a)),
        (_, highest) => (None, highest.map(|(_, point)| *point).or_else(|| points.first().copied())),
    }
}

fn total(point: &Point) -> f64 {
    stored(point.value).0 + 0.0
}

/// What two repetitions share. Adding zero makes one of the two zeros.
fn identity(point: &Point) -> (i64, i64, u64, bool) {
    let (value, is_nan) = stored(point.value);
    (point.timestamp_ms, point.step, (value + 0.0).to_bits(), is_nan)
}
