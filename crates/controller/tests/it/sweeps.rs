//! Sweeps led by the real loop over a real store: trials are jobs, what they log decides, and a restart changes nothing.

use super::{Home, sim::chance::Chance};
use controller::{Conductors, Context, conduct};
use domain::{
    AttemptId, JobEvent, JobName, JobState, Outcome, Place, Plan, PlannedInput, PlannedOutput, Search, Timestamp,
    assignment::{InputMode, OutputMode},
    job::Failure,
    pipeline::{Graph, Source, Step, StepJob},
    spec::Sweep,
    tracking::points::Point,
};
use serde_json::{Value, json};
use std::{cell::Cell, collections::BTreeMap};
use store::{Child, HERE, NOWHERE};

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
}

fn now() -> Timestamp {
    Timestamp(NOW.get())
}

struct Sim {
    _home: Home,
    cx: Context,
    conductors: Conductors,
    seq: i64,
}

fn search(more: Value) -> Search {
    let mut tree = json!({
        "search_space": {"x": {"type": "uniform", "min_value": 0, "max_value": 1}},
        "objective": {"goal": "minimize", "primary_metric": "loss"},
        "limits": {"max_total_trials": 4, "max_concurrent_trials": 2},
    });
    for (key, value) in more.as_object().unwrap() {
        tree[key] = value.clone();
    }
    let anybody = Search::anybody(&JobName::parse("s").unwrap()).unwrap();
    let output = PlannedOutput {
        place: Place::Folder { path: format!("/data/{anybody}").into() },
        mode: OutputMode::RwMount,
        uri: format!("azureml://datastores/d/paths/{anybody}/"),
        file: false,
    };
    let plan = Plan {
        command: "train ${{search_space.x}}".into(),
        outputs: [("model".to_owned(), output)].into(),
        ..Plan::default()
    };
    let (target, cluster) = ("local".to_owned(), HERE.to_owned());
    let trial = StepJob { name: Some(anybody), body: json!({}), plan, target, cluster, ..StepJob::default() };
    Search { sweep: Sweep::of(&tree).unwrap(), seed: 7, trial, earlier: Vec::new() }
}

impl Sim {
    async fn of(search: Search) -> Sim {
        Sim::led("s", "Sweep", serde_json::to_value(search).unwrap()).await
    }

    async fn led(name: &str, kind: &'static str, leader: Value) -> Sim {
        let home = Home::new();
        let store = home.open();
        let new = crate::leader(name, kind, now());
        let accepted = store.write(move |tx| {
            let seq = tx.insert_job(&new)?;
            tx.put_conductor(seq, &leader)?;
            Ok(seq)
        });
        let seq = accepted.await.unwrap();
        let cx = crate::context(store, now);
        Sim { _home: home, cx, conductors: Conductors::default(), seq }
    }

    async fn round(&mut self) {
        NOW.set(NOW.get() + 1);
        conduct(&self.cx, &mut self.conductors).await.unwrap();
    }

    async fn trials(&self) -> Vec<Child> {
        let seq = self.seq;
        self.cx.store.read(move |tx| tx.children(seq)).await.unwrap()
    }

    async fn state(&self) -> JobState {
        let seq = self.seq;
        self.cx.store.read(move |tx| tx.job_by_seq(seq)).await.unwrap().unwrap().state
    }

    /// A trial logs values.
    async fn logs(&self, number: usize, metric: &'static str, values: &[f64]) {
        let name = self.trials().await[number].job.name.to_string();
        let points: Vec<(&str, Point)> =
            values.iter().map(|value| (metric, Point { value: *value, timestamp_ms: now().0, step: 0 })).collect();
        let logged = self.cx.store.write(move |tx| {
            let run = tx.run("w", &name)?.expect("a trial has a run").seq;
            points.iter().enumerate().try_for_each(|(step, (key, point))| {
                tx.append_points(run, &[(*key, Point { step: step as i64, ..*point })])
            })
        });
        logged.await.unwrap();
    }

    async fn ends(&self, number: usize, outcome: Outcome) {
        let mut job = self.trials().await.remove(number).job;
        let ended = self.cx.store.write(move |tx| {
            if matches!(job.state, JobState::Queued { .. }) {
                job.apply(JobEvent::Placed(AttemptId::of(job.seq, 0)), now()).unwrap();
            }
            job.apply(JobEvent::Over(outcome), now()).unwrap();
            tx.put_job(&job, None, now())
        });
        ended.await.unwrap();
    }

