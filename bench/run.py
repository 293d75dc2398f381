"""Whole-system measurements, each printed as a table beside its peers.

Usage: bench/run.py [start] [list] [tasks] [blobs] [sdk] [pages] [pipelines] [planner]   (all of them without a name)
PEREGRINE_BIN names the binary; PEREGRINE_BENCH_LONG=1 takes more rounds. Needs Python 3.9 and rustc.
HyperQueue is installed from the package index for `tasks`; where that fails the row says so.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import pipelines
import sdk

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "peregrine" / "bench"
BIN = os.environ.get("PEREGRINE_BIN") or str(HERE.parent / "target" / "release" / "peregrine")
ROUNDS = 7 if os.environ.get("PEREGRINE_BENCH_LONG") else 3
HQ = "0.27.0"
RAY = "2.60.0"


class Server:
    """A server on a fresh home; everything it started is gone when the block ends."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="peregrine-bench-")
        self.home = os.path.join(self.folder, "home")
        self.env = {**os.environ, "PEREGRINE_HOME": self.home}
        self.port = free_port()
        begin = time.perf_counter()
        self.run("server", "start", "--http", f"127.0.0.1:{self.port}", "-o", "none")
        self.ready_s = time.perf_counter() - begin
        self.pid = json.loads(self.run("server", "status", "-o", "json"))["pid"]
        self.token = Path(self.home, "keys", "user.token").read_text().strip()
        return self

    def __exit__(self, *_):
        self.run("server", "stop", "-o", "none")
        for entry in Path("/proc").iterdir():
            try:
                # Processes of jobs outlive agents; what they were started with says whose they are.
                started = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                if entry.name.isdigit() and self.home.encode() in started:
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *args):
        return subprocess.run([BIN, *args], env=self.env, check=True, capture_output=True, text=True).stdout

    def rss_kib(self):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        return 0

    def prepare(self):
        """The environment that the small jobs name; waits until the agent has joined."""
        spec = Path(self.folder, "env.yml")
        spec.write_text("name: bench\nversion: 1\nimage: mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04\n")
        self.run("environment", "create", "-f", str(spec), "-o", "none")
        for _ in range(200):
            if json.loads(self.run("compute", "list-nodes", "-n", "local", "-o", "json")):
                return
            time.sleep(0.05)

    def submit(self, count, prefix, command="/bin/true", connections=32, compute=None):
        tool = submit_tool()
        done = subprocess.run([tool, f"127.0.0.1:{self.port}", self.token, str(count), str(connections), prefix, command, *filter(None, [compute])],
                              check=True, capture_output=True, text=True)
        return {k: float(v) for k, v in (pair.split("=") for pair in done.stdout.split())}


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def submit_tool():
    CACHE.mkdir(parents=True, exist_ok=True)
    tool, source = CACHE / "submit", HERE / "submit.rs"
    if not tool.exists() or tool.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["rustc", "-O", "--edition", "2024", str(source), "-o", str(tool)], check=True)
    return str(tool)


def table(title, columns, rows):
    widths = [max(len(str(row[i])) for row in [columns, *rows]) for i in range(len(columns))]
    line = lambda row: "| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |"
    print(f"\n### {title}\n\n{line(columns)}\n|{'|'.join('-' * (w + 2) for w in widths)}|")
    for row in rows:
        print(line(row))
    sys.stdout.flush()


def verdict(ok):
    return "met" if ok else "missed"


def start():
    """P6: seconds to ready, idle memory."""
    ready, idle = [], []
    for _ in range(ROUNDS):
        with Server() as server:
            ready.append(server.ready_s)
            time.sleep(2)
            idle.append(server.rss_kib() / 1024)
    r, m = statistics.median(ready), statistics.median(idle)
    table(f"Start and idle (median of {ROUNDS})", ["measure", "Peregrine", "goal", ""], [
        ["`server start` to ready, first start on an empty home", f"{r:.3f} s", "<= 0.2 s", verdict(r <= 0.2)],
        ["idle memory of the server (RSS)", f"{m:.1f} MiB", "<= 50 MiB", verdict(m <= 50)],
    ])


