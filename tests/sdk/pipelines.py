#!/usr/bin/env python3
"""Submits every pipeline of the corpus to a server and checks that each is accepted, or refused for a listed reason.

Usage: pipelines.py CORPUS [--run [PART OF A PATH]...]     (PEREGRINE_BIN and PEREGRINE_HOME name the command line and its server)

The pipelines are those of a scratch copy (scratch.py) in which all that files refer to exists and every compute target
is `local`. What is accepted is canceled at once: this is about what the server makes of the files, not about what they
compute. The last line is a summary in JSON; exit code 0 means that no refusal is without a reason.

With `--run` they are run to their end instead. Every script they name is one of ours, which tells what it found in its
inputs and writes to all of its outputs; environments are the minimal one, with pandas for parallel steps; what users are
told to make first is made. A pipeline is right if it completes, every step that ran our script found what the steps its
inputs are bound to wrote, and every step that collects rows has some.
"""

import atexit
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import scratch

REASONS = [
    (r"there is no component `[\w-]+/", "a component of a public registry; a registry of one's own can have it"),
    (r"there is no component `diffusers_text_to_image", "a component of a public registry, looked for in the workspace"),
    (r"`automl` nodes cannot run", "AutoML is no part of the product"),
    (r"`(spark|parallel)` steps cannot run yet", "steps of this kind are refused by name"),
    (r"nothing says where it lies", "the path of an input is left to whoever submits it"),
    (r"flow\.dag\.yaml", "a prompt flow, which is no part of the product"),
    (r"sample_word/component\.yml", "a Spark component, and the corpus does not have it"),
    (r"it does not exist", "the corpus does not have the file"),
    (r"there is no data asset or model", "an asset that the user is told to create first"),
    (r"there is no environment", "an environment that the user is told to create first"),
    (r"nothing is stored at", "data that the user is told to upload first"),
    (r"there is no datastore", "a datastore that the user is told to create first"),
    (r"is a placeholder", "a value that the user is told to fill in first"),
]
# Rows of tables reach a script as a data frame.
TABLES = "{image: 'python:3.12-slim', conda_file: {dependencies: [python, {pip: [pandas]}]}}"
FIRST = "cli/jobs/pipelines-with-components/basics/1b_e2e_registered_components"
# What pipelines name and users are told to make first: folder and command.
MADE_FIRST = [
    ("cli/jobs/pipelines-with-components/basics/4d_data_input", "data create -f data.yml"),
    ("cli/endpoints/batch/deploy-pipelines/batch-scoring-with-preprocessing", "component create -f components/prepare/prepare.yml"),
    ("ours", "data create -n credit-default-reference --path one.txt --type uri_file"),
    ("ours", "model create -n heart-classifier-transforms --path model --type custom_model"),
    ("ours", "model create -n heart-classifier --path model --type mlflow_model"),
    ("ours", "job create -f upload.yml --stream"),
]
UPLOAD = """command: cp one.txt ${{outputs.to}}/hello-world.txt
code: .
environment: azureml:AzureML-Minimal@latest
outputs: {to: {path: 'azureml://datastores/workspaceblobstore/paths/azureml/4b_datastore_datapath_uri/'}}
"""
# A component that one of them names and the corpus does not have.
MNIST = "cli/jobs/parallel/3a_mnist_batch_identification/script/prepare_data.yml"
PREPARE = """name: prepare_data
version: '1'
type: command
code: .
command: python prepare_data.py
environment: azureml:AzureML-Minimal@latest
outputs: {mnist_png: {type: uri_folder}}
"""
BINARY = os.environ["PEREGRINE_BIN"]


def ours(folder, *args):
    return subprocess.run([BINARY, *args], cwd=folder, capture_output=True, text=True, timeout=120)


def on_this_machine(place):
    """Names `local` wherever a compute target is named, inputs that are one included."""
    for folder, _, names in os.walk(place):
        for name in names:
            if not name.endswith((".yml", ".yaml")):
                continue
            path = os.path.join(folder, name)
            with open(path, errors="replace") as text:
                before = text.read()
            after = re.sub(r"(?m)^(\s*(?:default_)?compute\w*:\s*)[\"']?(?!\$)(?:azureml:)?[\w<>-]+[\"']?\s*(?:#.*)?$", r"\1azureml:local", before)
            after = re.sub(r"azureml:(?:cpu|gpu|batch)-cluster\b", "azureml:local", after)
            if after != before:
                with open(path, "w") as text:
                    text.write(after)


