#!/usr/bin/env bash
# The commands of README.md, with a Slurm of its own: a controller and one node. PEREGRINE_BIN names the binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
if [ ! -x /usr/sbin/slurmctld ] || [ ! -x /usr/sbin/slurmd ] || [ ! -x /usr/sbin/munged ] || [ "$(id -u)" != 0 ]; then
    echo "skipped: Slurm clusters (Slurm's daemons are not installed, or this is not root)"
    exit 0
fi
folder="$(mktemp -d)"
mkdir -p "$folder"/{state,spool,user}
export PEREGRINE_HOME="$folder/home" PEREGRINE_ROUTER_LISTEN=127.0.0.1:0 HOME="$folder/user" SLURM_CONF="$folder/slurm.conf"
peregrine() { "${PEREGRINE_BIN:-peregrine}" "$@"; }
daemons=()
end() {
    peregrine compute detach -n hpc --yes --force || true
    peregrine server stop
    scancel --user=root || true
    # Its steps are ended by the node, which must not go before them.
    for _ in $(seq 50); do
        [ -n "$(squeue -h)" ] || break
        sleep 0.2
    done
    kill -9 "${daemons[@]}"
    wait "${daemons[@]}" 2> /dev/null || true
    rm -rf "$folder"
}
# Waits for a command to succeed, a minute at most.
soon() {
    what="$1"
    shift
    for _ in $(seq 300); do
        if "$@"; then return; fi
        sleep 0.2
    done
    echo "waited in vain for $what" >&2
    exit 1
}
is_idle() { [ "$(sinfo -h -o %T 2> /dev/null)" = idle ]; }
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

(umask 077 && head -c 1024 /dev/urandom > "$folder/munge.key")
cat > "$SLURM_CONF" <<CONFIG
ClusterName=example
SlurmctldHost=$(uname -n)(127.0.0.1)
SlurmctldPort=$(port)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.sock
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
NodeName=n1 NodeHostname=$(uname -n) NodeAddr=127.0.0.1 Port=$(port) CPUs=2 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES State=UP
CONFIG
munged --foreground --force --key-file "$folder/munge.key" --socket "$folder/munge.sock" --pid-file "$folder/munge.pid" \
    --log-file "$folder/munge.log" --seed-file "$folder/munge.seed" 2> /dev/null &
daemons+=($!)
trap end EXIT
soon "munge" test -S "$folder/munge.sock"
slurmctld -D -c 2> /dev/null &
daemons+=($!)
slurmd -D -N n1 2> /dev/null &
daemons+=($!)
soon "an idle node" is_idle

peregrine compute attach -f hpc.yml
peregrine job create -f job.yml -n there --stream
peregrine job download -n there --output-name report -p "$folder/got"
grep -r '^batch job [0-9]* has 2 CPUs of n1$' "$folder/got"
peregrine job create -f sweep.yml --stream
