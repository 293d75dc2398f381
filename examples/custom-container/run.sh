#!/usr/bin/env bash
# Makes an image, serves it and asks it, in a home of its own. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
skip() {
    echo "skipped: custom container ($1)"
    exit 0
}

engine=$(command -v podman || command -v docker || true)
if [ -z "$engine" ]; then
    # In a checkout of the repository the podman of its tests will do.
    settings=$(sh ../../tests/e2e/podman.sh "$HOME/.cache/peregrine/tools/podman-bookworm-1" 2>/dev/null) || skip "no podman, no docker"
    while IFS= read -r setting; do export "${setting?}"; done <<<"$settings"
    engine=$(command -v podman)
fi
busybox=$(command -v busybox || echo "$(dirname "$engine")/../../bin/busybox")
[ -x "$busybox" ] || skip "no busybox"

home=$(mktemp -d)
export PEREGRINE_HOME="$home/server" PEREGRINE_ROUTER_LISTEN=127.0.0.1:0
cleanup() {
    peregrine online-endpoint delete -n word-count --yes || true
    peregrine server stop || true
    rm -rf "$home"
}
trap cleanup EXIT

mkdir -p "$home/image/bin"
cp "$busybox" "$home/image/bin/busybox"
for name in sh head wc; do ln -s busybox "$home/image/bin/$name"; done
cp -r www "$home/image/www"
tar -C "$home/image" -c . | "$engine" import --change 'CMD ["/bin/busybox", "httpd", "-f", "-h", "/www", "-p", "8000"]' - localhost/peregrine-word-count:1
"$engine" run --rm --publish 127.0.0.1::8000 localhost/peregrine-word-count:1 /bin/busybox true 2>/dev/null || skip "the engine cannot run a container here"

peregrine online-endpoint create -f endpoint.yml -o none
peregrine online-deployment create -f blue.yml --all-traffic -o none
peregrine online-endpoint invoke -n word-count --request-file request.txt | tee /dev/stderr | grep --quiet '"words": 9'
