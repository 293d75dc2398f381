//! What Slurm says of its jobs and nodes, in our words.

use crate::PartState;
use domain::{AttemptId, Resources, Timestamp, cluster::ClusterNode};
use std::collections::BTreeMap;

/// What was found at a login node.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) now: Option<Timestamp>,
    pub(super) attempts: Vec<Seen>,
}

/// An attempt that has a folder there.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) attempt: AttemptId,
    /// The batch job's number; empty if it was never sent.
    pub(super) id: String,
    pub(super) parts: u32,
    /// Where Slurm still has it.
    pub(super) queued: Option<Queued>,
    pub(super) nodes: BTreeMap<u32, String>,
    /// Parts whose agent has left, and whether in good order.
    pub(super) left: BTreeMap<u32, bool>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Queued {
    Waits(String),
    Runs(String),
}

impl Listing {
    pub(super) fn read(said: &str) -> Listing {
        let mut listing = Listing::default();
        let mut queue = BTreeMap::new();
        for line in said.lines() {
            let words: Vec<&str> = line.split('|').collect();
            match words[..] {
                ["now", seconds] => listing.now = seconds.parse().ok().map(|seconds: i64| Timestamp(seconds * 1000)),
                ["queue", id, _, state, reason, nodes] => {
                    drop(queue.insert(id.to_owned(), queued(state, reason, nodes)))
                }
                ["attempt", name, id, parts] => {
                    let seen = AttemptId::parse(name).ok().map(|attempt| Seen {
                        attempt,
                        id: id.to_owned(),
                        parts: parts.parse().unwrap_or(1),
                        queued: queue.remove(id),
                        nodes: BTreeMap::new(),
                        left: BTreeMap::new(),
                    });
                    listing.attempts.extend(seen);
                }
                [what, _, index, value] => {
                    let (Some(seen), Ok(index)) = (listing.attempts.last_mut(), index.parse()) else { continue };
                    match what {
                        "node" => drop(seen.nodes.insert(index, value.to_owned())),
                        _ => drop(seen.left.insert(index, matches!(value, "0" | "1"))),
                    }
                }
                _ => {}
            }
        }
        listing
    }

    /// Batch jobs that Slurm has no more and whose agents have not all left a word.
    pub(super) fn silent(&self) -> impl Iterator<Item = &str> {
        let silent = |seen: &&Seen| {
            let left = seen.left.values().filter(|good| **good).count();
            seen.queued.is_none() && left < seen.parts as usize && !seen.id.is_empty()
        };
        self.attempts.iter().filter(silent).map(|seen| seen.id.as_str())
    }
}

fn queued(state: &str, reason: &str, nodes: &str) -> Queued {
    match state {
        "PENDING" => Queued::Waits(match reason {
            "None" => "Slurm has just taken it".to_owned(),
            "Priority" => "Slurm has jobs of higher priority before it (Priority)".to_owned(),
            "Resources" => "Slurm waits until enough nodes are free (Resources)".to_owned(),
            "ReqNodeNotAvail" => "nodes it needs are down, drained or reserved (ReqNodeNotAvail)".to_owned(),
            "PartitionTimeLimit" => {
                "its time limit is longer than the partition allows (PartitionTimeLimit)".to_owned()
            }
            "PartitionNodeLimit" => "it asks for more nodes than the partition allows (PartitionNodeLimit)".to_owned(),
            "PartitionConfig" => "no node of the partition could hold it (PartitionConfig)".to_owned(),
            "Dependency" => "another job has to end first (Dependency)".to_owned(),
            limit if limit.starts_with("QOS") || limit.starts_with("Assoc") => {
                format!("a limit of its account or QOS is reached ({limit})")
            }
            other => format!("Slurm says why: {other}"),
        }),
        "CONFIGURING" => Queued::Waits("Slurm makes its nodes ready (CONFIGURING)".to_owned()),
        "SUSPENDED" | "STOPPED" => Queued::Waits(format!("Slurm has suspended it ({state})")),
        _ => Queued::Runs(nodes.to_owned()),
    }
}

/// How one batch job ended.
pub(super) fn end(line: &str) -> Option<(String, PartState)> {
    let [_, id, state, code] = line.split('|').collect::<Vec<_>>().try_into().ok()?;
    let word = state.split_whitespace().next().unwrap_or_default().trim_end_matches('+');
    let gone = |code: &str, why: String, retryable| PartState::Gone { code: code.to_owned(), why, retryable };
    let state = match word {
        "PREEMPTED" => gone("Preempted", "Slurm gave its nodes to a more important job".to_owned(), true),
        "NODE_FAIL" | "BOOT_FAIL" => gone("NodeLost", format!("Slurm lost a node of it ({word})"), true),
        "TIMEOUT" | "DEADLINE" => gone("TimeLimit", format!("Slurm's time limit for it was reached ({word})"), false),
        "OUT_OF_MEMORY" => {
            gone("UserError.OutOfMemory", "it needed more memory than Slurm had given it".to_owned(), false)
        }
        "CANCELLED" => gone("CanceledInSlurm", format!("it was canceled in Slurm ({})", state.to_lowercase()), false),
        // Slurm may still be about to say more.
        "PENDING" | "RUNNING" | "COMPLETING" => PartState::Waits(format!("Slurm says {word}")),
        word => gone(
            "AgentLost",
            format!("its batch job is over ({word}, exit code {code}) and its agent left no word"),
            true,
        ),
    };
    Some((id.to_owned(), state))
}

