"""The studio in a real browser beside MLflow's page in the same: first view, scrolling, charts; and of ours size and the
memory of the server with many pages open.

Usage: bench/studio.py [runs] [pages]   (100,000 runs, and at the end 100 pages at once)
PEREGRINE_BIN names the binary; STUDIO_ALONE=1 leaves MLflow out. Needs Node.js 20.19, Chromium and rustc; packages are those
of tests/studio, installed by `cargo xtask studio`. Every run has two metrics, a param and a tag; one has ten metrics of
100,000 points. Ours are sent, MLflow's are written into its tables. Nothing of it is drawn by a GPU.
"""

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from run import HERE, Server, table, verdict  # noqa: E402
import tracking  # noqa: E402

PACKAGES = Path.home() / ".cache" / "peregrine" / "tools" / "studio-tests"
METRICS, POINTS = 10, 100_000


def api(server, path, body):
    head = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    line.request("POST", tracking.API + path, json.dumps(body), head)
    answer = line.getresponse()
    text = answer.read()
    assert answer.status == 200, text[:300]
    return json.loads(text)


def point(step, key):
    return step % 977 / (key + 1)


def fill(server, runs):
    """Many runs, and one with long lines."""
    experiment = api(server, "/experiments/create", {"name": "bench"})["experiment_id"]
    load = [tracking.tool(), f"127.0.0.1:{server.port}", server.token, "", "16", "600", str(runs), "fill", experiment]
    subprocess.run(load, check=True, stdout=subprocess.DEVNULL)
    run = api(server, "/runs/create", {"experiment_id": experiment, "run_name": "long lines", "start_time": 1_800_000_000_000})
    run = run["run"]["info"]["run_id"]
    for first in range(0, POINTS, 100):
        points = [{"key": f"metric {key}", "value": point(step, key), "timestamp": step, "step": step} for step in range(first, first + 100) for key in range(METRICS)]
        api(server, "/runs/log-batch", {"run_id": run, "metrics": points})
    return run


def fill_theirs(peer, runs):
    peer.fill(runs)
    [run] = peer.runs(1)
    with peer.database() as db:
        for key in range(METRICS):
            rows = ((f"metric {key}", point(step, key), step, step, run) for step in range(POINTS))
            db.executemany("insert into metrics (key, value, timestamp, step, is_nan, run_uuid) values (?, ?, ?, ?, 0, ?)", rows)
            last = (f"metric {key}", point(POINTS - 1, key), POINTS - 1, POINTS - 1, run)
            db.execute("insert into latest_metrics (key, value, timestamp, step, is_nan, run_uuid) values (?, ?, ?, ?, 0, ?)", last)
    return run


def browse(chromium, *words):
    env = {**os.environ, "STUDIO_PACKAGES": str(PACKAGES), "STUDIO_CHROMIUM": chromium}
    done = subprocess.run(["node", str(HERE / "studio.mjs"), *words], env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main():
    given = [int(text) for text in sys.argv[1:]]
    runs, pages = given + [100_000, 100][len(given):]
    chromium = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
    if chromium is None or not PACKAGES.is_dir():
        sys.exit("skipped: the studio (no Chromium, or `cargo xtask studio` has not installed its packages)")
    with contextlib.ExitStack() as both:
        theirs, other = {}, None
        if not os.environ.get("STUDIO_ALONE"):
            other = both.enter_context(tracking.Reference())
            long = fill_theirs(other, runs)
            theirs = browse(chromium, "mlflow", f"http://127.0.0.1:{other.port}/#/experiments/{other.experiment}/runs", long)
        server = both.enter_context(Server())
        run = fill(server, runs)
        found = browse(chromium, "ours", server.run("studio", "--print").strip(), run, str(pages), str(server.pid))
    report(runs, found, theirs, other)


def report(runs, found, theirs, other):
    ms = lambda of, key, digits=0: f"{of[key]:,.{digits}f} ms" if of.get(key) else ""  # noqa: E731
    memory = [f"{kib / 1024:.0f} MiB with {count}" for count, kib in found["memory_kib"].items()]
    first, last = list(found["memory_kib"].values())[0], list(found["memory_kib"].values())[-1]
    rows = [
        [f"first view of the table of {runs:,} runs, nothing in the browser's cache", ms(found, "first_ms"), ms(theirs, "first_ms"), "1,000 ms", verdict(found["first_ms"] <= 1000)],
        ["first view of home", ms(found, "home_ms"), "", "1,000 ms", verdict(found["home_ms"] <= 1000)],
        ["frame while the table is scrolled, 95 of 100", ms(found, "frame_ms", 1), ms(theirs, "frame_ms", 1), "16.7 ms", verdict(found["frame_ms"] <= 17.5)],
        [f"{METRICS} charts of {POINTS:,} points, from the press to the frame", ms(found, "charts_ms"), ms(theirs, "charts_ms"), "300 ms", verdict(found["charts_ms"] <= 300)],
        ["what was loaded of the bundle, compressed", f"{found['bundle_bytes'] / 1024:.0f} KiB", "", "500 KiB", verdict(found["bundle_bytes"] <= 500 << 10)],
        ["the server's memory by pages open", ", ".join(memory), "", "flat", verdict(last <= 1.2 * first)],
    ]
    table("The studio in a browser", ["measure", "Peregrine", other.name if other else "", "goal", ""], rows)


if __name__ == "__main__":
    main()
