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

fn name(key: &str, attempt: &AttemptId) -> String {
    format!("pg-{key}-{attempt}")
}

/// Writes down where agents find the server from now on.
pub(super) fn reached_at(key: &str, server: &str) -> String {
    let server = quote(server);
    format!(
        "{WORDS}{}mkdir -p \"$d/a\" \"$top/shared\" && printf %s {server} > \"$d/server.new\" && mv \"$d/server.new\" \"$d/server\"\n",
        folder(key)
    )
}

/// Every batch job of this target that Slurm queues, and every attempt that has a folder.
pub(super) fn look(key: &str) -> String {
    format!(
        r#"{WORDS}{}echo "now|$(date +%s)"
squeue -h -u "$(id -un)" -o 'queue|%i|%j|%T|%r|%N' | grep '|pg-{key}-'
for a in "$d"/a/att_*; do
  [ -d "$a" ] || continue
  n=${{a##*/}}
  echo "attempt|$n|$(cat "$a/job" 2>/dev/null)|$(cat "$a/parts")"
  for f in "$a"/*.node; do [ -e "$f" ] && i=${{f##*/}} && echo "node|$n|${{i%.node}}|$(cat "$f")"; done
  for f in "$a"/*.left; do [ -e "$f" ] && i=${{f##*/}} && echo "left|$n|${{i%.left}}|$(cat "$f")"; done
done
exit 0
"#,
        folder(key)
    )
}

/// How batch jobs ended: as the accounting has it, or the controller where there is none.
pub(super) fn ends(ids: &[&str]) -> String {
    let list = ids.join(",");
    let each = ids.iter().map(|id| format!("scontrol -o show job {} 2>/dev/null\n", quote(id))).collect::<String>();
    format!(
        "sacct -n -P -X -j {} -o JobID,State,ExitCode 2>/dev/null | sed 's/^/end|/' | grep . ||\n{{ {each}:; }} | sed -n \
         's/.*JobId=\\([0-9]*\\) .*JobState=\\([A-Z_]*\\) .*ExitCode=\\([0-9:]*\\) .*/end|\\1|\\2|\\3/p'\nexit 0\n",
        quote(&list)
    )
}

/// Sends an attempt, unless it was sent; prints `refused` and why where Slurm does not take it.
pub(super) fn launch(key: &str, digest: &str, shape: &Shape, launch: &Launch) -> String {
    let attempt = launch.attempt.to_string();
    let words: Vec<String> = arguments(key, shape, launch).iter().map(|word| quote(word)).collect();
    // One agent a node, with its own folder on the node's disk; how it left is written where all see it.
    let part = format!(
        r#"#!/bin/sh
umask 077
a=$1; bin=$2; i=$SLURM_PROCID
h="${{TMPDIR:-/tmp}}/pg-{key}-{attempt}-$i"; mkdir -p "$h" || exit 1
uname -n > "$a/$i.node"
export PEREGRINE_SERVER_FILE="$a/../../server" PEREGRINE_TOKEN_FILE="$a/token" PEREGRINE_CA_FILE="$a/authority" PEREGRINE_ATTEMPT={attempt}
export PEREGRINE_PART=$i PEREGRINE_HOME="$h" PEREGRINE_SHARED="$HOME/.peregrine-agent/shared" PEREGRINE_OUTSIDE=1
export POD_IP=$(uname -n) NODE_NAME=$(uname -n)
"$bin" agent pod > "$a/$i.log" 2>&1 &
p=$!
trap 'kill -TERM $p' TERM INT
wait $p; c=$?
while kill -0 $p 2>/dev/null; do wait $p; c=$?; done
echo $c > "$a/$i.new" && mv "$a/$i.new" "$a/$i.left"
chmod -R u+w "$h" 2>/dev/null; rm -rf "$h"
"#
    );
    format!(
        r#"{WORDS}{}a="$d/a/"{attempt}; bin={}
if [ -e "$a" ]; then
  [ -s "$a/job" ] && exit 0
  id=$(squeue -h -u "$(id -un)" -n {} -o %i | head -n 1)
  [ -n "$id" ] && echo "$id" > "$a/job" && exit 0
  rm -rf "$a"
fi
mkdir "$a" || exit 1
printf %s {} > "$a/token" && printf %s {} > "$a/authority" && echo {} > "$a/parts" || exit 1
printf %s {} > "$a/part.sh"
printf '#!/bin/sh\nexec srun --kill-on-bad-exit=0 --wait=0 sh "%s/part.sh" "%s" "%s"\n' "$a" "$a" "$bin" > "$a/batch.sh"
id=$(cd "$a" && sbatch {} --output="$a/slurm.log" "$a/batch.sh" 2> "$a/refused") || {{
  echo "refused $(tr '\n' ' ' < "$a/refused")"; rm -rf "$a"; exit 0
}}
echo "${{id%%;*}}" > "$a/job.new" && mv "$a/job.new" "$a/job"
"#,
        folder(key),
        program(digest),
        quote(&name(key, &launch.attempt)),
        quote(&launch.token),
        quote(&launch.authority),
        launch.parts,
        quote(&part),
        words.join(" "),
    )
}

/// The words of `sbatch` for an attempt.
pub(super) fn arguments(key: &str, shape: &Shape, launch: &Launch) -> Vec<String> {
    let mut words = vec![
        "--parsable".to_owned(),
        "--no-requeue".to_owned(),
        format!("--job-name={}", name(key, &launch.attempt)),
        format!("--comment=peregrine {}", launch.job),
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

/// Takes back a batch job that has not begun: nobody there could hear of it.
pub(super) fn stop(key: &str, attempt: &AttemptId) -> String {
    format!("scancel --state=PENDING -u \"$(id -un)\" --name={}\nexit 0\n", quote(&name(key, attempt)))
}

/// Ends a batch job, if it still is one, and removes its folder once it is gone.
pub(super) fn remove(key: &str, attempt: &AttemptId) -> String {
    let name = quote(&name(key, attempt));
    format!(
        r#"{WORDS}{}a="$d/a/"{attempt}
scancel -u "$(id -un)" --name={name} 2>/dev/null
for t in 1 2 3 4 5 6 7 8 9 10; do
  [ -z "$(squeue -h -u "$(id -un)" -n {name} -o %i)" ] && rm -rf "$a" && exit 0
  sleep 0.3
done
exit 0
"#,
        folder(key)
    )
}
