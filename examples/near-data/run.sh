#!/usr/bin/env bash
# The commands of README.md, each checked. PEREGRINE_BIN names the binary.
set -euo pipefail
folder="$(mktemp -d)"
cp "$(dirname "${BASH_SOURCE[0]}")"/*.yml "$folder"
cd "$folder"
export PEREGRINE_HOME="$folder/home" PEREGRINE_ROUTER_LISTEN=127.0.0.1:0
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
end() {
    peregrine compute delete -n crew --yes || true
    peregrine server stop
    rm -rf "$folder"
}
trap end EXIT
# Waits for a command to succeed, a minute at most.
soon() {
    what="$1"
    shift
    for _ in $(seq 300); do
        if "$@"; then return; fi
        sleep 0.2
    done
    echo "waited in vain for $what" >&2
    exit 1
}
is_kept() { peregrine data show -n numbers --label latest -o json | grep -q '"kept_on"'; }

mkdir numbers
head -c 8M /dev/urandom > numbers/one.bin
peregrine compute create -f cluster.yml
peregrine data create -f numbers.yml
peregrine data replicate -n numbers --to crew
soon "a copy on the cluster" is_kept
peregrine job create -f job.yml -n reads --stream
moved="$(peregrine job show -n reads -o json | python3 -c 'import json, sys; print(json.load(sys.stdin)["peregrine"]["data_bytes"])')"
echo "bytes of the job: $moved"
python3 - "$moved" <<'CHECK'
import ast, sys
moved = ast.literal_eval(sys.argv[1])
assert moved["store"] < 1000 and moved["cache"] >= 8 << 20, moved
CHECK
