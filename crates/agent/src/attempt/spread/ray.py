"""Starts a Ray cluster over the nodes of a job and, on the first of them, the job's command once all are there.

Arguments: NODES RANK ADDRESS [arguments of `ray start` ...] -- COMMAND ...
The end of the command is the end of the cluster; the other nodes leave when the first has gone.
"""

import os
import socket
import subprocess
import sys
import time

PATIENCE_S = 300
nodes, rank, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
split = sys.argv.index("--")
extra, command = sys.argv[4:split], sys.argv[split + 1:]
host, _, port = address.rpartition(":")


def answers():
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        return True
    except OSError:
        return False


def give_up(text):
    sys.exit(f"ray: {text}")


def until(holds, text):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            give_up(f"{text} within {PATIENCE_S} s")
        time.sleep(0.2)


def start(*more):
    try:
        return subprocess.Popen(["ray", "start", "--block", "--disable-usage-stats", *more, *extra])
    except FileNotFoundError:
        give_up("there is no `ray` in the environment (next step: add `ray` to its packages)")


COUNT = """import ray, sys, time
ray.init(address=sys.argv[1], logging_level='ERROR', log_to_driver=False)
end = time.monotonic() + float(sys.argv[3])
while sum(node['Alive'] for node in ray.nodes()) < int(sys.argv[2]):
    if time.monotonic() > end:
        sys.exit(f'ray: not all {sys.argv[2]} nodes have joined within {sys.argv[3]} s')
    time.sleep(0.2)
"""


def lead():
    cluster = start("--head", f"--node-ip-address={host.strip('[]')}", f"--port={port}")
    until(lambda: cluster.poll() is not None or answers(), "the first node does not answer")
    if cluster.poll() is not None:
        give_up(f"the first node could not be started: exit code {cluster.returncode}")
    counted = subprocess.run([sys.executable, "-c", COUNT, address, str(nodes), str(PATIENCE_S)])
    code = counted.returncode or subprocess.run(command).returncode
    cluster.terminate()
    # A command that a signal has ended has no code of its own.
    sys.exit(code if code >= 0 else 128 - code)


def follow():
    until(answers, "the first node does not answer")
    member = start(f"--address={address}")
    silent = 0
    while silent < 3:
        time.sleep(1)
        silent = 0 if answers() else silent + 1
        if member.poll() is not None and not silent:
            give_up(f"this node has left the cluster: exit code {member.returncode}")
    member.terminate()


sys.stdout.reconfigure(line_buffering=True)
os.environ["RAY_ADDRESS"] = address
# Without a word from the user, Ray asks for a token on nodes that happen to have one in their home, and on no others.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
lead() if rank == 0 else follow()