/// Of a job that nobody remembers.
pub(super) fn forgotten() -> PartState {
    let why = "Slurm knows nothing of its batch job any more, and its agent left no word".to_owned();
    PartState::Gone { code: "AgentLost".to_owned(), why, retryable: true }
}

/// Of a part whose agent broke while others may go on.
pub(super) fn failed() -> PartState {
    PartState::Gone { code: "AgentLost".to_owned(), why: "its agent failed on its node".to_owned(), retryable: true }
}

/// One node, from what `sinfo` says.
pub(super) fn node(line: &str) -> Option<ClusterNode> {
    let [name, state, cpus, memory, taken, gres] =
        line.split('|').map(str::trim).collect::<Vec<_>>().try_into().ok()?;
    let cpus: Vec<u64> = cpus.split('/').map(|count| count.parse().unwrap_or(0)).collect();
    let [_, idle, _, total] = cpus[..] else { return None };
    let mib = |text: &str| text.parse::<u64>().unwrap_or(0);
    let gpus = gres.split(',').filter(|one| one.starts_with("gpu")).filter_map(|one| {
        let count = one.split('(').next()?.rsplit(':').next()?;
        count.parse::<u32>().ok()
    });
    let gpus = gpus.sum();
    let all = Resources { cpu_milli: total * 1000, memory_bytes: mib(memory) << 20, gpus };
    let free = Resources { cpu_milli: idle * 1000, memory_bytes: mib(memory).saturating_sub(mib(taken)) << 20, gpus };
    let ready =
        ["idle", "mixed", "allocated", "completing"].iter().any(|word| state.trim_end_matches('*').starts_with(word));
    Some(ClusterNode {
        name: name.to_owned(),
        ready: ready && !state.ends_with('*'),
        allocatable: all,
        free,
        ..ClusterNode::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_at_a_login_node_is_told_part_by_part() {
        let listing = Listing::read(
            "now|1700000000\nqueue|12|pg-k-att_1_0|PENDING|Resources|\nqueue|13|pg-k-att_2_0|RUNNING|None|n[1-2]\n\
             attempt|att_1_0|12|1\nattempt|att_2_0|13|2\nnode|att_2_0|0|n1\nleft|att_2_0|0|1\nattempt|att_3_0|9|1\n\
             attempt|att_4_0|8|1\nleft|att_4_0|0|0\n",
        );
        assert_eq!(listing.now, Some(Timestamp(1_700_000_000_000)));
        let seen = &listing.attempts;
        assert!(matches!(&seen[0].queued, Some(Queued::Waits(why)) if why.contains("(Resources)")));
        assert_eq!(seen[1].queued, Some(Queued::Runs("n[1-2]".into())));
        assert_eq!((seen[1].nodes.get(&0).map(String::as_str), seen[1].left.get(&0)), (Some("n1"), Some(&true)));
        assert_eq!(listing.silent().collect::<Vec<_>>(), ["9"], "the last has left in good order");
    }

    #[test]
    fn an_end_is_told_apart_by_whether_another_try_could_help() {
        for (line, code, again) in [
            ("end|7|PREEMPTED|0:0", "Preempted", true),
            ("end|7|NODE_FAIL|0:0", "NodeLost", true),
            ("end|7|TIMEOUT|0:15", "TimeLimit", false),
            ("end|7|OUT_OF_MEMORY|0:125", "UserError.OutOfMemory", false),
            ("end|7|CANCELLED by 1000|0:0", "CanceledInSlurm", false),
            ("end|7|FAILED|1:0", "AgentLost", true),
        ] {
            let (id, state) = end(line).unwrap();
            assert!(
                matches!(&state, PartState::Gone { code: told, retryable, .. } if told == code && *retryable == again),
                "{state:?}"
            );
            assert_eq!(id, "7");
        }
    }

    #[test]
    fn nodes_are_what_slurm_says_they_are() {
        let node = |line| node(line).unwrap();
        let busy = node("n1   |mixed |1/3/0/4 |8000 |2000 |gpu:a100:2(S:0-1),license:1");
        assert!(busy.ready);
        assert_eq!((busy.allocatable.cpu_milli, busy.free.cpu_milli, busy.allocatable.gpus), (4000, 3000, 2));
        assert_eq!(busy.free.memory_bytes, 6000 << 20);
        assert!(!node("n2|idle*|0/4/0/4|8000|0|(null)").ready, "it does not answer");
        assert!(!node("n3|drained|0/0/4/4|8000|0|(null)").ready);
    }
}
