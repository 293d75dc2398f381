//! What the shell of a login node is asked to do with Slurm's commands.

use super::Shape;
use crate::{
    shell::quote,
    ssh::scripts::{WORDS, folder, program},
};
use domain::{AttemptId, cluster::Launch};

pub(super) const VERSION: &str = "sinfo --version\n";
pub(super) const PARTITIONS: &str = "sinfo -h -o %P\n";
/// Name, state, CPUs as allocated/idle/other/total, memory in MiB, memory allocated, resources such as GPUs.
pub(super) const NODES: &str =
    "sinfo -h -N -O 'NodeList:100|,StateLong:30|,CPUsState:40|,Memory:20|,AllocMem:20|,Gres:200'\n";

/// `number` finds the batch job of the attempt whose folder is `$a`: as it was written down, or else by the name it was sent
/// under. Without an answer from Slurm nothing can be said, and the script ends.
const NUMBER: &str = r#"me=$(id -un)
number() {
  id=; read -r id 2>/dev/null < "$a/job"
  if [ -z "$id" ] && read -r n i 2>/dev/null < "$a/sent"; then
    all=$(squeue -h -t all -u "$me" -n "$n" -o %F) || exit 1
    all=${all%%[!0-9]*}; [ -n "$all" ] && id=$all$i
  fi
  [ -n "$id" ]
}
"#;

/// Writes down where agents find the server from now on.
pub(super) fn reached_at(key: &str, server: &str) -> String {
    let server = quote(server);
    format!(
        "{WORDS}{}mkdir -p \"$d/a\" \"$top/shared\" && printf %s {server} > \"$d/server.new\" && mv \"$d/server.new\" \"$d/server\"\n",
        folder(key)
    )
}

/// Every batch job of this target that Slurm knows of, and every attempt that has a folder. Slurm and the disk are asked once,
/// however many there are.
pub(super) fn look(key: &str) -> String {
    format!(
        r#"{WORDS}{}echo "now|$(date +%s)"
all=$(squeue -h -r -t all -u "$(id -un)" -O 'JobArrayID:40|,Name:128|,State:20|,RestartCnt:10|,Reason:128|,NodeList:256|,StartTime:24') || exit 1
printf '%s\n' "$all" | sed -n '/|pg-{key}-/s/^/queue|/p'
cd "$d/a" && find . -mindepth 2 -maxdepth 2 -type f \
  \( -name sent -o -name job -o -name parts -o -name '*.node' -o -name '*.left' \) -exec grep -H . {{}} +
exit 0
"#,
        folder(key)
    )
}

/// How batch jobs ended that the controller has forgotten, as the accounting has it.
pub(super) fn ends(ids: &[&str]) -> String {
    let list = quote(&ids.join(","));
    format!("sacct -n -P -X -j {list} -o JobID,State,ExitCode 2>/dev/null | sed 's/^/end|/'\nexit 0\n")
}