    /// Its row: the body as JSON, and the note.
    async fn row(&self) -> (Value, String) {
        let seq = self.seq;
        let row = self.cx.store.read(move |tx| tx.jobs_by_seq(&[seq])).await.unwrap().pop().unwrap();
        (serde_json::from_str(&row.body).unwrap(), row.note)
    }

    async fn events(&self) -> String {
        let seq = self.seq;
        let events = self.cx.store.read(move |tx| tx.events(seq)).await.unwrap();
        events.into_iter().map(|event| format!("{}\n", event.text)).collect()
    }
}

#[tokio::test]
async fn trials_run_two_at_a_time_and_the_best_is_the_sweeps() {
    let mut sim = Sim::of(search(json!({}))).await;
    sim.round().await;
    let first = sim.trials().await;
    assert_eq!(first.iter().map(|trial| trial.job.name.as_str()).collect::<Vec<_>>(), ["s_0", "s_1"]);
    let seq = first[1].job.seq;
    let plan = sim.cx.store.read(move |tx| tx.plan(seq)).await.unwrap().unwrap();
    assert!(plan.command.starts_with("train 0."), "{}", plan.command);
    assert_eq!(plan.outputs["model"].uri, "azureml://datastores/d/paths/s_1/");
    for (number, values) in [(0, [0.5, 0.4]), (1, [0.3, 0.2])] {
        sim.logs(number, "loss", &values).await;
        sim.ends(number, Outcome::Completed).await;
        sim.round().await;
    }
    sim.conductors = Conductors::default();
    sim.round().await;
    assert_eq!(sim.trials().await.len(), 4, "a restart starts nothing twice");
    assert_eq!(sim.row().await.1, "2 trials are over, 2 under way; trial 1 has the best `loss`, 0.2");
    sim.ends(2, Outcome::Failed(Failure::new("x", "it broke"))).await;
    sim.ends(3, Outcome::Completed).await;
    sim.round().await;
    assert_eq!(sim.state().await.status(), "Completed");
    let (body, note) = sim.row().await;
    assert_eq!(body["properties"], json!({"best_child_run_id": "s_1", "score": "0.2"}));
    assert_eq!(note, "completed; 4 trials are over; the best is trial 1 with `loss` 0.2");
    let seq = sim.seq;
    let plan = sim.cx.store.read(move |tx| tx.plan(seq)).await.unwrap().unwrap();
    assert_eq!(plan.outputs["model"].place, Place::Folder { path: "/data/s_1".into() });
}

#[tokio::test]
async fn a_trial_that_does_badly_is_stopped_with_the_reason() {
    let policy = json!({"type": "bandit", "slack_amount": 0.1, "evaluation_interval": 2});
    let mut sim = Sim::of(search(json!({"early_termination": policy}))).await;
    sim.round().await;
    sim.logs(0, "loss", &[0.5, 0.4]).await;
    sim.logs(1, "loss", &[0.9]).await;
    sim.round().await;
    assert_eq!(sim.trials().await[1].job.state.status(), "Queued");
    sim.logs(1, "loss", &[0.8]).await;
    sim.round().await;
    let JobState::Ended { outcome: Outcome::Canceled { reason }, .. } = &sim.trials().await[1].job.state else {
        panic!()
    };
    assert_eq!(reason, "bandit: its best `loss` after 2 values is 0.8, above 0.5; the best has 0.4");
    sim.round().await;
    assert_eq!(sim.trials().await.len(), 3, "its place is taken");
}

#[tokio::test]
async fn a_trial_that_was_let_go_on_is_not_judged_again_after_a_restart() {
    let policy = json!({"type": "bandit", "slack_amount": 0.1, "evaluation_interval": 2});
    let mut sim = Sim::of(search(json!({"early_termination": policy}))).await;
    sim.round().await;
    sim.logs(0, "loss", &[0.8, 0.8]).await;
    sim.round().await;
    // By now the other is far ahead of what the first was judged by.
    sim.logs(1, "loss", &[0.2, 0.1]).await;
    sim.conductors = Conductors::default();
    sim.round().await;
    assert_eq!(sim.trials().await[0].job.state.status(), "Queued", "it was kept after 2 values");
    sim.logs(0, "loss", &[0.8, 0.8]).await;
    sim.round().await;
    assert_eq!(sim.trials().await[0].job.state.status(), "Canceled", "after 4 values it is judged anew");
}

