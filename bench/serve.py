"""Scale from zero, and replacing every replica under load, measured on the whole system.

Usage: bench/serve.py [zero] [roll]   (both without a name)
`zero`: an endpoint at zero replicas is called, again and again; what the call took beyond the replica's own start is the figure,
and every answer but 200 is a lost request. Calls come at once after the last replica went, while it goes, or some time later,
alone or as a herd. `roll`: every replica is replaced while `wrk` calls as fast as it is answered.
The replica is a program of a few kilobytes: a package with the name and the entry point of the inference server hands over to it.
PEREGRINE_BIN names the binary, PEREGRINE_REPLICA the replica (`python` for one that needs no build); CYCLES (30; the goal is over
1,000), LANES (endpoints at a time, 2), SECONDS (of `roll`, 20).
Needs Linux, wrk for `roll`, and a package index once, for the build of that package.
"""

import concurrent.futures
import http.client
import json
import os
import random
import re
import signal
import ssl
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from run import Server, free_port, table, verdict

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
REPLICA = os.environ.get("PEREGRINE_REPLICA", str(TARGET / "release" / "examples" / "bench"))
CYCLES, LANES, SECONDS = (int(os.environ.get(name, usual)) for name, usual in (("CYCLES", 30), ("LANES", 2), ("SECONDS", 20)))
POLL_S = 0.05
# Fewer replicas are enough after twenty polls that say so.
CALM_S = 20 * POLL_S
PACKAGE = "azureml-inference-server-http"
LAUNCH = "from azureml_inference_server_http import amlserver\namlserver.run()"
AMLSERVER = """import os, sys
def run():
    port, program = sys.argv[sys.argv.index("--port") + 1], os.environ["REPLICA"]
    if program != "python":
        os.execv(program, [program, "replica", "127.0.0.1:" + port, "2"])
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def do_GET(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
        do_POST = do_GET
        def log_message(self, *words):
            pass
    ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
"""


