#!/usr/bin/env bash
# The commands of README.md on a test cluster, with a server of its own where pods reach it. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
cluster="${PEREGRINE_TEST_CLUSTER:-$HOME/.cache/peregrine/cluster/test/env}"
if [ ! -r "$cluster" ]; then
    echo "skipped: no Kubernetes (none is up: \`cargo xtask cluster up\`)"
    exit 0
fi
set -a
. "$cluster"
set +a
folder="$(mktemp -d)"
export PEREGRINE_HOME="$folder/home"
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
end() {
    peregrine compute detach -n lab --yes --force
    peregrine extension uninstall --yes
    "$KUBECTL" delete namespace ml-example --ignore-not-found --wait=false
    peregrine server stop
    rm -rf "$folder"
}
trap end EXIT

# An authority, and a certificate for the address at which pods see this machine.
certificate() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "$@" 2>/dev/null; }
certificate -subj "/CN=example authority" -keyout "$folder/ca.key" -out "$folder/ca.pem"
certificate -subj "/CN=example server" -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -addext "subjectAltName=IP:$HOST_ADDRESS" \
    -addext "basicConstraints=critical,CA:FALSE" -keyout "$folder/server.key" -out "$folder/server.pem"
mkdir -p "$PEREGRINE_HOME/keys"
cp "$folder/ca.pem" "$PEREGRINE_HOME/keys/authority.pem"
address="$HOST_ADDRESS:17423"
peregrine config set server.authority_file "$folder/ca.pem"
peregrine server start --listen "$address" --tls-cert "$folder/server.pem" --tls-key "$folder/server.key"
peregrine config set server.url "https://$address"

peregrine extension install --cluster-name example --server "https://$address" --image "$PEREGRINE_IMAGE" --config enableTraining=True
peregrine compute apply -f instance-type.yml
"$KUBECTL" create namespace ml-example
peregrine compute attach --type kubernetes -n lab --namespace ml-example
# What was applied is offered a few seconds later.
timeout 60 bash -c "until ${PEREGRINE_BIN:-peregrine} compute show -n lab | grep --quiet half-core; do sleep 1; done"
peregrine job create -f job.yml --set environment.image="$PYTHON_IMAGE" -n average --stream
peregrine job download -n average --output-name result --download-path "$folder/result"
grep --recursive --quiet '^15.0$' "$folder/result"