def list_jobs():
    """P6/P9: `job list` as a cold process with 10,000 jobs; memory per tracked job."""
    with Server() as server:
        server.prepare()
        server.submit(200, "warm")
        before = server.rss_kib()
        server.submit(10_000, "many")
        time.sleep(1)
        per_job = (server.rss_kib() - before) / 10_000
        command = [BIN, "job", "list", "-o", "table"]
        times = []
        for _ in range(30):
            begin = time.perf_counter()
            subprocess.run(command, env=server.env, check=True, capture_output=True)
            times.append((time.perf_counter() - begin) * 1000)
        bare = []
        for _ in range(30):
            begin = time.perf_counter()
            subprocess.run(["/bin/true"], check=True, capture_output=True)
            bare.append((time.perf_counter() - begin) * 1000)
        t = statistics.median(times)
        table("With 10,000 jobs on record (median of 30)", ["measure", "Peregrine", "goal", ""], [
            ["`job list`, cold process", f"{t:.1f} ms", "<= 20 ms", verdict(t <= 20)],
            ["  of it: starting any process (`/bin/true`)", f"{statistics.median(bare):.1f} ms", "", ""],
            ["server memory per tracked job (RSS growth)", f"{per_job:.2f} KiB", "<= 50 KB", verdict(per_job <= 50)],
        ])


def tasks():
    """P2: small durable jobs per second, beside bare spawning and HyperQueue."""
    count = 2000
    ours, printing, submits, xargs, hq = [], [], [], [], []
    hq_python = hyperqueue()
    with Server() as server:
        server.prepare()
        server.submit(200, "warm")
        for round_ in range(ROUNDS):
            got = server.submit(count, f"r{round_}")
            ours.append(got["jobs_per_s"])
            submits.append(got["submits_per_s"])
            printing.append(server.submit(count, f"p{round_}", "/bin/echo hello")["jobs_per_s"])
            begin = time.perf_counter()
            subprocess.run(f"seq {count} | xargs -P2 -n1 /bin/true", shell=True, check=True)
            xargs.append(count / (time.perf_counter() - begin))
            if hq_python:
                done = subprocess.run([hq_python, str(HERE / "peer_hyperqueue.py"), str(count)], capture_output=True, text=True, timeout=300)
                if done.returncode == 0:
                    hq.append(float(done.stdout.split()[-1]))
    o, p, x, s = (statistics.median(figures) for figures in (ours, printing, xargs, submits))
    ratio = statistics.median(a / b for a, b in zip(ours, xargs))
    rows = [
        ["Peregrine: submit over HTTP to recorded end; the log stays empty, no file is made", f"{o:,.0f}", f"{ratio:.2f}", ">= 0.80", verdict(ratio >= 0.8)],
        ["Peregrine: the same with `/bin/echo hello`; a log file is stored and synced", f"{p:,.0f}", f"{p / x:.2f}", "", ""],
        ["`xargs -P2 /bin/true` (bare processes)", f"{x:,.0f}", "1.00", "", ""],
        [f"HyperQueue {HQ}, local cluster", f"{statistics.median(hq):,.0f}" if hq else "not installed", f"{statistics.median(hq) / x:.2f}" if hq else "-", "ahead of it", verdict(not hq or o > statistics.median(hq))],
    ]
    table(f"{count} jobs of `/bin/true` (median of {ROUNDS} interleaved rounds)", ["what", "jobs/s", "x xargs", "goal", ""], rows)
    table("Durable submits", ["what", "per second", "goal", ""], [["accepted jobs, 32 connections, jobs running meanwhile", f"{s:,.0f}", ">= 2,000", verdict(s >= 2000)]])


