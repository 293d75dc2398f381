//! What would fit where: free room on each node, how many of a shape it takes, and why a node takes none.

use super::amounts::{Amounts, Need, Taint};
use crate::reservation;
use std::collections::BTreeMap;

/// A machine, as far as it matters for where pods go.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) ready: bool,
    pub(crate) cordoned: bool,
    pub(crate) taints: Vec<Taint>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) allocatable: Amounts,
    /// All of its memory, whether pods may have it or not.
    pub(crate) memory_bytes: u64,
    /// How many pods it takes at most.
    pub(crate) pods: u64,
    /// Where it is reached from outside the cluster, as far as it says.
    pub(crate) address: String,
}

/// A node and what is left of it.
#[derive(Debug, Clone)]
pub(crate) struct Room<'a> {
    pub(crate) node: &'a Node,
    pub(crate) free: Amounts,
    pub(crate) pods: u64,
}

/// Why a node is out of the question, whatever is free on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unfit {
    NotReady,
    Cordoned,
    Unlabelled(String),
    /// It does not match the affinity that is required.
    Unlike,
    Tainted(String),
}

impl Node {
    /// `None` when pods of this need may run here, given room.
    pub(crate) fn unfit(&self, need: &Need) -> Option<Unfit> {
        if !self.ready {
            return Some(Unfit::NotReady);
        }
        if self.cordoned {
            return Some(Unfit::Cordoned);
        }
        self.unsuited(need, Taint::repels)
    }

    /// Why pods of this need would not run here even if it were ready and open.
    fn unsuited(&self, need: &Need, repels: fn(&Taint) -> bool) -> Option<Unfit> {
        let missing = need.selector.iter().find(|(key, value)| self.labels.get(*key) != Some(value));
        if let Some((key, value)) = missing {
            return Some(Unfit::Unlabelled(format!("{key}={value}")));
        }
        if !need.affinity.takes(&self.name, &self.labels) {
            return Some(Unfit::Unlike);
        }
        let tolerated = |taint: &&Taint| need.tolerations.iter().any(|tolerance| tolerance.covers(taint));
        let taint = self.taints.iter().filter(|taint| repels(taint)).find(|taint| !tolerated(taint));
        taint.map(|taint| Unfit::Tainted(taint.to_string()))
    }

    /// Memory that is held back on it, where that is done.
    pub(crate) fn reserved(&self, reserves: bool) -> u64 {
        if reserves { reservation::share(self.memory_bytes) } else { 0 }
    }

    /// How many it could hold if it were empty, ready and open, but for the memory that is `reserved` on it.
    pub(crate) fn could_hold(&self, need: &Need, reserved: u64) -> u64 {
        if self.unsuited(need, Taint::stays).is_some() {
            return 0;
        }
        let mut empty = self.allocatable.clone();
        empty.take(&Amounts { memory_bytes: reserved, ..Amounts::default() }, 1);
        empty.holds(&need.amounts).min(self.pods)
    }
}

