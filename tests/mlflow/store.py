"""Writes an MLflow store with the real client: a SQLite database and a folder of artifacts, for an importer to read.

usage: store.py DATABASE ARTIFACTS
Prints a JSON object with the ids a test asks for.
"""

import json
import math
import os
import sys
import time

import mlflow
from mlflow.data.code_dataset_source import CodeDatasetSource
from mlflow.data.meta_dataset import MetaDataset
from mlflow.entities import DatasetInput, InputTag, LoggedModelOutput, Metric, Param, RunTag
from mlflow.entities.logged_model_status import LoggedModelStatus

POINTS = 5000


def batches(client, run, metrics):
    for at in range(0, len(metrics), 1000):
        client.log_batch(run, metrics=metrics[at : at + 1000])


def parent_and_children(client, experiment):
    """A run with much logged to it, and two below it."""
    parent = client.create_run(experiment, start_time=1_700_000_000_000, run_name="parent", tags={"team": "birds"})
    run = parent.info.run_id
    points = [Metric("loss", 1.0 / (1 + at) + at * 1e-13, 1_700_000_000_000 + at, at) for at in range(POINTS)]
    points += [Metric("odd", value, 1_700_000_000_000, 0) for value in (math.nan, math.inf, -math.inf, 0.1, -0.0)]
    points += [Metric("loss", 0.5, 1_700_000_000_003, 3), Metric("loss", 0.25, 1_700_000_000_003, 3)]
    points += points[:10]
    batches(client, run, points)
    client.log_batch(run, params=[Param(f"p{at}", "v" * at) for at in range(250)])
    client.log_batch(run, tags=[RunTag("note", "line one\nline two: \u00e9 \u65e5\u672c")])
    folder = os.path.join(os.path.dirname(sys.argv[1]), "made")
    os.makedirs(os.path.join(folder, "deep/er"), exist_ok=True)
    for name, data in [("a b%20\u00e9.txt", b"text"), ("empty", b""), ("deep/er/large.bin", os.urandom(700_000))]:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    client.log_artifacts(run, folder, "data")
    client.log_dict(run, {"x": 1}, "top.json")
    dataset = MetaDataset(source=CodeDatasetSource({"mlflow.source.name": "store.py"}), name="birds", digest="abc123")
    client.log_inputs(run, [DatasetInput(dataset._to_mlflow_entity(), [InputTag("mlflow.data.context", "training")])])
    children = []
    for number in range(2):
        child = client.create_run(experiment, tags={"mlflow.parentRunId": run}, run_name=f"child-{number}")
        client.log_metric(child.info.run_id, "score", number)
        client.set_terminated(child.info.run_id, ["FAILED", "KILLED"][number], end_time=1_700_000_100_000)
        children.append(child.info.run_id)
    client.set_terminated(run, "FINISHED", end_time=1_700_000_200_000)
    return run, children


def logged_model(client, experiment, run):
    """A model with an id of its own, with files and points."""
    model = client.create_logged_model(experiment, "forest", run, tags={"kind": "tree"}, params={"depth": "4"})
    folder = os.path.join(os.path.dirname(sys.argv[1]), "model")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "MLmodel"), "w") as file:
        file.write("flavors: {}\nmodel_uuid: x\n")
    client.log_model_artifacts(model.model_id, folder)
    client.finalize_logged_model(model.model_id, LoggedModelStatus.READY)
    client.log_metric(run, "accuracy", 0.9, step=1, model_id=model.model_id)
    client.log_outputs(run, [LoggedModelOutput(model.model_id, 1)])
    return model.model_id


def served_run(client, artifacts):
    """A run whose files an MLflow server kept, in a folder of its own."""
    experiment = client.create_experiment("served", "mlflow-artifacts:/served")
    run = client.create_run(experiment, run_name="served").info.run_id
    folder = os.path.join(artifacts, "served", run, "artifacts")
    os.makedirs(folder)
    with open(os.path.join(folder, "kept.txt"), "w") as file:
        file.write("kept by a server")
    return run


def registry(client, run, model_id):
    """Versions from files of a run and from a logged model, one deleted between, with aliases, tags and stages."""
    client.create_registered_model("birds", tags={"owner": "me"}, description="tells birds apart")
    root = client.get_run(run).info.artifact_uri
    client.create_model_version("birds", f"{root}/data", run, tags={"v": "1"}, description="first")
    client.create_model_version("birds", f"{root}/data", run)
    client.create_model_version("birds", f"models:/{model_id}", run, model_id=model_id)
    client.delete_model_version("birds", "2")
    client.transition_model_version_stage("birds", "1", "Production")
    client.set_registered_model_alias("birds", "champion", "3")
    client.set_registered_model_alias("birds", "old", "1")
    client.copy_model_version("models:/birds/1", "birds-copy")
    client.create_registered_model("empty")


def main():
    database, artifacts = (os.path.abspath(path) for path in sys.argv[1:3])
    mlflow.set_tracking_uri(f"sqlite:///{database}")
    client = mlflow.MlflowClient()
    first = client.create_experiment("first", f"{artifacts}/first", tags={"mlflow.note.content": "the first"})
    second = client.create_experiment("second", f"file://{artifacts}/second")
    gone = client.create_experiment("gone", f"{artifacts}/gone")
    away = client.create_experiment("away", "s3://bucket/path")
    run, children = parent_and_children(client, first)
    model_id = logged_model(client, first, run)
    deleted = client.create_run(second, run_name="deleted").info.run_id
    client.log_param(deleted, "a", "b")
    client.log_text(deleted, "kept", "kept.txt")
    client.delete_run(deleted)
    running = client.create_run(second, run_name="running").info.run_id
    in_default = client.create_run("0", run_name="by default").info.run_id
    client.create_run(away, run_name="away")
    served = served_run(client, artifacts)
    lost = client.create_run(gone, run_name="lost").info.run_id
    client.log_metric(lost, "m", 1.5)
    client.delete_experiment(gone)
    registry(client, run, model_id)
    ids = {"run": run, "children": children, "deleted": deleted, "running": running, "lost": lost, "served": served}
    print(json.dumps({**ids, "in_default": in_default, "model": model_id, "points": POINTS, "at": time.time()}))


if __name__ == "__main__":
    main()