def hyperqueue():
    """A Python with HyperQueue in it, or None."""
    folder = CACHE / f"hyperqueue-{HQ}"
    python = folder / "bin" / "python"
    if not python.exists():
        try:
            venv.create(folder, with_pip=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", f"hyperqueue=={HQ}"], check=True, timeout=300)
        except (subprocess.SubprocessError, OSError):
            shutil.rmtree(folder, ignore_errors=True)
            return None
    return str(python)


def blobs():
    """P7: blobs up and down."""
    from blobs import blobs as measure
    measure(Server, CACHE, ROUNDS, free_port, table, verdict)


def sdk_submit():
    """All calls of the SDK's `jobs.create_or_update`, its code and data already there."""
    if not sdk.sdk_python():
        table("The SDK's submit", ["measure", "Peregrine"], [["the SDK cannot be installed here", "-"]])
        return
    with Server() as server:
        server.prepare()
        total, calls, kinds = sdk.round_trip(server, 10 * ROUNDS)
    rows = [[f"all {calls} calls, as a thin client on one connection sees them", f"{total:.2f} ms", "<= 10 ms", verdict(total <= 10)]]
    rows += [[f"`{kind}`, each of {len(times) // (10 * ROUNDS)}", f"{statistics.median(times):.2f} ms", "", ""] for kind, times in kinds.items()]
    table(f"`jobs.create_or_update` of azure-ai-ml {sdk.VERSION} (median of {10 * ROUNDS})", ["measure", "Peregrine", "goal", ""], rows)


def long_list():
    """Pages of a list of 100,000 jobs."""
    with Server() as server:
        server.prepare()
        server.submit(100, "first")
        server.run("server", "stop", "-o", "none")
        sdk.fill(server.home, sdk.JOBS)
        server.run("server", "start", "--http", f"127.0.0.1:{server.port}", "-o", "none")
        server.pid = json.loads(server.run("server", "status", "-o", "json"))["pid"]
        place = json.loads(server.run("workspace", "show", "-o", "json"))["id"]
        rows = []
        for what, query, most in [("all, page after page", "", 10_000), ("`listViewType=ArchivedOnly`, there are none", "listViewType=ArchivedOnly", 10_000),
                                  ("a tag nobody has, page after page", "tag=nobody", 10_000)]:
            times, shown, cpu = sdk.pages(server, f"{place}/jobs?{query}", most)
            middle, slow = statistics.median(times), sorted(times)[int(len(times) * 0.99)]
            rows.append([what, f"{len(times):,}", f"{shown:,}", f"{middle:.2f} ms", f"{slow:.2f} ms", f"{cpu:.2f} ms", "<= 5 ms", verdict(middle <= 5)])
    table(f"A list of {sdk.JOBS:,} jobs", ["what", "pages", "jobs shown", "a page (median)", "p99", "server CPU a page", "goal", ""], rows)


def pipelines_of_true():
    """Orchestration: what a step costs beyond its process, in a chain and side by side."""
    sizes = [1000, 10_000] if os.environ.get("PEREGRINE_BENCH_LONG") else [100, 1000]
    with Server() as server:
        server.prepare()
        rows = [[what, f"{size:,}", f"{accepted * 1000:.0f} ms", f"{took:.1f} s", f"{over:.1f} ms", "<= 5 ms", verdict(over <= 5)]
                for what, size, accepted, took, over in pipelines.rows(server, sizes)]
    alone = pipelines.bare()
    kept = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "peregrine" / "tools" / f"ray-{RAY}" / "bin" / "python"
    # A thousand tells what a task costs; ten thousand take Ray longer than this waits on a busy machine.
    count = min(sizes[-1], 1000)
    took, why = pipelines.by_ray(kept, count) if kept.is_file() else (None, "the tests of distributed jobs install it")
    if took is None:
        print(f"skipped: Ray {RAY} beside the fan-out ({why})")
    else:
        rows.append([f"fan-out, tasks of Ray {RAY}, nothing kept", f"{count:,}", "", f"{took:.1f} s", f"{(took / count - alone) * 1000:.1f} ms", "", ""])
    table("Pipelines of `/bin/true`", ["graph", "steps", "accepted in", "to its end", "a step beyond its process", "goal", ""], rows)


def decisions(text):
    """The rows of the planner's own table: jobs, nodes, placed, decisions a second, microseconds a decision."""
    rows = [line.split() for line in text.splitlines()[1:]]
    return [(int(jobs), int(nodes), int(placed), float(rate), float(each)) for jobs, nodes, placed, rate, each in rows]


def planner():
    """P4: the planner alone, without a store: decisions a second, and whether one costs the same as the queue grows."""
    told = subprocess.run(["cargo", "run", "--release", "--quiet", "-p", "peregrine-planner", "--example", "place"],
                          cwd=HERE.parent, capture_output=True, text=True)
    if told.returncode:
        table("The planner alone", ["measure", "Peregrine"], [[f"it cannot be built here: {told.stderr.strip().splitlines()[-1]}", "-"]])
        return
    found = decisions(told.stdout)
    least = min(each for *_, each in found)
    rows = [[f"{jobs:,}", f"{nodes:,}", f"{placed:,}", f"{rate:,.0f}", ">= 10,000", verdict(rate >= 10_000), f"{each:.2f} us", f"{each / least:.1f} x"]
            for jobs, nodes, placed, rate, each in found]
    table("The planner alone: queued jobs with gangs", ["jobs", "nodes", "placed", "decisions/s", "goal", "", "a decision", "of the least"], rows)


BENCHES = {"pipelines": pipelines_of_true, "planner": planner, "start": start, "list": list_jobs, "tasks": tasks, "blobs": blobs, "sdk": sdk_submit, "pages": long_list}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHES:
        BENCHES[name]()
