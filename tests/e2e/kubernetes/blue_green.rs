//! The blue and the green deployment that Azure's examples have for Kubernetes, in pods: by the command line and by the SDK.
//!
//! The corpus holds the files but not the models and scripts they name, so each brings small ones of ours. The node reaches
//! no package index: in place of their conda files stands an environment whose image has the inference server, put there
//! by `--set`, as is done in any cluster without a way out. All else is deployed as it stands.

use super::{
    Lab,
    serving::{answer, load, pods},
};
use crate::{
    corpus::{copy, corpus},
    harness::said,
    sdk::{NEWEST, variables, venv},
    serving::blue_green::{FACTOR, UNLIKELY},
    skip::skip,
};
use serde_json::json;
use std::{path::Path, process::Command};

const FILES: &str = "cli/endpoints/online/kubernetes/kubernetes-";

/// The files of the endpoint, of blue and of green, and an environment that the cluster has; `None` without the corpus.
fn files(lab: &Lab) -> Option<[String; 3]> {
    let corpus = corpus()?;
    let image = lab.cluster.fact("PYTHON_IMAGE");
    lab.home.ok(&["environment", "create", "-n", "inference", "-v", "1", "--image", image, "-o", "none"]);
    lab.home.file("request.json", "{\"data\": [1, 2, 3]}");
    let file = |name: &str, beside: &[(&str, &str)]| copy(lab.home, &corpus, &format!("{FILES}{name}.yml"), beside);
    let beside = |model: u8, factor| {
        let of = |file: &str| format!("../model-{model}/{file}");
        [(of("model/factor.txt"), factor), (of("onlinescoring/score.py"), FACTOR)]
    };
    let deployment = |name: &str, beside: [(String, &str); 2]| {
        file(&format!("{name}-deployment"), &beside.each_ref().map(|(path, text)| (path.as_str(), *text)))
    };
    Some([file("endpoint", &[]), deployment("blue", beside(1, "3")), deployment("green", beside(2, "5"))])
}

pub(super) fn the_corpus_by_the_command_line(lab: &Lab) {
    let Some([endpoint, blue, green]) = files(lab) else { return };
    let (home, name) = (lab.home, "my-endpoint");
    home.ok(&["online-endpoint", "create", "-f", &endpoint, "--set", "compute=azureml:lab", "-o", "none"]);
    let deploy = |file: &str, more: &[&str]| {
        let create = ["online-deployment", "create", "-f", file, "--set", "environment=azureml:inference:1"];
        home.ok(&[&create[..], &["-o", "none"], more].concat());
    };
    let update = |flag: &str, shares: &str| {
        home.ok(&["online-endpoint", "update", "-n", name, flag, shares, "-o", "none"]);
    };
    let (threes, fives) = (json!({"scores": [3.0, 6.0, 9.0]}), json!({"scores": [5.0, 10.0, 15.0]}));
    // A fifth of a core, which the file allows, takes ten seconds to load the inference server.
    deploy(&blue, &["--set", "resources.limits.cpu=1", "--all-traffic"]);
    assert_eq!(answer(home, name, &[]), threes);
    home.ok(&["online-deployment", "update", "-n", "blue", "-e", name, "--set", "instance_count=2", "-o", "none"]);
    lab.until("two pods", || pods(lab, name).len() == 2);

    deploy(&green, &[]);
    assert_eq!(answer(home, name, &[]), threes, "a new deployment has no traffic of its own");
    assert_eq!(answer(home, name, &["-d", "green"]), fives);
    update("--traffic", "blue=90 green=10");
    let by = load(home, name, "30", "8s", || {});
    let [blue, green] = ["blue", "green"].map(|name| by["deployments"][name].as_f64().unwrap_or(0.0));
    let n = blue + green;
    let chi = (blue - 0.9 * n).powi(2) / (0.9 * n) + (green - 0.1 * n).powi(2) / (0.1 * n);
    assert!(by["failed"] == 0 && n >= 240.0 && chi < UNLIKELY, "90/10 became {by}: chi-square {chi:.1}");

    update("--traffic", "blue=0 green=100");
    lab.until("the cluster's router to know", || (0..9).all(|_| answer(home, name, &[]) == fives));
    let by = load(home, name, "20", "2s", || {});
    assert_eq!((&by["failed"], &by["deployments"]), (&json!(0), &json!({"green": 40})));
    update("--mirror-traffic", "blue=50");
    home.file("request.json", "{\"data\": [4]}");
    lab.until("a copy of a request to reach `blue`", || {
        assert_eq!(answer(home, name, &[]), json!({"scores": [20.0]}), "copies change nothing for callers");
        let log = ["online-deployment", "get-logs", "-n", "blue", "-e", name, "--lines", "5000"];
        home.ok(&log).contains("asked for {\"data\": [4]}")
    });
    update("--mirror-traffic", "blue=0");
    home.ok(&["online-deployment", "delete", "-n", "blue", "-e", name, "--yes"]);
    assert_eq!(answer(home, name, &[]), json!({"scores": [20.0]}));
    home.ok(&["online-endpoint", "delete", "-n", name, "--yes"]);
    lab.until("the replicas' pods to be gone", || pods(lab, name).is_empty());
}

pub(super) fn the_corpus_by_the_sdk(lab: &Lab) {
    let Some(python) = venv::with_sdk(NEWEST) else {
        return skip(&format!("azure-ai-ml {NEWEST} is not kept here and the package index cannot be reached"));
    };
    let Some(files) = files(lab) else { return };
    lab.home.ok(&["sdk", "login", "--role", "owner", "--everywhere"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdk/blue_green.py");
    let mut driver = Command::new("timeout");
    driver.arg("300").arg(python).arg(script).args(["lab", "azureml:inference:1"]).args(files);
    driver.current_dir(lab.home.path()).env_remove("PYTHONPATH").envs(variables(lab.home));
    let told = said(driver.output().unwrap());
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
    assert!(told.out.ends_with("blue became green\n"), "{}", told.out);
    lab.until("the replicas' pods to be gone", || pods(lab, "my-endpoint").is_empty());
}
