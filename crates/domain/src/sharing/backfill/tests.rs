//! The line is kept: nobody who waits first begins later for those who pass.

use super::*;

fn nodes(count: u32) -> Resources {
    Resources::places(count.into())
}

fn running(count: u32, ends_by: Option<i64>) -> Running {
    Running { has: nodes(count), ends_by: ends_by.map(Timestamp) }
}

#[test]
fn the_first_begins_when_enough_has_ended_by_its_time_limit() {
    let all = [running(1, Some(300)), running(1, Some(100)), running(2, None)];
    for (needs, free, expect) in
        [(2, 1, Some(100)), (3, 1, Some(300)), (2, 0, Some(300)), (3, 0, None), (1, 0, Some(100))]
    {
        assert_eq!(begins_by(&nodes(needs), &nodes(free), &all), expect.map(Timestamp), "{needs} of {free}");
    }
}

#[test]
fn a_promise_is_the_firsts_own_and_is_not_put_off() {
    let (one, other) = (AttemptId::of(1, 0), AttemptId::of(2, 0));
    let mut promise = Promise::default();
    for (first, now_known, expect) in [
        (&one, None, None),
        (&one, Some(500), Some(500)),
        (&one, Some(900), Some(500)),
        (&one, None, Some(500)),
        (&one, Some(400), Some(400)),
        (&other, None, None),
        (&one, Some(900), Some(900)),
    ] {
        assert_eq!(promise.keep(first, now_known.map(Timestamp)), expect.map(Timestamp));
    }
}

#[test]
fn only_who_is_surely_gone_by_then_passes() {
    let promised = Some(Timestamp(600_000));
    for (limit, promised, expect) in [
        (Some(60), promised, true),
        (Some(540), promised, true),
        (Some(541), promised, false),
        (None, promised, false),
        (Some(1), None, false),
        (Some(u64::MAX), promised, false),
    ] {
        assert_eq!(may_pass(limit, promised, Timestamp(0)), expect, "{limit:?} {promised:?}");
    }
}

/// Numbers by seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A cluster that small jobs keep full for ever, and one job that needs most of it. How many passed it before it began.
fn flooded(seed: u64) -> usize {
    let mut dice = Dice(seed);
    let most = 4 + u32::try_from(dice.below(8)).unwrap();
    let large = nodes(most - u32::try_from(dice.below(2)).unwrap());
    let first = AttemptId::of(1, 0);
    let mut promise = Promise::default();
    // Each runs until an end that lies somewhere within its limit, and has at most the margin more to get ready and go.
    let mut at_work: Vec<(Running, i64)> = Vec::new();
    let (mut passed, mut promised) = (0, None);
    for minute in 0..100_000_i64 {
        let now = Timestamp(minute * 60_000);
        at_work.retain(|(_, ends)| *ends > now.0);
        let used = at_work.iter().fold(Resources::default(), |sum, (one, _)| sum.plus(&one.has));
        let mut free = nodes(most).minus(&used);
        // The large one comes after an hour.
        if minute >= 60 {
            if large.fits_in(&free) {
                let by: Option<Timestamp> = promised;
                assert!(by.is_none_or(|by| now.0 <= by.0 + 60_000), "seed {seed}: {now:?} and not {by:?}");
                return passed;
            }
            let running: Vec<Running> = at_work.iter().map(|(one, _)| *one).collect();
            let kept = promise.keep(&first, begins_by(&large, &free, &running));
            assert!(promised.is_none() || kept <= promised, "seed {seed}: it was put off");
            promised = kept;
        }
        while nodes(1).fits_in(&free) {
            let limit = 60 * (1 + dice.below(120));
            if minute >= 60 && !may_pass(Some(limit), promised, now) {
                break;
            }
            passed += usize::from(minute >= 60);
            let length = i64::try_from(1 + dice.below(limit / 60)).unwrap() * 60_000;
            let ends_by = Timestamp(now.0 + i64::try_from(limit).unwrap() * 1000);
            at_work.push((Running { has: nodes(1), ends_by: Some(ends_by) }, now.0 + length));
            free = free.minus(&nodes(1));
        }
    }
    panic!("seed {seed}: it never begins");
}

#[test]
fn whoever_passes_the_first_in_line_never_makes_it_later_than_it_was_promised() {
    let passed: usize = (0..2_000).map(flooded).sum();
    assert!(passed > 1_000, "some did pass: {passed}");
}
