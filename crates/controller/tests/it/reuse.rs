//! Reuse led by the real loop over a real store and real files: a job stands for another only where running it again
//! would give the same, and where that is still there.

use super::Home;
use controller::{Conductors, Context, conduct};
use domain::{
    AttemptId, JobEvent, JobState, Outcome, Place, Plan, PlannedInput, PlannedOutput, Timestamp,
    assignment::{InputMode, OutputMode},
    pipeline::{Graph, Step, StepJob},
};
use serde_json::json;
use std::{cell::Cell, fs, path::PathBuf, time::Duration};
use store::HERE;
use tempfile::TempDir;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_000) };
}

fn now() -> Timestamp {
    NOW.set(NOW.get() + 1);
    Timestamp(NOW.get())
}

/// What the one step of a pipeline is asked.
#[derive(Clone, Default)]
struct Asked {
    word: &'static str,
    /// Where its output is to lie; a folder of its own when absent.
    path: Option<&'static str>,
    asset: Option<&'static str>,
    input: Option<Place>,
    never: bool,
}

struct Shop {
    _home: Home,
    files: TempDir,
    cx: Context,
}

/// The name of the job that stood in, or why none did.
type Told = Result<String, String>;

impl Shop {
    fn new() -> Shop {
        let home = Home::new();
        let cx = crate::context(home.open(), now);
        Shop { _home: home, files: tempfile::tempdir().unwrap(), cx }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn step(&self, job: &str, asked: &Asked) -> StepJob {
        let folder = asked.path.map_or_else(|| self.at(&format!("azureml/{job}/o")), |path| self.at(path));
        let output = PlannedOutput {
            place: Place::Folder { path: folder },
            mode: OutputMode::RwMount,
            uri: format!("azureml://datastores/d/paths/{}/", asked.path.unwrap_or(job)),
            file: false,
        };
        let mut inputs: Vec<(String, PlannedInput)> =
            vec![("word".to_owned(), PlannedInput::Literal { value: asked.word.to_owned() })];
        inputs.extend(asked.input.clone().map(|place| {
            ("data".to_owned(), PlannedInput::Data { place, mode: InputMode::RoMount, uri: String::new(), file: false })
        }));
        let plan = Plan {
            command: "echo ${{inputs.word}}".into(),
            inputs: inputs.into_iter().collect(),
            outputs: [("o".to_owned(), output)].into(),
            artifacts: Place::Folder { path: self.at(&format!("artifacts/{job}")) },
            ..Plan::default()
        };
        let mut body = json!({"properties": {}, "inputs": {}, "outputs": {"o": {"jobOutputType": "uri_folder"}}});
        for (key, value) in [("uri", asked.path), ("assetName", asked.asset)] {
            if let Some(value) = value {
                body["outputs"]["o"][key] = json!(value);
            }
        }
        let (target, cluster) = ("local".to_owned(), HERE.to_owned());
        StepJob { body, plan, target, cluster, reuse: !asked.never, ..StepJob::default() }
    }

    /// A pipeline of one step, run to its end; the step writes its word into its output.
    async fn run(&self, name: &str, asked: &Asked) -> Told {
        let step = Step { name: "s".into(), job: self.step(&format!("{name}_s"), asked), ..Step::default() };
        let graph = Graph { steps: vec![step], ..Graph::default() };
        let new = crate::leader(name, "Pipeline", now());
        let accepted = self.cx.store.write(move |tx| {
            let seq = tx.insert_job(&new)?;
            tx.put_conductor(seq, &graph)?;
            Ok(seq)
        });
        let seq = accepted.await.unwrap();
        let mut conductors = Conductors::default();
        conduct(&self.cx, &mut conductors).await.unwrap();
        let child = self.cx.store.read(move |tx| tx.children(seq)).await.unwrap().remove(0);
        if !child.job.state.is_ended() {
            self.work(child.job.clone(), asked.word).await;
        }
        conduct(&self.cx, &mut conductors).await.unwrap();
        let parent = self.cx.store.read(move |tx| tx.job_by_seq(seq)).await.unwrap().unwrap();
        assert_eq!(parent.state.status(), "Completed", "{name}");
        let of = child.job.seq;
        let story = self.cx.store.read(move |tx| tx.events(of)).await.unwrap();
        let why = story.into_iter().find(|event| event.kind == "reuse").map(|event| event.text);
        child.reused.ok_or(why.unwrap_or_default())
    }

    async fn work(&self, mut job: domain::Job, word: &'static str) {
        let seq = job.seq;
        let plan = self.cx.store.read(move |tx| tx.plan(seq)).await.unwrap().unwrap();
        let Place::Folder { path: logs } = &plan.artifacts else { panic!() };
        fs::create_dir_all(logs.join("user_logs")).unwrap();
        let Place::Folder { path: output } = &plan.outputs["o"].place else { panic!() };
        fs::create_dir_all(output).unwrap();
        fs::write(output.join("word.txt"), word).unwrap();
        let ended = self.cx.store.write(move |tx| {
            if matches!(job.state, JobState::Queued { .. }) {
                job.apply(JobEvent::Placed(AttemptId::of(job.seq, 0)), now()).unwrap();
            }
            job.apply(JobEvent::Over(Outcome::Completed), now()).unwrap();
            tx.put_job(&job, None, now())
        });
        ended.await.unwrap();
    }
}

fn says(told: Told, piece: &str) {
    let why = told.expect_err("a job stood in");
    assert!(why.contains(piece), "no `{piece}` in: {why}");
}

#[tokio::test]
async fn what_is_the_same_is_not_run_again() {
    let shop = Shop::new();
    let asked = Asked { word: "one", ..Asked::default() };
    says(shop.run("a", &asked).await, "no earlier job of this step is on record");
    assert_eq!(shop.run("b", &asked).await, Ok("a_s".to_owned()));
    assert_eq!(shop.run("c", &asked).await, Ok("a_s".to_owned()), "of those that ran");
    says(shop.run("d", &Asked { word: "two", ..asked }).await, "`inputs.word`");
}

#[tokio::test]
async fn a_step_that_is_kept_from_reuse_takes_from_nobody_and_gives_to_nobody() {
    let shop = Shop::new();
    let asked = Asked { word: "one", ..Asked::default() };
    let kept = Asked { never: true, ..asked.clone() };
    says(shop.run("a", &kept).await, "");
    says(shop.run("b", &asked).await, "no earlier job of this step is on record");
    says(shop.run("c", &kept).await, "");
    assert_eq!(shop.run("d", &asked).await, Ok("b_s".to_owned()));
}

#[tokio::test]
async fn files_that_changed_under_a_path_are_another_input() {
    let shop = Shop::new();
    let data = shop.at("data");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("x"), "1").unwrap();
    let asked = Asked { word: "one", input: Some(Place::Folder { path: data.clone() }), ..Asked::default() };
    shop.run("a", &asked).await.unwrap_err();
    assert_eq!(shop.run("b", &asked).await, Ok("a_s".to_owned()));
    // As long as it was; only the time of change tells.
    let file = fs::File::options().write(true).open(data.join("x")).unwrap();
    let was = file.metadata().unwrap().modified().unwrap();
    fs::write(data.join("x"), "2").unwrap();
    file.set_modified(was + Duration::from_millis(1)).unwrap();
    says(shop.run("c", &asked).await, "it differs from job `a_s` in `inputs.data (its files)`");
    assert_eq!(shop.run("d", &asked).await, Ok("c_s".to_owned()));
}

