#!/usr/bin/env bash
# Replaces one model by another behind a stable address: by hand, then watched. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
ask() { peregrine online-endpoint invoke -n greetings -r request.json "$@"; }
trap 'peregrine online-endpoint delete -n greetings --yes' EXIT

peregrine online-endpoint create -n greetings -o none
peregrine online-deployment create -f blue.yml --all-traffic -o none
ask | grep "Good day, Ada"

# Beside it, without traffic: only callers that name it reach it.
peregrine online-deployment create -f green.yml -o none
ask | grep "Good day, Ada"
ask -d green | grep "Hello, Ada"

# One request in ten, then as much as its answers allow.
peregrine online-endpoint update -n greetings --traffic "blue=90 green=10" -o none
peregrine online-deployment rollout -n green -e greetings --steps 50,100 --step-duration 3s --max-slowdown 100 \
    -r request.json --rps 20
ask | grep "Hello, Ada"

peregrine online-deployment delete -n blue -e greetings --yes
ask | grep "Hello, Ada"
