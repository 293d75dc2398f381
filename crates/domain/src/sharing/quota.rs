//! Quotas: how much may be held at once, by a workspace, by everyone in it, by one of them or by a team; in all or on one
//! target.
//!
//! Invariant: a job passes only if it fits into every quota that counts it. One that waits for a quota keeps what it
//! lacks there from those behind it, so that small jobs cannot starve a large one.

use super::{Held, Holder};
use crate::{Resources, resources::humane_bytes};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Who shares a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// The workspace as a whole.
    All,
    /// Everyone in it, each alone.
    Each,
    One(String),
    /// A team as a whole, and who is in it.
    Team {
        name: String,
        people: BTreeSet<String>,
    },
}

/// How a team is written where a person could stand; nobody is called so.
pub const TEAM: char = '@';

/// The most that may be held; what is absent has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_milli: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    pub workspace: String,
    pub whom: Whom,
    /// The one compute target it is about; `None` for all of them together.
    pub target: Option<String>,
    pub limits: Limits,
}

/// CPU, memory, GPUs, jobs.
type Amounts = [u64; 4];

/// Quotas and what of them is in use, as decisions are made.
#[derive(Debug, Default)]
pub struct Ledger {
    by_workspace: HashMap<String, Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    quota: Quota,
    /// By whom it is counted: one key for all, or a person each.
    counts: HashMap<String, Count>,
}

#[derive(Debug, Default)]
struct Count {
    used: Amounts,
    by: BTreeMap<String, Amounts>,
    /// The job that waits for room, and of what it lacks.
    kept: Option<(String, [bool; 4])>,
}

impl Whom {
    /// As it is kept: nothing for all, `*` for each, `@name` for a team, whose people are kept elsewhere.
    pub fn kept(&self) -> String {
        match self {
            Whom::All => String::new(),
            Whom::Each => "*".to_owned(),
            Whom::One(person) => person.clone(),
            Whom::Team { name, .. } => format!("{TEAM}{name}"),
        }
    }

    pub fn parse(text: &str) -> Whom {
        match (text, text.strip_prefix(TEAM)) {
            ("", _) => Whom::All,
            ("*", _) => Whom::Each,
            (_, Some(team)) => Whom::Team { name: team.to_owned(), people: BTreeSet::new() },
            (person, None) => Whom::One(person.to_owned()),
        }
    }
}

impl Limits {
    fn amounts(&self) -> [Option<u64>; 4] {
        [self.cpu_milli, self.memory_bytes, self.gpus, self.jobs]
    }

    pub fn is_empty(&self) -> bool {
        *self == Limits::default()
    }

    /// `4 CPUs, 2 jobs`.
    pub fn humane(&self) -> String {
        let parts = self.amounts().into_iter().enumerate();
        parts.filter_map(|(at, limit)| Some(said(at, limit?))).collect::<Vec<_>>().join(", ")
    }
}

impl Quota {
    /// What it is called in sentences.
    pub fn called(&self) -> String {
        let whom = match &self.whom {
            Whom::All => format!("workspace `{}`", self.workspace),
            Whom::Each => format!("each user in workspace `{}`", self.workspace),
            Whom::One(person) => format!("`{person}` in workspace `{}`", self.workspace),
            Whom::Team { name, .. } => format!("team `{name}` in workspace `{}`", self.workspace),
        };
        match &self.target {
            Some(target) => format!("the quota of {whom} on `{target}`"),
            None => format!("the quota of {whom}"),
        }
    }

    fn counts(&self, holder: &Holder, target: &str) -> bool {
        let whom = match &self.whom {
            Whom::All | Whom::Each => true,
            Whom::One(person) => *person == holder.person,
            Whom::Team { people, .. } => people.contains(&holder.person),
        };
        whom && self.target.as_ref().is_none_or(|only| only.eq_ignore_ascii_case(target))
    }

