"""What needs a real GPU: detection, a CUDA job, two jobs that take turns on one GPU, sampled utilisation, nodes with GPUs of their own.

Usage: PEREGRINE_BIN=... tests/gpu/run.py   (on a machine with an NVIDIA GPU and a python3 that has PyTorch)
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = os.environ["PEREGRINE_BIN"]
FOLDER = Path(tempfile.mkdtemp(prefix="peregrine-gpu-"))
ENV = {**os.environ, "PEREGRINE_HOME": str(FOLDER / "home")}

TRAIN = """
import os, time, torch
start = time.time()
assert torch.cuda.is_available(), "no GPU is visible"
print("visible", os.environ["CUDA_VISIBLE_DEVICES"], torch.cuda.get_device_name(0), "devices", torch.cuda.device_count())
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
while time.time() - start < 14:
    a = (a @ a).clamp(-1, 1)
    torch.cuda.synchronize()
print("span", start, time.time())
"""
JOB = """$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
command: {command}
code: ./src
environment: {{image: mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04}}
{where}
"""


def run(*args):
    done = subprocess.run([BIN, *args], env=ENV, cwd=FOLDER, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"{args}: {done.stdout}{done.stderr}")
    return done.stdout


def submit(command, where):
    (FOLDER / "job.yml").write_text(JOB.format(command=command, where=where))
    return json.loads(run("job", "create", "-f", "job.yml", "-o", "json"))["name"]


def ended(name):
    while True:
        job = json.loads(run("job", "show", "-n", name, "-o", "json"))
        if job["status"] in ("Completed", "Failed", "Canceled"):
            return job
        time.sleep(0.2)


def log(name):
    return (FOLDER / "home/blobs/default/azureml/ExperimentRun" / f"dcid.{name}" / "user_logs/std_log.txt").read_text()


(FOLDER / "src").mkdir()
(FOLDER / "src/train.py").write_text(TRAIN)
run("server", "start")
for _ in range(100):
    nodes = json.loads(run("compute", "list-nodes", "-n", "local", "-o", "json"))
    if nodes:
        break
    time.sleep(0.1)
print("node:", json.dumps(nodes[0]))
assert "gpu" in run("compute", "show", "-n", "local", "-o", "json")

LOOK = "python3 -c \"import torch; print('sees', torch.cuda.device_count())\""
GPU = "resources: {instance_type: gpu}"
blind = submit(LOOK, "resources: {instance_type: defaultinstancetype}")
first, second = submit("python3 train.py", GPU), submit("python3 train.py", GPU)
time.sleep(9)
why = json.loads(run("job", "why", "-n", second, "-o", "json"))
print("second waits:", why["status"], "-", why["note"])
assert ended(blind)["status"] == "Completed" and "sees 0" in log(blind), log(blind)
spans = []
for name in (first, second):
    job = ended(name)
    assert job["status"] == "Completed", json.dumps(job["peregrine"])
    text = log(name)
    print(name, text.strip().replace("\n", " | "))
    spans.append([float(x) for x in text.split("span")[1].split()])
assert spans[1][0] >= spans[0][1], f"the two ran at the same time: {spans}"
print(run("job", "show", "-n", first, "--query", "peregrine.isolation", "-o", "tsv").strip(), "isolation")

db = FOLDER / "home/peregrine.db"
import sqlite3

rows = [json.loads(row[0]) for row in sqlite3.connect(f"file:{db}?mode=ro", uri=True).execute("select body from samples order by at")]
peak = max(gpu["utilization_percent"] for row in rows for gpu in row["gpus"])
print(f"samples: {len(rows)}, peak GPU utilisation {peak}%, memory {max(g['memory_used_bytes'] for r in rows for g in r['gpus']) >> 20} MiB")
assert peak > 50

# Nodes that share this machine see the GPUs of their size and no others.
for name, size, seen in (("gpus", "Standard_NC6s_v3", 1), ("cpus", "Standard_D1_v2", 0)):
    (FOLDER / "cluster.yml").write_text(f"name: {name}\ntype: amlcompute\nsize: {size}\nmax_instances: 1\n")
    run("compute", "create", "-f", "cluster.yml")
    job = submit(LOOK, f"compute: azureml:{name}")
    assert ended(job)["status"] == "Completed" and f"sees {seen}" in log(job), log(job)
    print(f"a node of size {size} sees {seen} GPUs")
    run("compute", "delete", "-n", name, "--yes")
print(run("doctor"))
run("server", "stop")
print("1 passed, 0 failed")
