//! Spill-over: the first of a pool's targets that is well and has room.
//!
//! Invariant: nothing is sent where it would only wait, as long as it can wait in the pool for whichever has room first.

use domain::Resources;
use std::collections::HashMap;

/// One of the places where a job may run.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub target: String,
    /// The cluster it lies on.
    pub cluster: String,
    /// Of all parts together.
    pub needs: Resources,
    /// The instance type on a cluster, and how many of it.
    pub shape: Option<String>,
    pub parts: u32,
}

/// What a place has left.
#[derive(Debug, Clone, Default)]
pub struct Room {
    /// Why it takes nothing, in words.
    pub broken: Option<String>,
    /// `None` where only shapes are known.
    pub free: Option<Resources>,
    /// How many of each instance type fit now.
    pub shapes: HashMap<String, u64>,
    /// How much of that is for what was sent there and has not begun.
    pub promised: u64,
    /// Nodes are added on demand.
    pub grows: bool,
}

/// Where a job goes, as a place among its candidates; or that it waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub at: Option<usize>,
    pub because: String,
}

/// Chooses, and takes what it chose from the room there is.
pub fn spill(pool: &str, candidates: &[Candidate], rooms: &mut HashMap<String, Room>) -> Choice {
    let mut passed: Vec<String> = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let target = &candidate.target;
        let full = match rooms.get_mut(&candidate.cluster) {
            Some(room) => room.take(candidate),
            None => Some("nothing is known of it".to_owned()),
        };
        let Some(why) = full else {
            let because = match passed.is_empty() {
                true => format!("goes to `{target}`, the first of pool `{pool}` that it may run on"),
                false => format!("goes to `{target}` of pool `{pool}`: {}", passed.join("; ")),
            };
            return Choice { at: Some(at), because };
        };
        passed.push(format!("`{target}`: {why}"));
    }
    Choice { at: None, because: format!("waits for room in pool `{pool}`: {}", passed.join("; ")) }
}

impl Room {
    /// Why there is no room; takes it where there is.
    fn take(&mut self, candidate: &Candidate) -> Option<String> {
        if let Some(why) = &self.broken {
            return Some(why.clone());
        }
        if let Some(free) = &mut self.free {
            if !candidate.needs.fits_in(free) {
                return Some(format!("is full, it has {} free", free.humane()));
            }
            *free = free.minus(&candidate.needs);
            return None;
        }
        let fits = candidate.shape.as_ref().and_then(|shape| self.shapes.get(shape)).copied().unwrap_or(0);
        let parts = u64::from(candidate.parts);
        // Nodes come only where someone waits for them.
        if fits < self.promised + parts && !(self.grows && self.promised == 0) {
            return Some("is full".to_owned());
        }
        self.promised += parts;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(target: &str, cpus: u64) -> Candidate {
        let needs = Resources { cpu_milli: cpus * 1000, ..Resources::default() };
        Candidate { target: target.into(), cluster: target.into(), needs, shape: Some("s".into()), parts: 1 }
    }

    fn rooms() -> HashMap<String, Room> {
        let free = Some(Resources { cpu_milli: 2000, ..Resources::default() });
        let local = Room { free, ..Room::default() };
        let lab = Room { shapes: HashMap::from([("s".into(), 1)]), ..Room::default() };
        HashMap::from([("local".into(), local), ("lab".into(), lab)])
    }

    #[test]
    fn it_spills_over_in_order_and_then_waits() {
        let mut rooms = rooms();
        let mut next = || spill("p", &[at("local", 2), at("lab", 2)], &mut rooms);
        assert_eq!(next().because, "goes to `local`, the first of pool `p` that it may run on");
        assert_eq!(next().because, "goes to `lab` of pool `p`: `local`: is full, it has 0 CPUs free");
        let waits = next();
        assert_eq!(waits.at, None);
        assert_eq!(waits.because, "waits for room in pool `p`: `local`: is full, it has 0 CPUs free; `lab`: is full");
    }

    #[test]
    fn what_is_broken_or_has_a_queue_is_passed_by() {
        for (room, expect) in [
            (Room { broken: Some("it is silent".into()), ..Room::default() }, "`local`: it is silent"),
            (Room { promised: 1, ..rooms()["lab"].clone() }, "`local`: is full"),
        ] {
            let mut rooms = rooms();
            rooms.insert("local".into(), room);
            let choice = spill("p", &[at("local", 1), at("lab", 1)], &mut rooms);
            assert_eq!((choice.at, choice.because), (Some(1), format!("goes to `lab` of pool `p`: {expect}")));
        }
    }

    #[test]
    fn a_place_that_grows_takes_one_at_a_time() {
        let mut rooms = HashMap::from([("cloud".to_owned(), Room { grows: true, ..Room::default() })]);
        assert_eq!(spill("p", &[at("cloud", 1)], &mut rooms).at, Some(0));
        assert_eq!(spill("p", &[at("cloud", 1)], &mut rooms).at, None);
    }
}
