"""The studio in a real browser: first view, scrolling, charts, size, memory of the server with many pages open.

Usage: bench/studio.py [runs] [pages]   (100,000 runs, and at the end 100 pages at once)
PEREGRINE_BIN names the binary. Needs Node.js 20.19, Chromium and rustc; packages are those of tests/studio, installed by
`cargo xtask studio`. Every run has two metrics, a param and a tag; one has ten metrics of 100,000 points.
"""

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


def fill(server, runs):
    """Many runs, and one with long lines."""
    experiment = api(server, "/experiments/create", {"name": "bench"})["experiment_id"]
    load = [tracking.tool(), f"127.0.0.1:{server.port}", server.token, "", "16", "600", str(runs), "fill", experiment]
    subprocess.run(load, check=True, stdout=subprocess.DEVNULL)
    run = api(server, "/runs/create", {"experiment_id": experiment, "run_name": "long lines", "start_time": 1_800_000_000_000})
    run = run["run"]["info"]["run_id"]
    for first in range(0, POINTS, 100):
        points = [{"key": f"metric {key}", "value": (first + i) % 977 / (key + 1), "timestamp": first + i, "step": first + i} for i in range(100) for key in range(METRICS)]
        api(server, "/runs/log-batch", {"run_id": run, "metrics": points})
    return run


def main():
    given = [int(text) for text in sys.argv[1:]]
    runs, pages = given + [100_000, 100][len(given):]
    chromium = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
    if chromium is None or not PACKAGES.is_dir():
        sys.exit("skipped: the studio (no Chromium, or `cargo xtask studio` has not installed its packages)")
    with Server() as server:
        run = fill(server, runs)
        link = server.run("studio", "--print").strip()
        env = {**os.environ, "STUDIO_PACKAGES": str(PACKAGES), "STUDIO_CHROMIUM": chromium}
        measure = ["node", str(HERE / "studio.mjs"), link, run, str(pages), str(server.pid)]
        found = json.loads(subprocess.run(measure, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout)
    table(
        f"studio: {runs:,} runs",
        ["measure", "value", "goal", "verdict"],
        [
            ["first view of jobs, cold cache", f"{found['first_ms']:.0f} ms", "1000 ms", verdict(found["first_ms"] <= 1000)],
            ["first view of home, warm cache", f"{found['home_ms']:.0f} ms", "1000 ms", verdict(found["home_ms"] <= 1000)],
            ["frame while scrolling, 95 of 100", f"{found['frame_ms']:.1f} ms", "16.7 ms", verdict(found["frame_ms"] <= 17.5)],
            [f"{METRICS} charts of {POINTS:,} points", f"{found['charts_ms']:.0f} ms", "300 ms", verdict(found["charts_ms"] <= 300)],
            ["bundle, compressed", f"{found['bundle_bytes'] / 1024:.0f} KiB", "500 KiB", verdict(found["bundle_bytes"] <= 500 << 10)],
            [f"server's memory, {pages} pages open", f"{found['memory_kib'][1] / 1024:.0f} MiB, {found['memory_kib'][0] / 1024:.0f} with one", "flat", verdict(found["memory_kib"][1] <= 1.2 * found["memory_kib"][0])],
        ],
    )


if __name__ == "__main__":
    main()
