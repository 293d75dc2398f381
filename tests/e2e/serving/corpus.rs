//! Deployment files that users have, on this machine: created, asked, deleted, by the command line.
//!
//! The corpus holds the files but not the models and scripts they name, so each brings small ones of ours. What a file
//! names and this machine cannot have is replaced by `--set`, as a user would do it; the rest is deployed as it stands.
//! No file may be forgotten: each is deployed here, or is on the list of those that cannot be, with the reason.

use crate::{
    corpus::{MLMODEL, TWICE, copy, corpus, fill, index},
    environments::shared_builds,
    harness::{Home, some_of},
};
use serde_json::{Value, json};
use std::path::Path;

type Beside = &'static [(&'static str, &'static str)];

/// One deployment of the corpus.
struct Sample {
    file: &'static str,
    /// Blanks that the file leaves to its user.
    blanks: &'static [(&'static str, &'static str)],
    sets: &'static [&'static str],
    beside: Beside,
    request: &'static str,
    /// A piece of the answer.
    answer: &'static str,
}

const SCORE: &str = include_str!("scripts/weights_score.py");
const RAW: &str = include_str!("scripts/raw_score.py");
const SCHEMA: &str = include_str!("scripts/schema_score.py");
const SERVER: &str = "name: ours\ndependencies:\n- python=3.12\n- pip:\n  - azureml-inference-server-http\n";
/// What the files beside want of conda, of pip: not every machine has conda.
const SCHEMA_ENV: &str = "name: ours\ndependencies:\n- python=3.12\n- pip:\n  - numpy\n  - azureml-inference-server-http\n  - inference-schema\n";
const NUMBERS: &str = "{\"data\": [1, 2, 3]}";
const TABLE: &str = "{\"input_data\": {\"columns\": [\"x\"], \"index\": [0, 1], \"data\": [[1], [2]]}}";

const MODEL_1: Beside = &[
    ("../model-1/model/factor.txt", "3"),
    ("../model-1/onlinescoring/score.py", SCORE),
    ("../model-1/environment/conda.yaml", SERVER),
];
const MODEL_2: Beside = &[
    ("../model-2/model/factor.txt", "5"),
    ("../model-2/onlinescoring/score.py", SCORE),
    ("../model-2/environment/conda.yaml", SERVER),
];
const MLFLOW: Beside = &[
    ("sklearn-diabetes/model/MLmodel", MLMODEL),
    ("sklearn-diabetes/model/code/twice.py", TWICE),
    ("sklearn-diabetes/model/data/empty", ""),
];

