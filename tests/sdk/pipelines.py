#!/usr/bin/env python3
"""Submits every pipeline of the corpus to a server and checks that each is accepted, or refused for a listed reason.

Usage: pipelines.py CORPUS     (PEREGRINE_BIN and PEREGRINE_HOME name the command line and its server)

The pipelines are those of a scratch copy (scratch.py) in which all that files refer to exists and every compute target
is `local`. What is accepted is canceled at once: this is about what the server makes of the files, not about what they
compute. The last line is a summary in JSON; exit code 0 means that no refusal is without a reason.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import scratch

REASONS = [
    (r"there is no component `[\w-]+/", "a component of a public registry; a registry of one's own can have it"),
    (r"there is no component `diffusers_text_to_image", "a component of a public registry, looked for in the workspace"),
    (r"`automl` nodes cannot run", "AutoML is no part of the product"),
    (r"`(spark|parallel)` steps cannot run yet", "steps of this kind are refused by name"),
    (r"nothing says where it lies", "the path of an input is left to whoever submits it"),
    (r"it does not exist", "the corpus does not have the file"),
    (r"there is no data asset or model", "an asset that the user is told to create first"),
    (r"there is no environment", "an environment that the user is told to create first"),
    (r"nothing is stored at", "data that the user is told to upload first"),
    (r"there is no datastore", "a datastore that the user is told to create first"),
    (r"is a placeholder", "a value that the user is told to fill in first"),
]
FIRST = "cli/jobs/pipelines-with-components/basics/1b_e2e_registered_components"
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


def told(err):
    """What the refusal says, without what leads up to it."""
    lines = [line.strip().removeprefix("because: ") for line in err.splitlines() if "because: " in line]
    steps = [line for line in lines if line.startswith("`jobs.") or line.startswith("`settings.")]
    return steps or [" ".join(lines) or err.strip()]


def main():
    corpus, place = sys.argv[1], tempfile.mkdtemp(prefix="pipelines-")
    scratch.make(corpus, place)
    on_this_machine(place)
    for name in ("train", "score", "eval"):
        ours(os.path.join(place, FIRST), "component", "create", "-f", f"{name}.yml", "-o", "none")
    counts, wrong = collections.Counter(), []
    for path, kind, _, verdict in scratch.files(corpus):
        if kind != "pipelineJob" or verdict != "accepts":
            continue
        folder, name = os.path.split(os.path.join(place, path))
        said = ours(folder, "job", "create", "-f", name, "--query", "name", "-o", "tsv")
        if said.returncode == 0:
            counts["accepted"] += 1
            ours(folder, "job", "cancel", "-n", said.stdout.strip(), "-o", "none")
            continue
        lines = told(said.stderr)
        known = [next((reason for pattern, reason in REASONS if re.search(pattern, line)), None) for line in lines]
        if said.returncode != 2 or None in known:
            wrong.append(f"{path}: {said.returncode}: " + "; ".join(line for line, reason in zip(lines, known) if not reason))
        counts[known[0] or "no reason"] += 1
    for what, count in counts.most_common():
        print(f"{count:4} {what}")
    for line in wrong:
        print(f"WRONG {line}")
    print(json.dumps({"accepted": counts["accepted"], "refused": sum(counts.values()) - counts["accepted"], "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
