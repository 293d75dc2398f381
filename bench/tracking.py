"""P3: the tracking API under load, beside `mlflow server` and beside SQLite itself, in the same run.

Usage: bench/tracking.py [--self] [--store-url URL] [logging] [create] [search] [history] [memory]   (all of them without a name)
PEREGRINE_BIN names our binary; MLFLOW_REFERENCE_PYTHON a Python with mlflow, else it is installed from the package index.
PEREGRINE_BENCH_LONG=1 measures longer and searches 100,000 runs too. `--self` puts a second reference in our place, which
proves the script. `--store-url` names an empty database in Postgres for our records, whose size `psql` tells. The load comes from `load.rs`: kept-alive connections, a run each, no point twice; both servers get the
same bytes. Needs Python 3.9 and rustc.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "tests" / "mlflow")]
from differential import REFERENCE, end_all, free_port, installed, ready  # noqa: E402
from run import BIN, CACHE, HERE, table, verdict  # noqa: E402

LONG = bool(os.environ.get("PEREGRINE_BENCH_LONG"))
SECONDS, ROUNDS = (15, 3) if LONG else (5, 2)
CONNECTIONS = 16
POINTS = 1_000_000
API = "/api/2.0/mlflow"
SEARCH = {"filter": "metrics.acc > 0.5 and params.lr = '0.3'", "order_by": ["metrics.acc DESC"], "max_results": 100}


class Peer:
    """A server to be measured; gone when the block ends."""

    token = ""

    def __enter__(self):
        self.folder, self.port = tempfile.mkdtemp(prefix="bench-tracking-"), free_port()
        self.start()
        self.load("create", self.experiment_named("warm"), seconds=5)  # every worker is up before anything counts
        self.experiment = self.experiment_named("bench")
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, method, path, body=None):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        head = {"content-type": "application/json", **({"authorization": f"Bearer {self.token}"} if self.token else {})}
        line.request(method, path, None if body is None else json.dumps(body), head)
        answer = line.getresponse()
        text = answer.read()
        assert answer.status == 200, f"{self.name} answered {answer.status} to {path}: {text[:300]}"
        return text

    def post(self, path, body):
        return json.loads(self.ask("POST", API + path, body))

    def experiment_named(self, name):
        return self.post("/experiments/create", {"name": name})["experiment_id"]

    def runs(self, count):
        return [self.post("/runs/create", {"experiment_id": self.experiment, "start_time": 1})["run"]["info"]["run_id"] for _ in range(count)]

    def load(self, *work, connections=CONNECTIONS, seconds=SECONDS, limit=0):
        done = subprocess.run([tool(), f"127.0.0.1:{self.port}", self.token, "", str(connections), str(seconds), str(limit), *map(str, work)], check=True, stdout=subprocess.PIPE, text=True)
        return {k: float(v) for k, v in (pair.split("=") for pair in done.stdout.split())}

    def rss_mib(self):
        """Memory of the server and all it started."""
        pages, family = 0, {self.pid}
        children = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
        queue = [self.pid]
        while queue:
            for child in children.get(queue.pop(), []):
                family.add(child)
                queue.append(child)
        for pid in family:
            with contextlib.suppress(OSError):
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def bytes(self):
        """Size of the database with its journal."""
        return sum(f.stat().st_size for f in Path(self.folder).rglob("*") if f.is_file() and "backups" not in f.parts and re.search(r"\.(db|sqlite3?)(-wal|-journal)?$", f.name))


class Reference(Peer):
    """`mlflow server` as its documentation starts it, on SQLite."""

    name = f"mlflow server {REFERENCE}"

    def start(self):
        python = os.environ.get("MLFLOW_REFERENCE_PYTHON") or installed()
        env = {**{k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}, "MLFLOW_DISABLE_TELEMETRY": "true"}
        self.log = open(Path(self.folder, "log"), "w")
        self.process = subprocess.Popen([python, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{self.folder}/m.db", "--artifacts-destination", f"{self.folder}/files", "--port", str(self.port)],
                                        cwd=self.folder, env=env, stdout=self.log, stderr=self.log, start_new_session=True)
        self.pid = self.process.pid
        ready(f"http://127.0.0.1:{self.port}/health", self.process)

    def stop(self):
        os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(30)
        self.log.close()

    def fill(self, count):
        """Runs written into its tables; through its API this would take the better part of an hour."""
        with self.database() as db:
            for n in range(count):
                run, spread = uuid.uuid4().hex, (n * 7919 % 1_000_003) / 1_000_003
                db.execute("insert into runs (run_uuid, name, source_type, user_id, status, start_time, lifecycle_stage, artifact_uri, experiment_id) values (?, ?, 'UNKNOWN', 'b', 'RUNNING', ?, 'active', ?, ?)",
                           (run, f"r{n}", 1_700_000_000_000 + n, f"mlflow-artifacts:/{self.experiment}/{run}/artifacts", self.experiment))
                for key, value in (("acc", spread), ("loss", 1 - spread)):
                    db.execute("insert into metrics (key, value, timestamp, step, is_nan, run_uuid) values (?, ?, 1, 0, 0, ?)", (key, value, run))
                    db.execute("insert into latest_metrics (key, value, timestamp, step, is_nan, run_uuid) values (?, ?, 1, 0, 0, ?)", (key, value, run))
                db.execute("insert into params (key, value, run_uuid) values ('lr', ?, ?)", (f"0.{n % 10}", run))
                db.execute("insert into tags (key, value, run_uuid) values ('team', ?, ?)", (f"t{n % 7}", run))
                db.execute("insert into tags (key, value, run_uuid) values ('mlflow.runName', ?, ?)", (f"r{n}", run))

    def points(self, run):
        with self.database() as db:
            db.executemany("insert into metrics (key, value, timestamp, step, is_nan, run_uuid) values ('metric_0', ?, ?, ?, 0, ?)", ((value(n), 1_700_000_000_000 + n * 250, n, run) for n in range(POINTS)))
            db.execute("insert into latest_metrics (key, value, timestamp, step, is_nan, run_uuid) values ('metric_0', ?, ?, ?, 0, ?)", (value(POINTS - 1), 1_700_000_000_000 + POINTS * 250, POINTS - 1, run))

    @contextlib.contextmanager
    def database(self):
        db = sqlite3.connect(f"{self.folder}/m.db", timeout=60)
        try:
            with db:
                yield db
        finally:
            db.close()


class Ours(Peer):
    def __init__(self, store_url=""):
        self.name, self.store_url = "Peregrine on Postgres" if store_url else "Peregrine", store_url

    def start(self):
        self.env = {**os.environ, "PEREGRINE_HOME": f"{self.folder}/home", "PEREGRINE_STORE_URL": self.store_url}
        self.run("server", "start", "--listen", f"127.0.0.1:{free_port()}", "--http", f"127.0.0.1:{self.port}", "-o", "none")
        self.pid = json.loads(self.run("server", "status", "-o", "json"))["pid"]
        self.token = Path(self.folder, "home", "keys", "user.token").read_text().strip()

    def run(self, *args):
        return subprocess.run([BIN, *args], env=self.env, check=True, capture_output=True, text=True).stdout

    def stop(self):
        self.run("server", "stop", "-o", "none")
        end_all(self.folder)

    def fill(self, count):
        assert self.load("fill", self.experiment, limit=count, seconds=600)["failed"] == 0

    def points(self, run):
        body = lambda of: {"run_id": run, "metrics": [{"key": "metric_0", "value": value(n), "timestamp": 1_700_000_000_000 + n * 250, "step": n} for n in range(of, of + 1000)]}  # noqa: E731
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        for of in range(0, POINTS, 1000):
            line.request("POST", f"{API}/runs/log-batch", json.dumps(body(of)), {"content-type": "application/json", "authorization": f"Bearer {self.token}"})
            answer = line.getresponse()
            text = answer.read()
            assert answer.status == 200, text[:300]

    def bytes(self):
        if not self.store_url:
            return super().bytes()
        return int(subprocess.run(["psql", "-Atc", "select pg_database_size(current_database())", self.store_url], check=True, capture_output=True, text=True).stdout)

    def rss_mib(self):
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def value(n):
    """The curve of `load.rs`, near enough: a falling line with noise in all its digits."""
    return 1 / (1 + n * 0.001) + (n * 0x9E3779B97F4A7C15 % 2**64 >> 11) / 2**53 * 0.1


def tool():
    CACHE.mkdir(parents=True, exist_ok=True)
    binary, source = CACHE / "load", HERE / "load.rs"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["rustc", "-O", "--edition", "2024", str(source), "-o", str(binary)], check=True)
    return str(binary)


def raw(metrics):
    """Points per second that SQLite itself takes: a row a point, a transaction a batch, synced. What is on the disk is safe."""
    with tempfile.TemporaryDirectory(prefix="bench-raw-") as folder:
        db = sqlite3.connect(f"{folder}/raw.db", isolation_level=None)
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = full")
        db.execute("create table points (run integer, key integer, timestamp integer, step integer, value real)")
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < SECONDS / 2:
            db.execute("begin")
            db.executemany("insert into points values (?, ?, ?, ?, ?)", [(1, n % 20, 1_700_000_000_000 + n, n, value(n)) for n in range(count, count + metrics)])
            db.execute("commit")
            count += metrics
        rate = count / (time.perf_counter() - begin)
        db.close()
        return rate


def logging(ours, theirs):
    """log-batch with 1, 100 and 1,000 metrics."""
    rows = []
    for metrics in (1, 100, 1000):
        got = {peer: [] for peer in (ours, theirs)}
        limit = []
        for _ in range(ROUNDS):
            for peer in (ours, theirs):
                got[peer].append(peer.load("batch", metrics, *peer.runs(CONNECTIONS)))
            limit.append(raw(metrics))
        mine, other = (best(got[peer]) for peer in (ours, theirs))
        bare = statistics.median(limit)
        x, share = mine["per_s"] / other["per_s"], mine["per_s"] * metrics / bare
        rows += [[f"{metrics:,}", ours.name, *figures(mine, metrics), f"{x:.1f}x", ">= 50x", verdict(x >= 50)],
                 ["", theirs.name, *figures(other, metrics), "1x", "", ""],
                 ["", "SQLite: a row a point, a synced transaction a batch, one connection", f"{bare / metrics:,.0f}", f"{bare:,.0f}", "", "", "", f"ours {share:.2f}x", ">= 0.5x", verdict(share >= 0.5)]]
    table(f"log-batch, {CONNECTIONS} connections, {SECONDS} s, median of {ROUNDS} interleaved rounds", ["metrics", "server", "requests/s", "metrics/s", "p50 ms", "p99 ms", "failed", "ratio", "goal", ""], rows)


def best(rounds):
    return {key: statistics.median(r[key] for r in rounds) for key in rounds[0]}


def figures(got, metrics):
    return [f"{got['per_s']:,.1f}", f"{got['per_s'] * metrics:,.0f}", f"{got['p50_ms']:.2f}", f"{got['p99_ms']:.2f}", f"{got['failed']:.0f}"]


def create(ours, theirs):
    """runs/create."""
    got = {peer: best([peer.load("create", peer.experiment) for _ in range(ROUNDS)]) for peer in (ours, theirs)}
    x = got[ours]["per_s"] / got[theirs]["per_s"]
    table(f"runs/create, {CONNECTIONS} connections", ["server", "requests/s", "p50 ms", "p99 ms", "failed", "ratio"],
          [[peer.name, f"{g['per_s']:,.1f}", f"{g['p50_ms']:.2f}", f"{g['p99_ms']:.2f}", f"{g['failed']:.0f}", f"{x:.1f}x" if peer is ours else "1x"] for peer, g in got.items()])


def search(ours, theirs):
    """runs/search with a metric and a param in the filter, ordered by a metric."""
    rows, there = [], 0
    for count in (10_000, 100_000) if LONG else (10_000,):
        for peer in (ours, theirs):
            peer.searched = getattr(peer, "searched", None) or peer.experiment_named("searched")
            peer.experiment, kept = peer.searched, peer.experiment
            peer.fill(count - there)
            body = json.dumps({"experiment_ids": [peer.searched], **SEARCH})
            found = len(peer.post("/runs/search", json.loads(body))["runs"])
            got = peer.load("post", f"{API}/runs/search", body, connections=1, seconds=SECONDS * 2, limit=1000)
            peer.experiment = kept
            goal = ["<= 20 ms", verdict(got["p99_ms"] <= 20)] if peer is ours and count == 10_000 else ["", ""]
            rows.append([f"{count:,}", peer.name, f"{found}", f"{got['requests']:.0f}", f"{got['p50_ms']:.2f}", f"{got['p99_ms']:.2f}", *goal])
        there = count
    table("runs/search: `metrics.acc > 0.5 and params.lr = '0.3'`, `metrics.acc DESC`, first 100; one connection", ["runs", "server", "found", "requests", "p50 ms", "p99 ms", "goal (p99)", ""], rows)


def history(ours, theirs):
    """A million points of one metric: bytes, reading them all, reading a chart, and logging on top of them."""
    rows = []
    for peer in (ours, theirs):
        [run] = peer.runs(1)
        before = peer.bytes()
        peer.points(run)
        size = (peer.bytes() - before) / POINTS
        [fresh] = peer.runs(1)
        empty = peer.load("batch", 100, fresh, connections=1)
        begin = time.perf_counter()
        seen = whole(peer, run)
        read = time.perf_counter() - begin
        assert seen == POINTS, f"{peer.name} gave back {seen} points"
        chart = []
        for _ in range(5):
            begin = time.perf_counter()
            peer.ask("GET", f"{API}/metrics/get-history-bulk-interval?run_ids={run}&metric_key=metric_0&max_results=2500")
            chart.append((time.perf_counter() - begin) * 1000)
        full = peer.load("batch", f"100@{POINTS * 40}", run, connections=1)  # later steps of the same metric
        rows.append([peer.name, f"{size:.1f}", f"{read:.1f} s", f"{statistics.median(chart):.0f} ms", f"{empty['p50_ms']:.2f} ms", f"{full['p50_ms']:.2f} ms", f"{full['p50_ms'] / empty['p50_ms']:.2f}x", f"{peer.rss_mib():.0f} MiB"])
    table("One metric with 1,000,000 points", ["server", "database bytes a point", "all of it, in pages of 25,000", "a chart of 2,500", "log 100 to an empty run, p50", "log 100 on top of it, p50", "grows by", "server memory"], rows)


def whole(peer, run):
    seen, token = 0, ""
    while True:
        text = peer.ask("GET", f"{API}/metrics/get-history?run_id={run}&metric_key=metric_0&max_results=25000" + (f"&page_token={token}" if token else ""))
        seen += text.count(b'"timestamp"')
        found = re.search(rb'"next_page_token": ?"([^"]+)"', text)
        if not found:
            return seen
        token = found.group(1).decode().replace("=", "%3D").replace("+", "%2B")


def memory(ours, theirs):
    """An hour of a hundred jobs that log twenty metrics a second, as fast as it goes. The reference is not asked: it would take half an hour."""
    runs = ours.runs(100)
    rows, total = [], 7200
    for part in range(1, 5):
        got = ours.load("batch", 1000, *(runs[(part - 1) * 25:part * 25]), connections=25, seconds=600, limit=total // 4)
        rows.append([f"{part * total // 4 * 1000:,}", f"{got['per_s'] * 1000:,.0f}", f"{got['p99_ms']:.1f}", f"{ours.rss_mib():.0f} MiB"])
    first, last = (float(rows[i][3].split()[0]) for i in (0, -1))
    table("An hour's load (100 jobs, 20 metrics a second each), sent at once", ["points so far", "metrics/s", "p99 ms", "server memory"], rows)
    table("Memory under it", ["measure", ours.name, "goal", ""], [["growth from a quarter of it to the end", f"{last - first:.0f} MiB", "<= 20 MiB", verdict(last - first <= 20)]])
    print(f"\n{theirs.name} in this run: {theirs.rss_mib():.0f} MiB")


BENCHES = {"logging": logging, "create": create, "search": search, "history": history, "memory": memory}

if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--self"]
    store_url = ""
    if "--store-url" in words:
        at = words.index("--store-url")
        _, store_url = words[at:at + 2]
        del words[at:at + 2]
    with (Reference() if "--self" in sys.argv else Ours(store_url)) as ours, Reference() as theirs:
        if "--self" in sys.argv:
            ours.name = "a second reference"
        for word in words or BENCHES:
            BENCHES[word](ours, theirs)
