//! Which ranks of an attempt run here, and where the others are.
//!
//! Without parts all ranks run on this machine. With them, each part runs the ranks of its node, and parameter servers, which
//! have no node of their own, are dealt out one after the other. Invariant: every rank runs in exactly one part.

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
    match rank.checked_sub(workers(assignment)) {
        Some(parameter_server) => parameter_server % parts,
        None => (rank / per_node) % parts,
    }
}
