//! Pipelines led by the real loop over a real store, by chance and seed: failures, cancels, restarts, late news.
//!
//! The laws: a step has one job at most, and has it only after everything it waits for is over; when the pipeline is over
//! nothing of it runs; it fails if and only if a step did, and names the first; every pipeline comes to its end.

use super::{Home, seeds, sim::chance::Chance};
use controller::{Conductors, Context, conduct};
use domain::{
    AttemptId, JobEvent, JobName, JobState, Outcome, Place, Plan, PlannedInput, PlannedOutput, Timestamp,
    assignment::{InputMode, OutputMode},
    job::Failure,
    pipeline::{Condition, Each, Fallback, Graph, ITEMS, Limited, Settings, Source, Step, StepJob},
};
use std::{cell::Cell, collections::HashMap};
use store::{Child, HERE, NOWHERE, Store};

const SEEDS: u64 = 20;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
}

fn now() -> Timestamp {
    Timestamp(NOW.get())
}

/// Steps as `name<a,b`: inputs from the outputs of others.
fn graph(text: &str, go_on: bool) -> Graph {
    let settings = Settings { continue_on_step_failure: go_on, ..Settings::default() };
    let mut graph = Graph { settings, ..Graph::default() };
    for word in text.split_whitespace() {
        let (name, inputs) = word.split_once('<').unwrap_or((word, ""));
        let at = |name: &str| graph.steps.iter().position(|step| step.name == name).unwrap();
        let bound: Vec<(String, Source)> = inputs
            .split(',')
            .filter(|one| !one.is_empty())
            .map(|one| (one.to_owned(), Source { steps: vec![at(one)], output: "o".into(), optional: false }))
            .collect();
        let output = PlannedOutput {
            place: Place::Folder { path: format!("/data/{name}").into() },
            mode: OutputMode::RwMount,
            uri: format!("azureml://datastores/d/paths/{name}/"),
            file: false,
        };
        let input = |_: &str| PlannedInput::Data {
            place: Place::default(),
            mode: InputMode::RoMount,
            uri: String::new(),
            file: false,
        };
        let plan = Plan {
            inputs: bound.iter().map(|(name, _)| (name.clone(), input(name))).collect(),
            outputs: [("o".to_owned(), output)].into(),
            ..Plan::default()
        };
        let job = StepJob { plan, target: "local".into(), cluster: HERE.into(), ..StepJob::default() };
        graph.steps.push(Step { name: name.into(), bound: bound.into_iter().collect(), job, ..Step::default() });
    }
    graph
}

struct Sim {
    _home: Home,
    cx: Context,
    conductors: Conductors,
    graph: Graph,
    seq: i64,
}

impl Sim {
    async fn of(graph: Graph) -> Sim {
        let home = Home::new();
        let store = home.open();
        let led = graph.clone();
        let new = crate::leader("p", "Pipeline", now());
        let accepted = store.write(move |tx| {
            let seq = tx.insert_job(&new)?;
            tx.put_conductor(seq, &led)?;
            Ok(seq)
        });
        let seq = accepted.await.unwrap();
        let cx = crate::context(store, now);
        Sim { _home: home, cx, conductors: Conductors::default(), graph, seq }
    }

    async fn round(&mut self) {
        NOW.set(NOW.get() + 1);
        conduct(&self.cx, &mut self.conductors).await.unwrap();
    }

    async fn children(&self) -> Vec<Child> {
        let seq = self.seq;
        self.cx.store.read(move |tx| tx.children(seq)).await.unwrap()
    }

    async fn state(&self) -> JobState {
        let seq = self.seq;
        self.cx.store.read(move |tx| tx.job_by_seq(seq)).await.unwrap().unwrap().state
    }

    /// The job of a step comes to its end, as it is.
    async fn end(&self, step: &str, outcome: Outcome) {
        let child = self.children().await.into_iter().find(|child| child.step == step).unwrap();
        NOW.set(NOW.get() + 1);
        finish(&self.cx.store, child, outcome).await;
    }