#[tokio::test]
async fn a_metric_that_nobody_logs_is_said_once_however_many_ended_before_a_restart() {
    let mut sim = Sim::of(search(json!({}))).await;
    sim.round().await;
    for number in [0, 1] {
        sim.ends(number, Outcome::Completed).await;
    }
    sim.conductors = Conductors::default();
    sim.round().await;
    let warnings = async |sim: &Sim| sim.events().await.matches("completed without logging `loss`").count();
    assert_eq!(warnings(&sim).await, 1);
    sim.ends(2, Outcome::Completed).await;
    sim.conductors = Conductors::default();
    sim.round().await;
    assert_eq!(warnings(&sim).await, 1);
}

#[tokio::test]
async fn a_metric_that_nobody_logs_is_said_early_and_at_the_end() {
    let mut sim = Sim::of(search(json!({"limits": {"max_total_trials": 2}}))).await;
    sim.round().await;
    sim.logs(0, "lost", &[1.0]).await;
    sim.ends(0, Outcome::Completed).await;
    sim.round().await;
    let said = sim.events().await;
    assert!(
        said.contains("trial 0 completed without logging `loss`, so it cannot be compared; it logged `lost`"),
        "{said}"
    );
    sim.ends(1, Outcome::Completed).await;
    sim.round().await;
    assert_eq!(sim.state().await.status(), "Completed");
    assert!(sim.row().await.1.contains("no trial that completed logged `loss`"), "{}", sim.row().await.1);
}

/// A pipeline: `tune` is a sweep whose trials read `data`, `use` reads its best trial's model.
fn with_a_sweep() -> Graph {
    let data = |_: &str| PlannedInput::Data {
        place: Place::default(),
        mode: InputMode::RoMount,
        uri: String::new(),
        file: false,
    };
    let bound = |input: &str, step: usize| {
        BTreeMap::from([(input.to_owned(), Source { steps: vec![step], output: "model".into(), ..Source::default() })])
    };
    let (target, cluster) = ("local".to_owned(), HERE.to_owned());
    let job = |inputs: &[&str]| StepJob {
        plan: Plan { inputs: inputs.iter().map(|name| ((*name).to_owned(), data(name))).collect(), ..Plan::default() },
        body: json!({}),
        target: target.clone(),
        cluster: cluster.clone(),
        ..StepJob::default()
    };
    let mut search = search(json!({"limits": {"max_total_trials": 2}}));
    let mut first = job(&[]);
    let uri = "azureml://datastores/d/paths/made/".to_owned();
    let made = PlannedOutput { uri, ..search.trial.plan.outputs["model"].clone() };
    first.plan.outputs = [("model".to_owned(), made)].into();
    search.trial.plan.inputs.insert("data".into(), data("data"));
    let sweep = StepJob { cluster: NOWHERE.into(), body: json!({}), ..StepJob::default() };
    let step = |name: &str, bound, job| Step { name: name.into(), bound, job, ..Step::default() };
    let tune = Step { search: Some(Box::new(search)), ..step("tune", bound("data", 0), sweep) };
    let steps = vec![step("make", BTreeMap::new(), first), tune, step("use", bound("model", 1), job(&["model"]))];
    Graph { steps, ..Graph::default() }
}

fn read_by(plan: &Plan, input: &str) -> String {
    match &plan.inputs[input] {
        PlannedInput::Data { uri, .. } => uri.clone(),
        PlannedInput::Literal { value } => value.clone(),
    }
}

#[tokio::test]
async fn the_best_trial_of_a_sweep_step_feeds_the_steps_after_it() {
    let mut sim = Sim::led("p", "Pipeline", serde_json::to_value(with_a_sweep()).unwrap()).await;
    let pipeline = sim.seq;
    sim.round().await;
    sim.ends(0, Outcome::Completed).await;
    sim.round().await;
    let tune = sim.trials().await.remove(1).job;
    assert_eq!(tune.name.as_str(), "p_tune");
    sim.conductors = Conductors::default();
    sim.seq = tune.seq;
    sim.round().await;
    let trial = sim.trials().await.remove(1).job;
    assert_eq!(trial.name.as_str(), "p_tune_1");
    let plan = sim.cx.store.read(move |tx| tx.plan(trial.seq)).await.unwrap().unwrap();
    assert_eq!(read_by(&plan, "data"), "azureml://datastores/d/paths/made/", "what the first step made");
    for (number, loss) in [(0, 0.1), (1, 0.7)] {
        sim.logs(number, "loss", &[loss]).await;
        sim.ends(number, Outcome::Completed).await;
    }
    sim.round().await;
    sim.seq = pipeline;
    sim.round().await;
    let last = sim.trials().await.remove(2).job;
    let plan = sim.cx.store.read(move |tx| tx.plan(last.seq)).await.unwrap().unwrap();
    assert_eq!(read_by(&plan, "model"), "azureml://datastores/d/paths/p_tune_0/");
    sim.ends(2, Outcome::Completed).await;
    sim.round().await;
    assert_eq!(sim.state().await.status(), "Completed");
}

