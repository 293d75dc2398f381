//! Data near compute: what one node has fetched stays there for the next job, and others fetch it from it; a node that was
//! tampered with, killed or taken away costs nothing but time.

use crate::{
    harness::{Home, processes_with, signal},
    managed,
};
use serde_json::Value;
use std::{fs, path::PathBuf};

const MIB: usize = 1 << 20;

/// Two nodes with a disk of their own each, and data that lies with the server.
fn cluster(home: &Home, bytes: usize) -> PathBuf {
    let cloud = managed::provider(home);
    fs::write(cloud.join("mode"), "\n\n\n\n\n\n").unwrap();
    let provider = "provider: {type: command, program: lab, timeout_seconds: 30, peers: true}";
    let size = "min_instances: 2\nmax_instances: 2\nidle_time_before_scale_down: 300";
    managed::create(home, &format!("{size}\n{provider}"));
    fs::create_dir_all(home.path().join("big/deep")).unwrap();
    let content: Vec<u8> = (0..bytes).map(|at| (at / 253) as u8).collect();
    fs::write(home.path().join("big/deep/one.bin"), content).unwrap();
    fs::write(home.path().join("big/note.txt"), "seven\n").unwrap();
    home.ok(&["data", "create", "-n", "big", "--path", "big", "--type", "uri_folder"]);
    home.until("two nodes", || managed::states(home) == ["idle", "idle"]);
    cloud
}

/// Every entry of the nodes' caches, and what is on its way there.
fn entries(cloud: &std::path::Path) -> Vec<PathBuf> {
    let nodes = fs::read_dir(cloud).unwrap().flatten().map(|node| node.path().join("top/shared/cache/data"));
    let all = nodes.flat_map(|cache| fs::read_dir(cache).into_iter().flatten().flatten());
    all.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// What runs for attempts on those nodes.
fn agents(cloud: &std::path::Path) -> Vec<i32> {
    let of_attempt = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let environ = String::from_utf8_lossy(&environ).into_owned();
        environ.contains("PEREGRINE_ATTEMPT=") && environ.contains(&cloud.display().to_string())
    };
    processes_with(" agent ").into_iter().map(|(pid, _)| pid).filter(of_attempt).collect()
}

/// On how many nodes the data is said to be.
fn kept_on(home: &Home) -> usize {
    home.json(&["data", "show", "-n", "big", "--label", "latest"])["kept_on"].as_array().map_or(0, Vec::len)
}

fn replicate(home: &Home, nodes: &str) -> String {
    let said = home.run(&["data", "replicate", "-n", "big", "--to", "crew", "--nodes", nodes]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    said.err
}

fn reads_well(home: &Home, nodes: u32, bytes: usize) -> Value {
    let input = "inputs: {data: {type: uri_folder, path: 'azureml:big@latest'}}";
    let more = format!("{}\ndistribution: {{type: pytorch}}\nresources: {{instance_count: {nodes}}}", managed::ON);
    let name = format!("reads{nodes}");
    let sum = "[ $(cat ${{inputs.data}}/note.txt) = seven ] && sha256sum < ${{inputs.data}}/deep/one.bin | cut -c 1-64 > sum && \
               cmp sum ${{inputs.want}}";
    let want = fs::read(home.path().join("big/deep/one.bin")).unwrap();
    assert_eq!(want.len(), bytes);
    let digest = std::process::Command::new("sha256sum").arg(home.path().join("big/deep/one.bin")).output().unwrap();
    fs::write(home.path().join("want"), format!("{}\n", &String::from_utf8(digest.stdout).unwrap()[..64])).unwrap();
    let input = input.replace("}}", "}, want: {type: uri_file, path: want}}");
    home.begin(&name, sum, &format!("{more}\n{input}"));
    let job = home.ended(&name);
    assert_eq!(job["status"], "Completed", "{}", managed::why(home, &name));
    job
}

#[test]
fn nodes_fetch_from_each_other_what_one_of_them_has() {
    let home = Home::new();
    let cloud = cluster(&home, 3 * MIB);
    home.run(&["data", "replicate", "-n", "big", "--to", "nowhere"]).must(2, &["there is no compute target `nowhere`"]);
    home.run(&["data", "replicate", "-n", "none", "--to", "crew"]).must(2, &["there is no data `none`"]);
    let said = replicate(&home, "1");
    assert!(said.contains("3 MiB from the store, 0 B from other nodes, 0 B were there already"), "{said}");
    home.until("the server to know", || kept_on(&home) == 1);
    let said = replicate(&home, "2");
    assert!(said.contains("0 B from the store, 3 MiB from other nodes, 3 MiB were there already"), "{said}");
    home.until("the server to know", || kept_on(&home) == 2);
    let shown = home.json(&["compute", "show", "-n", "crew"]);
    let kept = shown["kept_data"].as_array().unwrap().iter().filter(|kept| kept["bytes"] == 3 * MIB + 6);
    assert_eq!(kept.count(), 2, "{shown}");
    let job = reads_well(&home, 2, 3 * MIB);
    assert_eq!(job["peregrine"]["data_bytes"]["store"].as_u64().map(|bytes| bytes < 1000), Some(true), "{job}");

    // One that was tampered with is found out, and the store serves.
    let (spoilt, other): (Vec<PathBuf>, Vec<PathBuf>) = {
        let big = entries(&cloud).into_iter().filter(|entry| entry.join("data/deep/one.bin").exists());
        let mut big: Vec<PathBuf> = big.collect();
        (vec![big.pop().unwrap()], big)
    };
    let file = spoilt[0].join("data/deep/one.bin");
    let mut bytes = fs::read(&file).unwrap();
    bytes[MIB] ^= 1;
    fs::remove_file(&file).unwrap();
    fs::write(&file, bytes).unwrap();
    fs::remove_dir_all(&other[0]).unwrap();
    home.until("the server to know", || kept_on(&home) == 1);
    let said = replicate(&home, "2");
    assert!(said.contains("3 MiB from the store, 0 B from other nodes"), "{said}");
    let name = home.json(&["job", "list"])[0]["name"].as_str().unwrap().to_owned();
    let why = managed::why(&home, &name);
    assert!(why.contains("its bytes are not the ones it said it has"), "{why}");
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
}

#[test]
fn an_agent_that_is_killed_while_it_fetches_leaves_nothing_half() {
    let home = Home::new();
    let cloud = cluster(&home, 48 * MIB);
    home.job_file(
        "slow.yml",
        "cmp ${{inputs.data}}/deep/one.bin ${{inputs.data}}/deep/one.bin",
        &format!("{}\ninputs: {{data: {{type: uri_folder, path: 'azureml:big@latest'}}}}", managed::ON),
    );
    home.ok(&["job", "create", "-f", "slow.yml", "-n", "slow", "-o", "none"]);
    let on_its_way = || entries(&cloud).iter().any(|path| path.extension().is_some() && path.join("want").exists());
    home.until("a fetch", || on_its_way() || home.job("slow")["status"] == "Completed");
    for pid in agents(&cloud) {
        signal(pid, "KILL");
    }
    assert_eq!(home.ended("slow")["status"], "Completed", "{}", managed::why(&home, "slow"));
    reads_well(&home, 1, 48 * MIB);
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
}