    async fn laws(&self) {
        let children = self.children().await;
        let mut of: HashMap<&str, &Child> = HashMap::new();
        for child in &children {
            assert!(of.insert(&child.step, child).is_none(), "step `{}` has two jobs", child.step);
        }
        for step in &self.graph.steps {
            let Some(child) = of.get(step.name.as_str()) else { continue };
            for before in step.waits() {
                let name = &self.graph.steps[before].name;
                let before = of.get(name.as_str()).unwrap_or_else(|| panic!("`{}` came before `{name}`", step.name));
                let completed = matches!(&before.job.state, JobState::Ended { outcome: Outcome::Completed, .. });
                assert!(completed && before.job.seq < child.job.seq, "`{}` did not wait for `{name}`", step.name);
            }
        }
        let JobState::Ended { outcome, .. } = self.state().await else { return };
        assert!(children.iter().all(|child| child.job.state.is_ended()), "it is over, and something of it runs");
        let failed = children.iter().filter_map(|child| match &child.job.state {
            JobState::Ended { outcome: Outcome::Failed(_), at, .. } => Some((*at, child.step.as_str())),
            _ => None,
        });
        match (outcome, failed.min()) {
            (Outcome::Failed(failure), Some((_, first))) if failure.code == "x" => {
                assert!(failure.message.starts_with(&format!("step `{first}`")), "{}", failure.message);
                assert_eq!(failure.last_lines, "the end");
            }
            (Outcome::Failed(failure), _) => assert_eq!(failure.code, "StepCanceled"),
            (Outcome::Completed, failed) => {
                assert_eq!((failed, children.len()), (None, self.graph.steps.len()));
            }
            (Outcome::Canceled { reason }, _) => assert_eq!(reason, "asked"),
        }
    }
}

async fn finish(store: &Store, child: Child, outcome: Outcome) {
    let ended = store.write(move |tx| {
        let mut job = child.job;
        if matches!(job.state, JobState::Queued { .. }) {
            job.apply(JobEvent::Placed(AttemptId::of(job.seq, 0)), now()).unwrap();
        }
        job.apply(JobEvent::Over(outcome), now()).unwrap();
        tx.put_job(&job, None, now())
    });
    ended.await.unwrap();
}

fn failed() -> Outcome {
    Outcome::Failed(Failure { last_lines: "the end".into(), ..Failure::new("x", "it broke") })
}

#[tokio::test]
async fn a_step_gets_the_outputs_of_the_steps_before_it() {
    let mut sim = Sim::of(graph("a b<a", false)).await;
    sim.round().await;
    assert_eq!(sim.state().await.status(), "Running");
    sim.end("a", Outcome::Completed).await;
    sim.round().await;
    let child = sim.children().await.into_iter().find(|child| child.step == "b").unwrap();
    assert_eq!(child.job.name.as_str(), "p_b");
    let plan = sim.cx.store.read(move |tx| tx.plan(child.job.seq)).await.unwrap().unwrap();
    let PlannedInput::Data { place, uri, .. } = &plan.inputs["a"] else { panic!("it has no place") };
    assert_eq!((place, uri.as_str()), (&Place::Folder { path: "/data/a".into() }, "azureml://datastores/d/paths/a/"));
    sim.end("b", Outcome::Completed).await;
    sim.round().await;
    assert_eq!(sim.state().await.status(), "Completed");
    sim.laws().await;
}

#[tokio::test]
async fn the_first_failure_ends_it_with_its_last_lines_and_stops_the_rest() {
    let mut sim = Sim::of(graph("a b c<a", false)).await;
    sim.round().await;
    sim.end("b", failed()).await;
    sim.round().await;
    let stopping = sim.children().await.into_iter().find(|child| child.step == "a").unwrap();
    assert_eq!(stopping.job.state.status(), "Canceled", "nobody had it yet");
    sim.round().await;
    let JobState::Ended { outcome: Outcome::Failed(failure), .. } = sim.state().await else { panic!() };
    assert_eq!(failure.message, "step `b` (job `p_b`) failed: it broke; 2 other steps did not complete");
    sim.laws().await;
}

#[tokio::test]
async fn a_name_that_somebody_took_is_no_hindrance() {
    let mut sim = Sim::of(graph("a", false)).await;
    let taken = crate::job("p_a", now());
    sim.cx.store.write(move |tx| tx.insert_job(&taken)).await.unwrap();
    sim.round().await;
    assert_eq!(sim.children().await[0].job.name.as_str(), "p_a_2");
}

