//! Pipelines by seed, without a store: conditions, groups, optional inputs, loops, failures, cancels, restarts and news
//! that comes late, in any order, or twice.
//!
//! What every step comes to is worked out beforehand by going through the graph once. The laws: a step begins once, after
//! everything it waits for is over and with the outputs that were made; no group has more under way than it may; nothing
//! begins after a halt; and where nothing halts, exactly those run that were to.
//! `SIM_SEED=n` runs one seed, `SIM_SEEDS=n` that many.

use super::*;
use crate::sweep::chance::Chance;
use domain::pipeline::Settings;

const SEEDS: u64 = 3_000;
const OUTPUT: &str = "o";

/// What becomes of a step if it is let.
#[derive(Debug, Clone, Copy)]
struct Fate {
    how: End,
    says: bool,
}

/// A job as it is on record.
#[derive(Debug, Clone, Copy)]
struct Job {
    asked: bool,
    ended: Option<(End, Timestamp)>,
    heard: bool,
}

struct Sim {
    graph: Graph,
    fates: Vec<Fate>,
    progress: Progress,
    jobs: Vec<Option<Job>>,
    chance: Chance,
    now: i64,
    canceled: bool,
    ending: Option<Ending>,
}

#[test]
fn every_pipeline_runs_what_it_should_and_nothing_twice() {
    let from_env = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match from_env("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_env("SIM_SEEDS").unwrap_or(SEEDS).max(SEEDS),
    };
    let (mut completed, mut failed, mut canceled, mut skipped) = (0, 0, 0, 0);
    for seed in seeds.clone() {
        let (ending, left_out) = played(seed);
        skipped += left_out;
        *match ending {
            Ending::Completed => &mut completed,
            Ending::Failed { .. } => &mut failed,
            Ending::Canceled => &mut canceled,
        } += 1;
    }
    let all = completed.min(failed).min(canceled).min(skipped);
    assert!(seeds.count() == 1 || all > 100, "too little of something: {completed} {failed} {canceled} {skipped}");
}

fn played(seed: u64) -> (Ending, usize) {
    let mut chance = Chance::new(seed);
    let graph = drawn(&mut chance);
    let fate = |chance: &mut Chance| Fate {
        how: match chance.below(14) {
            0 => End::Failed,
            1 => End::Canceled,
            _ => End::Completed,
        },
        says: chance.below(2) == 0,
    };
    let fates: Vec<Fate> = graph.steps.iter().map(|_| fate(&mut chance)).collect();
    let (progress, jobs) = (Progress::of(&graph), vec![None; graph.steps.len()]);
    let mut sim = Sim { graph, fates, progress, jobs, chance, now: 0, canceled: false, ending: None };
    for _ in 0..4_000 {
        sim.moves(seed);
        if let Some(ending) = sim.ending.clone() {
            return (ending, sim.judged(seed));
        }
    }
    panic!("seed {seed}: it never came to its end: {:?}", sim.progress);
}

/// A graph in which everything occurs that weaving makes.
fn drawn(chance: &mut Chance) -> Graph {
    let mut graph = Graph {
        settings: Settings {
            continue_on_step_failure: chance.below(3) > 0,
            continue_run_on_failed_optional_input: chance.below(3) > 0,
            ..Settings::default()
        },
        groups: (0..2).map(|_| 1 + chance.below(3)).collect(),
        ..Graph::default()
    };
    // What can be taken: single steps, and loops as all their turns.
    let mut makers: Vec<Vec<usize>> = Vec::new();
    for _ in 0..1 + chance.below(8) {
        let turns = if chance.below(4) == 0 { 2 + chance.below(3) } else { 1 };
        let around = condition(chance, &makers);
        let mut made: Vec<usize> = Vec::new();
        for _ in 0..turns {
            let mut step = Step { name: format!("s{}", graph.steps.len()), ..Step::default() };
            step.when.extend(around.clone());
            step.when.extend(made.last().map(|last| Condition::Said { source: of(vec![*last], false), is: true }));
            for (at, maker) in makers.iter().enumerate().filter(|_| turns == 1) {
                match chance.below(8) {
                    0 => drop(step.bound.insert(format!("i{at}"), of(maker.clone(), false))),
                    1 => drop(step.bound.insert(format!("i{at}"), of(maker.clone(), true))),
                    2 => step.after.extend(maker),
                    _ => {}
                }
            }
            step.group = (chance.below(3) == 0).then(|| chance.below(2));
            made.push(graph.steps.len());
            graph.steps.push(step);
        }
        makers.push(made);
    }
    graph
}

