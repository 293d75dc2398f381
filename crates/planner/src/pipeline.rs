//! Pipelines: which steps begin, which are stopped, and when the whole is over.
//!
//! A [`Progress`] is what is known of a pipeline's steps. It is told what happened and says what follows, at a cost that
//! goes with the news, not with the size of the graph. It can be made anew at any time from the graph and the jobs there
//! are: the order in which it hears of ends makes no difference to where it arrives.
//! Invariants: a step begins once, after everything it waits for is over; after the end nothing begins.

use domain::{
    Timestamp,
    pipeline::{Condition, End, Graph, Source, Step},
};
use std::collections::{BTreeSet, HashMap};

/// What is known of the steps of one pipeline.
#[derive(Debug, Default)]
pub struct Progress {
    steps: Vec<Stage>,
    /// How many of the steps it waits for are not over, by step.
    missing: Vec<usize>,
    /// Who waits for it, by step.
    followers: Vec<Vec<usize>>,
    ready: BTreeSet<usize>,
    /// What steps said that others depend on.
    said: HashMap<(usize, String), bool>,
    /// Steps under way, of each group.
    in_group: Vec<usize>,
    live: usize,
    over: usize,
    /// Of the step that failed first; by its place among those that failed at the same time.
    failed: Option<(Timestamp, usize)>,
    /// Why nothing new begins.
    halted: Option<String>,
    canceled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Live { asked: bool },
    Over(End),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Start { step: usize, inputs: Vec<Filled> },
    Stop { step: usize, because: String },
    End(Ending),
}

/// An input and who makes it; nobody where its step does without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    pub input: String,
    pub from: Option<(usize, String)>,
}

/// How a pipeline ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Completed,
    /// The step that failed first, and how many others did not complete.
    Failed {
        step: usize,
        left_out: usize,
    },
    Canceled,
}

/// News of one step.
#[derive(Debug, Clone)]
pub struct Ended {
    pub step: usize,
    pub how: End,
    pub at: Timestamp,
    /// What its outputs say, of those that others depend on.
    pub said: Vec<(String, bool)>,
}

impl Progress {
    /// Before anything has happened.
    pub fn of(graph: &Graph) -> Progress {
        let count = graph.steps.len();
        let mut progress = Progress {
            steps: vec![Stage::Waiting; count],
            missing: vec![0; count],
            followers: vec![Vec::new(); count],
            in_group: vec![0; graph.groups.len()],
            ..Progress::default()
        };
        for (at, step) in graph.steps.iter().enumerate() {
            let waits = step.waits();
            progress.missing[at] = waits.len();
            waits.into_iter().for_each(|before| progress.followers[before].push(at));
        }
        let free: Vec<usize> = (0..count).filter(|at| progress.missing[*at] == 0).collect();
        free.into_iter().for_each(|at| progress.settle(graph, at));
        progress
    }

    /// A step has a job; `stopping` if it was asked to stop already.
    pub fn began(&mut self, graph: &Graph, step: usize, stopping: bool) {
        if self.steps[step] != Stage::Waiting {
            return;
        }
        self.ready.remove(&step);
        self.steps[step] = Stage::Live { asked: stopping };
        self.live += 1;
        if let Some(group) = graph.steps[step].group {
            self.in_group[group] += 1;
        }
    }

    /// The job of a step is over.
    pub fn ended(&mut self, graph: &Graph, news: Ended) {
        self.began(graph, news.step, false);
        if let Stage::Over(_) = self.steps[news.step] {
            return;
        }
        self.live -= 1;
        if let Some(group) = graph.steps[news.step].group {
            self.in_group[group] -= 1;
        }
        self.said.extend(news.said.into_iter().map(|(output, is)| ((news.step, output), is)));
        if matches!(news.how, End::Failed | End::Canceled) {
            let this = (news.at, news.step);
            self.failed = Some(self.failed.map_or(this, |first| first.min(this)));
            if !graph.settings.continue_on_step_failure {
                let how = if news.how == End::Failed { "failed" } else { "was canceled" };
                let name = &graph.steps[news.step].name;
                self.halted.get_or_insert_with(|| format!("step `{name}` {how}"));
            }
        }
        self.close(graph, news.step, news.how);
    }

    /// Someone wants it all to stop.
    pub fn cancel(&mut self, because: &str) {
        self.canceled = true;
        self.halted = Some(because.to_owned());
    }