class Endpoint:
    """An endpoint with one deployment of the tiny replica."""

    def __init__(self, server, name, scale):
        self.server, self.name = server, name
        folder = Path(server.folder, name)
        (folder / "code").mkdir(parents=True)
        (folder / "code" / "score.py").write_text("def init(): pass\ndef run(data): return data\n")
        (folder / "conda.yml").write_text(f"dependencies:\n- pip:\n  - {PACKAGE} @ file://{package(server)}\n")
        (folder / "endpoint.yml").write_text(f"name: {name}\nauth_mode: key\n")
        (folder / "deployment.yml").write_text(
            f"name: blue\nendpoint_name: {name}\ncode_configuration: {{code: code, scoring_script: score.py}}\n"
            "environment: {image: mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04, conda_file: conda.yml}\n"
            "instance_type: Standard_DS2_v2\ninstance_count: 1\n"
            f"environment_variables: {{REPLICA: {REPLICA}, ROUND: '0'}}\n"
            "request_settings: {request_timeout_ms: 60000, max_queue_wait_ms: 60000, max_concurrent_requests_per_instance: 64}\n")
        server.run("online-endpoint", "create", "-f", str(folder / "endpoint.yml"), "-o", "none")
        server.run("online-deployment", "create", "-f", str(folder / "deployment.yml"), "--all-traffic", "-o", "none")
        shown = json.loads(server.run("online-endpoint", "show", "-n", name, "-o", "json"))
        keys = json.loads(server.run("online-endpoint", "get-credentials", "-n", name, "-o", "json"))
        self.id = shown["id"]
        self.uri = shown.get("scoring_uri") or shown["properties"]["scoringUri"]
        self.key = keys["primaryKey"]
        self.change(lambda body: body["properties"].update(scale))

    def change(self, how):
        """Changes the deployment and waits until it is as asked."""
        path = f"{self.id}/deployments/blue?api-version=2024-10-01"
        body = self.ask("GET", path)
        how(body)
        self.ask("PUT", path, {key: body[key] for key in ("location", "tags", "sku", "properties", "kind", "identity") if body.get(key) is not None})
        end = time.monotonic() + 120
        while (state := self.ask("GET", path)["properties"]["provisioningState"]) != "Succeeded":
            if state == "Failed" or time.monotonic() > end:
                raise RuntimeError(f"{self.name} is {state}")
            time.sleep(0.05)

    def ask(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}{path}", method=method, data=body and json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")

    def call(self):
        """Seconds to the answer, and what was wrong with it if anything was."""
        host, path = re.match(r"https://([^/]+)(/.*)", self.uri).groups()
        trust = ssl.create_default_context(cafile=str(Path(self.server.home, "keys", "authority.pem")))
        began = time.perf_counter()
        try:
            line = http.client.HTTPSConnection(host, context=trust, timeout=90)
            line.request("POST", path, b"{}", {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"})
            answer = line.getresponse()
            text = answer.read()
            wrong = None if answer.status == 200 else f"{answer.status} {text[:200]!r}"
            line.close()
        except OSError as error:
            wrong = repr(error)
        return time.perf_counter() - began, wrong

    def replicas(self):
        """Processes of its replicas that run now."""
        mark, home, found = f"SERVICE_NAME={self.name}".encode(), self.server.home.encode(), []
        for entry in Path("/proc").iterdir():
            try:
                started = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
                if mark in started.split(b"\0") and home in started:
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


def package(server):
    """A package that takes the inference server's place and hands over to the tiny replica."""
    folder = Path(server.folder, "package")
    source = folder / "azureml_inference_server_http"
    if not folder.exists():
        source.mkdir(parents=True)
        (source / "__init__.py").write_text("")
        (source / "amlserver.py").write_text(AMLSERVER)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{PACKAGE}"\nversion = "0"\n[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n')
    return folder


def own_start(server):
    """Seconds from starting the replica's process until it answers, without any of us."""
    [python] = Path(server.home, "environments").glob("*/venv/bin/python")
    took = []
    for _ in range(20):
        port, began = free_port(), time.perf_counter()
        process = subprocess.Popen([str(python), "-c", LAUNCH, "--port", str(port)], env={**os.environ, "REPLICA": REPLICA})
        while True:
            try:
                line = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                line.request("GET", "/")
                line.getresponse().read()
                break
            except OSError:
                time.sleep(0.001)
        took.append(time.perf_counter() - began)
        process.kill()
        process.wait()
    return statistics.median(took)


def cycles(endpoint, count, seed):
    """Calls in every state that a deployment without requests goes through; only those from zero are timed."""
    chance, took, lost, calls = random.Random(seed), [], [], 0
    for turn in range(count):
        zero = turn % 3 != 2
        end = time.monotonic() + 60
        if zero:
            while endpoint.replicas():
                if time.monotonic() > end:
                    raise RuntimeError(f"{endpoint.name} does not go to zero")
                time.sleep(0.005)
            time.sleep(chance.choice([0, 0.1]))
        else:
            time.sleep(CALM_S * (0.8 + 0.4 * chance.random()))
        herd = 20 if turn % 10 == 9 else 1
        with concurrent.futures.ThreadPoolExecutor(herd) as pool:
            answers = list(pool.map(lambda _: endpoint.call(), range(herd)))
        calls += herd
        lost += [wrong for _, wrong in answers if wrong]
        if zero and herd == 1:
            took.append(answers[0][0])
    return took, lost, calls


def zero():
    """P10: what scale from zero adds, and requests lost."""
    scale = {"scaleSettings": {"scaleType": "TargetUtilization", "minInstances": 0, "maxInstances": 2, "pollingInterval": f"PT{POLL_S}S", "targetUtilizationPercentage": 70}}
    with Server() as server:
        def idle(body):
            body["properties"].setdefault("properties", {})["peregrine.idle_seconds"] = "0"
        lanes = [Endpoint(server, f"zero-{n}", scale) for n in range(LANES)]
        for lane in lanes:
            lane.change(idle)
        own = own_start(server)
        with concurrent.futures.ThreadPoolExecutor(LANES) as pool:
            done = list(pool.map(lambda n: cycles(lanes[n], CYCLES // LANES, n), range(LANES)))
    took = sorted(added - own for lane, _, _ in done for added in lane)
    lost, calls = [wrong for _, lane, _ in done for wrong in lane], sum(count for *_, count in done)
    middle, late = statistics.median(took), took[int(len(took) * 0.95)]
    table(f"Scale from zero ({CYCLES} cycles over {LANES} endpoints; load {os.getloadavg()[0]:.1f})",
          ["own start ms", "added ms, median", "95th", "most", "calls", "lost"],
          [[*(f"{1000 * value:.0f}" for value in (own, middle, late, took[-1])), calls, len(lost)]])
    # A time from a busy machine is no verdict.
    judged = "not judged (the machine was busy)" if os.getloadavg()[0] > 2 * os.cpu_count() else verdict(middle <= 0.1)
    print(f"\ngoal: at most 100 ms beyond its own start: {1000 * middle:.0f} ms, {judged}; no request lost: {len(lost)}, {verdict(not lost)}")
    for wrong in lost[:5]:
        print(f"lost: {wrong}")
    return not lost


def roll():
    """Every replica replaced, again and again, under load."""
    with Server() as server:
        endpoint = Endpoint(server, "roll", {"scaleSettings": {"scaleType": "Default"}})
        def two(body):
            body["sku"] = {"name": "Default", "capacity": 2}
        endpoint.change(two)
        script = Path(server.folder, "post.lua")
        script.write_text(f'wrk.method = "POST"\nwrk.body = string.rep("a", 1024)\nwrk.headers["Content-Type"] = "application/json"\nwrk.headers["Authorization"] = "Bearer {endpoint.key}"\n')
        wrk = subprocess.Popen(["wrk", "-t1", "-c32", f"-d{SECONDS}s", "--timeout", "30s", "--latency", "-s", str(script), endpoint.uri], stdout=subprocess.PIPE, text=True)
        rounds, seen, end = 0, set(endpoint.replicas()), time.monotonic() + SECONDS - 3
        while time.monotonic() < end:
            rounds += 1
            endpoint.change(lambda body: body["properties"]["environmentVariables"].update(ROUND=str(rounds)))
            seen |= set(endpoint.replicas())
        said = wrk.communicate()[0]
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])
    bad, errors = re.search(r"Non-2xx or 3xx responses: (\d+)", said), re.search(r"Socket errors: (.*)", said)
    failed = (int(bad[1]) if bad else 0) + (sum(map(int, re.findall(r"\d+", errors[1]))) if errors else 0)
    late = re.search(r"99%\s+(\S+)", said)[1]
    table(f"Every replica replaced under load ({SECONDS} s; load {os.getloadavg()[0]:.1f})", ["req/s", "p99", "times replaced", "replicas seen", "failed"], [[f"{rate:,.0f}", late, rounds, len(seen), failed]])
    judged = verdict(False) if failed else verdict(True) if rate >= 5000 else "not judged (fewer than 5,000 req/s)"
    print(f"\ngoal: no request fails under 5,000 req/s: {failed} failed, {judged}")
    return not failed


MEASURES = {"zero": zero, "roll": roll}


def main():
    # Whoever ends this ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    names = sys.argv[1:] or list(MEASURES)
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        sys.exit(f"there is no measure `{unknown[0]}`; there are {', '.join(MEASURES)}")
    if REPLICA != "python" and not os.path.exists(REPLICA):
        subprocess.run(["cargo", "build", "--release", "-q", "-p", "peregrine-router", "--example", "bench"], cwd=HERE.parent, check=True)
    sys.exit(0 if all([MEASURES[name]() for name in names]) else 1)


if __name__ == "__main__":
    main()
