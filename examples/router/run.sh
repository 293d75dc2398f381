#!/usr/bin/env bash
# Two replicas, a router before them, and a few requests. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait' EXIT

for deployment in "18481 blue" "18482 green"; do
    read -r port name <<<"$deployment"
    python3 replica.py "$port" "$name" &
    started+=($!)
done
"${PEREGRINE_BIN:-peregrine}" router --routes routes.yml --listen 127.0.0.1:18480 &
started+=($!)

ask() {
    curl --silent --show-error --fail --retry 50 --retry-delay 1 --retry-connrefused --retry-all-errors \
        -H "authorization: Bearer a-key-for-trying-out" -H "content-type: application/json" "$@" \
        -d '{"name": "Ada"}' http://127.0.0.1:18480/api/v1/endpoint/greeter/score
}
ask
echo
# Past the split, to the deployment that is named.
ask -H "azureml-model-deployment: green" | grep --quiet '"green"'
echo "green answers when it is asked for"
