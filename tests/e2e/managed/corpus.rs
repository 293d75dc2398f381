//! The cluster files that users have: each makes a cluster, which runs a job and goes again.

use crate::{corpus::corpus, harness::Home};
use std::fs;

#[test]
fn every_cluster_file_of_the_corpus_makes_a_cluster_that_runs_a_job() {
    let Some(corpus) = corpus() else { return };
    let home = Home::new();
    let files = fs::read_dir(corpus.join("cli/resources/compute")).unwrap().map(|entry| entry.unwrap().path());
    let clusters = files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("cluster-"));
    let mut seen = 0;
    for file in clusters {
        let made = home.json(&["compute", "create", "-f", &file.display().to_string()]);
        let name = made["name"].as_str().unwrap().to_owned();
        let shown = home.json(&["compute", "show", "-n", &name]);
        assert_eq!(shown["type"], "amlcompute", "{}: {shown}", file.display());
        assert!(!shown.to_string().contains("example-password"), "no password is shown: {shown}");
        let hello = home.stream("echo hello", &format!("compute: azureml:{name}"));
        assert_eq!((hello.code, hello.out.as_str()), (Some(0), "hello\n"), "{}: {}", file.display(), hello.err);
        home.ok(&["compute", "delete", "-n", &name, "--yes"]);
        seen += 1;
    }
    assert!(seen >= 7, "{seen} cluster files");
}
