#!/usr/bin/env bash
# Deploys a model, asks it, looks at its log, measures it, and takes everything down. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
trap 'peregrine online-endpoint delete -n house-prices --yes' EXIT

peregrine online-endpoint create -f endpoint.yml -o none
peregrine online-deployment create -f blue.yml --all-traffic -o none
peregrine online-endpoint invoke -n house-prices --request-file request.json | tee -a /dev/stderr | grep --quiet 240000
peregrine online-deployment get-logs -n blue -e house-prices | grep "loaded"
peregrine online-endpoint test -n house-prices -r request.json --rps 20 --duration 3s -o table
