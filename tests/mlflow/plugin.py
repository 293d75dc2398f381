"""Tracking, artifacts and registry through Azure's own plugin (`azureml-mlflow`), and what a plain client sees of it.

MLFLOW_TRACKING_URI is the address of a workspace as `peregrine sdk env` prints it; the plugin is given the same place in
its own scheme. Says how many things were checked as one line of JSON; the first that is not so ends it.
"""

import json
import os
import tempfile
from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

PLAIN = os.environ["MLFLOW_TRACKING_URI"]
PLUGIN = PLAIN.replace("https://", "azureml://").replace("/mlflow/v1.0/", "/mlflow/v2.0/")
checked = 0


def same(what, got, expected):
    global checked
    checked += 1
    assert got == expected, f"{what}: {got!r}, expected {expected!r}"


def refused(what, code, act):
    try:
        act()
    except MlflowException as error:
        return same(what, error.error_code, code)
    raise AssertionError(f"{what} was not refused")


class Model(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return [2 * number for number in model_input]


def track(client, folder):
    experiment = mlflow.set_experiment("plugged")
    with mlflow.start_run(run_name="one", tags={"team": "birds"}) as run:
        mlflow.log_params({"lr": 0.1, "depth": 4})
        for step in range(5):
            mlflow.log_metric("loss", 1 / (step + 1), step=step)
        mlflow.log_metrics({"a": 1.0, "b": 2.0})
        with mlflow.start_run(run_name="below", nested=True) as child:
            mlflow.log_metric("loss", 9.0)
    one = client.get_run(run.info.run_id)
    same("params", one.data.params, {"lr": "0.1", "depth": "4"})
    same("metrics", one.data.metrics, {"loss": 0.2, "a": 1.0, "b": 2.0})
    same("status", one.info.status, "FINISHED")
    same("tag", one.data.tags["team"], "birds")
    same("parent", client.get_run(child.info.run_id).data.tags["mlflow.parentRunId"], run.info.run_id)
    same("history", [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "loss")], [(s, 1 / (s + 1)) for s in range(5)])
    found = client.search_runs([experiment.experiment_id], "metrics.loss > 1", order_by=["metrics.loss DESC"])
    same("search", [r.info.run_id for r in found], [child.info.run_id])
    client.set_tag(run.info.run_id, "note", "good")
    client.delete_tag(run.info.run_id, "note")
    client.update_run(run.info.run_id, name="renamed")
    same("renamed", client.get_run(run.info.run_id).info.run_name, "renamed")
    client.delete_run(child.info.run_id)
    same("deleted", client.get_run(child.info.run_id).info.lifecycle_stage, "deleted")
    client.restore_run(child.info.run_id)
    refused("other value", "INVALID_PARAMETER_VALUE", lambda: client.log_param(run.info.run_id, "lr", "0.2"))
    refused("no run", "RESOURCE_DOES_NOT_EXIST", lambda: client.get_run("0" * 32))
    return run.info.run_id


def files(client, run, folder):
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "top.txt").write_text("top")
    (folder / "sub" / "deep" / "bytes.bin").write_bytes(bytes(range(256)) * 20_000)
    client.log_artifacts(run, str(folder), "kept")
    client.log_text(run, "words", "notes/words.txt")
    client.log_dict(run, {"a": [1, 2]}, "notes/a.json")
    same("top", sorted(f.path for f in client.list_artifacts(run)), ["kept", "notes"])
    # The plugin itself names no sizes.
    same("below", sorted((f.path, f.is_dir) for f in client.list_artifacts(run, "kept")), [("kept/sub", True), ("kept/top.txt", False)])
    got = Path(client.download_artifacts(run, "kept", tempfile.mkdtemp(dir=folder)))
    same("one file", (got / "top.txt").read_text(), "top")
    same("large file", (got / "sub" / "deep" / "bytes.bin").read_bytes(), bytes(range(256)) * 20_000)
    same("text", mlflow.artifacts.load_text(client.get_run(run).info.artifact_uri + "/notes/words.txt"), "words")


def register(client, run):
    with mlflow.start_run(run_id=run):
        logged = mlflow.pyfunc.log_model(name="model", python_model=Model(), registered_model_name="doubles", pip_requirements=[])
    version = client.get_model_version("doubles", "1")
    same("version", (version.status, version.run_id), ("READY", run))
    same("predicts", mlflow.pyfunc.load_model("models:/doubles/1").predict([1, 2]), [2, 4])
    same("logged predicts", mlflow.pyfunc.load_model(logged.model_uri).predict([3]), [6])
    client.set_registered_model_alias("doubles", "best", "1")
    same("alias", client.get_model_version_by_alias("doubles", "best").version, version.version)
    client.set_model_version_tag("doubles", "1", "kind", "toy")
    client.update_model_version("doubles", "1", "doubles numbers")
    client.transition_model_version_stage("doubles", "1", "Production")
    again = client.get_model_version("doubles", "1")
    same("told of it", (again.tags["kind"], again.description, again.current_stage), ("toy", "doubles numbers", "Production"))
    same("found", [m.name for m in client.search_registered_models("name like 'doub%'")], ["doubles"])
    same("versions", [v.version for v in client.search_model_versions("name = 'doubles'")], [version.version])
    refused("no model", "RESOURCE_DOES_NOT_EXIST", lambda: client.get_registered_model("absent"))
    refused("taken", "RESOURCE_ALREADY_EXISTS", lambda: client.create_registered_model("doubles"))


def seen_by_a_plain_client(run):
    mlflow.set_tracking_uri(PLAIN)
    client = MlflowClient(PLAIN)
    same("plain run", client.get_run(run).data.params["lr"], "0.1")
    same("plain file", mlflow.artifacts.load_text(f"runs:/{run}/notes/words.txt"), "words")
    same("plain model", mlflow.pyfunc.load_model("models:/doubles@best").predict([5]), [10])


def main():
    mlflow.set_tracking_uri(PLUGIN)
    client = MlflowClient()
    with tempfile.TemporaryDirectory() as folder:
        run = track(client, Path(folder))
        files(client, run, Path(folder))
        register(client, run)
    seen_by_a_plain_client(run)
    print(json.dumps({"checked": checked, "mlflow": mlflow.__version__}))


main()