SCRIPT = """import json, os, ssl, urllib.request
found, told = set(), []
for name, path in os.environ.items():
    if name.startswith("AZURE_ML_INPUT_") and os.path.exists(path):
        files = [path] if os.path.isfile(path) else [os.path.join(at, one) for at, _, ones in os.walk(path) for one in ones]
        for file in files:
            with open(file, errors="replace") as text:
                line = text.readline().strip()
            found.update(line.split()[1:] if line.startswith("made-by ") else [])
own = os.environ["AZUREML_RUN_ID"]
for name, path in os.environ.items():
    if name.startswith("AZURE_ML_OUTPUT_"):
        told.append(name)
        if os.path.isdir(path):
            # The keys that a parallel step may be partitioned by stand in the path.
            path = os.path.join(path, *[key + "=1" for key in KEYS], "made.txt")
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(" ".join(["made-by", own, *sorted(found)]) + "\\n")
with open(os.path.join(RESULTS, own + ".json"), "w") as out:
    json.dump({"found": sorted(found), "outputs": told}, out)
place = os.environ.get("MLFLOW_TRACKING_URI", "").replace("azureml://", "https://")
if "sweep" in own and place:
    for metric in METRICS:
        body = json.dumps({"run_id": own, "key": metric, "value": 0.5, "timestamp": 1, "step": 0}).encode()
        head = {"authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "content-type": "application/json"}
        call = urllib.request.Request(place + "/api/2.0/mlflow/runs/log-metric", body, head)
        urllib.request.urlopen(call, context=ssl.create_default_context(cafile=os.environ.get("REQUESTS_CA_BUNDLE")))


def init():
    pass


def run(batch):
    return [str(one) for one in (batch if isinstance(batch, list) else range(len(batch)))]
"""


def with_scripts_of_ours(place, results):
    """Puts our script wherever a command names one, and takes environments that have to be made away."""
    scratch.put(os.path.join(place, MNIST), PREPARE)
    data = os.path.join(place, "data.tar.gz")
    with tarfile.open(data, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("placeholder.txt"))
    texts = [open(path, errors="replace").read() for path in glob.glob(os.path.join(place, "**", "*.y*ml"), recursive=True)]
    metrics = sorted({name for text in texts for name in re.findall(r"primary_metric:[ ]*(\w+)", text)})
    keys = sorted({key for text in texts for keys in re.findall(r"partition_keys:\s*((?:- *\w+\s+)+)", text) for key in re.findall(r"\w+", keys)})
    script = SCRIPT.replace("RESULTS", repr(results)).replace("METRICS", repr(metrics)).replace("KEYS", repr(keys))
    for table in glob.glob(os.path.join(place, "**", "MLTable"), recursive=True):
        scratch.put(os.path.join(os.path.dirname(table), "a.csv"), "a,b\n1,2\n")
    for path in glob.glob(os.path.join(place, "**", "*.y*ml"), recursive=True):
        with open(path, errors="replace") as text:
            before = text.read()
        software = TABLES if "entry_script" in before else "azureml:AzureML-Minimal@latest"
        after = re.sub(r"(?m)^(\s*environment:[ ]*)\S.*$", rf"\1{software}", before)
        after = re.sub(r"(?m)^(\s*)environment:[ ]*\n(?:\1[ ]+.*\n|\s*\n)+", rf"\1environment: {software}\n", after)
        after = re.sub(r"(?:python -m )?pip install [^&]*&&", "", after)
        after = re.sub(r"Rscript (\w+)\.R\b", r"python \1.py", after)
        after = re.sub(r"(?m)^(\s*path:[ ]*)[\"']?(?:https?|wasbs)://\S+\s*$", rf"\1{data}", after)
        if after != before:
            with open(path, "w") as text:
                text.write(after)
        try:
            document = yaml.safe_load(after)
        except yaml.YAMLError:
            continue
        for owner in owners(document):
            code = scratch.local(os.path.dirname(path), str(owner.get("code") or "."))
            if not code:
                continue
            code = os.path.dirname(code) if os.path.isfile(code) else code
            named = re.findall(r"python3?\s+(?:-u\s+)?([\w./-]+\.py)", str(owner.get("command")))
            for name in named + ([owner["entry_script"]] if "entry_script" in owner else []):
                os.makedirs(os.path.dirname(os.path.join(code, name)), exist_ok=True)
                with open(os.path.join(code, name), "w") as out:
                    out.write(script)


def make_first(place):
    for name, text in (("one.txt", "one\n"), ("MLTable", "paths:\n- file: ./one.txt\n"), ("model/MLmodel", "flavors: {}\n"), ("upload.yml", UPLOAD)):
        scratch.put(os.path.join(place, "ours", name), text)
    for folder, command in MADE_FIRST:
        said = ours(os.path.join(place, folder), *command.split())
        assert said.returncode == 0, f"{command}: {said.stderr}"


