//! Which gangs may go to the scheduler now.
//!
//! Where nothing else sees to gangs, their pods are made with a gate that keeps the scheduler off. The gate is taken from all
//! pods of a gang in one go, when all of them fit. Invariants: whole gangs only; higher priority first, then age; a gang
//! that waits for long is not overtaken for ever; one that fitted here and not on the nodes stays behind its gate for a
//! while, so that it does not hold nodes in part again and again.

use super::{
    amounts::Need,
    fit::{self, Room},
};
use domain::AttemptId;
use std::{collections::HashMap, sync::Arc, time::Duration};

/// A gang that has waited for this long holds back those behind it that would take its room.
const PATIENCE: Duration = Duration::from_secs(600);

/// A gang behind its gate.
#[derive(Debug, Clone)]
pub(crate) struct Gated {
    pub(crate) attempt: AttemptId,
    pub(crate) need: Arc<Need>,
    pub(crate) parts: u64,
    pub(crate) priority: i64,
    pub(crate) waited: Duration,
    pub(crate) rest: Rest,
    /// A single pod for which the scheduler may end others. It is let go in any case: it holds nothing until it runs, and who
    /// makes way is the scheduler's to say. For a gang nobody is ended, lest that were for a part of it.
    pub(crate) preempts: bool,
}

/// Whether a gang was taken back a moment ago, and what is made of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    None,
    /// There was no room for all of it: it is let go as soon as there is.
    UntilItFits,
    /// There was room by our count, and the scheduler placed only a part: something else decides, which we do not see.
    Whole,
}

/// A gang that is let go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Freed {
    pub(crate) attempt: AttemptId,
    /// There is room for all of it.
    pub(crate) fits: bool,
}

/// How gangs are let go on this cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner {
    /// The cluster gets nodes when pods wait for them, so that what does not fit is let go as well, to be seen waiting; it
    /// holds nothing until its nodes are there, and is taken back if only a part of it finds room.
    pub(crate) grow: bool,
    /// A share of every node's memory is held back.
    pub(crate) reserves: bool,
}

/// The gangs to let go.
pub(crate) fn release(mut gangs: Vec<Gated>, rooms: &mut [Room], manner: Manner) -> Vec<Freed> {
    gangs.retain(|gang| gang.rest != Rest::Whole);
    gangs.sort_by(|a, b| b.priority.cmp(&a.priority).then(b.waited.cmp(&a.waited)).then(a.attempt.cmp(&b.attempt)));
    let mut freed = Vec::new();
    // Room only shrinks during a pass: what did not fit once does not fit later, nor does more of it.
    let mut refused: HashMap<Arc<Need>, u64> = HashMap::new();
    for gang in gangs {
        let known = refused.get(&gang.need).is_some_and(|parts| *parts <= gang.parts);
        if !known && fit::place(&gang.need, gang.parts, rooms) {
            freed.push(Freed { attempt: gang.attempt, fits: true });
            continue;
        }
        if (manner.grow || gang.preempts) && gang.rest == Rest::None {
            fit::promise(&gang.need, gang.parts, rooms);
            freed.push(Freed { attempt: gang.attempt, fits: false });
            continue;
        }
        if gang.waited > PATIENCE && could_ever(&gang, rooms, manner.reserves) {
            break;
        }
        let least = refused.entry(gang.need).or_insert(gang.parts);
        *least = gang.parts.min(*least);
    }
    freed
}

/// Whether it would fit if nothing else ran; one that never fits must not hold up the others.
fn could_ever(gang: &Gated, rooms: &[Room], reserves: bool) -> bool {
    let open = rooms.iter().map(|room| room.node).filter(|node| node.unfit(&gang.need).is_none());
    let most = open.map(|node| node.could_hold(&gang.need, node.reserved(reserves))).fold(0, u64::saturating_add);
    most >= gang.parts
}

#[cfg(test)]
mod tests {
    use super::{
        super::fit::{Node, fixture::*},
        *,
    };

