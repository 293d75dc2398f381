//! Credentials of datastores: used, and seen nowhere.

use crate::harness::Home;
use std::{fs, path::Path};

const SECRET: &str = "vErYsEcReTkEyOfThEtEsT0123456789";

#[test]
fn a_datastores_secret_is_seen_nowhere() {
    let home = Home::new();
    let store = |endpoint: &str| {
        format!(
            "name: lake\ntype: s3\nbucket: b\nregion: x\nendpoint: {endpoint}\n\
             credentials: {{access_key_id: AKIATEST, secret_access_key: {SECRET}}}\n"
        )
    };
    home.file("lake.yml", &store("http://127.0.0.1:1"));
    let mut said = vec![home.run(&["datastore", "create", "-f", "lake.yml"])];
    said.push(home.run(&["datastore", "show", "-n", "lake", "-o", "json"]));
    said.push(home.run(&["datastore", "list", "-o", "yaml"]));
    said.push(home.run(&["datastore", "validate", "-f", "lake.yml", "--debug"]));
    let read = "inputs: {d: {type: uri_file, path: azureml://datastores/lake/paths/x}}";
    let failed = home.stream("cat ${{inputs.d}}", read);
    failed.must(1, &["input `d`", "s3://b/x", "Connection refused"]);
    said.push(failed);
    let name = home.json(&["job", "list"])[0]["name"].as_str().unwrap().to_owned();
    said.push(home.run(&["job", "why", "-n", &name]));
    said.push(home.run(&["job", "show", "-n", &name]));
    home.file("bad.yml", &store("[not, an, address]"));
    let bad = home.run(&["datastore", "create", "-f", "bad.yml"]);
    assert_eq!(bad.code, Some(2), "{}", bad.err);
    said.push(bad);
    home.is_well();
    for said in &said {
        assert!(!said.out.contains(SECRET) && !said.err.contains(SECRET), "{}\n{}", said.out, said.err);
    }
    // The agent holds it in a file of its own for as long as the attempt needs it.
    home.until("the agent to forget the secret", || files_with(&home.home(), SECRET.as_bytes()).is_empty());
}

/// Every file below a folder that holds these bytes.
fn files_with(folder: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
        // A server at work makes and removes files while we look.
        let Ok(meta) = path.symlink_metadata() else { continue };
        if meta.is_dir() {
            found.extend(files_with(&path, bytes));
        } else if meta.is_file()
            && fs::read(&path).is_ok_and(|text| text.windows(bytes.len()).any(|part| part == bytes))
        {
            found.push(path.display().to_string());
        }
    }
    found
}
