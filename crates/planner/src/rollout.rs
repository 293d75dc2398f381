//! A safe rollout: how traffic moves to a new deployment step by step, and what one step's requests say about going on.
//!
//! Invariants: shares of a step add up to 100; a verdict carries its because; nothing is called good on too few requests.

use std::{collections::BTreeMap, time::Duration};

/// Shares of an endpoint's traffic in percent, by deployment.
pub type Shares = BTreeMap<String, u8>;

/// What was seen of one deployment's requests in a stretch of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    pub requests: u64,
    /// Those answered with 5xx, or not at all.
    pub errors: u64,
    /// Requests that took at most so long, summed up, by bound; the longest bound comes last.
    pub within: Vec<(Duration, u64)>,
}

/// When a step is good.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// The largest part of requests that may fail, in percent.
    pub max_error_percent: f64,
    /// The longest that 95 of 100 requests may take.
    pub max_latency: Option<Duration>,
    /// How much slower than the other deployments 95 of 100 requests may be.
    pub max_slowdown: f64,
    /// With fewer requests than this, nothing is decided.
    pub min_requests: u64,
}

/// What to do after a step, or in the middle of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Good(String),
    Bad(String),
    /// Too little was seen to say.
    Unknown(String),
}

/// The traffic with `percent` for `new` and the rest shared as it was `before`. With nobody to share it with, all goes to `new`.
pub fn shares(before: &Shares, new: &str, percent: u8) -> Shares {
    let others: Vec<(&String, u32)> =
        before.iter().filter(|(name, share)| *name != new && **share > 0).map(|(n, s)| (n, u32::from(*s))).collect();
    let total: u32 = others.iter().map(|(_, share)| share).sum();
    if total == 0 {
        return Shares::from([(new.to_owned(), 100)]);
    }
    let rest = u32::from(100 - percent.min(100));
    // Parts are rounded down; what is left goes to those who lost most by it.
    let mut parts: Vec<(&String, u32, u32)> =
        others.iter().map(|(name, share)| (*name, share * rest / total, share * rest % total)).collect();
    let missing = rest - parts.iter().map(|(_, part, _)| part).sum::<u32>();
    parts.sort_by_key(|(_, _, lost)| std::cmp::Reverse(*lost));
    for (_, part, _) in parts.iter_mut().take(missing as usize) {
        *part += 1;
    }
    let mut out: Shares =
        parts.into_iter().map(|(name, part, _)| (name.clone(), u8::try_from(part).unwrap_or(100))).collect();
    out.insert(new.to_owned(), percent.min(100));
    out
}

/// What the requests of one step say. `others` are those of the other deployments in the same stretch.
pub fn judge(new: &Seen, others: &Seen, rules: &Rules) -> Verdict {
    if new.requests < rules.min_requests {
        return Verdict::Unknown(format!(
            "{} requests reached it, {} are needed to judge",
            new.requests, rules.min_requests
        ));
    }
    let percent = 100.0 * new.errors as f64 / new.requests as f64;
    if percent > rules.max_error_percent {
        let (errors, requests, most) = (new.errors, new.requests, rules.max_error_percent);
        return Verdict::Bad(format!("{errors} of {requests} requests failed ({percent:.1} %, allowed are {most} %)"));
    }
    let slow = new.percentile(95.0);
    let told = format!("{} requests, {percent:.1} % failed, 95 of 100 within {}", new.requests, shown(slow));
    if let (Some(slow), Some(most)) = (slow, rules.max_latency)
        && slow > most
    {
        return Verdict::Bad(format!(
            "95 of 100 requests took up to {}, allowed are {} ms",
            ms(slow),
            most.as_millis()
        ));
    }
    match (slow, others.percentile(95.0)) {
        (Some(slow), Some(usual))
            if others.requests >= rules.min_requests && slow > usual.mul_f64(rules.max_slowdown) =>
        {
            let most = rules.max_slowdown;
            Verdict::Bad(format!(
                "95 of 100 requests took up to {}, those of the other deployments {}; allowed is {most} times as long",
                ms(slow),
                ms(usual)
            ))
        }
        _ => Verdict::Good(told),
    }
}

impl Seen {
    /// What came after `before`.
    pub fn since(&self, before: &Seen) -> Seen {
        let earlier = |bound: &Duration| before.within.iter().find(|(b, _)| b == bound).map_or(0, |(_, count)| *count);
        Seen {
            requests: self.requests.saturating_sub(before.requests),
            errors: self.errors.saturating_sub(before.errors),
            within: self.within.iter().map(|(b, count)| (*b, count.saturating_sub(earlier(b)))).collect(),
        }
    }

