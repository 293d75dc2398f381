//! Nodes that a program of the administrator's makes, well or badly.

use super::*;
use std::{os::unix::fs::PermissionsExt, path::PathBuf};

/// A program that brings nodes as processes; `mode` says how badly.
pub(crate) fn provider(home: &Home) -> PathBuf {
    let folder = home.path().join("cloud");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(home.home().join("providers")).unwrap();
    let program = home.home().join("providers/lab");
    let text = format!(
        r#"#!/bin/sh
cd {folder} || exit 1
echo "$@" >> calls
case "$1" in
list)
  for n in crew-*; do
    [ -d "$n" ] || continue
    if [ -e "$n/back" ]; then echo "$n leaving $(cat "$n/back")"; else echo "$n"; fi
  done
  exit 0 ;;
delete)
  for p in "$2"/pid "$2"/pid2; do [ -e "$p" ] && kill -9 "$(cat "$p")" 2>/dev/null; done
  rm -rf "$2"; exit 0 ;;
esac
mode=$(head -n 1 mode); sed -i 1d mode
case "$mode" in
fail) echo "no quota for $2" >&2; exit 7 ;;
hang) sleep 300 ;;
lie) exit 0 ;;
esac
mkdir "$2" || exit 0
echo "$PEREGRINE_TIER" > tier
if [ "$mode" = twice ]; then
  export PEREGRINE_TOP="$PWD/$2/top2"
  setsid nohup {binary} agent node --home "$PWD/$2/second" > "$2/log2" 2>&1 < /dev/null &
  echo $! > "$2/pid2"
fi
export PEREGRINE_TOP="$PWD/$2/top"
setsid nohup {binary} agent node --home "$PWD/$2" > "$2/log" 2>&1 < /dev/null &
echo $! > "$2/pid"
"#,
        folder = folder.display(),
        binary = binary().display(),
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn a_program_that_fails_hangs_and_lies_still_brings_nodes_in_the_end() {
    let home = Home::new();
    let folder = provider(&home);
    fs::write(folder.join("mode"), "fail\nhang\nlie\n").unwrap();
    home.file("crew.yml", "name: crew\ntype: amlcompute\nmax_instances: 2\nprovider: {type: command, program: ../x}\n");
    home.run(&["compute", "create", "-f", "crew.yml"]).must(2, &["`../x` is not the name of a program"]);
    home.file(
        "crew.yml",
        "name: crew\ntype: amlcompute\nmax_instances: 2\nprovider: {type: command, program: absent}\n",
    );
    home.run(&["compute", "create", "-f", "crew.yml"]).must(2, &["`absent list` does not start"]);
    // Machines of other clusters that the program serves too.
    let others = ["crew-0000ff", "crew-big-0000ff", "crew-ffffffff-0000ff"];
    others.iter().for_each(|name| fs::create_dir_all(folder.join(name)).unwrap());
    create(
        &home,
        "max_instances: 2\nidle_time_before_scale_down: 300\nprovider: {type: command, program: lab, timeout_seconds: 2}",
    );
    home.begin("work", "echo done", ON);
    home.until("the first reason", || why(&home, "work").contains("no quota for crew-"));
    // A machine that was made for this cluster and that nobody knows of.
    let calls = fs::read_to_string(folder.join("calls")).unwrap();
    let named = calls.lines().find_map(|line| line.strip_prefix("create ")).unwrap();
    let orphan = format!("{}0000ff", &named[..named.len() - 6]);
    fs::create_dir_all(folder.join(&orphan)).unwrap();
    assert_eq!(home.ended("work")["status"], "Completed", "{}", why(&home, "work"));
    let calls = fs::read_to_string(folder.join("calls")).unwrap();
    // One that failed, one that hung, one that lied, one that came: each under a name of its own, each taken away if it may be there.
    let made: Vec<&str> = calls.lines().filter_map(|line| line.strip_prefix("create ")).collect();
    assert_eq!(made.len(), 4, "{calls}");
    assert!(made[..2].iter().all(|name| calls.contains(&format!("delete {name}"))), "{calls}");
    home.until("the orphan to go", || !folder.join(&orphan).exists());
    let shown = home.json(&["compute", "show", "-n", "crew"]);
    assert!(shown["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{shown}");
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    assert!(others.iter().all(|name| folder.join(name).exists()), "what is another's stays");
    assert!(agents(&home).is_empty());
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        3 + others.len(),
        "calls, mode and tier are left, and what is another's"
    );
}
