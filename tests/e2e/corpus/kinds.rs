//! Sweeps, batch deployments and schedules of the corpus, on this machine: what they find, score and start.
//!
//! As with command jobs, each brings small scripts, models and data of ours, and `--set` replaces what this machine
//! cannot have. No file of these kinds may be forgotten: each runs here, or is refused here for the reason that is given.

use super::{
    Assets, MLMODEL, TWICE, copy, corpus, create, fill, index, outcome,
    runs::{Beside, IRIS, LIGHTGBM, Run, SAID, SKLEARN, SMALL, plain},
    submit,
};
use crate::{environments::shared_builds, harness::Home};
use serde_json::Value;
use std::path::Path;

/// A sweep of the corpus.
struct Sweep {
    run: Run,
    trials: usize,
    metric: &'static str,
    /// The value drawn for a trial that our script logs as the metric.
    logs: &'static str,
}

const TRIAL: &str = include_str!("scripts/trial.py");
const ON_IRIS: Beside = &[("src/main.py", TRIAL), ("iris.csv", IRIS)];
const FEW: &[&str] = &["inputs.iris_csv.path=iris.csv", "limits.max_total_trials=3", "limits.max_concurrent_trials=2"];

const SWEEPS: [Sweep; 3] = [
    Sweep {
        run: Run {
            software: SKLEARN,
            beside: &[("src/hello-sweep.py", TRIAL)],
            ..plain("cli/jobs/basics/hello-sweep.yml", &[])
        },
        trials: 4,
        metric: "random_metric",
        logs: "C",
    },
    Sweep {
        run: Run {
            software: LIGHTGBM,
            sets: FEW,
            beside: ON_IRIS,
            ..plain("cli/jobs/single-step/lightgbm/iris/job-sweep.yml", &[])
        },
        trials: 3,
        metric: "test-multi_logloss",
        logs: "learning_rate",
    },
    Sweep {
        run: Run {
            software: SKLEARN,
            sets: FEW,
            beside: ON_IRIS,
            ..plain("cli/jobs/single-step/scikit-learn/iris/job-sweep.yml", &[])
        },
        trials: 3,
        metric: "training_f1_score",
        logs: "coef0",
    },
];

/// A batch deployment of the corpus, how its endpoint is called and what the job of the call leaves.
struct Batch {
    run: Run,
    call: &'static [&'static str],
}

const NUMBERS: &[&str] = &["--input", "numbers"];
const DRIVER: &str = include_str!("scripts/batch_driver.py");
const DRIVEN: Beside = &[("code/batch_driver.py", DRIVER), ("environment/conda.yaml", SMALL)];
const DRIVEN_WITH_MODEL: Beside =
    &[("code/batch_driver.py", DRIVER), ("environment/conda.yaml", SMALL), ("model/factor.txt", "7")];
const TRAINING: Beside =
    &[("../components/prepare/src/prepare.py", SAID), ("../components/train_xgb/src/train_xgb.py", SAID)];
const HERE: &[&str] = &["compute=local"];
const STEPS_HERE: &[&str] = &["settings.default_compute=local"];
const CATALOGUED: &[&str] = &[
    "compute=local",
    "model=azureml:text-embedding-ada-002@latest",
    "code_configuration={code: code, scoring_script: batch_driver.py}",
    "environment={image: python:3.12-slim}",
];

/// A model of ours behind the files' own script, whose place a script of ours takes.
const fn scored(file: &'static str, beside: Beside, leaves: Beside) -> Batch {
    Batch {
        run: Run { software: "a conda file of ours", sets: HERE, beside, leaves, ..plain(file, &[]) },
        call: NUMBERS,
    }
}

/// A model of a public catalogue, whose place a model and a script of ours take.
const fn catalogued(file: &'static str) -> Batch {
    let leaves: Beside =
        &[("named-outputs/score/predictions.csv", "1.txt,3"), ("named-outputs/score/predictions.csv", "5.txt,15")];
    Batch {
        run: Run { software: "an image of ours", sets: CATALOGUED, beside: DRIVEN, leaves, ..plain(file, &[]) },
        call: NUMBERS,
    }
}

/// A pipeline whose steps are scripts of ours.
const fn stepped(file: &'static str, beside: Beside, leaves: Beside) -> Batch {
    Batch {
        run: Run { software: "a conda file of ours", sets: STEPS_HERE, beside, leaves, ..plain(file, &[]) },
        call: &["-f", "call.yml"],
    }
}

