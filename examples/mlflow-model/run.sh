#!/usr/bin/env bash
# Deploys an MLflow model as it is, asks it, and takes everything down. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
trap 'peregrine online-endpoint delete -n celsius --yes' EXIT

peregrine online-endpoint create -f endpoint.yml -o none
peregrine online-deployment create -f blue.yml --all-traffic -o none
peregrine online-endpoint invoke -n celsius --request-file request.json | tee -a /dev/stderr | grep --quiet '\[100.0, 0.0\]'
# What does not fit the signature is the caller's mistake, and is said to be.
if peregrine online-endpoint invoke -n celsius --request-file wrong.json 2>wrong.txt; then exit 1; fi
grep --quiet fahrenheit wrong.txt
rm wrong.txt
