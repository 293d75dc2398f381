//! Paths that lead out of where they belong: links in outputs, `..` in references and in blob names.

use crate::harness::Home;

/// Ways to leave a link to someone else's file among the results.
const LEAVING: &[(&str, &str)] = &[
    ("ln -s /etc/passwd outputs/stolen", ""),
    ("mkdir outputs/a; ln -s ../../../.. outputs/a/stolen", ""),
    ("ln -s /etc/passwd ${{outputs.o}}/stolen", "outputs: {o: {type: uri_folder}}"),
    ("ln -s /etc/passwd ${{outputs.o}}/stolen", "outputs: {o: {type: uri_folder, mode: upload}}"),
];

/// References that would reach the server's keys.
const REACHING: &[&str] = &[
    "inputs: {d: {type: uri_file, path: azureml://datastores/workspaceblobstore/paths/../../../keys/user.token}}",
    "inputs: {d: {type: uri_file, path: azureml://jobs/first/outputs/artifacts/paths/../../../../../keys/user.token}}",
    "inputs: {d: {type: uri_file, path: azureml://jobs/first/outputs/o/paths/../../../../../keys/user.token}}",
    "inputs: {d: {type: uri_file, path: 'runs:/first/../../../../../keys/user.token'}}",
    "outputs: {d: {type: uri_folder, path: azureml://datastores/workspaceblobstore/paths/../../keys}}",
    "outputs: {d: {type: uri_folder, path: /etc/peregrine}}",
];

#[test]
fn a_link_out_of_the_outputs_fails_the_job_and_names_it() {
    let home = Home::new();
    for (command, more) in LEAVING {
        let said = home.stream(&format!("{command}; echo kept > kept"), more);
        said.must(1, &["stolen", "points out of its folder", "copy what it points to"]);
    }
    let stored = walk(&home.home().join("blobs"));
    assert!(!stored.iter().any(|text| text.contains("root:")), "nothing of /etc/passwd is stored");
    home.is_well();
}

#[test]
fn a_reference_stays_in_its_store() {
    let home = Home::new();
    home.begin("first", "echo hi > ${{outputs.o}}/x", "outputs: {o: {type: uri_folder}}");
    assert_eq!(home.ended("first")["status"], "Completed");
    for more in REACHING {
        let said = home.stream("echo ran", more);
        said.must(2, &["puts.d`: "]);
        assert!(!said.out.contains("ran"), "{more}");
    }
    home.is_well();
}

#[test]
fn a_blob_name_stays_in_its_container() {
    let home = Home::new();
    let door = home.open_door();
    home.begin("linked", "ln -s /etc/passwd ${{outputs.o}}/stolen", "outputs: {o: {type: uri_folder}}");
    home.ended("linked");
    let token = home.token("user");
    let container =
        home.ok(&["datastore", "show", "-n", "workspaceblobstore", "--query", "container_name", "-o", "tsv"]);
    let inside = format!("/blob/default.blob.x/{}", container.trim());
    for target in [
        format!("{inside}/../../../keys/user.token"),
        format!("{inside}/%2e%2e/%2e%2e/%2e%2e/keys/user.token"),
        format!("{inside}/..%2f..%2f..%2fkeys%2fuser.token"),
        format!("{inside}//etc/passwd"),
        format!("{inside}/azureml/linked/o/stolen"),
        "/blob/...blob.x/../keys/user.token".to_owned(),
        "/blob/...blob.x/..?comp=list".to_owned(),
        "/blob/default.blob.x/..?comp=list&prefix=".to_owned(),
        "/blob/default.blob.x/azureml/ExperimentRun/dcid.linked/../../../../../keys/user.token".to_owned(),
    ] {
        let (status, body) = door.ask("GET", &target, Some(&token), "");
        assert!((400..500).contains(&status), "{target}: {status} {body}");
        assert!(!body.contains(&token) && !body.contains("root:"), "{target}: {body}");
        let (status, _) = door.ask("PUT", &target, Some(&token), "overwritten");
        assert!((400..500).contains(&status) || target.ends_with("stolen"), "{target}: {status}");
    }
    assert_eq!(home.token("user"), token);
    assert!(!std::fs::read_to_string("/etc/passwd").unwrap().contains("overwritten"));
    home.is_well();
}

/// The text of every file below a folder.
fn walk(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let texts = entries.flat_map(|path| match path.symlink_metadata().unwrap() {
        meta if meta.is_dir() => walk(&path),
        meta if meta.is_file() => vec![String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()],
        _ => vec![],
    });
    texts.collect()
}