const BATCHES: &[Batch] = &[
    scored(
        "cli/endpoints/batch/deploy-models/custom-outputs-parquet/deployment.yml",
        DRIVEN,
        &[("named-outputs/score/1.txt.scored", "1.txt,3\n2.txt,6"), ("named-outputs/score/5.txt.scored", "5.txt,15")],
    ),
    scored(
        "cli/endpoints/batch/deploy-models/heart-classifier-mlflow/deployment-custom/deployment.yml",
        DRIVEN,
        &[("named-outputs/score/predictions.csv", "1.txt,3"), ("named-outputs/score/predictions.csv", "5.txt,15")],
    ),
    // An MLflow model brings its own software and needs no script.
    Batch {
        run: Run {
            software: "the model's",
            sets: HERE,
            leaves: &[
                ("named-outputs/score/predictions.csv", "0,2,x.csv"),
                ("named-outputs/score/predictions.csv", "1,42,x.csv"),
            ],
            ..plain("cli/endpoints/batch/deploy-models/heart-classifier-mlflow/deployment-simple/deployment.yml", &[])
        },
        call: &["--input", "table"],
    },
    scored(
        "cli/endpoints/batch/deploy-models/mnist-classifier/deployment-keras/deployment.yml",
        DRIVEN_WITH_MODEL,
        &[("named-outputs/score/predictions.csv", "1.txt,7\n2.txt,14\n5.txt,35")],
    ),
    scored(
        "cli/endpoints/batch/deploy-models/mnist-classifier/deployment-torch/deployment.yml",
        DRIVEN_WITH_MODEL,
        &[("named-outputs/score/predictions.csv", "1.txt,7\n2.txt,14\n5.txt,35")],
    ),
    scored(
        "cli/endpoints/batch/deploy-models/openai-embeddings/deployment.yml",
        DRIVEN,
        &[("named-outputs/score/2.txt.scored", "2.txt,6\n2023-03-15-preview")],
    ),
    stepped(
        "cli/endpoints/batch/deploy-pipelines/batch-scoring-with-preprocessing/deployment.yml",
        &[("components/score/src/score.py", SAID)],
        &[
            ("named-outputs/scores/score.py-0.txt", "--score_mode append"),
            ("named-outputs/scores/score.py-0.txt", "folder: MLmodel"),
            ("named-outputs/scores/score.py-0.txt", "folder: prepare.py-0.txt"),
        ],
    ),
    stepped(
        "cli/endpoints/batch/deploy-pipelines/training-with-components/deployment-onehot/deployment.yml",
        TRAINING,
        &[
            ("named-outputs/prepare_transformations/prepare.py-0.txt", "--categorical_encoding onehot"),
            ("named-outputs/prepare_transformations/prepare.py-0.txt", "folder: 1.txt 2.txt 5.txt"),
            ("named-outputs/model/train_xgb.py-0.txt", "--register_best_model True"),
            ("named-outputs/evaluation_results/train_xgb.py-0.txt", "folder: prepare.py-0.txt"),
        ],
    ),
    stepped(
        "cli/endpoints/batch/deploy-pipelines/training-with-components/deployment-ordinal/deployment.yml",
        TRAINING,
        &[
            ("named-outputs/prepare_transformations/prepare.py-0.txt", "--categorical_encoding ordinal"),
            ("named-outputs/model/train_xgb.py-0.txt", "--register_best_model False"),
        ],
    ),
    Batch {
        run: Run {
            software: SKLEARN,
            // Run again, not taken over from the job that ran.
            sets: &["settings.default_compute=local", "settings.force_rerun=true"],
            ..plain("cli/endpoints/batch/deploy-pipelines/hello-batch/deployment.yml", &["told:"])
        },
        call: &[],
    },
    Batch {
        run: Run {
            software: SKLEARN,
            sets: &["settings.default_compute=local", "settings.force_rerun=true", "job_definition=azureml:hello-ran"],
            ..plain("cli/endpoints/batch/deploy-pipelines/hello-batch/deployment-from-job.yml", &["told:"])
        },
        call: &[],
    },
    catalogued("cli/foundation-models/system/inference/automatic-speech-recognition/batch-deploy.yml"),
    catalogued("cli/foundation-models/system/inference/image-object-detection/deploy-batch.yaml"),
    catalogued("cli/foundation-models/system/inference/image-text-embeddings/deploy-batch.yaml"),
    catalogued("cli/foundation-models/system/inference/image-to-text/deploy-batch.yaml"),
    catalogued("cli/foundation-models/system/inference/mask-generation/deploy-batch.yaml"),
    catalogued("cli/foundation-models/system/inference/question-answering/batch-deploy.yml"),
    catalogued("cli/foundation-models/system/inference/summarization/batch-deploy.yml"),
    catalogued("cli/foundation-models/system/inference/text-generation/batch-deploy.yml"),
    catalogued("cli/foundation-models/system/inference/token-classification/batch-deploy.yml"),
    catalogued("cli/foundation-models/system/inference/translation/batch-deploy.yml"),
];