    fn key<'h>(&self, holder: &'h Holder) -> &'h str {
        if self.whom == Whom::Each { &holder.person } else { "" }
    }

    /// Why a job could never run under it, however little is in use.
    pub fn never(&self, needs: &Resources) -> Option<String> {
        let asked = amounts_of(needs, 1);
        let limits = self.limits.amounts();
        let at = (0..4).find(|at| limits[*at].is_some_and(|limit| asked[*at] > limit))?;
        let limit = limits[at].unwrap_or_default();
        Some(format!("needs {}, and {} is {}", said(at, asked[at]), self.called(), said(at, limit)))
    }
}

impl Ledger {
    pub fn new(quotas: Vec<Quota>, held: &[Held]) -> Ledger {
        let mut ledger = Ledger::default();
        for quota in quotas {
            let entries = ledger.by_workspace.entry(quota.workspace.clone()).or_default();
            entries.push(Entry { quota, counts: HashMap::new() });
        }
        for held in held {
            ledger.add(&held.holder, &held.target, amounts_of(&held.resources, held.jobs));
        }
        ledger
    }

    pub fn is_empty(&self) -> bool {
        self.by_workspace.is_empty()
    }

    /// Counts one more job.
    pub fn take(&mut self, holder: &Holder, target: &str, needs: &Resources) {
        self.add(holder, target, amounts_of(needs, 1));
    }

    fn add(&mut self, holder: &Holder, target: &str, more: Amounts) {
        for entry in self.by_workspace.get_mut(&holder.workspace).into_iter().flatten() {
            if entry.quota.counts(holder, target) {
                let count = entry.counts.entry(entry.quota.key(holder).to_owned()).or_default();
                let theirs = count.by.entry(holder.person.clone()).or_default();
                for at in 0..4 {
                    count.used[at] = count.used[at].saturating_add(more[at]);
                    theirs[at] = theirs[at].saturating_add(more[at]);
                }
            }
        }
    }

    /// The quotas that count such a job.
    pub fn of(&self, holder: &Holder, target: &str) -> impl Iterator<Item = &Quota> {
        self.entries(holder, target).map(|entry| &entry.quota)
    }

    fn entries(&self, holder: &Holder, target: &str) -> impl Iterator<Item = &Entry> {
        let entries = self.by_workspace.get(&holder.workspace).into_iter().flatten();
        entries.filter(move |entry| entry.quota.counts(holder, target))
    }

    /// Whether it leaves room for such a job.
    pub fn has_room(&self, holder: &Holder, target: &str, needs: &Resources) -> bool {
        self.entries(holder, target).all(|entry| {
            let none = Count::default();
            let count = entry.counts.get(entry.quota.key(holder)).unwrap_or(&none);
            !lacks(&entry.quota.limits, count, &amounts_of(needs, 1)).contains(&true)
        })
    }

    /// Why the job `name` has to wait for a quota, if so; then what it lacks there is kept for it. The words do not change
    /// with what is in use.
    pub fn wait(&mut self, name: &str, holder: &Holder, target: &str, needs: &Resources) -> Option<String> {
        let asked = amounts_of(needs, 1);
        let entries = self.by_workspace.get_mut(&holder.workspace).into_iter().flatten();
        for entry in entries.filter(|entry| entry.quota.counts(holder, target)) {
            let count = entry.counts.entry(entry.quota.key(holder).to_owned()).or_default();
            if let Some((first, kept)) = &count.kept
                && (0..4).any(|at| kept[at] && asked[at] > 0)
            {
                return Some(format!("stands behind `{first}`, which waits for {}", entry.quota.called()));
            }
            let lacks = lacks(&entry.quota.limits, count, &asked);
            if lacks.contains(&true) {
                count.kept = Some((name.to_owned(), lacks));
                return Some(format!("waits for {}: {}", entry.quota.called(), entry.quota.limits.humane()));
            }
        }
        None
    }

    /// How much of each quota that counts such a job is in use, and by whom.
    pub fn in_use(&self, holder: &Holder, target: &str) -> Vec<String> {
        self.entries(holder, target).map(|entry| entry.said(entry.quota.key(holder))).collect()
    }

