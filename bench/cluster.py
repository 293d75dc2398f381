"""Managed clusters: from no node to the first line of a log, and what many idle nodes cost the server.

Usage: bench/cluster.py [zero] [agents]   (both without a name)
`zero`: a cluster without nodes gets a job; the figure is the time from the submit to the first line of its log, with the nodes as
processes of this machine. `agents`: so many nodes (AGENTS, 500) join and poll as real ones do, each over a connection of its
own; the figures are the server's processor time and memory. PEREGRINE_BIN names our binary. ROUNDS (10). Needs Linux.
"""

import asyncio
import json
import os
import statistics
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from run import Server, table, verdict  # noqa: E402

ROUNDS, AGENTS = (int(os.environ.get(name, usual)) for name, usual in (("ROUNDS", 10), ("AGENTS", 500)))
WATCHED_S = 60
COMPUTES = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/default/providers/Microsoft.MachineLearningServices/workspaces/default/computes"
FACTS = {"host": "box", "address": "127.0.0.1", "capacity": {"cpu_milli": 64000, "memory_bytes": 1 << 40, "gpus": 0}, "version": "0"}


def write(server, name, text, mode=0o644):
    path = Path(server.folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def ask(server, method, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", method=method, data=body and json.dumps(body).encode(),
                                     headers={"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or b"null")


def nodes(server):
    return ask(server, "POST", f"{COMPUTES}/crew/listNodes?api-version=2024-04-01", {})["nodes"]


def until(what, so, patience=120):
    deadline = time.monotonic() + patience
    while not so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited in vain for {what}")
        time.sleep(0.005)


def zero():
    """From no node to the first line of a log."""
    took = []
    with Server() as server:
        cluster = write(server, "crew.yml", "name: crew\ntype: amlcompute\nsize: Standard_D1_v2\nmax_instances: 2\nidle_time_before_scale_down: 0\n")
        server.run("compute", "create", "-f", cluster, "-o", "none")
        job = write(server, "job.yml", "command: echo hello\nenvironment: {image: 'python:3.12-slim'}\ncompute: azureml:crew\n")
        for turn in range(ROUNDS):
            until("the last node to go", lambda: not nodes(server))
            log = Path(server.home, f"blobs/default/azureml/ExperimentRun/dcid.zero{turn}/user_logs/std_log.txt")
            began = time.perf_counter()
            server.run("job", "create", "-f", job, "-n", f"zero{turn}", "-o", "none")
            until("the first line", lambda: log.exists() and log.stat().st_size)
            took.append(time.perf_counter() - began)
        server.run("compute", "delete", "-n", "crew", "--yes")
    middle = statistics.median(took)
    table(f"From no node to the first line of a log ({ROUNDS} rounds; load {os.getloadavg()[0]:.1f})", ["median s", "most s"], [[f"{middle:.2f}", f"{max(took):.2f}"]])
    print(f"\ngoal: at most 1 s: {middle:.2f} s, {verdict(middle <= 1)}")
    return middle <= 1


async def node(port, token, name, polls):
    """One node without work, as the server sees it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def post(path, token, body):
        body = json.dumps(body).encode()
        writer.write(f"POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length:"))
        text = await reader.readexactly(length)
        if " 200 " not in head.split("\r\n")[0]:
            raise RuntimeError(f"{name}: {head.splitlines()[0]} {text[:200]!r}")
        return json.loads(text)

    own = (await post("/node/v1/join", token, {"key": name * 8, "facts": FACTS}))["token"]
    while True:
        await post("/node/v1/poll", own, {"facts": FACTS, "holds": []})
        polls[0] += 1


def spent(pid):
    """Seconds of processor time and kilobytes of memory."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    resident = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(resident.split()[1])


async def crowd(server, before):
    polls, tasks, seen = [0], [], set()
    folder = Path(server.folder, "tokens")
    deadline = time.monotonic() + 300
    while len(seen) < AGENTS:
        for file in [file for file in folder.iterdir() if file.name not in seen and file.stat().st_size]:
            seen.add(file.name)
            tasks.append(asyncio.create_task(node(server.port, file.read_text(), file.name, polls)))
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {len(seen)} nodes were ordered")
        await asyncio.sleep(0.05)
    # Until the last has been heard of, things are not calm.
    await asyncio.sleep(25)
    (used, memory), polled = spent(server.pid), polls[0]
    await asyncio.sleep(WATCHED_S)
    after, grown = spent(server.pid)[0] - used, memory - before
    failed = [task.exception() for task in tasks if task.done()]
    if failed:
        raise RuntimeError(f"{len(failed)} nodes ended: {failed[0]}")
    for task in tasks:
        task.cancel()
    return after / WATCHED_S, grown / AGENTS, (polls[0] - polled) / WATCHED_S


def agents():
    """What idle nodes cost the server."""
    with Server() as server:
        write(server, "tokens/.keep", "")
        Path(server.folder, "tokens/.keep").unlink()
        script = f"""#!/bin/sh
cd {server.folder}/tokens || exit 1
case "$1" in list) ls ;; create) printf %s "$PEREGRINE_JOIN_TOKEN" > "$2" ;; delete) rm -f "$2" ;; esac
"""
        Path(server.home, "providers").mkdir(exist_ok=True)
        program = Path(server.home, "providers", "crowd")
        program.write_text(script)
        program.chmod(0o755)
        before = spent(server.pid)[1]
        cluster = write(server, "crew.yml", f"name: crew\ntype: amlcompute\nmin_instances: {AGENTS}\nmax_instances: {AGENTS}\nprovider: {{type: command, program: crowd}}\n")
        server.run("compute", "create", "-f", cluster, "-o", "none")
        share, each, rate = asyncio.run(crowd(server, before))
        states = {one["nodeState"] for one in nodes(server)}
    table(f"{AGENTS} idle nodes on one server ({WATCHED_S} s; load {os.getloadavg()[0]:.1f})", ["processor", "memory a node", "polls/s", "states"],
          [[f"{100 * share:.1f} % of a core", f"{each:.0f} KB", f"{rate:.0f}", ", ".join(sorted(states))]])
    print(f"\ngoal: at most 5 % of a core: {verdict(share <= 0.05)}; at most 200 KB a node: {verdict(each <= 200)}")
    return share <= 0.05 and each <= 200


BENCHES = {"zero": zero, "agents": agents}


def main():
    names = sys.argv[1:] or list(BENCHES)
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"there is no measure `{unknown[0]}`; there are {', '.join(BENCHES)}")
    sys.exit(0 if all([BENCHES[name]() for name in names]) else 1)


if __name__ == "__main__":
    main()