/// What the deployments name and the corpus defines.
const BEHIND: Assets = &[
    (
        "environment",
        "cli/endpoints/batch/deploy-pipelines/batch-scoring-with-preprocessing/environment/xgboost-sklearn-py38.yml",
        &[("conda.yml", SMALL)],
    ),
    (
        "component",
        "cli/endpoints/batch/deploy-pipelines/batch-scoring-with-preprocessing/components/prepare/prepare.yml",
        &[("src/prepare.py", SAID)],
    ),
    (
        "component",
        "cli/endpoints/batch/deploy-pipelines/hello-batch/hello-component/hello.yml",
        &[("src/hello.py", SAID)],
    ),
];

/// What they name and the user is told to register first.
const MODELS: [(&str, &str); 5] = [
    ("heart-classifier-sklpipe", "custom_model"),
    ("heart-classifier-mlflow", "mlflow_model"),
    ("heart-classifier-transforms", "custom_model"),
    ("heart-classifier", "mlflow_model"),
    ("text-embedding-ada-002", "custom_model"),
];

/// Schedules, and what their job is given to say; the one with settings gives it the job's name instead.
const SCHEDULES: [(&str, &str); 3] = [
    ("cli/schedules/cron-job-schedule.yml", "every hour"),
    ("cli/schedules/cron-with-settings-job-schedule.yml", "nothing"),
    ("cli/schedules/recurrence-job-schedule.yml", "every day"),
];

/// Files that cannot run: noun, file, a piece of what is said of it, and why.
const CANNOT: [(&str, &str, &str, &str); 2] = [
    ("schedule", "cli/assets/data/data_import_schedule_database_inline.yml", "import", IMPORT),
    ("schedule", "cli/assets/data/simple_import_schedule.yml", "import", IMPORT),
];
const IMPORT: &str = "it imports from a database of the cloud, which is no part of the product";

#[test]
fn sweeps_of_the_corpus_find_their_best_trial() {
    let Some(corpus) = corpus() else { return };
    let home = shared_builds();
    let jobs = SWEEPS.each_ref().map(|sweep| submit(&home, &corpus, &sweep.run));
    for (sweep, job) in SWEEPS.iter().zip(jobs) {
        let ended = home.ended(&job);
        assert_eq!(ended["status"], "Completed", "{}: {}", sweep.run.file, home.ok(&["job", "why", "-n", &job]));
        let trials = home.json(&["job", "list", "--parent", &job]);
        let trials: Vec<(f64, &str)> =
            trials.as_array().unwrap().iter().map(|trial| measured(&home, sweep, trial)).collect();
        assert_eq!(trials.len(), sweep.trials, "{}: {trials:?}", sweep.run.file);
        let (least, best) = trials.iter().min_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
        let told = &ended["properties"];
        assert_eq!(told["best_child_run_id"], *best, "{}: {trials:?}", sweep.run.file);
        assert_eq!(told["score"].as_str().unwrap().parse::<f64>().unwrap(), *least, "{}", sweep.run.file);
        eprintln!("ran: {} (with {})", sweep.run.file, sweep.run.software);
    }
}

/// What a trial logged, which is what was drawn for it.
fn measured<'t>(home: &Home, sweep: &Sweep, trial: &'t Value) -> (f64, &'t str) {
    let name = trial["name"].as_str().unwrap();
    let drawn: Value = serde_json::from_str(trial["tags"]["hyperparameters"].as_str().unwrap()).unwrap();
    let logged = home.json(&["job", "metrics", "-n", name, "--metric", sweep.metric])[0]["latest"].as_f64().unwrap();
    assert_eq!(drawn[sweep.logs].as_f64(), Some(logged), "{}: {trial}", sweep.run.file);
    (logged, name)
}