    /// What follows from all that was heard.
    pub fn advance(&mut self, graph: &Graph) -> Vec<Decision> {
        let mut decisions = match self.halted.clone() {
            Some(because) => self.stops(&because),
            None => self.starts(graph),
        };
        if self.live == 0 && (self.halted.is_some() || self.ready.is_empty()) {
            decisions.push(Decision::End(self.ending()));
        }
        decisions
    }

    /// How many steps are over, under way and waiting.
    pub fn count(&self) -> (usize, usize, usize) {
        (self.over, self.live, self.steps.len() - self.over - self.live)
    }

    /// What an output of a step said, if it is one that others depend on and its step has completed.
    pub fn says(&self, step: usize, output: &str) -> Option<bool> {
        self.said.get(&(step, output.to_owned())).copied()
    }

    fn starts(&mut self, graph: &Graph) -> Vec<Decision> {
        let mut full = Vec::new();
        let mut decisions = Vec::new();
        while let Some(at) = self.ready.pop_first() {
            let step = &graph.steps[at];
            if step.group.is_some_and(|group| self.in_group[group] >= graph.groups[group]) {
                full.push(at);
                continue;
            }
            self.began(graph, at, false);
            decisions.push(Decision::Start { step: at, inputs: self.inputs(step) });
        }
        self.ready.extend(full);
        decisions
    }

    fn stops(&mut self, because: &str) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for (step, stage) in self.steps.iter_mut().enumerate() {
            if *stage == (Stage::Live { asked: false }) {
                *stage = Stage::Live { asked: true };
                decisions.push(Decision::Stop { step, because: because.to_owned() });
            }
        }
        decisions
    }

    fn inputs(&self, step: &Step) -> Vec<Filled> {
        let filled = |(input, source): (&String, &Source)| Filled {
            input: input.clone(),
            from: self.maker(source).map(|at| (at, source.output.clone())),
        };
        step.bound.iter().map(filled).collect()
    }

    /// The last of the steps a value may come from that has completed.
    fn maker(&self, source: &Source) -> Option<usize> {
        source.steps.iter().rev().copied().find(|at| self.steps[*at] == Stage::Over(End::Completed))
    }

    fn ending(&self) -> Ending {
        match self.failed {
            _ if self.canceled && self.over < self.steps.len() => Ending::Canceled,
            Some((_, step)) => {
                let left_out = self.steps.iter().filter(|stage| !matches!(stage, Stage::Over(End::Completed)));
                Ending::Failed { step, left_out: left_out.count().saturating_sub(1) }
            }
            None => Ending::Completed,
        }
    }

    /// A step is over; whoever waited for nothing but it is ready, or left out, and so on from there.
    fn close(&mut self, graph: &Graph, step: usize, how: End) {
        let mut closed = vec![(step, how)];
        while let Some((at, how)) = closed.pop() {
            self.steps[at] = Stage::Over(how);
            self.ready.remove(&at);
            self.over += 1;
            for follower in std::mem::take(&mut self.followers[at]) {
                self.missing[follower] -= 1;
                if self.missing[follower] == 0 && self.steps[follower] == Stage::Waiting {
                    match self.runs(graph, follower) {
                        true => drop(self.ready.insert(follower)),
                        false => closed.push((follower, End::Skipped)),
                    }
                }
            }
        }
    }

    /// A step that waits for nobody.
    fn settle(&mut self, graph: &Graph, step: usize) {
        match self.runs(graph, step) {
            true => drop(self.ready.insert(step)),
            false => self.close(graph, step, End::Skipped),
        }
    }

    /// Whether a step whose waits are over has what it needs.
    fn runs(&self, graph: &Graph, at: usize) -> bool {
        let step = &graph.steps[at];
        let holds = |condition: &Condition| match condition {
            Condition::Never => false,
            Condition::Said { source, is } => {
                let said = self.maker(source).and_then(|maker| self.said.get(&(maker, source.output.clone())));
                said == Some(is)
            }
        };
        let lenient = graph.settings.continue_run_on_failed_optional_input;
        let made = |source: &Source| (source.optional && lenient) || self.maker(source).is_some();
        let passed = |before: &usize| matches!(self.steps[*before], Stage::Over(End::Completed | End::Skipped));
        step.when.iter().all(holds) && step.bound.values().all(made) && step.after.iter().all(passed)
    }
}

#[cfg(test)]
mod tests;
