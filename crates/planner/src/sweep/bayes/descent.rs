//! Downhill inside a box: L-BFGS whose steps are cut off at the bounds.

use super::linear::dot;
use std::collections::VecDeque;

/// How many steps it remembers to guess the curvature from.
const MEMORY: usize = 8;

/// From `start` to a low place of `f` between `bounds`, with at most `most` looks at it. `f` writes its gradient.
pub(super) fn descend(
    start: &[f64],
    bounds: &[(f64, f64)],
    most: usize,
    mut f: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> (Vec<f64>, f64) {
    let size = start.len();
    let mut here = inside(start.to_vec(), bounds);
    let mut slope = vec![0.0; size];
    let mut height = f(&here, &mut slope);
    let mut steps: VecDeque<Step> = VecDeque::with_capacity(MEMORY);
    let mut looks = 1;
    while looks < most && height.is_finite() {
        let free: Vec<bool> = (0..size).map(|i| is_free(here[i], slope[i], bounds[i])).collect();
        let mut way = direction(&steps, &slope, &free);
        if dot(&way, &slope) >= 0.0 {
            steps.clear();
            way = direction(&steps, &slope, &free);
        }
        if way.iter().all(|part| part.abs() < 1e-9) {
            break;
        }
        // The first step knows nothing of the curvature: a tenth of the box at most.
        let longest = way.iter().fold(0.0_f64, |most, part| most.max(part.abs()));
        let mut length = if steps.is_empty() { (0.1 / longest).min(1.0) } else { 1.0 };
        let mut moved = false;
        while looks < most {
            let there = inside(here.iter().zip(&way).map(|(x, part)| x + length * part).collect(), bounds);
            let mut new_slope = vec![0.0; size];
            let new_height = f(&there, &mut new_slope);
            looks += 1;
            let gone: Vec<f64> = there.iter().zip(&here).map(|(new, old)| new - old).collect();
            if new_height.is_finite() && new_height <= height + 1e-4 * dot(&slope, &gone).min(0.0) {
                let small = (height - new_height).abs() < 1e-9 * (1.0 + height.abs());
                remember(&mut steps, gone, &new_slope, &slope);
                (here, slope, height, moved) = (there, new_slope, new_height, !small);
                break;
            }
            length *= 0.35;
        }
        if !moved {
            break;
        }
    }
    (here, height)
}

struct Step {
    gone: Vec<f64>,
    turned: Vec<f64>,
    /// One over their product.
    rho: f64,
}

fn inside(mut point: Vec<f64>, bounds: &[(f64, f64)]) -> Vec<f64> {
    for (x, (low, high)) in point.iter_mut().zip(bounds) {
        *x = x.clamp(*low, *high);
    }
    point
}

/// Whether it may move downhill without leaving the box.
fn is_free(x: f64, slope: f64, (low, high): (f64, f64)) -> bool {
    !(x <= low && slope > 0.0 || x >= high && slope < 0.0)
}

fn direction(steps: &VecDeque<Step>, slope: &[f64], free: &[bool]) -> Vec<f64> {
    let masked = |way: Vec<f64>| -> Vec<f64> {
        way.into_iter().zip(free).map(|(part, free)| if *free { part } else { 0.0 }).collect()
    };
    let mut way = masked(slope.iter().map(|part| -part).collect());
    let mut shares = Vec::with_capacity(steps.len());
    for step in steps.iter().rev() {
        let share = step.rho * dot(&step.gone, &way);
        super::linear::add(&mut way, -share, &step.turned);
        shares.push(share);
    }
    if let Some(last) = steps.back() {
        let scale = 1.0 / (last.rho * dot(&last.turned, &last.turned));
        way.iter_mut().for_each(|part| *part *= scale);
    }
    for (step, share) in steps.iter().zip(shares.into_iter().rev()) {
        let back = step.rho * dot(&step.turned, &way);
        super::linear::add(&mut way, share - back, &step.gone);
    }
    masked(way)
}

fn remember(steps: &mut VecDeque<Step>, gone: Vec<f64>, new: &[f64], old: &[f64]) {
    let turned: Vec<f64> = new.iter().zip(old).map(|(new, old)| new - old).collect();
    let product = dot(&gone, &turned);
    if product <= 1e-12 {
        return;
    }
    if steps.len() == MEMORY {
        steps.pop_front();
    }
    steps.push_back(Step { gone, turned, rho: 1.0 / product });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valley(x: &[f64], slope: &mut [f64]) -> f64 {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        slope[0] = -2.0 * a - 400.0 * x[0] * b;
        slope[1] = 200.0 * b;
        a * a + 100.0 * b * b
    }

    #[test]
    fn it_finds_the_end_of_a_bent_valley() {
        let (x, height) = descend(&[-1.2, 1.0], &[(-2.0, 2.0); 2], 200, valley);
        assert!(height < 1e-8 && (x[0] - 1.0).abs() < 1e-3, "{x:?} {height}");
    }

    #[test]
    fn it_stays_in_the_box_and_slides_along_its_wall() {
        let (x, _) = descend(&[-1.2, 1.0], &[(-2.0, 0.5), (-2.0, 2.0)], 200, valley);
        assert!((x[0] - 0.5).abs() < 1e-6 && (x[1] - 0.25).abs() < 1e-3, "{x:?}");
    }

    #[test]
    fn it_looks_no_more_often_than_it_may() {
        let mut looks = 0;
        descend(&[-1.2, 1.0], &[(-2.0, 2.0); 2], 7, |x, slope| {
            looks += 1;
            valley(x, slope)
        });
        assert_eq!(looks, 7);
    }
}
