//! Jobs with an image, in a real podman. Skipped aloud where it cannot be had (not root, no apt).

use crate::harness::{Home, said};
use std::{fs, path::PathBuf, process::Command, process::Stdio};

const IMAGE: &str = "localhost/peregrine-test:1";

/// The variables under which podman works, with the test's image in its store.
fn podman() -> Option<Vec<(String, String)>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/e2e/podman.sh");
    let folder = PathBuf::from(std::env::var_os("HOME")?).join(".cache/peregrine/tools/podman-bookworm-1");
    let set_up = Command::new("sh").arg(script).arg(&folder).output().ok()?;
    if !set_up.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&set_up.stdout).into_owned();
    let variables: Vec<(String, String)> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    let run = |args: &[&str]| Command::new("podman").args(args).envs(variables.clone()).stdin(Stdio::null()).output();
    let there = run(&["image", "exists", IMAGE]).is_ok_and(|done| done.status.success());
    let tar = folder.join("image.tar").display().to_string();
    let imported = there || run(&["import", &tar, IMAGE]).is_ok_and(|done| done.status.success());
    let works = imported
        && run(&["run", "--rm", "--network=host", IMAGE, "/bin/echo", "ok"]).is_ok_and(|done| done.status.success());
    works.then_some(variables)
}

#[test]
fn an_image_job_runs_in_a_container_and_a_canceled_one_leaves_none() {
    let Some(variables) = podman() else {
        crate::skip::skip("no podman can be had here (needs root and apt-get), so no container was run");
        return;
    };
    let home = Home::new();
    let run = |args: &[&str]| said(home.command(args).envs(variables.clone()).output().unwrap());
    home.file(
        "job.yml",
        "command: cat /etc/marker && id -u && echo ${{inputs.word}} > ${{outputs.made}}/y.txt && echo z > outputs/z.txt && \
         echo ${{inputs.word}} > ${{outputs.one}}.new && mv ${{outputs.one}}.new ${{outputs.one}} && echo two > ${{outputs.two}}\n\
         environment: {image: localhost/peregrine-test:1}\ninputs: {word: hello}\n\
         outputs: {made: {}, one: {type: uri_file}, two: {type: uri_file}}\n",
    );
    let done = run(&["job", "create", "-f", "job.yml", "-n", "inside", "--stream"]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert!(done.out.contains("from the image"), "{}", done.out);
    assert_eq!(home.job("inside")["peregrine"]["isolation"], "container");
    assert!(home.artifacts("inside").join("outputs/z.txt").exists());
    for (output, text) in [("one", "hello\n"), ("two", "two\n")] {
        assert_eq!(run(&["job", "download", "-n", "inside", "--output-name", output, "-p", output]).code, Some(0));
        let mut at = home.path().join(output);
        while at.is_dir() {
            at = fs::read_dir(&at).unwrap().next().expect("a file was downloaded").unwrap().path();
        }
        assert_eq!(fs::read_to_string(at).unwrap(), text, "output `{output}` is one file");
    }

    home.file("long.yml", "command: sleep 600\nenvironment: {image: localhost/peregrine-test:1}\n");
    run(&["job", "create", "-f", "long.yml", "-n", "long"]);
    let containers = || {
        let listed = Command::new("podman").args(["ps", "-q"]).envs(variables.clone()).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).lines().count()
    };
    home.until("the container to run", || containers() == 1);
    assert_eq!(run(&["job", "cancel", "-n", "long"]).code, Some(0));
    assert_eq!(home.job("long")["status"], "Canceled");
    home.until("the container to be gone", || containers() == 0);
}
