//! Command lines by comparison; engines by programs that act like them.

use super::*;
use domain::Resources;
use std::{collections::BTreeMap, os::unix::fs::PermissionsExt};

struct Quiet;
impl Log for Quiet {
    fn line(&self, _text: &str) {}
}

fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn line(kind: Kind, argv: &[&str], publish: Option<(u16, u16)>) -> String {
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    let image = Image { engine: Engine { kind, program: "/bin/e".into() }, reference: "i:1".into() };
    let env = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned()), ("TOKEN".to_owned(), "secret".to_owned())]);
    let mounts = [PathBuf::from("/w"), PathBuf::from("/a,b")];
    let run = Run {
        image: &image,
        argv: &argv,
        mounts: &mounts,
        placed: &[("/m".into(), "/var/models/m".to_owned())],
        variables: &env,
        folder: Path::new("/w"),
        gpus: &[0, 2],
        limits: Some(&Resources { cpu_milli: 1500, memory_bytes: 1024, gpus: 2 }),
        shm_bytes: Some(64),
        extra: &["--ipc=host".to_owned()],
        name: "job-1",
        publish,
    };
    run::wrap_as(&run, (1000, 100)).join("|")
}

#[test]
fn the_command_line_holds_everything_and_no_secret() {
    let common = "--mount|type=bind,source=/w,target=/w|--mount|type=bind,\"source=/a,b\",\"target=/a,b\"|\
                  --mount|type=bind,source=/m,target=/var/models/m|--env|PATH=/bin|--env|TOKEN|--cpus=1.5|--memory=1024b|--shm-size=64b";
    let start = "/bin/e|run|--rm|--init|--network=host|--name|job-1|--workdir|/w";
    let end = "--ipc=host|--entrypoint|sh|i:1|-c|echo $HOME; x";
    let podman = format!("{start}|{common}|--device=nvidia.com/gpu=0|--device=nvidia.com/gpu=2|{end}");
    let docker = format!("{start}|--user|1000:100|{common}|--gpus=\"device=0,2\"|{end}");
    let argv = ["sh", "-c", "echo $HOME; x"];
    assert_eq!(line(Kind::Podman, &argv, None), podman);
    assert_eq!(line(Kind::Docker, &argv, None), docker);
}

#[test]
fn an_image_that_starts_by_itself_is_reached_by_a_port_of_its_own() {
    let line = line(Kind::Podman, &[], Some((10_001, 8000)));
    let start = "/bin/e|run|--rm|--init|--publish=127.0.0.1:10001:8000|--name|job-1|--mount|";
    assert!(line.starts_with(start) && line.ends_with("|--ipc=host|i:1"), "{line}");
}

#[test]
fn an_engine_that_does_not_answer_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "podman", "exit 125");
    assert_eq!(find(folder.path().as_os_str()), None);
    let docker = program(folder.path(), "docker", "[ \"$1\" = info ]");
    assert_eq!(find(folder.path().as_os_str()), Some(Engine { kind: Kind::Docker, program: docker }));
}

#[test]
fn the_engine_of_this_machine_is_asked_once() {
    assert_eq!(engine(), engine());
}

#[tokio::test]
async fn an_image_is_pulled_only_where_it_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "echo \"$@\" >> {0}/calls; [ \"$1\" = pull ] && touch {0}/have; [ -e {0}/have ]",
        folder.path().display()
    );
    let engine = Engine { kind: Kind::Podman, program: program(folder.path(), "podman", &script) };
    for _ in 0..2 {
        assert_eq!(pull(&engine, "a/b:1", &Quiet).await.unwrap().reference, "a/b:1");
    }
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    assert_eq!(calls, "image inspect a/b:1\npull a/b:1\nimage inspect a/b:1\n");
    for bad in ["", "--privileged", "a b"] {
        assert!(matches!(pull(&engine, bad, &Quiet).await, Err(Error::BadReference(_))));
    }
}

#[test]
fn a_context_is_named_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("Dockerfile"), "FROM a").unwrap();
    fs::write(folder.path().join("d/f"), "1").unwrap();
    let first = digest_of(folder.path(), "Dockerfile").unwrap();
    assert_eq!(digest_of(folder.path(), "Dockerfile").unwrap(), first);
    fs::write(folder.path().join("d/f"), "2").unwrap();
    assert_ne!(digest_of(folder.path(), "Dockerfile").unwrap(), first);
}
