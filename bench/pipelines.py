"""Pipelines and sweeps of `/bin/true`: what leading them costs beyond the bare process, and a fan-out by Ray beside it."""

import json
import subprocess
import time
import urllib.request


def call(server, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", data=data, method=method)
    request.add_header("authorization", f"Bearer {server.token}")
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def component(server, place):
    spec = {"name": "nothing", "version": "1", "type": "command", "command": "/bin/true", "environment": "azureml:bench:1",
            "is_deterministic": False, "inputs": {"before": {"type": "uri_folder", "optional": True}},
            "outputs": {"out": {"type": "uri_folder"}}}
    call(server, "PUT", f"{place}/components/nothing/versions/1", {"properties": {"componentSpec": spec}})


def node(before):
    inputs = {} if before is None else {"before": {"value": f"${{{{parent.jobs.{before}.outputs.out}}}}"}}
    return {"type": "command", "componentId": "azureml:nothing:1", "inputs": inputs}


def chain(count):
    return {f"s{n}": node(f"s{n - 1}" if n else None) for n in range(count)}


def fan(count):
    return {f"s{n}": node(None) for n in range(count)}


def pipeline(jobs):
    return {"jobType": "Pipeline", "jobs": jobs}


def sweep(trials):
    return {"jobType": "Sweep", "trial": {"command": "/bin/true --x=${{search_space.x}}", "environmentId": "azureml:bench:1"},
            "searchSpace": {"x": ["uniform", [0, 1]]}, "samplingAlgorithm": {"samplingAlgorithmType": "Random"},
            "objective": {"goal": "minimize", "primaryMetric": "loss"},
            "limits": {"jobLimitsType": "Sweep", "maxTotalTrials": trials, "maxConcurrentTrials": 64}}


def run(server, place, name, body):
    """Seconds until it is accepted, and from then to its end."""
    begin = time.perf_counter()
    call(server, "PUT", f"{place}/jobs/{name}", {"properties": body})
    accepted = time.perf_counter()
    while True:
        status = call(server, "GET", f"{place}/jobs/{name}")["properties"]["status"]
        if status in ("Completed", "Failed", "Canceled"):
            assert status == "Completed", status
            return accepted - begin, time.perf_counter() - accepted
        # Showing a long pipeline is work too, and must not become a part of what is measured.
        time.sleep(max(0.2, (time.perf_counter() - accepted) / 50))


def bare(count=300):
    """Seconds a process takes by itself, one after the other."""
    begin = time.perf_counter()
    for _ in range(count):
        subprocess.run(["/bin/true"], check=True)
    return (time.perf_counter() - begin) / count


def rows(server, sizes):
    place = json.loads(server.run("workspace", "show", "-o", "json"))["id"]
    component(server, place)
    alone = bare()
    makers = [("chain", lambda n: pipeline(chain(n))), ("fan-out", lambda n: pipeline(fan(n))), ("sweep", sweep)]
    for what, make in makers:
        for size in sizes:
            accepted, took = run(server, place, f"{what}-{size}", make(size))
            yield what, size, accepted, took, (took / size - alone) * 1000


RAY = """import os, ray, subprocess, sys, tempfile, time
os.environ.pop("RAY_ADDRESS", None)
# A cluster of its own: another Ray on this machine is neither met nor left with anything.
room = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
ray.init(address="local", num_cpus=2, include_dashboard=False, logging_level="ERROR", _temp_dir=room.name)
@ray.remote
def step(n):
    subprocess.run(["/bin/true"], check=True)
count = int(sys.argv[1])
ray.get([step.remote(n) for n in range(100)])
begin = time.perf_counter()
ray.get([step.remote(n) for n in range(count)])
print(time.perf_counter() - begin)
ray.shutdown()
"""


def by_ray(python, count):
    """Seconds for the same fan-out as tasks of Ray, warmed up; or why there are none."""
    try:
        ran = subprocess.run([python, "-c", RAY, str(count)], capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return None, f"{count:,} tasks took more than 600 s"
    if ran.returncode != 0:
        return None, (ran.stderr.strip() or "it failed").splitlines()[-1]
    return float(ran.stdout.split()[-1]), ""
