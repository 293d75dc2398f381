//! The unmodified Azure ML SDK on a cluster: attach, a job with an output, download, detach.

use super::Lab;
use crate::{
    harness::said,
    sdk::{NEWEST, variables, venv},
    skip::skip,
};
use std::{path::Path, process::Command};

pub(super) fn the_sdk_attaches_and_runs(lab: &Lab) {
    let Some(python) = venv::with_sdk(NEWEST) else {
        return skip(&format!("azure-ai-ml {NEWEST} is not kept here and the package index cannot be reached"));
    };
    lab.home.ok(&["sdk", "login", "--role", "owner", "--everywhere"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdk/cluster.py");
    let mut driver = Command::new("timeout");
    driver.arg("200").arg(python).arg(script).arg("real").arg(lab.namespace).arg(lab.cluster.fact("PYTHON_IMAGE"));
    driver.current_dir(lab.home.path()).env_remove("PYTHONPATH").envs(variables(lab.home));
    let told = said(driver.output().unwrap());
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
    assert!(told.out.ends_with("attached, ran, downloaded, detached\n"), "{}", told.out);
}
