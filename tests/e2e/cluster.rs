//! A real Kubernetes for a test: the cluster that `cargo xtask cluster up` has started, and a namespace of the test's own.
//!
//! Other test programs take this file in with `#[path]`, together with `skip.rs`. Invariant: a cluster that should be
//! there and does not answer is a failure, never a skip.

use crate::skip::skip;
use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

static NAMESPACES: AtomicUsize = AtomicUsize::new(0);

/// How long a pod may take to get somewhere; the machine has two cores and many tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// A namespace in a running cluster. Dropping it deletes the namespace; the cluster is for all tests.
pub(crate) struct Cluster {
    facts: BTreeMap<String, String>,
    namespace: String,
}

impl Cluster {
    /// The cluster of `PEREGRINE_TEST_CLUSTER` (its file of variables), or the one of the name `test`. Without one, says so.
    pub(crate) fn lease() -> Option<Cluster> {
        let home = PathBuf::from(std::env::var_os("HOME")?).join(".cache/peregrine/cluster/test/env");
        let file = std::env::var_os("PEREGRINE_TEST_CLUSTER").map_or(home, PathBuf::from);
        let Ok(text) = fs::read_to_string(&file) else {
            skip("no Kubernetes (none is up: `cargo xtask cluster up`)");
            return None;
        };
        let facts = text.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned()));
        let number = NAMESPACES.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("test-{}-{number}", std::process::id());
        let cluster = Cluster { facts: facts.collect(), namespace };
        cluster.until("the API server's answer", || cluster.kubectl(&["get", "--raw", "/readyz"]).status.success());
        cluster.ok(&["create", "namespace", &cluster.namespace]);
        // Pods of a new namespace are refused until its service account is there.
        cluster.until("the namespace", || cluster.kubectl(&["get", "serviceaccount", "default"]).status.success());
        Some(cluster)
    }

    /// A value of the cluster's file of variables: `KUBECONFIG`, `HOST_ADDRESS`, `PYTHON_IMAGE`, ...
    pub(crate) fn fact(&self, name: &str) -> &str {
        self.facts.get(name).unwrap_or_else(|| panic!("the cluster has no `{name}`: {:?}", self.facts))
    }

    /// Runs kubectl as the administrator, in the test's namespace.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Output {
        let mut kubectl = Command::new(self.fact("KUBECTL"));
        kubectl.args(["--kubeconfig", self.fact("KUBECONFIG"), "--namespace", &self.namespace]).args(args);
        kubectl.output().unwrap()
    }

    /// The same, where it must succeed; what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.kubectl(args);
        assert!(output.status.success(), "kubectl {args:?}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Applies a manifest in which `$NAME` stands for a fact.
    pub(crate) fn apply(&self, manifest: &str) {
        let mut text = manifest.to_owned();
        for (name, value) in &self.facts {
            text = text.replace(&format!("${name}"), value);
        }
        let file = std::env::temp_dir().join(format!("{}.yaml", self.namespace));
        fs::write(&file, text).unwrap();
        self.ok(&["apply", "-f", file.to_str().unwrap()]);
        fs::remove_file(&file).unwrap();
    }

    /// One field of an object by its JSONPath; empty where it is not set.
    pub(crate) fn field(&self, object: &str, path: &str) -> String {
        self.ok(&["get", object, "-o", &format!("jsonpath={{{path}}}")])
    }

    /// Waits until a field has this value.
    pub(crate) fn until_field(&self, object: &str, path: &str, value: &str) {
        self.until(&format!("{path} of {object} to be `{value}`"), || self.field(object, path) == value);
    }

    /// Kills a part of the cluster (`apiserver`, `kubelet`, ...), or starts it again.
    pub(crate) fn part(&self, verb: &str, part: &str) {
        let mut xtask = Command::new(self.fact("XTASK"));
        let done = xtask.args(["cluster", verb, part, "--name", self.fact("CLUSTER_NAME")]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    pub(crate) fn until(&self, what: &str, mut so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !so() {
            if began.elapsed() > PATIENCE {
                let events = self.kubectl(&["get", "events,pods", "-o", "wide"]);
                panic!("waited in vain for {what}\n{}", String::from_utf8_lossy(&events.stdout));
            }
            // Every look costs the processor that is waited for.
            std::thread::sleep((began.elapsed() / 10).clamp(Duration::from_millis(100), Duration::from_millis(500)));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kubectl(&["delete", "namespace", &self.namespace, "--wait=false"]);
    }
}
