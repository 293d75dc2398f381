//! Which ranks of an attempt run here, and where the others are.
//!
//! Without parts all ranks run on this machine. With them, each part runs the ranks of its node, and each parameter server has
//! the part after those; where there are fewer parts they are dealt out again. Invariant: every rank runs in exactly one part.

use domain::Assignment;

/// How many processes the attempt has, here and elsewhere.
pub(super) fn ranks(assignment: &Assignment) -> u32 {
    workers(assignment) + assignment.plan.distribution.as_ref().map_or(0, |spread| spread.parameter_servers)
}

/// The ranks this agent runs, in order.
pub(super) fn own(assignment: &Assignment) -> Vec<u32> {
    let here = |rank: &u32| assignment.part.as_ref().is_none_or(|part| part_of(assignment, *rank) == part.index);
    (0..ranks(assignment)).filter(here).collect()
}

/// Where all parts of an attempt are.
pub(super) struct Hosts<'a> {
    assignment: &'a Assignment,
    all: Vec<&'a str>,
}

impl<'a> Hosts<'a> {
    pub(super) fn of(assignment: &'a Assignment) -> Hosts<'a> {
        let all = match &assignment.part {
            Some(part) => part.addresses.iter().map(String::as_str).collect(),
            None => vec!["127.0.0.1"],
        };
        Hosts { assignment, all }
    }

    pub(super) fn all(&self) -> &[&'a str] {
        &self.all
    }

    /// Where the ranks meet.
    pub(super) fn first(&self) -> &'a str {
        self.all.first().copied().unwrap_or("127.0.0.1")
    }

    pub(super) fn of_rank(&self, rank: u32) -> &'a str {
        self.all.get(part_of(self.assignment, rank) as usize).copied().unwrap_or_else(|| self.first())
    }
}

/// `10.0.0.1:80`, `[fd00::1]:80`.
pub(super) fn with_port(host: &str, port: u32) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn workers(assignment: &Assignment) -> u32 {
    assignment.plan.distribution.as_ref().map_or(1, |spread| spread.nodes * spread.processes_per_node)
}

fn part_of(assignment: &Assignment, rank: u32) -> u32 {
    let Some(part) = &assignment.part else { return 0 };
    let parts = u32::try_from(part.addresses.len()).unwrap_or(1).max(1);
    let per_node = assignment.plan.distribution.as_ref().map_or(1, |spread| spread.processes_per_node.max(1));
    let nodes = workers(assignment) / per_node;
    match rank.checked_sub(workers(assignment)) {
        Some(parameter_server) => (nodes + parameter_server) % parts,
        None => (rank / per_node) % parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{
        AttemptId, JobName, Part, Plan,
        assignment::{DistributionKind, PlannedDistribution},
    };

    fn part(index: u32, parts: u32, (nodes, per_node, servers): (u32, u32, u32)) -> Assignment {
        let spread = PlannedDistribution {
            kind: DistributionKind::TensorFlow,
            nodes,
            processes_per_node: per_node,
            parameter_servers: servers,
            ray: None,
        };
        let addresses = (0..parts).map(|n| format!("10.0.0.{n}")).collect();
        Assignment {
            attempt: AttemptId::of(1, 0),
            number: 0,
            workspace: "w".into(),
            job: JobName::parse("j").unwrap(),
            priority: 0,
            turn: 0,
            plan: Plan { distribution: Some(spread), ..Plan::default() },
            part: (parts > 0).then_some(Part { index, addresses }),
            secrets: Default::default(),
            server_variables: Default::default(),
        }
    }

    #[test]
    fn every_rank_runs_in_exactly_one_part_and_its_host_is_that_part() {
        for (parts, shape) in
            [(1, (1, 4, 0)), (2, (2, 3, 0)), (5, (3, 1, 2)), (3, (3, 1, 2)), (2, (2, 1, 5)), (2, (4, 1, 1))]
        {
            let mut seen = Vec::new();
            for index in 0..parts {
                let assignment = part(index, parts, shape);
                let hosts = Hosts::of(&assignment);
                let own = own(&assignment);
                assert!(own.iter().all(|rank| hosts.of_rank(*rank) == format!("10.0.0.{index}")), "{parts} {shape:?}");
                seen.extend(own);
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..ranks(&part(0, parts, shape))).collect::<Vec<_>>(), "{parts} {shape:?}");
        }
    }

    #[test]
    fn a_parameter_server_has_a_part_to_itself_where_there_are_enough() {
        let own: Vec<_> = (0..5).map(|index| own(&part(index, 5, (3, 1, 2)))).collect();
        assert_eq!(own, [[0], [1], [2], [3], [4]]);
    }

    #[test]
    fn without_parts_all_ranks_are_here() {
        let all = part(0, 0, (2, 2, 1));
        assert_eq!(own(&all), [0, 1, 2, 3, 4]);
        assert_eq!((Hosts::of(&all).all(), Hosts::of(&all).of_rank(4)), (&["127.0.0.1"][..], "127.0.0.1"));
    }

    #[test]
    fn an_address_of_version_6_is_told_from_its_port() {
        assert_eq!(with_port("fd00::1", 80), "[fd00::1]:80");
        assert_eq!(with_port("10.0.0.1", 80), "10.0.0.1:80");
    }
}
