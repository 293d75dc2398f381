//! What Slurm says of its jobs and nodes, in our words.

use crate::{PartState, Started};
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
    /// The batch job's number, and which of its array.
    pub(super) id: String,
    pub(super) parts: u32,
    /// What Slurm says of it, while it knows of it.
    pub(super) queued: Option<Queued>,
    pub(super) nodes: BTreeMap<u32, String>,
    /// Parts whose agent has left, and whether in good order.
    pub(super) left: BTreeMap<u32, bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Queued {
    Waits(String),
    Runs(String),
    Over(PartState),
}

impl Listing {
    pub(super) fn read(said: &str) -> Listing {
        let mut listing = Listing::default();
        // By number, and by the name that they were sent under.
        let mut queue: BTreeMap<String, (String, Queued)> = BTreeMap::new();
        let mut folders: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for line in said.lines() {
            let words: Vec<&str> = line.split('|').map(str::trim).collect();
            match words[..] {
                ["now", seconds] => listing.now = seconds.parse().ok().map(|seconds: i64| Timestamp(seconds * 1000)),
                ["queue", id, name, state, restarts, reason, nodes, begins] => {
                    let queued = expected(queued((state, restarts), reason, nodes), begins);
                    queue.insert(id.to_owned(), (name.to_owned(), queued));
                }
                _ => {
                    let file = line.strip_prefix("./").and_then(|line| line.split_once('/'));
                    let Some((attempt, (file, value))) =
                        file.and_then(|(attempt, rest)| Some((attempt, rest.split_once(':')?)))
                    else {
                        continue;
                    };
                    folders.entry(attempt).or_default().push((file, value));
                }
            }
        }
        listing.attempts = folders.into_iter().filter_map(|(name, files)| seen(name, &files, &queue)).collect();
        listing
    }

    /// Batch jobs that Slurm has no more and whose agents have not all left a word.
    pub(super) fn silent(&self) -> impl Iterator<Item = &str> {
        let silent = |seen: &&Seen| {
            let left = seen.left.values().filter(|good| **good).count();
            seen.queued.is_none() && left < seen.parts as usize
        };
        self.attempts.iter().filter(silent).map(|seen| seen.id.as_str())
    }
}

/// An attempt from its files; `None` if it was never sent.
fn seen(name: &str, files: &[(&str, &str)], queue: &BTreeMap<String, (String, Queued)>) -> Option<Seen> {
    let value = |wanted: &str| files.iter().find(|(file, _)| *file == wanted).map(|(_, value)| *value);
    let by_part = |suffix: &str| -> BTreeMap<u32, &str> {
        files.iter().filter_map(|(file, value)| Some((file.strip_suffix(suffix)?.parse().ok()?, *value))).collect()
    };
    let sent = || {
        let (name, index) = value("sent")?.split_once(' ')?;
        let ours = |(id, (other, _)): &(&String, &(String, Queued))| {
            other == name && (index.is_empty() || id.ends_with(index))
        };
        queue.iter().find(ours).map(|(id, _)| id.clone())
    };
    let id = value("job").map(str::to_owned).or_else(sent)?;
    Some(Seen {
        attempt: AttemptId::parse(name).ok()?,
        parts: value("parts").and_then(|parts| parts.parse().ok()).unwrap_or(1),
        queued: queue.get(&id).map(|(_, queued)| queued.clone()),
        nodes: by_part(".node").into_iter().map(|(part, node)| (part, node.to_owned())).collect(),
        left: by_part(".left").into_iter().map(|(part, code)| (part, matches!(code, "0" | "1"))).collect(),
        id,
    })
}

/// A wait with the time at which Slurm expects to start it, where it does.
fn expected(queued: Queued, begins: &str) -> Queued {
    match queued {
        Queued::Waits(why) if begins.starts_with(|first: char| first.is_ascii_digit()) => {
            let begins = begins.get(..16).unwrap_or(begins).replace('T', " ");
            Queued::Waits(format!("{why}; Slurm expects to start it about {begins} by the clock of its cluster"))
        }
        other => other,
    }
}

fn queued((state, restarts): (&str, &str), reason: &str, nodes: &str) -> Queued {
    match state {
        // It was taken off its nodes with whatever it had begun there.
        "PENDING" if restarts != "0" => Queued::Over(PartState::Gone {
            code: "Requeued".to_owned(),
            why: "Slurm has put it back in its queue; another attempt begins in its place".to_owned(),
            retryable: true,
        }),
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
        "COMPLETED" | "FAILED" | "CANCELLED" | "TIMEOUT" | "DEADLINE" | "PREEMPTED" | "NODE_FAIL" | "BOOT_FAIL"
        | "OUT_OF_MEMORY" => Queued::Over(ended(state, "")),
        _ => Queued::Runs(nodes.to_owned()),
    }
}