fn of(steps: Vec<usize>, optional: bool) -> Source {
    Source { steps, output: OUTPUT.into(), optional }
}

fn condition(chance: &mut Chance, makers: &[Vec<usize>]) -> Option<Condition> {
    match chance.below(10) {
        0 => Some(Condition::Never),
        1..4 if !makers.is_empty() => {
            let source = of(makers[chance.below(makers.len())].clone(), false);
            Some(Condition::Said { source, is: chance.below(2) == 0 })
        }
        _ => None,
    }
}

impl Sim {
    fn moves(&mut self, seed: u64) {
        self.now += 1;
        match self.chance.below(20) {
            0..9 => self.one_ends(),
            9..16 => self.hears(seed),
            16..18 => self.restarts(),
            18 if self.chance.below(12) == 0 => self.canceled = true,
            _ => self.passes(seed),
        }
    }

    /// Some job that runs comes to its end; nobody has heard of it yet.
    fn one_ends(&mut self) {
        let live: Vec<usize> =
            (0..self.jobs.len()).filter(|at| self.job(*at).is_some_and(|job| job.ended.is_none())).collect();
        if live.is_empty() {
            return;
        }
        let at = live[self.chance.below(live.len())];
        let Some(job) = &mut self.jobs[at] else { return };
        // One that was asked to stop may be through before it hears of it.
        let how = if job.asked && self.chance.below(2) == 0 { End::Canceled } else { self.fates[at].how };
        job.ended = Some((how, Timestamp(self.now)));
    }

    fn job(&self, at: usize) -> Option<Job> {
        self.jobs[at]
    }

    /// Some of the news is taken in, in any order, now and then twice.
    fn hears(&mut self, seed: u64) {
        let news = |job: &Job| job.ended.is_some() && !job.heard;
        let mut unheard: Vec<usize> =
            (0..self.jobs.len()).filter(|at| self.job(*at).as_ref().is_some_and(news)).collect();
        while !unheard.is_empty() && self.chance.below(4) > 0 {
            let at = unheard.swap_remove(self.chance.below(unheard.len()));
            for _ in 0..1 + self.chance.below(5) / 4 {
                self.tell(at);
            }
        }
        self.passes(seed);
    }

    fn tell(&mut self, step: usize) {
        let Some(Job { ended: Some((how, at)), .. }) = self.jobs[step] else { return };
        let said = if how == End::Completed { vec![(OUTPUT.to_owned(), self.fates[step].says)] } else { Vec::new() };
        self.progress.ended(&self.graph, Ended { step, how, at, said });
        self.jobs[step].iter_mut().for_each(|job| job.heard = true);
    }

    /// All that was known is made anew from the graph and the jobs, whichever of these is looked at first.
    fn restarts(&mut self) {
        self.progress = Progress::of(&self.graph);
        let mut there: Vec<usize> = (0..self.jobs.len()).filter(|at| self.jobs[*at].is_some()).collect();
        while !there.is_empty() {
            let at = there.swap_remove(self.chance.below(there.len()));
            let asked = self.job(at).is_some_and(|job| job.asked);
            self.progress.began(&self.graph, at, asked);
            self.tell(at);
        }
    }

    fn passes(&mut self, seed: u64) {
        if self.canceled {
            self.progress.cancel("asked");
        }
        let halted = self.canceled || (!self.graph.settings.continue_on_step_failure && self.heard_of_failure());
        for decision in self.progress.advance(&self.graph) {
            assert!(self.ending.is_none(), "seed {seed}: {decision:?} after the end");
            match decision {
                Decision::Start { step, inputs } => {
                    assert!(!halted, "seed {seed}: step {step} begins after a halt");
                    self.begins(seed, step, &inputs);
                }
                Decision::Stop { step, .. } => {
                    assert!(halted, "seed {seed}: step {step} is stopped for nothing");
                    let job = self.jobs[step].as_mut().expect("what is stopped was begun");
                    assert!(!job.heard && !job.asked, "seed {seed}: step {step} is stopped twice or too late");
                    job.asked = true;
                }
                Decision::End(ending) => self.ending = Some(ending),
            }
        }
    }

