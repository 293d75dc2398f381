//! What a trial has logged of the primary metric: how good it was after how many values.
//!
//! A trial may log a million values, so this does not grow with them: when there are too many marks, every second goes
//! and the rest stand twice as far apart. The first thousand values are kept exactly.

use domain::spec::sweep::Goal;

/// The most marks that are kept.
const MARKS: usize = 1024;

/// The values of one trial, as they came. Values that are no finite numbers count as logged and are worth nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    goal: Goal,
    every: u64,
    marks: Vec<Mark>,
    count: u64,
    now: Mark,
    sum: f64,
    finite: u64,
}

/// How a trial stood at some time, as costs: lower is better. `None` before the first finite value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Mark {
    pub(crate) best: Option<f64>,
    pub(crate) mean: Option<f64>,
}

impl Series {
    pub fn new(goal: Goal) -> Series {
        Series { goal, every: 1, marks: Vec::new(), count: 0, now: Mark::default(), sum: 0.0, finite: 0 }
    }

    /// All of these, in order.
    pub fn of(goal: Goal, values: impl IntoIterator<Item = f64>) -> Series {
        let mut series = Series::new(goal);
        values.into_iter().for_each(|value| series.push(value));
        series
    }

    pub fn push(&mut self, value: f64) {
        self.count += 1;
        if value.is_finite() {
            let cost = self.goal.cost(value);
            self.finite += 1;
            self.sum += cost;
            self.now.best = Some(self.now.best.map_or(cost, |best| best.min(cost)));
            self.now.mean = Some(self.sum / self.finite as f64);
        }
        if self.count.is_multiple_of(self.every) {
            self.marks.push(self.now);
        }
        if self.marks.len() > MARKS {
            let mut odd = false;
            self.marks.retain(|_| {
                odd = !odd;
                !odd
            });
            self.every *= 2;
        }
    }

    /// How many values were logged.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The best value, as it was logged.
    pub fn best(&self) -> Option<f64> {
        self.cost().map(|cost| self.goal.cost(cost))
    }

    /// The best value as a cost.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.now.best
    }

    /// How it stood after this many values, or at the last mark before; as it stands if it has fewer.
    pub(crate) fn after(&self, count: u64) -> Mark {
        if count >= self.count {
            return self.now;
        }
        let index = usize::try_from(count / self.every).unwrap_or(usize::MAX);
        index.checked_sub(1).and_then(|index| self.marks.get(index)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thousand_values_are_known_exactly() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from((i * 37) % 101)).collect();
        let series = Series::of(Goal::Maximize, values.iter().copied());
        for count in 1..=1000 {
            let seen = &values[..count];
            let mark = series.after(count as u64);
            assert_eq!(mark.best, Some(-seen.iter().copied().fold(0.0, f64::max)));
            assert!((mark.mean.unwrap() + seen.iter().sum::<f64>() / count as f64).abs() < 1e-9);
        }
        assert_eq!(series.best(), Some(100.0));
    }

    #[test]
    fn a_million_values_take_no_more_room() {
        let series = Series::of(Goal::Minimize, (0..1_000_000).map(|i| -f64::from(i)));
        assert!(series.marks.len() <= MARKS && series.count() == 1_000_000);
        let half = series.after(500_000).best.unwrap();
        assert!((-500_000.0..=-498_000.0).contains(&half), "{half}");
    }

    #[test]
    fn values_that_are_no_numbers_count_and_are_worth_nothing() {
        let series = Series::of(Goal::Minimize, [f64::NAN, 2.0, f64::INFINITY, 4.0]);
        assert_eq!((series.count(), series.best()), (4, Some(2.0)));
        assert_eq!(series.after(1), Mark::default());
        assert_eq!(series.after(4), Mark { best: Some(2.0), mean: Some(3.0) });
    }
}