    /// Every quota of a workspace with what is in use of it, by those who are counted apart.
    pub fn shown(&self, workspace: &str) -> Vec<(&Quota, Vec<(String, Limits)>)> {
        let entries = self.by_workspace.get(workspace).into_iter().flatten();
        let one = |entry: &Entry| {
            let mut by: Vec<(String, Limits)> = entry
                .counts
                .values()
                .flat_map(|count| &count.by)
                .map(|(who, used)| (who.clone(), held(used)))
                .collect();
            by.sort_by(|a, b| a.0.cmp(&b.0));
            by
        };
        entries.map(|entry| (&entry.quota, one(entry))).collect()
    }
}

impl Entry {
    fn said(&self, key: &str) -> String {
        let none = Count::default();
        let count = self.counts.get(key).unwrap_or(&none);
        let limits = self.quota.limits.amounts().into_iter().enumerate();
        let parts: Vec<String> = limits
            .filter_map(|(at, limit)| {
                let by = count.by.iter().filter(|(_, used)| used[at] > 0);
                let by: Vec<String> = by.map(|(who, used)| format!("`{who}` {}", number(at, used[at]))).collect();
                let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
                Some(format!("{} of {} in use{by}", number(at, count.used[at]), said(at, limit?)))
            })
            .collect();
        format!("{}: {}", self.quota.called(), parts.join("; "))
    }
}

fn lacks(limits: &Limits, count: &Count, asked: &Amounts) -> [bool; 4] {
    let limits = limits.amounts();
    let lacks =
        |at: usize| asked[at] > 0 && limits[at].is_some_and(|limit| count.used[at].saturating_add(asked[at]) > limit);
    [0, 1, 2, 3].map(lacks)
}

fn amounts_of(resources: &Resources, jobs: u64) -> Amounts {
    [resources.cpu_milli, resources.memory_bytes, resources.gpus.into(), jobs]
}

fn held(used: &Amounts) -> Limits {
    Limits { cpu_milli: Some(used[0]), memory_bytes: Some(used[1]), gpus: Some(used[2]), jobs: Some(used[3]) }
}

fn number(at: usize, amount: u64) -> String {
    match at {
        0 => format!("{}", amount as f64 / 1000.0),
        1 => humane_bytes(amount),
        _ => amount.to_string(),
    }
}

