#!/usr/bin/env bash
# The commands of README.md, with an sshd of its own as the machine. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
if [ ! -x /usr/sbin/sshd ]; then
    echo "skipped: machines over SSH (no sshd is installed)"
    exit 0
fi
folder="$(mktemp -d)"
export PEREGRINE_HOME="$folder/home" PEREGRINE_ROUTER_LISTEN=127.0.0.1:0
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
end() {
    peregrine compute detach -n box --yes --force || true
    peregrine server stop
    kill "$sshd"
    rm -rf "$folder"
}

ssh-keygen -q -t ed25519 -N '' -f "$folder/host"
ssh-keygen -q -t ed25519 -N '' -f "$folder/id"
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
mkdir -p "$folder/user" /run/sshd
cat > "$folder/config" <<CONFIG
Port $port
ListenAddress 127.0.0.1
HostKey $folder/host
AuthorizedKeysFile $folder/id.pub
PidFile none
UsePAM no
PermitRootLogin yes
StrictModes no
SetEnv HOME=$folder/user
CONFIG
/usr/sbin/sshd -D -f "$folder/config" -E "$folder/log" &
sshd=$!
trap end EXIT
until (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null; do sleep 0.1; done

fingerprint="$(ssh-keygen -lf "$folder/host.pub" | cut -d ' ' -f 2)"
peregrine job create -f job.yml --stream
peregrine compute attach --type virtualmachine -n box --address 127.0.0.1 --port "$port" --user "$(id -un)" \
    --private-key "$folder/id" --host-key "$fingerprint"
peregrine job create -n there -f job.yml --set compute=azureml:box --stream
peregrine job download -n there --output-name report -p "$folder/got"
grep -r "runs as $(id -un)" "$folder/got"