const SAMPLES: &[Sample] = &[
    Sample {
        file: "cli/endpoints/online/kubernetes/kubernetes-blue-deployment.yml",
        blanks: &[],
        sets: &[],
        beside: MODEL_1,
        request: NUMBERS,
        answer: "[3.0, 6.0, 9.0]",
    },
    Sample {
        file: "cli/endpoints/online/kubernetes/kubernetes-green-deployment.yml",
        blanks: &[],
        sets: &[],
        beside: MODEL_2,
        request: NUMBERS,
        answer: "[5.0, 10.0, 15.0]",
    },
    Sample {
        file: "cli/endpoints/online/managed/minimal/single-model-registered/deployment.yml",
        blanks: &[("{{ENDPOINT_NAME}}", "my-endpoint"), ("{{MODEL_VERSION}}", "1")],
        sets: &[],
        beside: &[("../../../model-1/onlinescoring/score.py", SCORE), ("env.yml", SERVER)],
        request: NUMBERS,
        answer: "[3.0, 6.0, 9.0]",
    },
    Sample {
        file: "cli/endpoints/online/managed/openapi/deployment.yml",
        blanks: &[("<my-endpoint-name>", "my-endpoint"), ("<CODE_DIR>", "code-numpy")],
        sets: &[],
        beside: &[("../../model-1/model/factor.txt", "3"), ("code-numpy/score.py", SCHEMA), ("env.yml", SCHEMA_ENV)],
        request: "{\"data\": [[1.0, 2.0]]}",
        answer: "[[2.0, 4.0]]",
    },
    Sample {
        file: "cli/endpoints/online/managed/binary-payloads/binary-payloads-deployment.yml",
        blanks: &[("<ENDPOINT_NAME>", "my-endpoint"), ("<SCORING_SCRIPT>", "single-file-to-file-score.py")],
        sets: &[],
        beside: &[("code/single-file-to-file-score.py", RAW)],
        request: "not JSON",
        answer: "\"bytes\": 8",
    },
    Sample {
        file: "cli/endpoints/online/managed/inference-schema/deployment-numpy.yml",
        blanks: &[("<endpoint_name>", "my-endpoint")],
        sets: &[],
        beside: &[("code/score-numpy.py", SCHEMA), ("env.yml", SCHEMA_ENV)],
        request: "{\"data\": [[1.0, 2.0]]}",
        answer: "[[2.0, 4.0]]",
    },
    Sample {
        file: "cli/endpoints/online/managed/inference-schema/deployment-pandas.yml",
        blanks: &[("<endpoint_name>", "my-endpoint")],
        sets: &[],
        beside: &[("code/score-pandas.py", SCHEMA), ("env.yml", SCHEMA_ENV)],
        request: "{\"data\": [[1.0, 2.0]]}",
        answer: "[[2.0, 4.0]]",
    },
    Sample {
        file: "cli/endpoints/online/managed/inference-schema/deployment-standard.yml",
        blanks: &[("<endpoint_name>", "my-endpoint")],
        sets: &[],
        beside: &[("code/score-standard.py", SCORE), ("env.yml", SCHEMA_ENV)],
        request: NUMBERS,
        answer: "[7.0, 14.0, 21.0]",
    },
    Sample {
        file: "cli/endpoints/online/ncd/sklearn-deployment.yaml",
        blanks: &[],
        sets: &[],
        beside: MLFLOW,
        request: TABLE,
        answer: "[2, 4]",
    },
    Sample {
        file: "cli/endpoints/online/ncd/sklearn-deployment-with-script.yaml",
        blanks: &[],
        sets: &[],
        beside: &[
            ("sklearn-diabetes/model/factor.txt", "3"),
            ("sklearn-diabetes/src/score.py", SCORE),
            ("sklearn-diabetes/environment/conda.yaml", SERVER),
        ],
        request: NUMBERS,
        answer: "[3.0, 6.0, 9.0]",
    },
    Sample {
        file: "cli/endpoints/online/ncd/lightgbm-deployment.yaml",
        blanks: &[],
        sets: &[],
        beside: &[
            ("lightgbm-iris/model/MLmodel", MLMODEL),
            ("lightgbm-iris/model/code/twice.py", TWICE),
            ("lightgbm-iris/model/data/empty", ""),
        ],
        request: TABLE,
        answer: "[2, 4]",
    },
    Sample {
        file: "cli/endpoints/online/deploy-with-packages/mlflow-model/model-deployment.yml",
        blanks: &[],
        sets: &["endpoint_name=my-endpoint"],
        beside: &[],
        request: TABLE,
        answer: "[2, 4]",
    },
];

/// Files that cannot be deployed here, and why.
const CANNOT: &[(&str, &str)] = &[
    ("cli/endpoints/online/custom-container/", "an image that its user builds and pushes to a registry"),
    ("cli/endpoints/online/managed/vnet/", "an image that its user builds and pushes to a registry"),
    ("cli/endpoints/online/deploy-with-packages/custom-model/deployment.yml", "an image made by a model package"),
    ("cli/endpoints/online/deploy-with-packages/mlflow-model/deployment.yml", "an image made by a model package"),
    (
        "cli/endpoints/online/deploy-with-packages/custom-model/model-deployment.yml",
        "an `_` in its name, which Azure refuses too",
    ),
    ("cli/foundation-models/", "a model of a public catalogue"),
    ("cli/generative-ai/", "a service of the cloud"),
];