#[tokio::test]
async fn a_sweep_step_without_a_best_trial_fails_and_a_canceled_pipeline_takes_it_along() {
    for canceled in [false, true] {
        let mut sim = Sim::led("p", "Pipeline", serde_json::to_value(with_a_sweep()).unwrap()).await;
        let pipeline = sim.seq;
        sim.round().await;
        sim.ends(0, Outcome::Completed).await;
        sim.round().await;
        sim.round().await;
        sim.seq = sim.trials().await.remove(1).job.seq;
        if canceled {
            sim.cx.store.write(move |tx| tx.stop_job(pipeline, "asked", now())).await.unwrap();
        } else {
            sim.ends(0, Outcome::Completed).await;
            sim.ends(1, Outcome::Completed).await;
        }
        for _ in 0..4 {
            sim.round().await;
        }
        let trials = sim.trials().await;
        assert!(trials.len() == 2 && trials.iter().all(|trial| trial.job.state.is_ended()), "{trials:?}");
        sim.seq = pipeline;
        let state = sim.state().await;
        match canceled {
            true => assert_eq!(state.status(), "Canceled"),
            false => assert!(format!("{state:?}").contains("step `tune` (job `p_tune`) failed: no trial"), "{state:?}"),
        }
        assert_eq!(sim.trials().await.len(), 2, "nothing came after it");
    }
}

#[tokio::test]
async fn a_canceled_sweep_takes_its_trials_with_it() {
    let mut sim = Sim::of(search(json!({}))).await;
    sim.round().await;
    let seq = sim.seq;
    sim.cx.store.write(move |tx| tx.stop_job(seq, "asked", now())).await.unwrap();
    sim.round().await;
    sim.round().await;
    assert_eq!(sim.state().await.status(), "Canceled");
    let trials = sim.trials().await;
    assert!(trials.len() == 2 && trials.iter().all(|trial| trial.job.state.status() == "Canceled"));
}

#[tokio::test]
async fn a_sweep_without_time_left_is_canceled_and_keeps_its_best() {
    NOW.set(0);
    let limits = json!({"max_total_trials": 9, "max_concurrent_trials": 1, "timeout": 60});
    let mut sim = Sim::of(search(json!({"limits": limits}))).await;
    sim.round().await;
    sim.logs(0, "loss", &[0.5]).await;
    sim.ends(0, Outcome::Completed).await;
    sim.round().await;
    NOW.set(70_000);
    sim.round().await;
    sim.round().await;
    assert_eq!(sim.state().await.status(), "Canceled");
    assert_eq!(sim.row().await.0["properties"]["best_child_run_id"], "s_0");
}

#[tokio::test]
async fn the_values_are_the_same_whatever_happens_to_the_loop() {
    let mut histories = Vec::new();
    for seed in 0..6 {
        NOW.set(1_000);
        let mut chance = Chance::seeded(seed);
        let mut sim = Sim::of(search(json!({"limits": {"max_total_trials": 8, "max_concurrent_trials": 3}}))).await;
        for _ in 0..300 {
            match chance.below(10) {
                0..4 => sim.round().await,
                4 => sim.conductors = Conductors::default(),
                _ => {
                    let live: Vec<usize> = (sim.trials().await.iter().enumerate())
                        .filter(|(_, trial)| !trial.job.state.is_ended())
                        .map(|(at, _)| at)
                        .collect();
                    let Some(at) = live.first() else { continue };
                    sim.logs(*at, "loss", &[chance.below(100) as f64]).await;
                    sim.ends(*at, Outcome::Completed).await;
                }
            }
            let live = sim.trials().await.iter().filter(|trial| !trial.job.state.is_ended()).count();
            assert!(live <= 3);
            if sim.state().await.is_ended() {
                break;
            }
        }
        assert_eq!(sim.state().await.status(), "Completed");
        let trials: Vec<i64> = sim.trials().await.iter().map(|trial| trial.job.seq).collect();
        let rows = sim.cx.store.read(move |tx| tx.jobs_by_seq(&trials)).await.unwrap();
        let mut values: Vec<(String, Value)> = rows
            .into_iter()
            .map(|row| (row.job.name.to_string(), serde_json::from_str::<Value>(&row.body).unwrap()["tags"].clone()))
            .collect();
        values.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(values.len(), 8);
        histories.push(values);
    }
    assert!(histories.windows(2).all(|pair| pair[0] == pair[1]));
}
