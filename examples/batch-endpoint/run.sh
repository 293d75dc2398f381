#!/usr/bin/env bash
# Deploys a model for batches, scores a folder, looks at the result, and takes everything down. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
got=$(mktemp -d)
trap 'rm -rf "$got"; peregrine batch-endpoint delete -n house-prices-nightly --yes' EXIT

peregrine batch-endpoint create -f endpoint.yml -o none
peregrine batch-deployment create -f deployment.yml --set-default -o none
job=$(peregrine batch-endpoint invoke -n house-prices-nightly --input data --query name -o tsv)
peregrine job stream -n "$job"
peregrine job download -n "$job" --output-name score -p "$got"
find "$got" -name prices.csv -exec cat {} + | tee -a /dev/stderr | grep --quiet "mill,240000"
peregrine batch-endpoint list-jobs -n house-prices-nightly -o table
