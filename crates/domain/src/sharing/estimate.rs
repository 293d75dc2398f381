//! When a waiting job may begin: from what runs on its target and how long that may take.
//!
//! Invariant: a time is called certain only if a time limit stands behind every end it counts on.

use crate::{Resources, Timestamp};

/// A job that holds something a waiting one needs.
#[derive(Debug, Clone)]
pub struct Busy {
    pub name: String,
    pub needs: Resources,
    /// When its time limit is over, where it has one.
    pub latest: Option<Timestamp>,
    /// When it would end if it took as long as jobs like it did.
    pub likely: Option<Timestamp>,
}

/// When there is room for `needs` given what is free and what is busy, in words.
pub fn when(needs: &Resources, free: &Resources, mut busy: Vec<Busy>) -> Option<String> {
    let end = |one: &Busy| one.latest.or(one.likely).unwrap_or(Timestamp(i64::MAX));
    busy.sort_by_key(|one| (end(one), one.name.clone()));
    let mut room = *free;
    let mut counted: Vec<&Busy> = Vec::new();
    for one in &busy {
        if needs.fits_in(&room) {
            break;
        }
        room = room.plus(&one.needs);
        counted.push(one);
    }
    let last = counted.last()?;
    if !needs.fits_in(&room) {
        return None;
    }
    if let Some(unknown) = counted.iter().find(|one| one.latest.is_none() && one.likely.is_none()) {
        return Some(format!("when `{}` ends, which has no time limit", unknown.name));
    }
    let at = |at: Timestamp| at.iso().get(..16).unwrap_or_default().replace('T', " ");
    Some(match counted.iter().all(|one| one.latest.is_some()) {
        true => format!("at the latest at {} UTC, when the time limit of `{}` is over", at(end(last)), last.name),
        false => {
            format!("probably about {} UTC, if `{}` takes as long as others like it did", at(end(last)), last.name)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(name: &str, cpus: u64, latest: Option<i64>, likely: Option<i64>) -> Busy {
        let needs = Resources { cpu_milli: cpus * 1000, ..Resources::default() };
        Busy { name: name.into(), needs, latest: latest.map(Timestamp), likely: likely.map(Timestamp) }
    }

    #[test]
    fn an_estimate_says_what_it_stands_on() {
        let needs = Resources { cpu_milli: 2000, ..Resources::default() };
        let hour = Some(3_600_000);
        for (running, expect) in [
            (
                vec![busy("a", 1, hour, None), busy("b", 1, Some(60_000), None)],
                "at the latest at 1970-01-01 01:00 UTC, when the time limit of `a` is over",
            ),
            (
                vec![busy("a", 2, None, hour)],
                "probably about 1970-01-01 01:00 UTC, if `a` takes as long as others like it did",
            ),
            (vec![busy("a", 2, None, None)], "when `a` ends, which has no time limit"),
            (
                vec![busy("a", 2, None, None), busy("b", 2, hour, None)],
                "at the latest at 1970-01-01 01:00 UTC, when the time limit of `b` is over",
            ),
            (vec![busy("a", 1, hour, None)], "-"),
        ] {
            assert_eq!(when(&needs, &Resources::default(), running).as_deref().unwrap_or("-"), expect);
        }
    }
}