#[tokio::test]
async fn a_loop_runs_a_turn_for_every_item_that_a_step_lists() {
    let folder = tempfile::tempdir().unwrap();
    for (listed, ends) in [(r#"[{"n": 1}, {"n": 2}]"#, "Completed"), ("nothing", "Failed")] {
        let path = folder.path().join("items.json");
        std::fs::write(&path, listed).unwrap();
        let mut whole = graph("list data all<list", false);
        whole.steps[0].job.plan.outputs.get_mut("o").unwrap().place = Place::Folder { path: folder.path().into() };
        let mut turn = graph("list data turn.each-1<data", false).steps.split_off(2);
        turn[0].job.name = Some(JobName::parse("p_turn-each-1").unwrap());
        let value = Each::mark_of("each-1", "n");
        turn[0].job.plan.inputs.insert("n".into(), PlannedInput::Literal { value });
        let own = &mut whole.steps[2];
        own.bound = [(ITEMS.to_owned(), own.bound["list"].clone())].into();
        let each =
            Each { values: [("n".to_owned(), Fallback::Missing)].into(), ..Each::of("each-1".into(), 2, turn, own) };
        (own.job.cluster, own.each) = (NOWHERE.into(), Some(Box::new(each)));
        let mut sim = Sim::of(whole).await;
        sim.round().await;
        sim.end("list", Outcome::Completed).await;
        sim.end("data", Outcome::Completed).await;
        sim.round().await;
        let own = sim.children().await.into_iter().find(|child| child.step == "all").unwrap().job;
        sim.round().await;
        let seq = own.seq;
        let turns = async |sim: &Sim| sim.cx.store.read(move |tx| tx.children(seq)).await.unwrap();
        for (at, child) in turns(&sim).await.into_iter().enumerate() {
            assert_eq!(
                (child.step.as_str(), child.job.name.as_str()),
                (&*format!("turn.{at}"), &*format!("p_turn-{at}"))
            );
            let plan = sim.cx.store.read(move |tx| tx.plan(child.job.seq)).await.unwrap().unwrap();
            assert_eq!(plan.inputs["n"], PlannedInput::Literal { value: (at + 1).to_string() });
            let PlannedInput::Data { place, .. } = &plan.inputs["data"] else { panic!("it has no place") };
            assert_eq!(place, &Place::Folder { path: "/data/data".into() });
        }
        for child in turns(&sim).await {
            finish(&sim.cx.store, child, Outcome::Completed).await;
        }
        for _ in 0..2 {
            sim.round().await;
        }
        let state = sim.state().await;
        assert_eq!(state.status(), ends);
        assert_eq!(turns(&sim).await.len(), if ends == "Completed" { 2 } else { 0 });
        if let JobState::Ended { outcome: Outcome::Failed(failure), .. } = state {
            assert!(failure.message.contains("step `all`") && failure.message.contains("holds no list"), "{failure:?}");
        }
    }
}

/// `ask` writes whether `then` runs.
fn asking(path: &std::path::Path) -> Graph {
    let mut graph = graph("ask then", false);
    graph.steps[0].job.plan.outputs.get_mut("o").unwrap().place = Place::Folder { path: path.into() };
    let source = Source { steps: vec![0], output: "o".into(), optional: false };
    graph.steps[1].when.push(Condition::Said { source, is: true });
    graph
}

#[tokio::test]
async fn a_condition_that_cannot_be_read_fails_the_pipeline_and_is_no_silent_no() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("more");
    for (text, ends, says) in [
        (Some("true"), "Completed", ""),
        (Some("false"), "Completed", ""),
        (Some("perhaps"), "Failed", "it holds `perhaps`, which is neither `true` nor `false`"),
        (
            None,
            "Failed",
            "step `ask` (job `p_ask`) completed, and its output `o` says what runs next: the step wrote no such file",
        ),
    ] {
        let _ = std::fs::remove_file(&path);
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let mut sim = Sim::of(asking(&path)).await;
        sim.round().await;
        sim.end("ask", Outcome::Completed).await;
        // What is read again after a restart is told the same way.
        sim.conductors = Conductors::default();
        sim.round().await;
        if text == Some("true") {
            sim.end("then", Outcome::Completed).await;
            sim.round().await;
        }
        let state = sim.state().await;
        assert_eq!((state.status(), sim.children().await.len()), (ends, 1 + usize::from(text == Some("true"))));
        if let JobState::Ended { outcome: Outcome::Failed(failure), .. } = state {
            assert!(failure.message.contains(says), "{}", failure.message);
        }
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_read_fails_the_step_that_needs_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut whole = graph("make use<make", false);
    whole.steps[0].job.plan.outputs.get_mut("o").unwrap().place = Place::Folder { path: folder.path().join("n") };
    whole.steps[1].job.plan.inputs.insert("make".into(), PlannedInput::Literal { value: String::new() });
    let mut sim = Sim::of(whole).await;
    sim.round().await;
    sim.end("make", Outcome::Completed).await;
    for _ in 0..2 {
        sim.round().await;
    }
    let JobState::Ended { outcome: Outcome::Failed(failure), .. } = sim.state().await else {
        panic!("it did not fail")
    };
    let says = "step `use` (job `p_use`) failed: the value of input `make` cannot be read: the step wrote no such file";
    assert!(failure.message.starts_with(says), "{}", failure.message);
}

#[tokio::test]
async fn a_loop_that_may_not_go_on_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("more");
    for (text, told) in [("true", 1), ("false", 0)] {
        std::fs::write(&path, text).unwrap();
        let mut whole = asking(&path);
        let source = Source { steps: vec![0], output: "o".into(), optional: false };
        whole.steps.truncate(1);
        whole.limited.push(Limited { name: "again".into(), turns: 1, source });
        let mut sim = Sim::of(whole).await;
        sim.round().await;
        sim.end("ask", Outcome::Completed).await;
        sim.conductors = Conductors::default();
        sim.round().await;
        assert_eq!(sim.state().await.status(), "Completed");
        let seq = sim.seq;
        let events = sim.cx.store.read(move |tx| tx.events(seq)).await.unwrap();
        let said = events.iter().filter(|event| event.text.contains("loop `again` has gone round 1 times"));
        assert_eq!(said.count(), told);
    }
}

