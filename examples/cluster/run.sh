#!/usr/bin/env bash
# The commands of README.md, each checked. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
folder="$(mktemp -d)"
export PEREGRINE_HOME="$folder/home" PEREGRINE_ROUTER_LISTEN=127.0.0.1:0
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
end() {
    peregrine compute delete -n small --yes || true
    peregrine server stop
    rm -rf "$folder"
}
trap end EXIT

peregrine compute create -f cluster.yml
test "$(peregrine compute list-nodes -n small -o json)" = '[]'
peregrine job create -f job.yml -n steps -o none
log="$PEREGRINE_HOME/blobs/default/azureml/ExperimentRun/dcid.steps/user_logs/std_log.txt"
until grep -q 'step 4' "$log" 2> /dev/null; do sleep 0.1; done
peregrine compute preempt -n small
peregrine job stream -n steps
peregrine job download -n steps --all -p "$folder/got" > /dev/null
again="$(find "$folder/got" -path '*retry-001*' -name std_log.txt)"
grep -q 'step 12' "$again"
if grep -q 'begins after step 0' "$again"; then
    echo "the second attempt began anew" >&2
    exit 1
fi
echo "the second attempt: $(head -n 1 "$again")"