/// Sends attempts of one shape, several as one array, and none that was sent before; prints `refused` and why where Slurm does
/// not take them.
pub(super) fn launch(key: &str, digest: &str, shape: &Shape, launches: &[Launch]) -> String {
    let Some(first) = launches.first() else { return String::new() };
    let words: Vec<String> = arguments(shape, first).iter().map(|word| quote(word)).collect();
    let names: Vec<String> = launches.iter().map(|launch| launch.attempt.to_string()).collect();
    let token = |launch: &Launch| format!("{}) printf %s {} ;;\n", launch.attempt, quote(&launch.token));
    let tokens: String = launches.iter().map(token).collect();
    // One agent a node, with its own folder on the node's disk; how it left is written where all see it.
    let part = format!(
        r#"#!/bin/sh
umask 077
a=$1; bin=$2; i=$SLURM_PROCID; t=${{a##*/}}; node=${{SLURMD_NODENAME:-$(uname -n)}}
h="${{TMPDIR:-/tmp}}/pg-{key}-$t-$i"; mkdir -p "$h" || exit 1
echo "$node" > "$a/$i.node"
export PEREGRINE_SERVER_FILE="$a/../../server" PEREGRINE_TOKEN_FILE="$a/token" PEREGRINE_CA_FILE="$a/authority" PEREGRINE_ATTEMPT=$t
export PEREGRINE_PART=$i PEREGRINE_HOME="$h" PEREGRINE_SHARED="$HOME/.peregrine-agent/shared" PEREGRINE_OUTSIDE=1
export POD_IP=$(uname -n) NODE_NAME=$node
"$bin" agent pod > "$a/$i.log" 2>&1 &
p=$!
trap 'kill -TERM $p' TERM INT
wait $p; c=$?
while kill -0 $p 2>/dev/null; do wait $p; c=$?; done
echo $c > "$a/$i.new" && mv "$a/$i.new" "$a/$i.left"
chmod -R u+w "$h" 2>/dev/null; rm -rf "$h"
"#
    );
    // Slurm keeps a copy of the script, which says which attempt is which of the array. One that Slurm begins again has had
    // its agent: it is left to another attempt.
    let batch = r#"#!/bin/sh\nset -- %s\nshift ${SLURM_ARRAY_TASK_ID:-0}\na="%s/a/$1"\nexec > "$a/slurm.log" 2>&1\n[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exit 0\nexec srun --kill-on-bad-exit=0 --wait=0 sh "$a/part.sh" "$a" "%s"\n"#;
    format!(
        r#"{WORDS}{}{NUMBER}bin={}
token() {{ case "$1" in
{tokens}esac; }}
# A script whose caller is gone may still be at it.
exec 9> "$d/lock"; command -v flock > /dev/null && flock 9
todo=
for t in {}; do
  a="$d/a/$t"
  if [ -e "$a" ]; then
    number && echo "$id" > "$a/job" && continue
    rm -rf "$a"
  fi
  todo="$todo $t"
done
set -- $todo
[ $# -gt 0 ] || exit 0
n="pg-{key}-$1"; many=; [ $# -gt 1 ] && many=1
k=0
for t; do
  a="$d/a/$t"; mkdir "$a" || exit 1
  token "$t" > "$a/token" && printf %s {} > "$a/authority" && echo {} > "$a/parts" && printf %s {} > "$a/part.sh" || exit 1
  echo "$n ${{many:+_$k}}" > "$a/sent"
  k=$((k+1))
done
printf '{batch}' "$*" "$d" "$bin" > "$d/batch.sh"
id=$(cd "$d" && sbatch {} --job-name="$n" ${{many:+--array=0-$((k-1))}} --output=/dev/null "$d/batch.sh" 2> "$d/refused") || {{
  # It may have been taken all the same. Without an answer nothing is known, and whoever comes next finds it by its name.
  id=$(squeue -h -t all -u "$me" -n "$n" -o %F) || {{ cat "$d/refused" >&2; exit 1; }}
  id=${{id%%[!0-9]*}}
  if [ -z "$id" ]; then
    echo "refused $(tr '\n' ' ' < "$d/refused")"; for t; do rm -rf "$d/a/$t"; done; exit 0
  fi
}}
id=${{id%%;*}}; k=0
for t; do echo "$id${{many:+_$k}}" > "$d/a/$t/job"; k=$((k+1)); done
"#,
        folder(key),
        program(digest),
        names.join(" "),
        quote(&first.authority),
        first.parts,
        quote(&part),
        words.join(" "),
    )
}

/// The words of `sbatch` for an attempt and those like it.
fn arguments(shape: &Shape, launch: &Launch) -> Vec<String> {
    let mut words = vec![
        "--parsable".to_owned(),
        "--no-requeue".to_owned(),
        format!("--comment=peregrine {}", launch.parent.as_deref().unwrap_or(launch.job.as_str())),
        format!("--nodes={}", launch.parts),
        format!("--ntasks={}", launch.parts),
        "--ntasks-per-node=1".to_owned(),
    ];
    let whole = shape.asks.cpu_milli.div_ceil(1000);
    words.extend((whole > 0).then(|| format!("--cpus-per-task={whole}")));
    words.extend((shape.asks.memory_bytes > 0).then(|| format!("--mem={}M", shape.asks.memory_bytes >> 20)));
    let gpus = (shape.asks.gpus > 0).then(|| format!("gpu:{}", shape.asks.gpus));
    let named = [
        ("partition", &shape.partition),
        ("account", &shape.account),
        ("qos", &shape.qos),
        ("gres", &shape.gres.clone().or(gpus)),
    ];
    words.extend(named.into_iter().filter_map(|(key, value)| Some(format!("--{key}={}", value.as_ref()?))));
    words.extend(launch.deadline_seconds.map(|seconds| format!("--time={}", seconds.div_ceil(60))));
    words.extend(shape.arguments.iter().cloned());
    words
}

/// Takes back batch jobs that have not begun: nobody there could hear of it. (`scancel --state` would take the whole array.)
pub(super) fn stop(key: &str, attempts: &[AttemptId]) -> String {
    format!(
        r#"{WORDS}{}{NUMBER}waits=$(squeue -h -r -t PENDING -u "$me" -o %i) || exit 1
ids=
for t in {}; do
  a="$d/a/$t"
  number && printf '%s\n' "$waits" | grep -qxF "$id" && ids="$ids $id"
done
[ -z "$ids" ] || scancel $ids
exit 0
"#,
        folder(key),
        words(attempts)
    )
}

/// Ends batch jobs, if they still are some, and removes their folders once they are gone.
pub(super) fn remove(key: &str, attempts: &[AttemptId]) -> String {
    format!(
        r#"{WORDS}{}{NUMBER}ids=; left=
for t in {}; do
  a="$d/a/$t"
  [ -e "$a" ] || continue
  if number; then ids="$ids $id"; left="$left $t=$id"; else rm -rf "$a"; fi
done
[ -z "$ids" ] || scancel $ids 2>/dev/null
for again in 1 2 3 4 5 6 7 8 9 10; do
  set -- $left; left=
  [ $# -gt 0 ] || exit 0
  there=$(squeue -h -r -u "$me" -o %i) || exit 1
  for one; do
    if printf '%s\n' "$there" | grep -qxF "${{one#*=}}"; then left="$left $one"; else rm -rf "$d/a/${{one%%=*}}"; fi
  done
  [ -z "$left" ] || sleep 0.3
done
exit 0
"#,
        folder(key),
        words(attempts)
    )
}

fn words(attempts: &[AttemptId]) -> String {
    attempts.iter().map(AttemptId::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Resources;
    use std::{
        fs,
        os::unix::fs::PermissionsExt,
        path::Path,
        process::{Command, Output},
    };

    fn attempt() -> Launch {
        Launch { token: "secret".to_owned(), ..Launch::fixture(AttemptId::of(1, 0)) }
    }

    /// A command of Slurm's that is a script of ours.
    fn command(home: &Path, name: &str, text: &str) {
        let file = home.join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(home: &Path, script: &str) -> Output {
        let path = format!("{}:{}", home.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).env("HOME", home).env("PATH", path).env_remove("PEREGRINE_TOP");
        shell.output().unwrap()
    }

    #[test]
    fn a_shape_and_an_attempt_become_words_of_sbatch() {
        let asks = Resources { cpu_milli: 3500, memory_bytes: 6 << 30, gpus: 2 };
        let text = |word: &str| Some(word.to_owned());
        let shape = Shape {
            asks,
            partition: text("gpu"),
            account: text("lab"),
            qos: text("long"),
            gres: None,
            arguments: vec!["--exclusive".to_owned()],
        };
        let launch = Launch { parts: 2, deadline_seconds: Some(7201), parent: text("sweep"), ..attempt() };
        let usual = ["--parsable", "--no-requeue", "--comment=peregrine sweep"];
        let own = [
            "--nodes=2",
            "--ntasks=2",
            "--ntasks-per-node=1",
            "--cpus-per-task=4",
            "--mem=6144M",
            "--partition=gpu",
            "--account=lab",
            "--qos=long",
            "--gres=gpu:2",
            "--time=121",
            "--exclusive",
        ];
        assert_eq!(arguments(&shape, &launch), [&usual[..], &own[..]].concat());
        // What is named takes the place of what is counted; what is not said is left to Slurm.
        let named = arguments(&Shape { gres: text("gpu:a100:1"), ..shape }, &launch);
        assert!(named.contains(&"--gres=gpu:a100:1".to_owned()) && !named.contains(&"--gres=gpu:2".to_owned()));
        let plain = arguments(&Shape::default(), &attempt());
        let left = ["--gres", "--mem", "--time", "--account", "--qos", "--partition", "--cpus-per-task"];
        assert!(left.iter().all(|key| !plain.iter().any(|word| word.starts_with(key))), "{plain:?}");
    }

    #[test]
    fn what_slurm_took_without_saying_so_is_not_sent_again() {
        let send = launch("k", "digest", &Shape::default(), &[attempt()]);
        // What `squeue` does; whether the script ends well, what it prints, and the number it writes down.
        for (squeue, well, says, number) in [
            ("exit 1", false, "", None),
            ("echo 41", true, "", Some("41\n")),
            ("exit 0", true, "refused no answer \n", None),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let home = folder.path();
            command(home, "sbatch", r#"echo sent >> "$HOME/sent"; echo "no answer" >&2; exit 1"#);
            command(home, "squeue", squeue);
            assert!(run(home, &reached_at("k", "https://server")).status.success());
            let ran = run(home, &send);
            assert_eq!((ran.status.success(), &*String::from_utf8_lossy(&ran.stdout)), (well, says), "{ran:?}");
            let kept = home.join(".peregrine-agent/k/a/att_1_0");
            assert_eq!(fs::read_to_string(kept.join("job")).ok().as_deref(), number);
            assert_eq!(kept.join("sent").exists(), says.is_empty());
            // Once Slurm tells of it, it is known again.
            command(home, "squeue", "echo 41");
            if kept.exists() {
                assert!(run(home, &send).status.success());
                assert_eq!(fs::read_to_string(kept.join("job")).unwrap(), "41\n");
                assert_eq!(fs::read_to_string(home.join("sent")).unwrap(), "sent\n", "once");
            }
        }
    }
}
