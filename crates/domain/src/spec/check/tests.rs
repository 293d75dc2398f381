//! Mistakes in files: each told at its place, all at once.

mod trees;

use super::*;
use crate::spec::{DataInput, EnvironmentRef, Input};

const HEAD: &str = "command: echo hi\nenvironment: azureml:e@latest\n";

fn said(noun: Noun, text: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    match read(noun, "f.yml", text, &sets) {
        Ok(_) => String::new(),
        Err(mistakes) => mistakes.iter().map(|m| format!("{m}\n")).collect(),
    }
}

fn job(text: &str, sets: &[&str]) -> CommandJob {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    match read(Noun::Job, "job.yml", text, &sets) {
        Ok(Spec::Job(job)) => *job,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_whole_job_is_read() {
    let job = job(
        "$schema: https://x/commandJob.schema.json\nname: train_1\ncommand: python t.py --lr ${{inputs.lr}} ${{ outputs.model }}\n\
         code: src\nenvironment:\n  image: python:3.12\n  conda_file:\n    dependencies: [python=3.12]\nenvironment_variables: {A: 1}\n\
         compute: azureml:local\ninputs:\n  lr: 0.1\n  data: {path: azureml:d:1, mode: download}\noutputs:\n  model:\n\
         resources: {instance_count: 2, shm_size: 3100m}\nlimits: {timeout: 60}\ndistribution: {type: PyTorch}\n\
         queue_settings: {priority: High}\nservices:\n  lab: {type: jupyter_lab, nodes: all}\nidentity: {type: user_identity}\n",
        &["inputs.lr=0.5", "tags.a=b", "resources.instance_count=3"],
    );
    assert_eq!(job.inputs["lr"], Input::Literal(0.5.into()));
    assert!(matches!(&job.inputs["data"], Input::Data(DataInput { path, .. }) if path == "azureml:d:1"));
    assert!(matches!(&job.environment, Some(EnvironmentRef::Inline(e)) if e.image.as_deref() == Some("python:3.12")));
    assert_eq!(job.outputs["model"], Default::default());
    assert_eq!((job.environment_variables["A"].as_str(), job.tags["a"].as_str()), ("1", "b"));
    assert_eq!((job.resources.instance_count, job.limits.timeout), (Some(3), Some(60)));
}

#[test]
fn all_mistakes_come_at_once_in_the_order_of_lines() {
    let text = "comand: x\nname: bad name\ncompute: 7\ninputs:\n  home: 1\n  lr: [1]\nresources:\n  instance_count: -1\n  shm_size: lots\n";
    expect_test::expect![[r#"
        f.yml:1:1: `comand`: unknown key `comand`; did you mean `command`? (write `command`, or remove it)
        f.yml:1:1: `command`: `command` is required (add `command:` with text)
        f.yml:1:1: `environment`: `environment` is required (add `environment:` with text, or a map)
        f.yml:2:7: `name`: `bad name` is not a valid job name: 1 to 255 letters, digits, `-` and `_`, starting with a letter or digit (choose a name that follows the rule)
        f.yml:3:10: `compute`: expected text, found the number `7` (put it in quotes)
        f.yml:5:9: `inputs.home`: `home` is reserved and cannot name an input (choose another name)
        f.yml:6:7: `inputs.lr`: expected text, a number or a boolean, or a map, found a list (change the value)
        f.yml:8:19: `resources.instance_count`: -1 is out of range: it must be at least 1 (change the number)
        f.yml:9:13: `resources.shm_size`: `lots` is not a size (write a number and `b`, `k`, `m` or `g`, such as `2g`)
    "#]]
    .assert_eq(&said(Noun::Job, text, &[]));
}

#[test]
fn a_reported_input_is_not_reported_again_where_it_is_used() {
    let got = said(Noun::Job, "command: x ${{inputs.a}}\nenvironment: e\ninputs:\n  a: [1]\n", &[]);
    assert_eq!(got.lines().count(), 1, "{got}");
}

#[test]
fn senseless_jobs_are_refused_with_the_place_and_the_fix() {
    for (rest, expected) in [
        ("command: x", "`command` is given twice, on line 1 and on line 3"),
        ("name: '<name>'", "`name`: `<name>` is a placeholder"),
        (
            "compute: <Enter it>",
            "f.yml:3:10: `compute`: `<Enter it>` is a placeholder (put the real name in its place)",
        ),
        ("compute: azureml:a_b", "is not a valid compute name"),
        ("inputs: {a-b: 1}", "`a-b` cannot name an input"),
        ("outputs: {PATH: }", "`PATH` is reserved and cannot name an output"),
        ("inputs: {a: {path: ''}}", "`inputs.a.path`: the path is empty"),
        (
            "inputs: {a: {path: x, mode: rw_mount}}",
            "`rw_mount` is no mode of a `uri_folder` input (use `ro_mount`; to write, declare an output)",
        ),
        ("inputs: {a: {path: x, mode: eval_mount}}", "`eval_mount` is no mode of a `uri_folder` input"),
        ("inputs: {a: {path: x, mode: upload}}", "`upload` is not one of"),
        ("outputs: {o: {name: 'a b'}}", "`outputs.o.name`: `a b` is not a valid asset name"),
        ("outputs: {o: {path: 'x/${{inputs.y}}'}}", "has no value in an output's path"),
        ("environment_variables: {'a=b': 1}", "a variable's name cannot be empty or hold `=`"),
        ("limits: {timeout: 0}", "`limits.timeout`: 0 is out of range"),
        ("resources: {instance_count: 99999}", "the limit is 10000 nodes"),
        ("resources: {instance_count: 4, max_instance_count: 2}", "it is smaller than `instance_count`"),
        (
            "distribution: {type: pytorch, worker_count: 2}",
            "`worker_count` is not a key of `type: pytorch` (it belongs to `type: tensorflow`)",
        ),
        ("distribution: {type: mpi, process_count_per_instance: 9999}", "from 1 to 1024"),
        ("queue_settings: {priority: highest}", "`highest` is not one of `low`, `medium`, `high`"),
        ("services: {s: {type: ssh, nodes: 4}}", "`4` is neither `all` nor the index of a node (use `all`, or 0 to 0)"),
        ("experiment_name: ''", "the name is empty"),
    ] {
        let got = said(Noun::Job, &format!("{HEAD}{rest}\n"), &[]);
        assert!(got.contains(expected), "{rest} gave {got}");
    }
}

#[test]
fn commands_and_environments_are_checked() {
    for (text, expected) in [
        ("command: ' '\nenvironment: e", "`command`: the command is empty"),
        ("command: '$'\nenvironment: e", "`$` names no program"),
        ("command: x", "f.yml:1:1: `environment`: `environment` is required"),
        ("command: x\nenvironment: < your environment >", "is a placeholder"),
        ("command: x\nenvironment: a b", "`a b` is not a valid asset name"),
        ("command: x\nenvironment: azureml://registries/azureml/models/m", "does not lead to an environment"),
        (
            "command: x\nenvironment: {os_type: linux}",
            "f.yml:2:1: `environment.image`: the environment says nothing about its software",
        ),
        ("command: x\nenvironment: {image: a, build: {path: .}}", "`image` and `build` exclude each other"),
        ("command: x\nenvironment: {conda_file: {name: n}}", "a conda file has a list of `dependencies`"),
        ("command: x\nenvironment: {build: {dockerfile_path: D}}", "`environment.build.path`: `path` is required"),
        (
            "command: x ${{inputs.lrr}}\nenvironment: e\ninputs: {lr: 1, data: x}",
            "`${{inputs.lrr}}` names an input that is not declared; declared inputs: `data`, `lr` (did you mean `lr`?)",
        ),
        (
            "command: x ${{outputs.o}}\nenvironment: e",
            "declared outputs: none (declare it under `outputs`, or remove it)",
        ),
        ("command: x ${{search_space.lr}}\nenvironment: e", "only in a sweep's trial"),
        ("command: x ${{parent.inputs.a}}\nenvironment: e", "has no value in a command"),
        ("command: x ${{inputs.a\nenvironment: e", "is not closed with `}}`"),
    ] {
        let got = said(Noun::Job, text, &[]);
        assert!(got.contains(expected), "{text} gave {got}");
    }
    for environment in [
        "e",
        "e:1",
        "azureml:e:1",
        "azureml:e@latest",
        "azureml://registries/azureml/environments/sklearn-1.5/labels/latest",
        "file:./env.yml",
        "/subscriptions/s/x/environments/e/versions/1",
    ] {
        assert_eq!(
            said(Noun::Job, &format!("command: x $[[ ${{{{inputs.gone}}}} ]]\nenvironment: {environment}\n"), &[]),
            "",
            "{environment}"
        );
    }
}

#[test]
fn other_kinds_of_files_are_one_clear_mistake() {
    for (noun, text, expected) in [
        (
            Noun::Job,
            "$schema: https://x/latest/sweepJob.schema.json\ntrial: {}\n",
            "`$schema`: the schema says that this is a sweep job, and `type` is missing (add `type: sweep`)",
        ),
        (
            Noun::Job,
            "jobs: {a: 1}\nfoo: 1\n",
            "f.yml:1:1: `jobs`: `jobs` makes this a pipeline job, and `type` is missing (add `type: pipeline`)",
        ),
        (Noun::Job, "$schema: https://x/autoMLJob.schema.json\ntask: x\n", "add `type: automl`"),
        (
            Noun::OnlineEndpoint,
            "$schema: https://x/managedOnlineDeployment.schema.json\nname: abc\n",
            "use `peregrine online-deployment create -f`",
        ),
        (
            Noun::Job,
            "$schema: https://x/commandComponent.schema.json\ntype: command\ncommand: x\n",
            "a file for a component, not for a job",
        ),
        (Noun::Job, "$schema: https://x/data.schema.json\npath: x\n", "use `peregrine data create -f`"),
        (Noun::Data, "$schema: https://x/model.schema.json\npath: x\n", "use `peregrine model create -f`"),
    ] {
        let got = said(noun, text, &[]);
        assert!(got.contains(expected) && got.lines().count() == 1, "{text} gave {got}");
    }
    assert!(said(Noun::Job, "type: comand\n", &[]).contains("`comand` is not one of `command`, `sweep`"));
}

#[test]
fn overrides_that_cannot_be_applied_are_mistakes_of_their_own() {
    for (set, expected) in [
        ("name", "f.yml: `--set name`: a value is missing (write `--set key=value`)"),
        ("=x", "the path has an empty or too deep part"),
        ("a..b=x", "`--set a..b`"),
        ("command.x=1", "`--set command.x`: `command` is the text `echo hi`, so nothing can be set inside it"),
        ("resources.locations.9=x", "`resources.locations` is a list of 1, and `9` is none of its indices"),
        ("resources.nope=1", "f.yml: `resources.nope`: unknown key `nope`"),
        ("tags=[1", "`tags`: expected a map of texts"),
        ("tags={a: ]", "the value cannot be read"),
    ] {
        let got = said(Noun::Job, &format!("{HEAD}resources: {{locations: [x]}}\n"), &[set]);
        assert!(got.contains(expected), "{set} gave {got}");
    }
    let job = job(HEAD, &["tags={a: 1, b: x}", "description=", "resources.properties.x.y=true", "command=a=b"]);
    assert_eq!((job.tags.len(), job.command.as_str(), job.description.as_deref()), (2, "a=b", Some("")));
}

#[test]
fn other_nouns_are_checked_too() {
    for (noun, text, expected) in [
        (Noun::Data, "name: x\n", "`path`: `path` is required"),
        (Noun::Data, "name: x\npath: ' '\n", "`path`: the path is empty"),
        (Noun::Data, "path: x\ntype: mlflow_model\n", "`mlflow_model` is not one of"),
        (Noun::Model, "path: x\nversion: <VERSION>\n", "`version`: `<VERSION>` is a placeholder"),
        (Noun::Environment, "name: e\n", "f.yml:1:1: `image`: the environment says nothing about its software"),
        (Noun::Datastore, "name: d\n", "`type`: `type` is required"),
        (Noun::Datastore, "type: local\npath: data\n", "f.yml:2:7: `path`: the folder must be an absolute path"),
        (
            Noun::Datastore,
            "type: s3\nbucket: b\ncredentials: {access_key_id: a}\n",
            "`access_key_id` is of no use without `secret_access_key`",
        ),
        (
            Noun::Datastore,
            "type: azure_blob\naccount_name: <A>\ncontainer_name: c\n",
            "`account_name`: `<A>` is a placeholder",
        ),
        (Noun::Compute, "name: x y\ntype: local\n", "`x y` is not a valid compute name"),
        (Noun::Compute, "type: amlcompute\nmin_instances: 3\nmax_instances: 1\n", "it is larger than `max_instances`"),
        (
            Noun::Compute,
            "type: local\ninstance_types: {a: {resources: {requests: {cpu: x, memory: 1Gi}}}}\n",
            "`instance_types.a.resources.requests.cpu`: `x` is no amount of CPU",
        ),
        (Noun::Workspace, "name: w w\n", "`w w` is not a valid workspace name"),
        (Noun::Workspace, "- a\n", "f.yml:1:1: a workspace file is a map of keys, and this is a list"),
        (Noun::Workspace, "hello\n", "and this is the text `hello`"),
    ] {
        let got = said(noun, text, &[]);
        assert!(got.contains(expected), "{text} gave {got}");
    }
}

#[test]
fn a_file_of_nothing_but_mistakes_is_cut_short() {
    let text: String = (0..500).map(|i| format!("key{i}: 1\n")).collect();
    let got = said(Noun::Workspace, &text, &[]);
    assert_eq!(got.lines().count(), 101);
    assert!(got.ends_with("f.yml: and 400 more mistakes (mend these first)\n"), "{got}");
}