/// How one batch job ended, from what the accounting says.
pub(super) fn end(line: &str) -> Option<(String, PartState)> {
    let [_, id, state, code] = line.split('|').collect::<Vec<_>>().try_into().ok()?;
    Some((id.to_owned(), ended(state, code)))
}

fn ended(state: &str, code: &str) -> PartState {
    let word = state.split_whitespace().next().unwrap_or_default().trim_end_matches('+');
    let gone = |code: &str, why: String, retryable| PartState::Gone { code: code.to_owned(), why, retryable };
    match word {
        "PREEMPTED" => gone("Preempted", "Slurm gave its nodes to a more important job".to_owned(), true),
        "NODE_FAIL" | "BOOT_FAIL" => gone("NodeLost", format!("Slurm lost a node of it ({word})"), true),
        "TIMEOUT" | "DEADLINE" => gone("TimeLimit", format!("Slurm's time limit for it was reached ({word})"), false),
        "OUT_OF_MEMORY" => {
            gone("UserError.OutOfMemory", "it needed more memory than Slurm had given it".to_owned(), false)
        }
        "CANCELLED" => gone("CanceledInSlurm", format!("it was canceled in Slurm ({})", state.to_lowercase()), false),
        // Slurm may still be about to say more.
        "PENDING" | "RUNNING" | "COMPLETING" => PartState::Waits(format!("Slurm says {word}")),
        word => {
            let code = if code.is_empty() { String::new() } else { format!(", exit code {code}") };
            gone("AgentLost", format!("its batch job is over ({word}{code}) and its agent left no word"), true)
        }
    }
}

/// What `sbatch` has against it: whether it could be otherwise later.
pub(super) fn refused(said: &str) -> Started {
    const FOR_NOW: [&str; 6] =
        ["MaxSubmitJob", "job submit limit", "temporarily", "Unable to contact", "Socket timed out", "Zero Bytes"];
    let why = said.replace("sbatch: error: ", "").trim().to_owned();
    match FOR_NOW.iter().any(|word| why.contains(word)) {
        true => Started::Later(format!("Slurm takes no more for now: {why}")),
        false => Started::Never(format!("Slurm refuses it: {why}")),
    }
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
            "now|1700000000\nqueue|12 |pg-k-att_1_0 |PENDING |0 |Resources | |2026-03-01T10:20:30\n\
             queue|13|pg-k-att_2_0|RUNNING|0|None|n[1-2]|2026-03-01T10:20:30\n\
             queue|14_0|pg-k-att_5_0|PENDING|1|BeginTime||N/A\nqueue|14_1|pg-k-att_5_0|CANCELLED|0|None||N/A\n\
             ./att_1_0/job:12\n./att_1_0/parts:1\n./att_2_0/job:13\n./att_2_0/parts:2\n./att_2_0/0.node:n1\n./att_2_0/0.left:1\n\
             ./att_3_0/job:9\n./att_3_0/parts:1\n./att_4_0/job:8\n./att_4_0/parts:1\n./att_4_0/0.left:0\n\
             ./att_5_0/job:14_0\n./att_5_0/sent:pg-k-att_5_0 _0\n./att_6_0/sent:pg-k-att_5_0 _1\n./att_7_0/sent:pg-k-att_7_0 \n",
        );
        assert_eq!(listing.now, Some(Timestamp(1_700_000_000_000)));
        let seen = &listing.attempts;
        let Some(Queued::Waits(why)) = &seen[0].queued else { panic!("{:?}", seen[0]) };
        assert!(why.contains("(Resources)") && why.contains("about 2026-03-01 10:20 by"), "{why}");
        let Queued::Waits(why) = expected(Queued::Waits("w".into()), "N/A") else { panic!() };
        assert_eq!(why, "w", "Slurm does not know");
        assert_eq!(seen[1].queued, Some(Queued::Runs("n[1-2]".into())));
        assert_eq!((seen[1].nodes.get(&0).map(String::as_str), seen[1].left.get(&0)), (Some("n1"), Some(&true)));
        assert_eq!(listing.silent().collect::<Vec<_>>(), ["9"], "the fourth has left in good order");
        let over = |at: usize| match &seen[at].queued {
            Some(Queued::Over(PartState::Gone { code, .. })) => code.clone(),
            other => format!("{other:?}"),
        };
        assert_eq!((over(4).as_str(), over(5).as_str()), ("Requeued", "CanceledInSlurm"), "the last by its name");
        assert_eq!(seen.len(), 6, "one was never sent");
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
    fn a_limit_that_passes_is_no_refusal() {
        let limit = "sbatch: error: QOSMaxSubmitJobPerUserLimit sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)";
        assert!(matches!(refused(limit), Started::Later(why) if why.contains("takes no more for now: QOSMax")));
        assert!(matches!(refused("sbatch: error: invalid partition"), Started::Never(_)));
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
