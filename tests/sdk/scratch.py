"""A scratch copy of the corpus in which everything that files refer to is there, as small placeholders."""

import csv
import os
import shutil

import yaml

NOUNS = {
    "commandJob": "job", "commandJob/Component": "job", "pipelineJob": "job", "sweepJob": "job", "sparkJob": "job", "autoMLJob": "job",
    "commandComponent": "component", "pipelineComponent": "component", "sparkComponent": "component", "parallelComponent": "component",
    "environment": "environment", "data": "data", "model": "model", "datastore": "datastore", "compute": "compute", "workspace": "workspace",
    "schedule": "schedule", "onlineEndpoint": "online-endpoint", "onlineDeployment": "online-deployment",
    "batchEndpoint": "batch-endpoint", "batchDeployment": "batch-deployment",
}
SCORE = "def init():\n    pass\n\n\ndef run(data):\n    return data\n"
CONDA = "name: env\ndependencies:\n- python=3.10\n- pip:\n  - mlflow\n"


def files(corpus):
    """Path, kind, noun and verdict of every file that has a noun here."""
    with open(os.path.join(corpus, "ORACLE.csv"), newline="") as text:
        for row in csv.DictReader(text):
            noun = NOUNS.get(row["kind"].split("(")[0])
            if noun:
                yield row["path"], row["kind"].split("(")[0].split("/")[0], noun, row["sdk"]


def make(corpus, scratch):
    shutil.copytree(corpus, scratch, dirs_exist_ok=True)
    for path, _, _, verdict in files(corpus):
        if verdict == "accepts":
            fill(os.path.join(scratch, path))


def fill(path):
    with open(path) as text:
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError:
            return
    walk(document, os.path.dirname(path), [])


def walk(value, folder, keys):
    if isinstance(value, dict):
        if isinstance(value.get("code"), str) and isinstance(value.get("entry"), dict) and "file" in value["entry"]:
            put(os.path.join(local(folder, value["code"]) or folder, value["entry"]["file"]), "print(1)\n")
        if "scoring_script" in value:
            put(os.path.join(local(folder, value.get("code", ".")) or folder, value["scoring_script"]), SCORE)
        if isinstance(value.get("build"), dict) and isinstance(value["build"].get("path"), str):
            build = value["build"]
            put(os.path.join(local(folder, build["path"]), build.get("dockerfile_path", "Dockerfile")), "FROM scratch\n")
        for include in value.get("additional_includes") or []:
            if isinstance(include, str) and local(folder, include):
                put(os.path.join(local(folder, include), "placeholder.txt") if not os.path.splitext(include)[1] else local(folder, include), "placeholder\n")
        for key, inner in value.items():
            walk(inner, folder, keys + [str(key)])
            if isinstance(inner, str):
                place(value, key, inner, folder, keys)
    elif isinstance(value, list):
        for inner in value:
            walk(inner, folder, keys)


def place(owner, key, text, folder, keys):
    if key in ("code", "build_context") or (key == "path" and not (keys and keys[-1] in ("outputs", "build"))):
        path = local(folder, text)
        if not path or os.path.exists(path):
            return
        kind = owner.get("type", "")
        if key == "code" and os.path.splitext(text)[1] == ".py":
            put(path, "print(1)\n")
        elif key == "path" and (kind == "uri_file" or (os.path.splitext(text)[1] and kind not in ("uri_folder", "mltable", "mlflow_model"))):
            put(path, "placeholder\n")
        elif kind == "mltable":
            put(os.path.join(path, "MLTable"), "paths:\n- file: ./a.csv\n")
        elif kind == "mlflow_model":
            put(os.path.join(path, "MLmodel"), "flavors: {}\n")
        else:
            put(os.path.join(path, "placeholder.txt"), "placeholder\n")
            # Capitals tell whether both sides put names in the same order.
            put(os.path.join(path, "Zebra", "Stripes.txt"), "black, white\n")
    elif key == "conda_file":
        path = local(folder, text)
        if path:
            put(path, CONDA)
    elif key == "environment" and text.startswith((".", "file:")):
        path = local(folder, text)
        if path:
            put(path, "name: placed\nimage: python:3.12\n")


def local(folder, text):
    text = text[len("file:"):] if text.startswith("file:") else text
    if "://" in text or text.startswith(("azureml:", "/subscriptions/", "git+", "$")) or "${{" in text:
        return None
    return os.path.normpath(os.path.join(folder, text))


def put(path, text):
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(text)
