//! Why a gang does not run yet, in words: which nodes were considered and what is missing.
//!
//! Invariant: says numbers of the cluster as it is, never only what a scheduler calls it.

use super::{
    amounts::{Need, humane},
    fit::{Room, Unfit},
};
use std::collections::BTreeMap;

/// What a gang lacks; `scheduler`: what the scheduler itself has to say.
pub(crate) fn explain(need: &Need, parts: u32, rooms: &[Room], scheduler: Option<&str>) -> String {
    let mut text = format!("needs {}", need.amounts.humane());
    if parts > 1 {
        text = format!("{text} for each of {parts} pods, which start together or not at all");
    }
    text = format!("{text}; {}", lacking(need, parts, rooms));
    if let Some(left_out) = left_out(need, rooms) {
        text = format!("{text} ({left_out})");
    }
    match scheduler {
        Some(words) if !words.is_empty() => format!("{text}. The scheduler says: {}", brief(words)),
        _ => text,
    }
}

fn lacking(need: &Need, parts: u32, rooms: &[Room]) -> String {
    let total = rooms.len();
    if total == 0 {
        return "the cluster has no nodes".to_owned();
    }
    let open: Vec<_> = rooms.iter().filter(|room| room.node.unfit(need).is_none()).collect();
    if open.is_empty() {
        return format!("none of {} may take it", nodes(total));
    }
    let fits: u64 = open.iter().map(|room| room.takes(need)).sum();
    if fits >= u64::from(parts) {
        // Without the number: it changes with every pod, and thousands that wait would be told anew each time.
        return "there is room for it now, so the scheduler should place it soon".to_owned();
    }
    if fits > 0 {
        return format!("room for {fits} of {parts} pods now");
    }
    let short: Vec<_> = need.amounts.names().filter_map(|name| shortage(name, need, &open, total)).collect();
    if short.is_empty() {
        return format!("no single one of {} has all of it free at once", nodes(open.len()));
    }
    short.join("; ")
}

/// What is said of one kind of which no node has enough left.
fn shortage(name: &str, need: &Need, open: &[&Room], total: usize) -> Option<String> {
    let wanted = need.amounts.amount(name);
    let most = open.iter().map(|room| room.free.amount(name)).max().unwrap_or_default();
    if most >= wanted {
        return None;
    }
    let largest = open.iter().map(|room| room.node.allocatable.amount(name)).max().unwrap_or_default();
    let having = open.iter().filter(|room| room.node.allocatable.amount(name) > 0).count();
    let one = if name == "cpu" || name == "memory" { String::new() } else { have(name, having, total) };
    Some(match (largest, largest < wanted) {
        (0, _) => format!("no node that may take it has any {name}"),
        (_, true) => format!("{one}even an empty node has {} at most", humane(name, largest)),
        _ => format!("{one}the most free on one node is {}", humane(name, most)),
    })
}

fn have(name: &str, having: usize, total: usize) -> String {
    let what = if name == crate::instance_type::GPU { "a GPU" } else { name };
    format!("{having} of {} {} {what}, ", nodes(total), if having == 1 { "has" } else { "have" })
}

/// How many nodes are out of the question, and why.
fn left_out(need: &Need, rooms: &[Room]) -> Option<String> {
    let mut counts: BTreeMap<Unfit, usize> = BTreeMap::new();
    for unfit in rooms.iter().filter_map(|room| room.node.unfit(need)) {
        *counts.entry(unfit).or_default() += 1;
    }
    let say = |(unfit, count): (&Unfit, &usize)| match unfit {
        Unfit::NotReady => format!("{count} not ready"),
        Unfit::Cordoned => format!("{count} cordoned"),
        Unfit::Unlabelled(label) => format!("{count} without label `{label}`"),
        Unfit::Unlike => format!("{count} that its affinity rules out"),
        Unfit::Tainted(taint) => format!("{count} with taint `{taint}`"),
    };
    // More would say less.
    let all: Vec<_> = counts.iter().map(say).take(4).collect();
    if all.is_empty() { None } else { Some(format!("left out: {}", all.join(", "))) }
}

fn nodes(count: usize) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}

/// A scheduler's message without its line breaks and without its tail.
pub(crate) fn brief(words: &str) -> String {
    const LONGEST: usize = 300;
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::fit::{Node, fixture::*},
        *,
    };
    use expect_test::{Expect, expect};

    fn check(wanted: &str, parts: u32, nodes: &[Node], used: &[&str], expect: Expect) {
        let mut rooms: Vec<_> = nodes.iter().map(Room::empty).collect();
        for (room, used) in rooms.iter_mut().zip(used) {
            room.fill(&amounts(used), 1);
        }
        expect.assert_eq(&explain(&need(wanted), parts, &rooms, None));
    }

    #[test]
    fn a_shortage_says_who_has_any_and_what_is_free() {
        let all = [node("a", "8c 8g"), node("b", "8c 8g"), node("c", "8c 8g"), node("d", "8c")];
        check(
            "1c 8g",
            1,
            &all,
            &["0c 6g", "0c 7g", "0c 8g"],
            expect!["needs 8 GPUs, 1 CPU, 1 GiB memory; 3 of 4 nodes have a GPU, the most free on one node is 2 GPUs"],
        );
        check(
            "1c 2g",
            8,
            &all,
            &["0c 4g", "0c 8g", "0c 8g"],
            expect![
                "needs 2 GPUs, 1 CPU, 1 GiB memory for each of 8 pods, which start together or not at all; room for 2 of 8 pods now"
            ],
        );
    }

    #[test]
    fn what_no_node_could_ever_hold_is_called_that() {
        check(
            "64c",
            1,
            &[node("a", "8c"), node("b", "16c")],
            &[],
            expect!["needs 64 CPUs, 1 GiB memory; even an empty node has 16 CPUs at most"],
        );
        check(
            "1c 1g",
            1,
            &[node("a", "8c")],
            &[],
            expect!["needs 1 GPU, 1 CPU, 1 GiB memory; no node that may take it has any nvidia.com/gpu"],
        );
        check("1c", 1, &[], &[], expect!["needs 1 CPU, 1 GiB memory; the cluster has no nodes"]);
    }

    #[test]
    fn nodes_that_are_left_out_are_counted_by_reason() {
        let cordoned = Node { cordoned: true, ..node("b", "8c") };
        let away = Node { ready: false, ..node("c", "8c") };
        check(
            "4c",
            1,
            &[node("a", "8c"), cordoned, away],
            &["6c"],
            expect![
                "needs 4 CPUs, 1 GiB memory; the most free on one node is 2 CPUs (left out: 1 not ready, 1 cordoned)"
            ],
        );
    }

    #[test]
    fn what_is_free_on_different_nodes_does_not_add_up() {
        check(
            "4c 1g",
            1,
            &[node("a", "8c 1g"), node("b", "8c 1g")],
            &["6c", "0c 1g"],
            expect!["needs 1 GPU, 4 CPUs, 1 GiB memory; no single one of 2 nodes has all of it free at once"],
        );
    }
}
