#!/usr/bin/env bash
# Makes an image, serves it and asks it, in a home of its own. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
skip() {
    echo "skipped: custom container ($1)"
    exit 0
}
working() {
    for engine in podman docker; do
        if command -v "$engine" && "$engine" info >/dev/null 2>&1; then return; fi
    done
    return 1
}

if ! engine=$(working); then
    # In a checkout of the repository the podman of its tests will do.
    settings=$(sh ../../tests/e2e/podman.sh "$HOME/.cache/peregrine/tools/podman-bookworm-1" 2>/dev/null) || skip "no podman, no docker"
    while IFS= read -r setting; do export "${setting?}"; done <<<"$settings"
    engine=$(working) || skip "the engine does not work here"
fi
engine=$(tail -n 1 <<<"$engine")
busybox=$(command -v busybox || echo "$(dirname "$engine")/../../bin/busybox")
[ -x "$busybox" ] || skip "no busybox"

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkdir -p "$home/image/bin"
cp "$busybox" "$home/image/bin/busybox"
for name in sh head wc; do ln -s busybox "$home/image/bin/$name"; done
cp -r www "$home/image/www"
image=localhost/peregrine-word-count:1
tar -C "$home/image" -c . | "$engine" import --change 'CMD ["/bin/busybox", "httpd", "-f", "-h", "/www", "-p", "8000"]' - "$image"
"$engine" run --rm --publish 127.0.0.1::8000 "$image" /bin/busybox true || skip "the engine cannot run a container here"

export PEREGRINE_HOME="$home/server" PEREGRINE_ROUTER_LISTEN=127.0.0.1:0
cleanup() {
    peregrine online-endpoint delete -n word-count --yes
    # Its containers are ended by the server's own hand.
    timeout 60 sh -c "while [ -n \"\$('$engine' ps -aq --filter 'ancestor=$image')\" ]; do sleep 0.2; done"
    peregrine server stop
    rm -rf "$home"
}
trap cleanup EXIT
peregrine online-endpoint create -f endpoint.yml -o none
peregrine online-deployment create -f blue.yml --all-traffic -o none
peregrine online-endpoint invoke -n word-count --request-file request.txt | tee -a /dev/stderr | grep --quiet '"words": 9'