impl<'a> Room<'a> {
    pub(crate) fn empty(node: &'a Node) -> Room<'a> {
        Room { node, free: node.allocatable.clone(), pods: node.pods }
    }

    /// Makes the room smaller by what runs in it.
    pub(crate) fn fill(&mut self, amounts: &Amounts, times: u64) {
        self.free.take(amounts, times);
        self.pods = self.pods.saturating_sub(times);
    }

    /// How many more of a shape would run here.
    pub(crate) fn takes(&self, need: &Need) -> u64 {
        match self.node.unfit(need) {
            Some(_) => 0,
            None => self.free.holds(&need.amounts).min(self.pods),
        }
    }
}

/// How many of a shape would run on the cluster as it is.
pub(crate) fn fits_now(need: &Need, rooms: &[Room]) -> u64 {
    rooms.iter().map(|room| room.takes(need)).sum()
}

/// Finds room for all of `parts` and fills it; when there is not enough, nothing changes. Pods of one gang are alike, so
/// whichever nodes the scheduler chooses in the end, the same number fits.
pub(crate) fn place(need: &Need, parts: u64, rooms: &mut [Room]) -> bool {
    let mut left = parts;
    let mut taken = Vec::new();
    for (at, room) in rooms.iter().enumerate() {
        let here = room.takes(need).min(left);
        if here > 0 {
            taken.push((at, here));
            left -= here;
        }
        if left == 0 {
            break;
        }
    }
    if left > 0 {
        return false;
    }
    for (at, times) in taken {
        rooms[at].fill(&need.amounts, times);
    }
    true
}

/// As [`place`], but takes what room there is for pods that the scheduler was already given.
pub(crate) fn promise(need: &Need, parts: u64, rooms: &mut [Room]) {
    let mut left = parts;
    for room in rooms {
        let here = room.takes(need).min(left);
        room.fill(&need.amounts, here);
        left -= here;
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::*;
    use crate::instance_type::GPU;

    /// `4c 2g`: CPUs and GPUs; memory is plenty.
    pub(crate) fn amounts(text: &str) -> Amounts {
        let mut all = Amounts { memory_bytes: 1 << 30, ..Amounts::default() };
        for word in text.split_whitespace() {
            let (number, unit) = word.split_at(word.len() - 1);
            let number: u64 = number.parse().unwrap();
            match unit {
                "c" => all.cpu_milli = number * 1000,
                _ => drop(all.others.insert(GPU.to_owned(), number)),
            }
        }
        all
    }

    pub(crate) fn need(text: &str) -> Need {
        Need { amounts: amounts(text), ..Need::default() }
    }

    pub(crate) fn node(name: &str, text: &str) -> Node {
        let allocatable = Amounts { memory_bytes: 64 << 30, ..amounts(text) };
        Node { name: name.to_owned(), ready: true, allocatable, pods: 110, ..Node::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::{fixture::*, *};

    #[test]
    fn a_gang_is_placed_whole_or_not_at_all() {
        let nodes = [node("a", "8c 2g"), node("b", "8c 1g")];
        let mut rooms: Vec<_> = nodes.iter().map(Room::empty).collect();
        assert_eq!(fits_now(&need("1c 1g"), &rooms), 3);
        assert!(!place(&need("1c 1g"), 4, &mut rooms));
        assert_eq!(fits_now(&need("1c 1g"), &rooms), 3, "a gang that does not fit leaves no trace");
        assert!(place(&need("1c 1g"), 3, &mut rooms));
        assert_eq!(fits_now(&need("1c 1g"), &rooms), 0);
        assert_eq!(fits_now(&need("1c"), &rooms), 13);
    }

    #[test]
    fn nodes_are_left_out_for_what_they_are() {
        let mut node = node("a", "8c");
        let mut need = need("1c");
        need.selector.insert("zone".into(), "a".into());
        assert_eq!(node.unfit(&need), Some(Unfit::Unlabelled("zone=a".into())));
        node.labels.insert("zone".into(), "a".into());
        node.taints = vec![Taint { key: "team".into(), value: "x".into(), effect: "NoSchedule".into() }];
        assert_eq!(node.unfit(&need), Some(Unfit::Tainted("team=x:NoSchedule".into())));
        node.taints[0].effect = "PreferNoSchedule".into();
        assert_eq!(node.unfit(&need), None);
        node.cordoned = true;
        assert_eq!(node.unfit(&need), Some(Unfit::Cordoned));
        assert_eq!(node.could_hold(&need, 0), 8, "a cordoned node may open again");
        node.ready = false;
        node.taints[0] =
            Taint { key: "node.kubernetes.io/not-ready".into(), value: String::new(), effect: "NoSchedule".into() };
        assert_eq!(node.could_hold(&need, 0), 8, "and one that is away may come back");
        node.labels.clear();
        assert_eq!(node.could_hold(&need, 0), 0, "but it will have no other labels");
    }

    #[test]
    fn what_is_reserved_on_a_node_is_not_counted_as_room() {
        let node = node("a", "64c");
        let need = Need { amounts: Amounts { memory_bytes: 62 << 30, ..amounts("1c") }, ..Need::default() };
        assert_eq!(node.could_hold(&need, 0), 1);
        assert_eq!(node.could_hold(&need, 3 << 30), 0, "64 GiB less 3 hold no 62");
    }

    #[test]
    fn a_node_full_of_pods_takes_no_more_of_them() {
        let node = Node { pods: 2, ..node("a", "64c") };
        let mut room = Room::empty(&node);
        room.fill(&amounts("1c"), 1);
        assert_eq!(room.takes(&need("1c")), 1);
    }
}