#[tokio::test]
async fn inputs_that_nobody_can_look_at_are_read_anew_with_the_reason() {
    let shop = Shop::new();
    let far = Place::Object { url: "s3://b/k".into(), datastore: "far".into(), options: Default::default() };
    let asked = Asked { word: "one", input: Some(far), ..Asked::default() };
    for name in ["a", "b"] {
        says(shop.run(name, &asked).await, "input `data` have changed cannot be told: it lies in datastore `far`");
    }
}

#[tokio::test]
async fn another_place_or_name_for_an_output_is_another_job() {
    let shop = Shop::new();
    let asked = Asked { word: "one", path: Some("p"), ..Asked::default() };
    shop.run("a", &asked).await.unwrap_err();
    says(shop.run("b", &Asked { path: Some("q"), ..asked.clone() }).await, "`outputs.o.path`");
    assert_eq!(fs::read_to_string(shop.at("q/word.txt")).unwrap(), "one");
    says(shop.run("c", &Asked { asset: Some("words"), ..asked.clone() }).await, "`outputs.o.name`");
}

#[tokio::test]
async fn a_job_whose_output_another_wrote_over_stands_for_nobody() {
    let shop = Shop::new();
    let one = Asked { word: "one", path: Some("p"), ..Asked::default() };
    shop.run("a", &one).await.unwrap_err();
    assert_eq!(shop.run("b", &one).await, Ok("a_s".to_owned()));
    shop.run("c", &Asked { word: "three", ..one.clone() }).await.unwrap_err();
    says(shop.run("d", &one).await, "job `a_s` is the same, and its output `o` was changed since");
    assert_eq!(fs::read_to_string(shop.at("p/word.txt")).unwrap(), "one");
}

#[tokio::test]
async fn a_job_whose_output_or_logs_are_gone_stands_for_nobody() {
    let shop = Shop::new();
    let asked = Asked { word: "one", ..Asked::default() };
    shop.run("a", &asked).await.unwrap_err();
    fs::remove_dir_all(shop.at("azureml/a_s/o")).unwrap();
    says(shop.run("b", &asked).await, "its output `o` is not there any more");
    fs::remove_file(shop.at("azureml/b_s/o/word.txt")).unwrap();
    says(shop.run("c", &asked).await, "job `b_s` is the same, and its output `o` was changed since");
    fs::remove_dir_all(shop.at("artifacts/c_s")).unwrap();
    says(shop.run("d", &asked).await, "its logs are not there any more");
    assert_eq!(shop.run("e", &asked).await, Ok("d_s".to_owned()));
}