#[test]
fn deployments_of_the_corpus_serve_on_this_machine() {
    let Some(corpus) = corpus() else { return };
    let home = shared_builds();
    let file = copy(&home, &corpus, "cli/endpoints/online/kubernetes/kubernetes-endpoint.yml", &[]);
    home.ok(&["online-endpoint", "create", "-f", &file, "--set", "compute=azureml:local", "-o", "none"]);
    register(&home, &corpus);
    let mut wrong = Vec::new();
    let samples = some_of(SAMPLES);
    for sample in &samples {
        match deploy(&home, &corpus, sample) {
            Ok(()) => eprintln!("served: {}", sample.file),
            Err(why) => wrong.push(format!("{}: {why}", sample.file)),
        }
    }
    assert!(wrong.is_empty(), "{} of {} failed\n{}", wrong.len(), samples.len(), wrong.join("\n"));
}

#[test]
fn no_deployment_of_the_corpus_is_forgotten() {
    let Some(corpus) = corpus() else { return };
    let all = index(&corpus).into_iter().filter(|(_, kind)| kind.starts_with("onlineDeployment")).map(|(path, _)| path);
    let known = |path: &String| {
        SAMPLES.iter().any(|sample| sample.file == path) || CANNOT.iter().any(|(prefix, _)| path.starts_with(prefix))
    };
    let forgotten: Vec<String> = all.filter(|path| !known(path)).collect();
    assert!(forgotten.is_empty(), "neither deployed nor explained: {forgotten:#?}");
    for (prefix, why) in CANNOT {
        eprintln!("not deployed: {prefix} needs {why}");
    }
}

/// Models that the files refer to by name.
fn register(home: &Home, corpus: &Path) {
    for (file, beside) in [
        ("cli/endpoints/online/managed/minimal/single-model-registered/model.yml", "../../../model-1/model/factor.txt"),
        ("cli/endpoints/online/managed/inference-schema/model.yml", "models/factor.txt"),
    ] {
        let number = if beside.starts_with("..") { "3" } else { "7" };
        let copied = copy(home, corpus, file, &[(beside, number)]);
        fill(&copied, &[("{{MODEL_VERSION}}", "1")]);
        home.ok(&["model", "create", "-f", &copied, "-o", "none"]);
    }
    let folder = "cli/endpoints/online/deploy-with-packages/mlflow-model/model";
    copy(
        home,
        corpus,
        &format!("{folder}/conda.yaml"),
        &[("MLmodel", MLMODEL), ("code/twice.py", TWICE), ("data/empty", "")],
    );
    let path = home.path().join("corpus").join(folder).display().to_string();
    home.ok(&[
        "model",
        "create",
        "-n",
        "heart-classifier-mlflow",
        "--path",
        &path,
        "--type",
        "mlflow_model",
        "-o",
        "none",
    ]);
}

fn deploy(home: &Home, corpus: &Path, sample: &Sample) -> Result<(), String> {
    let file = copy(home, corpus, sample.file, sample.beside);
    // What lies beside the file in the corpus belongs to it: conda files.
    let beside = corpus.join(sample.file).parent().unwrap().display().to_string();
    for (path, kind) in index(corpus) {
        if kind.starts_with("conda")
            && corpus.join(&path).starts_with(&beside)
            && !home.path().join("corpus").join(&path).exists()
        {
            copy(home, corpus, &path, &[]);
        }
    }
    fill(&file, sample.blanks);
    let mut args = vec!["online-deployment", "create", "-f", &file, "-o", "json"];
    args.extend(sample.sets.iter().flat_map(|set| ["--set", set]));
    let made = home.run(&args);
    if made.code != Some(0) {
        return Err(format!("it did not come up\n{}", made.err));
    }
    let made: Value = serde_json::from_str(&made.out).unwrap();
    let name = made["name"].as_str().unwrap();
    home.file("request", sample.request);
    let said = home.run(&["online-endpoint", "invoke", "-n", "my-endpoint", "-d", name, "-r", "request"]);
    let log = ["online-deployment", "get-logs", "-n", name, "-e", "my-endpoint"];
    let answered = said.code == Some(0) && said.out.contains(sample.answer);
    let log = if answered { String::new() } else { home.run(&log).out };
    let gone = home.run(&["online-deployment", "delete", "-n", name, "-e", "my-endpoint", "--yes"]);
    match (answered, gone.code, &made["provisioning_state"]) {
        (true, Some(0), state) if *state == json!("Succeeded") => Ok(()),
        (_, _, state) => Err(format!("{state}, said {}\n{}\n{}\n{log}", said.out, said.err, gone.err)),
    }
}