fn said(at: usize, amount: u64) -> String {
    let many = amount != if at == 0 { 1000 } else { 1 };
    let unit = match at {
        0 => " CPU",
        1 => return format!("{} memory", humane_bytes(amount)),
        2 => " GPU",
        _ => " job",
    };
    format!("{}{unit}{}", number(at, amount), if many { "s" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(n: u64) -> Resources {
        Resources { cpu_milli: n * 1000, ..Resources::default() }
    }

    fn quota(whom: &str, target: Option<&str>, limits: Limits) -> Quota {
        Quota { workspace: "w".into(), whom: Whom::parse(whom), target: target.map(str::to_owned), limits }
    }

    fn of(person: &str) -> Holder {
        Holder { workspace: "w".into(), person: person.into() }
    }

    #[test]
    fn each_quota_counts_those_it_is_for() {
        let four = Limits { cpu_milli: Some(4000), ..Limits::default() };
        for (whom, target, by, on, expect) in [
            ("", None, "bob", "local", "waits for the quota of workspace `w`: 4 CPUs"),
            ("*", None, "ann", "lab", "waits for the quota of each user in workspace `w`: 4 CPUs"),
            ("*", None, "bob", "local", "-"),
            ("ann", None, "ann", "local", "waits for the quota of `ann` in workspace `w`: 4 CPUs"),
            ("ann", None, "bob", "local", "-"),
            ("", Some("Local"), "bob", "local", "waits for the quota of workspace `w` on `Local`: 4 CPUs"),
            ("", Some("local"), "bob", "lab", "-"),
        ] {
            let held = Held { holder: of("ann"), target: "local".into(), resources: cpus(3), jobs: 2 };
            let mut ledger = Ledger::new(vec![quota(whom, target, four)], &[held]);
            let said = ledger.wait("j", &of(by), on, &cpus(2));
            assert_eq!(said.as_deref().unwrap_or("-"), expect, "{whom} {by} {on}");
        }
    }

    #[test]
    fn what_someone_has_counts_for_each_of_their_teams_and_for_no_other() {
        let team = |name: &str, people: &[&str], gpus: u64| {
            let people = people.iter().map(|&who| who.to_owned()).collect();
            let limits = Limits { gpus: Some(gpus), ..Limits::default() };
            Quota { whom: Whom::Team { name: name.into(), people }, ..quota("", None, limits) }
        };
        let gpus = |n: u32| Resources { gpus: n, ..Resources::default() };
        let quotas = vec![team("vision", &["ann", "bob"], 8), team("speech", &["bob", "cat"], 4)];
        let mut ledger = Ledger::new(quotas, &[]);
        ledger.take(&of("ann"), "local", &gpus(6));
        ledger.take(&of("bob"), "lab", &gpus(2));
        let wait = |ledger: &mut Ledger, who: &str, n: u32| ledger.wait("j", &of(who), "local", &gpus(n));
        assert_eq!(
            ledger.in_use(&of("ann"), "local"),
            ["the quota of team `vision` in workspace `w`: 8 of 8 GPUs in use (`ann` 6, `bob` 2)"]
        );
        assert_eq!(ledger.in_use(&of("bob"), "local").len(), 2);
        assert_eq!(wait(&mut ledger, "cat", 2), None, "speech has two left");
        assert_eq!(wait(&mut ledger, "dan", 99), None, "dan is in no team");
        let waits = "waits for the quota of team `vision` in workspace `w`: 8 GPUs";
        assert_eq!(wait(&mut ledger, "ann", 1).as_deref(), Some(waits));
        for whom in ["", "*", "ann", "@vision"] {
            assert_eq!(Whom::parse(whom).kept(), whom);
        }
    }

    #[test]
    fn a_small_job_does_not_pass_a_large_one_that_waits_for_the_same() {
        let limits = Limits { cpu_milli: Some(4000), gpus: Some(1), ..Limits::default() };
        let held = Held { holder: of("ann"), target: "local".into(), resources: cpus(2), jobs: 1 };
        let mut ledger = Ledger::new(vec![quota("", None, limits)], &[held]);
        assert!(ledger.wait("large", &of("ann"), "local", &cpus(4)).is_some());
        let behind = ledger.wait("small", &of("bob"), "local", &cpus(1)).unwrap();
        assert_eq!(behind, "stands behind `large`, which waits for the quota of workspace `w`");
        let gpu = Resources { gpus: 1, ..Resources::default() };
        assert_eq!(ledger.wait("gpu", &of("bob"), "local", &gpu), None, "it needs nothing of what is kept");
        assert!(ledger.has_room(&of("bob"), "local", &cpus(2)) && !ledger.has_room(&of("bob"), "local", &cpus(3)));
    }

    #[test]
    fn what_is_in_use_is_said_with_names() {
        let limits = Limits { cpu_milli: Some(4000), jobs: Some(3), ..Limits::default() };
        let mut ledger = Ledger::new(vec![quota("", None, limits)], &[]);
        ledger.take(&of("ann"), "local", &cpus(2));
        ledger.take(&of("bob"), "lab", &Resources { cpu_milli: 500, ..Resources::default() });
        assert_eq!(
            ledger.in_use(&of("cat"), "local"),
            [
                "the quota of workspace `w`: 2.5 of 4 CPUs in use (`ann` 2, `bob` 0.5); 2 of 3 jobs in use (`ann` 1, `bob` 1)"
            ]
        );
        let never = quota("", None, limits).never(&cpus(8));
        assert_eq!(never.unwrap(), "needs 8 CPUs, and the quota of workspace `w` is 4 CPUs");
        assert_eq!(quota("", None, limits).never(&cpus(4)), None);
    }
}