    /// Gangs as `name:parts x need @priority ~seconds`, in words `1:4 1c`; nodes as `8c`.
    fn freed(gangs: &[(&str, u64, &str, i64, u64)], nodes: &[Node], grow: bool) -> Vec<String> {
        let gated = |(name, parts, wanted, priority, waited): &(&str, u64, &str, i64, u64)| Gated {
            attempt: AttemptId::parse(&format!("att_{name}_0")).unwrap(),
            need: Arc::new(need(wanted)),
            parts: *parts,
            priority: *priority,
            waited: Duration::from_secs(*waited),
            rest: match waited {
                7 => Rest::UntilItFits,
                8 => Rest::Whole,
                _ => Rest::None,
            },
            preempts: *parts == 1 && *priority == 3,
        };
        let mut rooms: Vec<_> = nodes.iter().map(Room::empty).collect();
        let freed = release(gangs.iter().map(gated).collect(), &mut rooms, Manner { grow, reserves: false });
        freed.iter().map(|freed| freed.attempt.to_string().replace("att_", "").replace("_0", "")).collect()
    }

    #[test]
    fn priority_goes_before_age_and_both_before_size() {
        let nodes = [node("a", "4c")];
        assert_eq!(freed(&[("1", 4, "1c", 0, 60), ("2", 4, "1c", 5, 1)], &nodes, false), ["2"]);
        assert_eq!(freed(&[("1", 4, "1c", 0, 1), ("2", 4, "1c", 0, 60)], &nodes, false), ["2"]);
    }

    #[test]
    fn smaller_gangs_fill_what_a_larger_one_cannot_use() {
        let nodes = [node("a", "4c"), node("b", "4c")];
        assert_eq!(
            freed(&[("1", 9, "1c", 9, 60), ("2", 2, "2c", 0, 1), ("3", 1, "4c", 0, 0)], &nodes, false),
            ["2", "3"]
        );
    }

    #[test]
    fn a_gang_that_waited_for_long_is_not_overtaken_unless_it_can_never_run() {
        let nodes = [node("a", "4c"), node("b", "4c")];
        let busy = [("1", 8, "1c", 0, 9_000), ("2", 1, "2c", 0, 1)];
        let mut rooms: Vec<_> = nodes.iter().map(Room::empty).collect();
        rooms[0].fill(&amounts("3c"), 1);
        let gang = |name: &str, parts, waited| Gated {
            attempt: AttemptId::parse(&format!("att_{name}_0")).unwrap(),
            need: Arc::new(need("1c")),
            parts,
            priority: 0,
            waited: Duration::from_secs(waited),
            rest: Rest::None,
            preempts: false,
        };
        let gangs = vec![gang("1", 8, 9_000), gang("2", 1, 1)];
        assert!(release(gangs, &mut rooms, Manner::default()).is_empty());
        assert_eq!(freed(&busy, &nodes, false), ["1"]);
        assert_eq!(freed(&[("1", 9, "1c", 0, 9_000), ("2", 1, "2c", 0, 1)], &nodes, false), ["2"]);
    }

    #[test]
    fn a_single_pod_that_may_take_from_others_is_let_go_although_it_does_not_fit() {
        let nodes = [node("a", "2c")];
        let waiting = [("1", 1, "4c", 3, 1), ("2", 2, "2c", 3, 1), ("3", 1, "4c", 0, 1)];
        assert_eq!(freed(&waiting, &nodes, false), ["1"]);
    }

    #[test]
    fn where_the_cluster_grows_what_does_not_fit_is_shown_whole_unless_it_rests() {
        let nodes = [node("a", "2c")];
        assert_eq!(freed(&[("1", 4, "1c", 0, 60)], &nodes, true), ["1"]);
        assert_eq!(freed(&[("1", 4, "1c", 0, 7)], &nodes, true), Vec::<String>::new());
        assert_eq!(freed(&[("1", 2, "1c", 0, 7)], &nodes, true), ["1"], "it fits now");
        assert_eq!(freed(&[("1", 4, "1c", 0, 60)], &[], true), ["1"], "from no nodes at all");
    }

    #[test]
    fn a_gang_that_fitted_and_had_to_be_taken_back_rests_and_holds_up_nobody() {
        let nodes = [node("a", "4c")];
        for grow in [false, true] {
            assert_eq!(freed(&[("1", 2, "1c", 9, 8)], &nodes, grow), Vec::<String>::new());
            assert_eq!(freed(&[("1", 4, "1c", 9, 8), ("2", 4, "1c", 0, 1)], &nodes, grow), ["2"]);
        }
    }
}
