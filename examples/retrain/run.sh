#!/usr/bin/env bash
# New data, and the endpoint answers with a model trained on it. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
clean() {
    for schedule in retrain rollout; do peregrine schedule delete -n "$schedule" --yes || true; done
    peregrine online-endpoint delete -n house-loop --yes || true
}
trap clean EXIT

# The first model: the schedule is started by hand, with the data there is.
peregrine data create -n house-sales --path sales-1.csv --type uri_file -o none
peregrine schedule create -f retrain.yml -o none
job=$(peregrine schedule trigger -n retrain --query job_name -o tsv)
peregrine job stream -n "$job"
peregrine online-endpoint create -n house-loop -o none
peregrine online-deployment create -f blue.yml --all-traffic -o none
peregrine online-endpoint invoke -n house-loop -r request.json | tee -a /dev/stderr | grep --quiet 200000

# From here on the loop runs by itself: new data is all it takes.
peregrine schedule create -f rollout.yml -o none
peregrine data create -n house-sales --path sales-2.csv --type uri_file -o none
for _ in $(seq 120); do
    answer=$(peregrine online-endpoint invoke -n house-loop -r request.json)
    grep --quiet 300000 <<<"$answer" && break
    sleep 1
done
echo "$answer" | tee -a /dev/stderr | grep --quiet 300000
peregrine schedule show -n retrain --query 'peregrine.runs[].[cause, made]' -o tsv
peregrine schedule show -n rollout --query 'peregrine.runs[].[cause, made]' -o tsv