#[tokio::test]
async fn a_step_has_the_priority_it_asks_for_and_else_its_pipelines() {
    let mut whole = graph("a b", false);
    whole.steps[1].job.priority = Some(3);
    let mut sim = Sim::of(whole).await;
    sim.round().await;
    let found: Vec<i64> = sim.children().await.iter().map(|child| child.job.priority).collect();
    assert_eq!(found, [2, 3]);
}

#[test]
fn every_pipeline_keeps_the_laws() {
    seeds::each(SEEDS, |seed| seeds::alone(run(seed)));
}

async fn run(seed: u64) {
    NOW.set(1_000);
    let mut chance = Chance::seeded(seed);
    let count = 1 + chance.below(12);
    let text: Vec<String> = (0..count)
        .map(|at| {
            let makers = (0..at).filter(|_| chance.below(4) == 0).map(|from| format!("s{from}")).collect::<Vec<_>>();
            format!("s{at}<{}", makers.join(","))
        })
        .collect();
    let mut sim = Sim::of(graph(&text.join(" "), chance.below(2) == 0)).await;
    for _ in 0..400 {
        match chance.below(100) {
            0..40 => sim.round().await,
            40..90 => {
                let live: Vec<Child> =
                    sim.children().await.into_iter().filter(|child| !child.job.state.is_ended()).collect();
                if !live.is_empty() {
                    let child = &live[usize::try_from(chance.below(live.len() as u64)).unwrap()];
                    let outcome = if chance.below(12) == 0 { failed() } else { Outcome::Completed };
                    let step = child.step.clone();
                    sim.end(&step, outcome).await;
                }
            }
            90..96 => sim.conductors = Conductors::default(),
            96 => {
                let seq = sim.seq;
                sim.cx.store.write(move |tx| tx.stop_job(seq, "asked", now())).await.unwrap();
            }
            _ => NOW.set(NOW.get() + 1_000),
        }
        sim.laws().await;
        if sim.state().await.is_ended() {
            return;
        }
    }
    panic!("it never came to its end: {:?}", sim.state().await);
}
