"""Managed clusters: from no node to the first line of a log, what many idle nodes cost the server, and many small jobs.

Usage: bench/cluster.py [zero] [agents] [tasks]   (all without a name)
`zero`: a cluster without nodes gets a job; the figure is the time from the submit to the first line of its log, with the nodes as
processes of this machine. `agents`: so many nodes (AGENTS, 500) join and poll as real ones do, each over a connection of its
own; the figures are the server's processor time and memory. `tasks`: so many jobs of `/bin/true` (TASKS, 10,000) on two nodes of
one core each, one job a node at a time, beside HyperQueue with two workers of one core, Ray with two cores, and Slurm with two nodes (SLURM,
200 jobs, for it takes seconds for each). PEREGRINE_BIN names our binary. ROUNDS (10; of `tasks` 3). Needs Linux.
"""

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import pipelines  # noqa: E402
from run import HERE, HQ, RAY, Server, free_port, hyperqueue, table, verdict  # noqa: E402

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


def tasks():
    """P2 on a cluster: many small jobs on two nodes of one core each."""
    count, few, rounds = (int(os.environ.get(name, usual)) for name, usual in (("TASKS", 10_000), ("SLURM", 200), ("ROUNDS", 3)))
    peers = {f"HyperQueue {HQ}, two workers of one core": by_hyperqueue, f"Ray {RAY}, two cores, tasks that start a process": by_ray}
    figures = {name: [] for name in ("Peregrine", *peers, f"Slurm, an array of {few} on two nodes")}
    with Server() as server:
        server.prepare()
        cluster = write(server, "crew.yml", "name: crew\ntype: amlcompute\nsize: Standard_D1_v2\nmin_instances: 2\nmax_instances: 2\n")
        server.run("compute", "create", "-f", cluster, "-o", "none")
        until("two nodes", lambda: [one["nodeState"] for one in nodes(server)] == ["idle"] * 2)
        server.submit(200, "warm", compute="crew")
        for turn in range(rounds):
            figures["Peregrine"].append(server.submit(count, f"t{turn}", compute="crew")["jobs_per_s"])
            for name, peer in peers.items():
                figures[name].extend(filter(None, [peer(count)]))
        figures[f"Slurm, an array of {few} on two nodes"].extend(filter(None, [by_slurm(few)]))
        server.run("compute", "delete", "-n", "crew", "--yes")
    middle = {name: statistics.median(found) if found else None for name, found in figures.items()}
    ours, hq = middle["Peregrine"], middle[f"HyperQueue {HQ}, two workers of one core"]
    rows = [[name, f"{got:,.0f}" if got else "could not be had", f"{min(figures[name]):,.0f} to {max(figures[name]):,.0f}" if got else ""]
            for name, got in middle.items()]
    table(f"{count:,} jobs of `/bin/true` on two nodes of one core (median of {rounds} interleaved rounds; load {os.getloadavg()[0]:.1f})",
          ["what", "jobs/s", "from and to"], rows)
    print(f"\ngoal: at least HyperQueue's: {verdict(not hq or ours >= hq)}")
    return not hq or ours >= hq


def said(command, timeout=600, **more):
    """The last word a command prints, or why there is none, aloud."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **more)
    if done.returncode:
        print(f"{command[0]}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return float(done.stdout.split()[-1])


def by_hyperqueue(count):
    python = hyperqueue()
    return python and said([python, str(HERE / "peer_hyperqueue.py"), str(count), "2"])


def by_ray(count):
    python = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "peregrine" / "tools" / f"ray-{RAY}" / "bin" / "python"
    seconds, why = pipelines.by_ray(python, count) if python.is_file() else (None, "the tests of distributed jobs install it")
    if why:
        print(f"Ray: {why}", file=sys.stderr)
    return seconds and count / seconds


def by_slurm(count):
    """Two nodes of one core, on this machine, by Slurm's own daemons."""
    if os.geteuid() or not shutil.which("slurmctld", path="/usr/sbin"):
        return None
    folder, host, daemons = tempfile.mkdtemp(prefix="slurm-bench-"), os.uname().nodename, []
    Path(folder, "munge.key").write_bytes(bytes([7]) * 1024)
    Path(folder, "munge.key").chmod(0o600)
    named = "\n".join(f"NodeName=n{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=1 RealMemory=500 State=UNKNOWN" for n in (1, 2))
    Path(folder, "slurm.conf").write_text(f"""ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/c.pid
SlurmdPidFile={folder}/d-%n.pid
SlurmctldLogFile={folder}/c.log
SlurmdLogFile={folder}/d-%n.log
SlurmUser=root
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SchedulerParameters=default_queue_depth=10000,sched_interval=1,sched_min_interval=0
MaxArraySize=20000
MaxJobCount=20000
{named}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
    environment = {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf"}

    def begin(*command):
        daemons.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def says(*command):
        return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True).stdout

    try:
        munge = [f"--{name}={folder}/munge.{end}" for name, end in (("key-file", "key"), ("socket", "sock"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))]
        begin("/usr/sbin/munged", "--foreground", "--force", *munge)
        until("munge", lambda: Path(folder, "munge.sock").exists(), 20)
        begin("/usr/sbin/slurmctld", "-D", "-c")
        for n in (1, 2):
            begin("/usr/sbin/slurmd", "-D", "-N", f"n{n}")
        until("Slurm's nodes", lambda: says("sinfo", "-h", "-o", "%T").split() == ["idle"], 60)
        began = time.perf_counter()
        says("sbatch", "-W", "-o", "/dev/null", f"--array=1-{count}", "--wrap", "/bin/true")
        return count / (time.perf_counter() - began)
    except RuntimeError as why:
        print(f"Slurm: {why}", file=sys.stderr)
        return None
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)


BENCHES = {"zero": zero, "agents": agents, "tasks": tasks}


def main():
    names = sys.argv[1:] or list(BENCHES)
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.exit(f"there is no measure `{unknown[0]}`; there are {', '.join(BENCHES)}")
    sys.exit(0 if all([BENCHES[name]() for name in names]) else 1)


if __name__ == "__main__":
    main()