    fn heard_of_failure(&self) -> bool {
        let bad = |job: &Job| job.heard && matches!(job.ended, Some((End::Failed | End::Canceled, _)));
        self.jobs.iter().flatten().any(bad)
    }

    fn begins(&mut self, seed: u64, at: usize, inputs: &[Filled]) {
        assert!(self.jobs[at].is_none(), "seed {seed}: step {at} begins twice");
        let (step, due) = (&self.graph.steps[at], self.due());
        for before in step.waits() {
            let is_over = self.job(before).map_or(!due[before], |job| job.heard);
            assert!(is_over, "seed {seed}: step {at} did not wait for {before}");
        }
        for Filled { input, from } in inputs {
            let completed = |at: &&usize| matches!(self.job(**at).and_then(|job| job.ended), Some((End::Completed, _)));
            let maker = step.bound[input].steps.iter().rev().find(completed).map(|at| (*at, OUTPUT.to_owned()));
            assert_eq!(from, &maker, "seed {seed}: input `{input}` of step {at}");
        }
        assert_eq!(inputs.len(), step.bound.len(), "seed {seed}: step {at}");
        if let Some(group) = step.group {
            let same = |(other, job): (usize, &Option<Job>)| {
                self.graph.steps[other].group == Some(group) && job.is_some_and(|job| !job.heard)
            };
            let live = self.jobs.iter().enumerate().filter(|one| same(*one)).count();
            assert!(live < self.graph.groups[group], "seed {seed}: group {group} has {live} under way");
        }
        self.jobs[at] = Some(Job { asked: false, ended: None, heard: false });
    }

    /// The end against what was to be; how many steps were rightly left out.
    fn judged(&self, seed: u64) -> usize {
        let ending = self.ending.as_ref().expect("it has ended");
        assert!(self.jobs.iter().flatten().all(|job| job.heard), "seed {seed}: it is over and something of it runs");
        let due = self.due();
        for (at, due) in due.iter().enumerate() {
            let halts = !self.graph.settings.continue_on_step_failure || self.canceled;
            assert!(*due || self.jobs[at].is_none(), "seed {seed}: step {at} should not have run");
            assert!(!*due || halts || self.jobs[at].is_some(), "seed {seed}: step {at} should have run");
        }
        let bad = |(at, job): (usize, &Option<Job>)| match job.as_ref()?.ended? {
            (End::Failed | End::Canceled, ended) => Some((ended, at)),
            _ => None,
        };
        let first = self.jobs.iter().enumerate().filter_map(bad).min().map(|(_, at)| at);
        match ending {
            Ending::Completed => {
                assert_eq!(first, None, "seed {seed}");
                let ran: Vec<bool> = self.jobs.iter().map(Option::is_some).collect();
                assert_eq!(ran, due, "seed {seed}: it completed without all that was to run");
            }
            Ending::Failed { step, .. } => assert_eq!(Some(*step), first, "seed {seed}: not the first that failed"),
            Ending::Canceled => assert!(self.canceled, "seed {seed}: nobody canceled it"),
        }
        due.iter().filter(|due| !**due).count()
    }

    /// Which steps are to run where nothing halts, by going through the graph once. What was stopped ends as it did.
    fn due(&self) -> Vec<bool> {
        let lenient = self.graph.settings.continue_run_on_failed_optional_input;
        let mut ends: Vec<End> = Vec::new();
        for (at, step) in self.graph.steps.iter().enumerate() {
            let maker = |source: &Source| source.steps.iter().rev().copied().find(|at| ends[*at] == End::Completed);
            let holds = step.when.iter().all(|when| match when {
                Condition::Never => false,
                Condition::Said { source, is } => maker(source).is_some_and(|at| self.fates[at].says == *is),
            });
            let fed = step.bound.values().all(|source| (source.optional && lenient) || maker(source).is_some());
            let clear = step.after.iter().all(|at| matches!(ends[*at], End::Completed | End::Skipped));
            let real = self.job(at).and_then(|job| job.ended).map_or(self.fates[at].how, |(how, _)| how);
            ends.push(if holds && fed && clear { real } else { End::Skipped });
        }
        ends.into_iter().map(|end| end != End::Skipped).collect()
    }
}