#[test]
fn batch_deployments_of_the_corpus_score_what_they_are_called_with() {
    let Some(corpus) = corpus() else { return };
    let home = shared_builds();
    make_models(&home, &corpus);
    let jobs: Vec<String> = BATCHES.iter().enumerate().map(|(at, batch)| call(&home, &corpus, batch, at)).collect();
    let mut wrong = Vec::new();
    for (batch, job) in BATCHES.iter().zip(&jobs) {
        match outcome(&home, &batch.run, job) {
            Ok(()) => eprintln!("ran: {} (with {})", batch.run.file, batch.run.software),
            Err(why) => wrong.push(format!("{} ({job}): {why}", batch.run.file)),
        }
    }
    assert!(wrong.is_empty(), "{} of {} failed\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
}

/// What deployments name, and what they are called with.
fn make_models(home: &Home, corpus: &Path) {
    for (path, _) in index(corpus).iter().filter(|(path, _)| path.starts_with("cli/endpoints/batch/")) {
        copy(home, corpus, path, &[]);
    }
    create(home, corpus, BEHIND);
    for (name, text) in [
        ("MLmodel", MLMODEL),
        ("code/twice.py", TWICE),
        ("data/empty", ""),
        ("conda.yaml", "dependencies:\n- python=3.12\n- pip:\n  - mlflow\n"),
        ("factor.txt", "3"),
    ] {
        home.file(&format!("model/{name}"), text);
    }
    for (name, kind) in MODELS {
        home.ok(&["model", "create", "-n", name, "--path", "model", "--type", kind, "-o", "none"]);
    }
    for number in ["1", "2", "5"] {
        home.file(&format!("numbers/{number}.txt"), number);
    }
    home.file("table/x.csv", "x\n1\n21\n");
    home.file("call.yml", "inputs:\n  input_data: {type: uri_folder, path: numbers}\n");
    let ran = copy(home, corpus, "cli/endpoints/batch/deploy-pipelines/hello-batch/pipeline-job.yml", &[]);
    home.ok(&["job", "create", "-f", &ran, "-n", "hello-ran", "--set", "compute=local", "-o", "none"]);
}

/// Deploys behind an endpoint of its own, made of the file that lies nearest, and calls it; the job of the call.
fn call(home: &Home, corpus: &Path, batch: &Batch, at: usize) -> String {
    let endpoint = format!("corpus-{at}");
    let mut above = Path::new(batch.run.file).ancestors().map(|folder| corpus.join(folder).join("endpoint.yml"));
    let described = above.find(|file| file.is_file()).map(|file| file.display().to_string());
    let mut make = vec!["batch-endpoint", "create", "-n", &endpoint, "-o", "none"];
    make.extend(described.iter().flat_map(|file| ["-f", file]));
    home.ok(&make);
    let file = copy(home, corpus, batch.run.file, batch.run.beside);
    let mut deploy = vec!["batch-deployment", "create", "-f", &file, "-e", &endpoint, "--set-default"];
    deploy.extend(batch.run.sets.iter().flat_map(|set| ["--set", set]));
    let made = home.json(&deploy);
    assert_eq!(made["provisioning_state"], "Succeeded", "{}: {made}", batch.run.file);
    let invoke = [&["batch-endpoint", "invoke", "-n", &endpoint], batch.call].concat();
    home.json(&invoke)["name"].as_str().unwrap().to_owned()
}

#[test]
fn schedules_of_the_corpus_start_their_job() {
    let Some(corpus) = corpus() else { return };
    let home = shared_builds();
    for (file, says) in SCHEDULES {
        // Words of its own: a step that has run with the same ones is not run again.
        let started = copy(&home, &corpus, "cli/schedules/simple-pipeline-job.yml", &[]);
        fill(&started, &[("azureml:cpu-cluster", "azureml:local"), ("hello world", says)]);
        let made = home.json(&["schedule", "create", "-f", &copy(&home, &corpus, file, &[])]);
        let name = made["name"].as_str().unwrap();
        let job = home.json(&["schedule", "trigger", "-n", name])["job_name"].as_str().unwrap().to_owned();
        let ended = home.ended(&job);
        assert_eq!(ended["status"], "Completed", "{file}: {}", home.ok(&["job", "why", "-n", &job]));
        assert_eq!(ended["properties"]["peregrine.schedule"], name, "{file}: {ended}");
        let said = if file.contains("with-settings") { &job } else { says };
        assert_eq!(home.log(&format!("{job}_a")).trim(), format!("hello {said}"), "{file}");
        eprintln!("ran: {file} (with {SKLEARN})");
    }
}

#[test]
fn no_sweep_batch_deployment_or_schedule_of_the_corpus_is_forgotten() {
    let Some(corpus) = corpus() else { return };
    let run = SWEEPS.iter().map(|sweep| sweep.run.file).chain(BATCHES.iter().map(|batch| batch.run.file));
    let run = run.chain(SCHEDULES.map(|(file, _)| file)).chain(CANNOT.map(|(_, file, ..)| file));
    let mut known: Vec<&str> = run.collect();
    known.sort_unstable();
    let kinds = ["sweepJob", "batchDeployment", "schedule"];
    let of_these = |kind: &str| kinds.iter().any(|known| kind.trim_start_matches('"').starts_with(known));
    let mut there: Vec<String> =
        index(&corpus).into_iter().filter(|(_, kind)| of_these(kind)).map(|(path, _)| path).collect();
    there.sort_unstable();
    assert_eq!(known, there, "each runs, or cannot and says why");
    let home = Home::new();
    for (noun, file, says, why) in CANNOT {
        let at = corpus.join(file).display().to_string();
        home.run(&[noun, "create", "-f", &at, "-o", "none"]).must(2, &[says]);
        eprintln!("not run: {file}: {why}");
    }
}
