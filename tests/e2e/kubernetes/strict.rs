//! The extension is told, while a job runs, to do without Volcano and to confine pods as the Restricted standard says; then
//! everything else that jobs have runs so, in a namespace that takes no other pods.

use super::{Lab, away::gone};
use std::{fs, io::Write, net::TcpListener};

/// A claim that every job gets, on a folder of the real node.
const VOLUME: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
    {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "NAME"}, "spec": {"capacity": {"storage": "1Gi"},
     "accessModes": ["ReadWriteMany"], "storageClassName": "", "local": {"path": "FOLDER"}, "nodeAffinity": {"required":
     {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["real"]}]}]}}}},
    {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared", "labels": {"ml.azure.com/pvc": "true"},
     "annotations": {"ml.azure.com/mountpath": "/data"}}, "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "",
     "volumeName": "NAME", "resources": {"requests": {"storage": "1Gi"}}}}]}"#;

const PIPELINE: &str = "type: pipeline
settings: {default_compute: 'azureml:lab'}
outputs: {sorted: {type: uri_folder}}
jobs:
  each:
    type: parallel
    inputs: {letters: {type: uri_folder, path: letters}}
    outputs: {rows: {type: uri_file}}
    input_data: '${{inputs.letters}}'
    mini_batch_size: '1'
    resources: {instance_count: 2}
    task:
      type: run_function
      code: each
      entry_script: each.py
      append_row_to: '${{outputs.rows}}'
      environment: {image: 'IMAGE'}
  order:
    type: command
    command: sort ${{inputs.rows}} > ${{outputs.sorted}}/sorted.txt
    environment: {image: 'IMAGE'}
    inputs: {rows: '${{parent.jobs.each.outputs.rows}}'}
    outputs: {sorted: '${{parent.outputs.sorted}}'}
";

/// It began with Volcano, and ends when the test says so.
pub(super) fn a_job_outlives_new_settings_and_a_second_attach(lab: &Lab) {
    let host = lab.cluster.fact("HOST_ADDRESS");
    let door = TcpListener::bind((host, 0)).unwrap();
    let at = format!("('{host}', {})", door.local_addr().unwrap().port());
    let waits = format!("import socket; print(socket.create_connection({at}).recv(9).decode())");
    lab.begin("kept", &format!("echo up; python3 -c \"{waits}\""), "");
    lab.until("the command", || lab.home.log("kept") == "up\n");
    lab.home.run(&["compute", "detach", "-n", "lab", "--yes"]).must(2, &["`kept`", "--force"]);
    let upgrade = ["extension", "upgrade", "--kubeconfig", lab.cluster.fact("KUBECONFIG"), "--config"];
    lab.home.ok(&[&upgrade[..], &["gangScheduler=gates", "jobPodSecurity=restricted"]].concat());
    lab.cluster.ok(&["label", "namespace", lab.namespace, "pod-security.kubernetes.io/enforce=restricted"]);
    lab.home.ok(&["compute", "attach", "--type", "kubernetes", "-n", "lab", "--namespace", lab.namespace]);
    door.accept().unwrap().0.write_all(b"end").unwrap();
    let job = lab.ended("kept");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", lab.why("kept"));
    assert_eq!(lab.home.log("kept"), "up\nend\n");
    assert!(!lab.home.artifacts("kept").join("retry-001").exists(), "it ran twice");
    gone(lab, "kept");
}

pub(super) fn a_gang_writes_to_a_volume_and_a_later_job_reads_it(lab: &Lab) {
    let folder = lab.home.path().join("volume");
    fs::create_dir(&folder).unwrap();
    lab.cluster.apply(&VOLUME.replace("NAME", lab.namespace).replace("FOLDER", folder.to_str().unwrap()));
    let gang = "resources: {instance_count: 2}\ndistribution: {type: pytorch}";
    lab.begin("writes", "echo $RANK as $(id -u) > /data/$RANK", gang);
    let job = lab.ended("writes");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", lab.why("writes"));
    let released = ["get", "events", "--field-selector", "reason=Released", "-o", "name"];
    lab.until("word that the gate was taken away", || !lab.cluster.ok(&released).is_empty());
    lab.begin("reads", "cat /data/*", "");
    let job = lab.ended("reads");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", lab.why("reads"));
    assert_eq!(lab.home.log("reads"), "0 as 1000\n1 as 1000\n");
}

pub(super) fn a_pipeline_orders_what_a_parallel_step_made(lab: &Lab) {
    for letter in ["b", "c", "a"] {
        lab.home.file(&format!("letters/{letter}"), letter);
    }
    let each = "def init():\n    pass\ndef run(batch):\n    return [open(path).read().upper() + open('/data/0').read()[0] for path in batch]\n";
    lab.home.file("each/each.py", each);
    lab.home.file("letters.yml", &PIPELINE.replace("IMAGE", lab.cluster.fact("PYTHON_IMAGE")));
    lab.home.ok(&["job", "create", "-f", "letters.yml", "-n", "letters", "-o", "none"]);
    let job = lab.ended("letters");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", lab.why("letters"));
    lab.home.ok(&["job", "download", "-n", "letters", "--output-name", "sorted", "--download-path", "ordered"]);
    let found = crate::pod::cluster::find(&lab.home.path().join("ordered"), "sorted.txt").expect("the output is there");
    assert_eq!(fs::read_to_string(found).unwrap(), "A0\nB0\nC0\n", "its parts read the volume too");
    lab.cluster.ok(&["delete", "pvc/shared", &format!("pv/{}", lab.namespace), "--wait=false"]);
}
