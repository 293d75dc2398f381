//! Early termination: which trial is not worth its time.
//!
//! An interval is one value of the primary metric. A trial is judged when it comes to a multiple of
//! `evaluation_interval` that is at least `delay_evaluation`, once, by what it and the others had logged up to there.
//! Everything is a cost here: lower is better. Being exactly on a limit is good enough.

use super::Trial;
use domain::spec::sweep::{Goal, Objective, Policy, Termination};

/// Where a trial is to be judged now: the last place it came to since `judged`.
pub(crate) fn due(termination: &Termination, count: u64, judged: u64) -> Option<u64> {
    let at = match termination.policy {
        Policy::Asha { factor, first } => rung(count, u64::from(first.max(1)), u64::from(factor.max(2)))?,
        _ => {
            let every = u64::from(termination.evaluation_interval.max(1));
            count - count % every
        }
    };
    (at > 0 && at >= u64::from(termination.delay_evaluation) && at > judged).then_some(at)
}

/// The last of `first`, `first * factor`, ... that is not above `count`.
fn rung(count: u64, first: u64, factor: u64) -> Option<u64> {
    let mut at = (count >= first).then_some(first)?;
    while at.checked_mul(factor).is_some_and(|next| next <= count) {
        at *= factor;
    }
    Some(at)
}

/// Why this trial is stopped after `at` values; `None` lets it go on.
pub(crate) fn verdict(
    termination: &Termination,
    objective: &Objective,
    trial: &Trial,
    all: &[Trial],
    at: u64,
) -> Option<String> {
    let own = trial.series.after(at).best;
    let shown = Shown { objective, at, own };
    match &termination.policy {
        Policy::Bandit { slack_factor, slack_amount } => {
            let best = all.iter().filter_map(|other| other.series.after(at).best).min_by(f64::total_cmp)?;
            let slack = slack_amount.unwrap_or_else(|| slack(objective.goal, best, slack_factor.unwrap_or(0.0)));
            let limit = best + slack;
            worse(own, limit).then(|| shown.than("bandit", limit, &format!("; the best has {}", shown.number(best))))
        }
        Policy::MedianStopping => {
            let mut means: Vec<f64> = reached(all, at).filter_map(|other| other.series.after(at).mean).collect();
            let median = median(&mut means)?;
            worse(own, median).then(|| shown.than("median stopping", median, ", the median of all averages"))
        }
        Policy::TruncationSelection { truncation_percentage, exclude_finished_jobs } => {
            let counts = |other: &&Trial| !(*exclude_finished_jobs && other.stage.is_over());
            let (place, of) = place(trial, reached(all, at).filter(counts), at);
            let cut = of * (*truncation_percentage as usize) / 100;
            (place >= of - cut).then(|| shown.place("truncation selection", place, of, cut))
        }
        Policy::Asha { factor, .. } => {
            let (place, of) = place(trial, reached(all, at), at);
            let kept = (of / (*factor).max(2) as usize).max(1);
            (place >= kept).then(|| shown.place("successive halving", place, of, of - kept))
        }
    }
}

/// How far behind the best a factor allows: of the value itself, whatever its sign, so that the best is never too bad.
fn slack(goal: Goal, best: f64, factor: f64) -> f64 {
    match goal {
        Goal::Maximize => best.abs() * factor / (1.0 + factor),
        Goal::Minimize => best.abs() * factor,
    }
}

fn worse(own: Option<f64>, limit: f64) -> bool {
    own.is_none_or(|own| own > limit)
}

fn reached(all: &[Trial], at: u64) -> impl Iterator<Item = &Trial> {
    all.iter().filter(move |other| other.series.count() >= at)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// From 0, the trial's place among `others`, which hold itself, and how many there are. Of equals, the earlier leads.
fn place<'t>(trial: &Trial, others: impl Iterator<Item = &'t Trial>, at: u64) -> (usize, usize) {
    let cost = |trial: &Trial| trial.series.after(at).best.unwrap_or(f64::INFINITY);
    let (own, mut ahead, mut of) = (cost(trial), 0, 0);
    for other in others {
        of += 1;
        let theirs = cost(other);
        ahead += usize::from(theirs < own || theirs == own && other.number < trial.number);
    }
    (ahead, of)
}

/// The words of a verdict.
struct Shown<'s> {
    objective: &'s Objective,
    at: u64,
    own: Option<f64>,
}

impl Shown<'_> {
    fn number(&self, cost: f64) -> String {
        let metric = self.objective.goal.cost(cost);
        let text = format!("{metric:.6}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        if text == "0" || text == "-0" { format!("{metric:e}") } else { text.to_owned() }
    }

    fn own(&self) -> String {
        let metric = &self.objective.primary_metric;
        match self.own {
            Some(own) => format!("its best `{metric}` after {} values is {}", self.at, self.number(own)),
            None => format!("none of its first {} values of `{metric}` is a number", self.at),
        }
    }

    fn than(&self, policy: &str, limit: f64, more: &str) -> String {
        let side = match self.objective.goal {
            Goal::Maximize => "below",
            Goal::Minimize => "above",
        };
        match self.own {
            Some(_) => format!("{policy}: {}, {side} {}{more}", self.own(), self.number(limit)),
            None => format!("{policy}: {}", self.own()),
        }
    }

    fn place(&self, policy: &str, place: usize, of: usize, cut: usize) -> String {
        format!("{policy}: {}, place {} of {of}; the last {cut} are stopped", self.own(), place + 1)
    }
}

#[cfg(test)]
mod tests;