    /// Both together.
    pub fn and(mut self, other: &Seen) -> Seen {
        self.requests += other.requests;
        self.errors += other.errors;
        if self.within.is_empty() {
            self.within = other.within.clone();
        } else {
            for ((_, count), (_, more)) in self.within.iter_mut().zip(&other.within) {
                *count += more;
            }
        }
        self
    }

    /// The least bound that this part of the requests stayed within; `None` where there were none.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let (_, all) = self.within.last().filter(|(_, all)| *all > 0)?;
        let wanted = (*all as f64 * percent / 100.0).ceil() as u64;
        self.within.iter().find(|(_, count)| *count >= wanted).map(|(bound, _)| *bound)
    }
}

fn ms(duration: Duration) -> String {
    match duration {
        Duration::MAX => "more than 30 s".to_owned(),
        _ => format!("{} ms", duration.as_secs_f64() * 1e3),
    }
}

fn shown(duration: Option<Duration>) -> String {
    duration.map_or_else(|| "an unknown time".to_owned(), ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn map(text: &str) -> Shares {
        let pair = |one: &str| one.split_once('=').map(|(name, share)| (name.to_owned(), share.parse().unwrap()));
        text.split(' ').filter_map(pair).collect()
    }

    #[test]
    fn shares_add_up_and_keep_the_proportions_of_the_others() {
        for (before, new, percent, after) in [
            ("blue=100", "green", 10, "blue=90 green=10"),
            ("blue=100", "green", 100, "blue=0 green=100"),
            ("blue=60 red=40", "green", 50, "blue=30 red=20 green=50"),
            ("blue=34 pink=33 red=33", "green", 10, "blue=30 pink=30 red=30 green=10"),
            ("blue=50 red=50", "green", 25, "blue=38 red=37 green=25"),
            ("blue=90 green=10", "green", 25, "blue=75 green=25"),
            ("", "green", 10, "green=100"),
            ("green=100", "green", 10, "green=100"),
        ] {
            let made = shares(&map(before), new, percent);
            assert_eq!(made, map(after), "{before} + {new}={percent}");
            assert_eq!(made.values().map(|share| u32::from(*share)).sum::<u32>(), 100);
        }
    }

    fn seen(requests: u64, errors: u64, slow_ms: u64) -> Seen {
        let bound = Duration::from_millis;
        Seen { requests, errors, within: vec![(bound(1), 0), (bound(slow_ms), requests), (Duration::MAX, requests)] }
    }

    fn check(new: Seen, others: Seen, expected: Expect) {
        let most = Some(Duration::from_millis(400));
        let rules = Rules { max_error_percent: 1.0, max_latency: most, max_slowdown: 2.0, min_requests: 20 };
        expected.assert_eq(&format!("{:?}", judge(&new, &others, &rules)));
    }

    #[test]
    fn a_step_is_judged_by_errors_then_by_time_and_never_by_too_few_requests() {
        let usual = || seen(100, 0, 50);
        check(seen(19, 19, 50), usual(), expect![[r#"Unknown("19 requests reached it, 20 are needed to judge")"#]]);
        check(seen(100, 1, 50), usual(), expect![[r#"Good("100 requests, 1.0 % failed, 95 of 100 within 50 ms")"#]]);
        check(seen(100, 2, 50), usual(), expect![[r#"Bad("2 of 100 requests failed (2.0 %, allowed are 1 %)")"#]]);
        check(
            seen(100, 0, 500),
            usual(),
            expect![[r#"Bad("95 of 100 requests took up to 500 ms, allowed are 400 ms")"#]],
        );
        check(
            seen(100, 0, 250),
            usual(),
            expect![[
                r#"Bad("95 of 100 requests took up to 250 ms, those of the other deployments 50 ms; allowed is 2 times as long")"#
            ]],
        );
        check(
            seen(100, 0, 250),
            seen(3, 0, 50),
            expect![[r#"Good("100 requests, 0.0 % failed, 95 of 100 within 250 ms")"#]],
        );
    }

    #[test]
    fn only_what_came_after_counts() {
        let (before, after) = (seen(10, 1, 50), seen(40, 1, 50));
        let step = after.since(&before);
        assert_eq!((step.requests, step.errors), (30, 0));
        assert_eq!(step.percentile(95.0), Some(Duration::from_millis(50)));
        assert_eq!(Seen::default().percentile(95.0), None);
        assert_eq!(Seen::default().and(&after).requests, 40);
    }
}