def left_to_the_user(place, path):
    """A place for every input of a pipeline that says none."""
    with open(os.path.join(place, path)) as text:
        inputs = yaml.safe_load(text).get("inputs") or {}
    bare = [name for name, value in inputs.items() if isinstance(value, dict) and "path" not in value and value.get("type") in ("uri_folder", "mltable")]
    return [word for name in bare for word in ("--set", f"inputs.{name}.path={os.path.join(place, 'ours')}")]


def owners(value):
    """Every map that has a command or a script."""
    if isinstance(value, dict):
        if "command" in value or "entry_script" in value:
            yield value
        for inner in value.values():
            yield from owners(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from owners(inner)


def went_wrong(folder, document, name, results):
    """Waits for the end of a pipeline; what is wrong with it, or nothing."""
    deadline = time.monotonic() + 180
    while True:
        status = ours(folder, "job", "show", "-n", name, "--query", "status", "-o", "tsv").stdout.strip()
        if status in ("Completed", "Failed", "Canceled"):
            break
        if time.monotonic() > deadline:
            ours(folder, "job", "cancel", "-n", name, "-o", "none")
            return f"still {status} after 180 s"
        time.sleep(0.5)
    if status != "Completed":
        return ours(folder, "job", "why", "-n", name).stdout.strip()
    told = {}
    for path in glob.glob(os.path.join(results, f"{name}_*.json")):
        with open(path) as text:
            told[os.path.basename(path)[len(name) + 1:-len(".json")]] = json.load(text)
    for step, node in (document.get("jobs") or {}).items():
        for value in (node.get("inputs") or {}).values():
            text = value.get("path") if isinstance(value, dict) else value
            maker = re.search(r"\$\{\{\s*parent\.jobs\.(\w+)\.outputs\.", str(text))
            if maker and step in told and maker[1] in told and f"{name}_{maker[1]}" not in told[step]["found"]:
                return f"step `{step}` did not find what `{maker[1]}` wrote"
        rows = re.search(r"outputs\.(\w+)", str((node.get("task") or {}).get("append_row_to")))
        if rows:
            to = os.path.join(results, f"{name}_{step}")
            ours(folder, "job", "download", "-n", f"{name}_{step}", "--output-name", rows[1], "-p", to)
            files = [path for path in glob.glob(os.path.join(to, "**"), recursive=True) if os.path.isfile(path)]
            if not any(os.path.getsize(path) for path in files):
                return f"step `{step}` left no row in `{rows[1]}`"
    return None


def told(err):
    """What the refusal says, without what leads up to it."""
    lines = [line.strip().removeprefix("because: ") for line in err.splitlines() if "because: " in line]
    steps = [line for line in lines if line.startswith("`jobs.") or line.startswith("`settings.")]
    return steps or [" ".join(lines) or err.strip()]


def main():
    corpus, place, results = sys.argv[1], tempfile.mkdtemp(prefix="pipelines-"), tempfile.mkdtemp(prefix="results-")
    for folder in (place, results):
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    to_the_end = sys.argv[2:3] == ["--run"]
    scratch.make(corpus, place)
    on_this_machine(place)
    if to_the_end:
        with_scripts_of_ours(place, results)
        make_first(place)
    for name in ("train", "score", "eval"):
        ours(os.path.join(place, FIRST), "component", "create", "-f", f"{name}.yml", "-o", "none")
    counts, wrong, running = collections.Counter(), [], []
    paths = [path for path, kind, _, verdict in scratch.files(corpus) if kind == "pipelineJob" and verdict == "accepts"]
    for path in [path for path in paths if not sys.argv[3:] or any(word in path for word in sys.argv[3:])]:
        folder, name = os.path.split(os.path.join(place, path))
        more = left_to_the_user(place, path) if to_the_end else []
        said = ours(folder, "job", "create", "-f", name, *more, "--query", "name", "-o", "tsv")
        if said.returncode == 0:
            counts["accepted"] += 1
            running.append((path, said.stdout.strip()))
            if not to_the_end:
                ours(folder, "job", "cancel", "-n", said.stdout.strip(), "-o", "none")
            continue
        lines = told(said.stderr)
        known = [next((reason for pattern, reason in REASONS if re.search(pattern, line)), None) for line in lines]
        if said.returncode != 2 or None in known:
            wrong.append(f"{path}: {said.returncode}: " + "; ".join(line for line, reason in zip(lines, known) if not reason))
        counts[known[0] or "no reason"] += 1
    for path, job in running if to_the_end else []:
        with open(os.path.join(place, path)) as text:
            bad = went_wrong(place, yaml.safe_load(text), job, results)
        if bad:
            wrong.append(f"{path}: {bad}")
        print("wrong" if bad else "right", path, flush=True)
    for what, count in counts.most_common():
        print(f"{count:4} {what}")
    for line in wrong:
        print(f"WRONG {line}")
    print(json.dumps({"accepted": counts["accepted"], "refused": sum(counts.values()) - counts["accepted"], "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
