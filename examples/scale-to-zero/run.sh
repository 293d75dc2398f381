#!/usr/bin/env bash
# A model that sleeps until it is asked. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
trap 'peregrine online-endpoint delete -n now-and-then --yes' EXIT

peregrine online-endpoint create -f endpoint.yml -o none
peregrine online-deployment create -f deployment.yml --all-traffic -o none
peregrine online-endpoint invoke -n now-and-then -r request.json

# Nobody asks: after a while there is no replica left.
for _ in $(seq 90); do
    state=$(peregrine online-deployment show -n sleeper -e now-and-then --query 'properties."peregrine.state"' -o tsv)
    echo "$state"
    [[ $state == *"0 of 0"* || $state == *"no replica"* ]] && break
    sleep 1
done

# The next request is held while a replica starts, and answered.
peregrine online-endpoint invoke -n now-and-then -r request.json
