//! Inputs and outputs in every mode, captured files, downloads, and results that become assets.

use crate::harness::Home;
use std::fs;

#[test]
fn every_kind_of_input_reaches_the_command() {
    let home = Home::new();
    home.file("data/a.csv", "a,b\n1,2\n");
    home.file("data/sub/b.csv", "3,4\n");
    home.file("table/MLTable", "type: mltable\npaths:\n  - pattern: ./*.csv\n");
    home.file("table/one.csv", "x\n1\n");
    home.file("table/two.csv", "x\n2\n");
    let more = "\
inputs:
  rate: 0.25
  flag: true
  word: two words
  fetched: {type: uri_folder, path: data, mode: download}
  seen: {type: uri_folder, path: data, mode: ro_mount}
  usual: {type: uri_file, path: data/a.csv}
  address: {type: uri_file, path: data/a.csv, mode: direct}
  evaluated: {type: mltable, path: table, mode: eval_mount}
  laid_out: {type: mltable, path: table, mode: eval_download}
  table: {type: mltable, path: table}";
    let command = "\
echo literals ${{inputs.rate}} ${{ inputs.flag }} '${{inputs.word}}'
cat ${{inputs.fetched}}/sub/b.csv; touch ${{inputs.fetched}}/mine
cat ${{inputs.seen}}/a.csv
cat ${{inputs.usual}}
echo address ${{inputs.address}}
echo evaluated $(find -L ${{inputs.evaluated}} -type f -name '*.csv' | wc -l)
echo laid $(find ${{inputs.laid_out}} -type f -name '*.csv' | wc -l)
cat ${{inputs.table}}/MLTable
echo variable $(cat $AZURE_ML_INPUT_usual | wc -l)";
    let said = home.stream(command, more);
    let expected = "literals 0.25 True two words\n3,4\na,b\n1,2\na,b\n1,2\naddress azureml://";
    assert!(said.code == Some(0) && said.out.starts_with(expected), "{}\n{}", said.out, said.err);
    for words in ["evaluated 2\n", "laid 2\n", "type: mltable\n", "variable 2\n"] {
        assert!(said.out.contains(words), "`{words}` is not in\n{}", said.out);
    }
    assert!(!home.path().join("data/mine").exists(), "a download is the job's own");
}

#[test]
fn every_kind_of_output_is_stored_and_can_be_fetched() {
    let home = Home::new();
    let more = "\
outputs:
  mounted: {type: uri_folder, mode: rw_mount}
  sent: {type: uri_folder, mode: upload}
  plain:
  file: {type: uri_file, mode: upload}
  address: {type: mltable, mode: direct}
  placed: {type: uri_folder, path: 'azureml://datastores/workspaceblobstore/paths/mine/${{name}}/'}
  usual: {type: uri_folder, path: 'azureml://datastores/${{default_datastore}}/paths/mine/${{name}}-${{output_name}}/'}";
    let command = "\
mkdir -p ${{outputs.mounted}}/deep outputs/deep
echo mounted > ${{outputs.mounted}}/deep/m.txt
echo sent > ${{outputs.sent}}/s.txt
echo plain > ${{outputs.plain}}/p.txt
echo file > ${{outputs.file}}
echo placed > ${{outputs.placed}}/x.txt
echo usual > ${{outputs.usual}}/u.txt
echo address ${{outputs.address}}
echo captured > outputs/deep/c.txt
echo not captured > other.txt";
    home.begin("writer", command, more);
    let ended = home.ended("writer");
    assert_eq!(ended["status"], "Completed", "{ended}");
    assert!(home.log("writer").starts_with("address azureml://"), "{}", home.log("writer"));
    home.ok(&["job", "download", "-n", "writer", "--all", "-p", "all"]);
    let all = files(&home, "all");
    for name in ["m.txt", "s.txt", "p.txt", "c.txt", "std_log.txt", "placed/x.txt", "usual/u.txt", "outputs/deep/c.txt"]
    {
        assert!(all.iter().any(|path| path.ends_with(name)), "`{name}` is not in {all:?}");
    }
    assert!(!all.iter().any(|path| path.ends_with("other.txt")), "{all:?}");
    home.ok(&["job", "download", "-n", "writer", "--output-name", "sent", "-p", "one"]);
    assert_eq!(files(&home, "one"), ["named-outputs/sent/s.txt"]);
    home.ok(&["job", "download", "-n", "writer", "-p", "usual"]);
    let usual = files(&home, "usual");
    assert!(usual.iter().any(|path| path.ends_with("deep/c.txt")), "{usual:?}");
    let unknown = home.run(&["job", "download", "-n", "writer", "--output-name", "nope"]);
    unknown.must(2, &["`nope`", "mounted"]);
}

#[test]
fn a_named_output_becomes_an_asset_for_the_next_job() {
    let home = Home::new();
    let more =
        "outputs: {data: {type: uri_folder, name: cleaned}, model: {type: custom_model, name: fitted, version: '7'}}";
    for round in ["first", "second"] {
        let more = if round == "first" { more } else { "outputs: {data: {type: uri_folder, name: cleaned}}" };
        home.begin(round, &format!("echo {round} > ${{{{outputs.data}}}}/x.txt"), more);
        assert_eq!(home.ended(round)["status"], "Completed");
    }
    let versions = home.json(&["data", "list", "-n", "cleaned", "--query", "[].version"]);
    assert_eq!(versions, serde_json::json!(["2", "1"]));
    assert_eq!(home.json(&["model", "show", "-n", "fitted", "-v", "7"])["name"], "fitted");
    let read = |reference: &str| {
        let more = format!("inputs: {{d: {{type: uri_folder, path: '{reference}'}}}}");
        let said = home.stream("cat ${{inputs.d}}/x.txt", &more);
        assert_eq!(said.code, Some(0), "{reference}: {}", said.err);
        said.out
    };
    assert_eq!(read("azureml:cleaned@latest"), "second\n");
    assert_eq!(read("azureml:cleaned:1"), "first\n");
    assert_eq!(read("azureml://jobs/first/outputs/data"), "first\n");
}

#[test]
fn a_failed_job_registers_nothing_and_keeps_its_log() {
    let home = Home::new();
    let said =
        home.stream("echo half > ${{outputs.data}}/x; exit 1", "outputs: {data: {type: uri_folder, name: broken}}");
    said.must(1, &["exited with code 1"]);
    home.run(&["data", "show", "-n", "broken", "-v", "1"]).must(2, &["broken"]);
}

fn files(home: &Home, folder: &str) -> Vec<String> {
    fn walk(at: &std::path::Path, base: &std::path::Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(at).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => walk(&entry.path(), base, found),
                false => found.push(entry.path().strip_prefix(base).unwrap().display().to_string()),
            }
        }
    }
    let (mut found, base) = (Vec::new(), home.path().join(folder));
    walk(&base, &base, &mut found);
    found.sort();
    found
}
