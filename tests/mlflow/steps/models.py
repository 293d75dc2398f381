"""Logged models, as clients from 3.0 on make them; older clients log models as artifacts of a run."""

from pathlib import Path

import mlflow
from mlflow.entities import Metric

CODE = """
import mlflow


class Doubler(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return model_input["x"] * 2


mlflow.models.set_model(Doubler())
"""


def steps(book, at):
    client = at.client
    exp = at.models = book("model/experiment", client.create_experiment, f"{at.p}.models", called="exp models")
    at.code = at.folder / "model.py"
    at.code.write_text(CODE)
    logged(book, at, exp)
    if at.three:
        records(book, client, exp)
        searches(book, client, exp)


def logged(book, at, exp):
    """A tiny model of code, logged, found, loaded and used."""
    import pandas
    mlflow.set_experiment(experiment_id=exp)

    def log():
        with mlflow.start_run(run_name="trains") as run:
            mlflow.log_param("depth", 3)
            mlflow.log_metric("acc", 0.5)
            where = {"name": "doubler"} if at.three else {"artifact_path": "doubler"}
            info = mlflow.pyfunc.log_model(**where, python_model=str(at.code), input_example=pandas.DataFrame({"x": [1.0, 2.0]}), pip_requirements=["mlflow"])
        at.trained = run.info.run_id
        book.call("run trains", run.info.run_id)
        at.info = info
        if at.three:
            book.call("model doubler", info.model_id)
        return [info.model_uri, info.artifact_path, sorted(info.flavors)]
    book("model/log", log)
    book("model/run after", lambda: mlflow.get_run(at.trained).outputs if at.three else mlflow.get_run(at.trained).data.tags)
    book("model/load", lambda: list(mlflow.pyfunc.load_model(at.info.model_uri).predict(pandas.DataFrame({"x": [3.0, 4.0]}))))
    book("model/load by run", lambda: list(mlflow.pyfunc.load_model(f"runs:/{at.trained}/doubler").predict(pandas.DataFrame({"x": [5.0]}))))
    book("model/files", lambda: sorted(f.path for f in mlflow.artifacts.list_artifacts(at.info.model_uri)))
    book("model/files of the run", lambda: sorted(f.path for f in at.client.list_artifacts(at.trained, "doubler")))
    book("model/download", lambda: (Path(mlflow.artifacts.download_artifacts(at.info.model_uri)) / "MLmodel").is_file())
    if at.three:
        book("model/last logged", lambda: mlflow.last_logged_model().name)
        book("model/get", lambda: {k: v for k, v in dict(mlflow.get_logged_model(at.info.model_id)).items() if k not in ("tags",)})
        book("model/tags of it", lambda: sorted(mlflow.get_logged_model(at.info.model_id).tags))
        book("model/list files", lambda: sorted(f.path for f in at.client.list_logged_model_artifacts(at.info.model_id)))
        book("model/params of it", lambda: mlflow.get_logged_model(at.info.model_id).params)
        book("model/linked metric", lambda: (mlflow.log_metric("acc", 0.9, step=1, model_id=at.info.model_id, run_id=at.trained), [[m.key, m.value, m.step, m.run_id] for m in mlflow.get_logged_model(at.info.model_id).metrics])[1])
    mlflow.end_run()


def records(book, client, exp):
    source = book("model/source run", lambda: client.create_run(exp, start_time=1, run_name="source").info.run_id, called="run source")
    made = book("model/create", lambda: client.create_logged_model(exp, name="plain", source_run_id=source, tags={"a": "1"}, params={"p": "2"}, model_type="agent"))
    one = book.call("model plain", made and made.model_id)
    book("model/create without a name", lambda: bool(client.create_logged_model(exp).name))
    for title, name in {"with slash": "a/b", "with colon": "a:b", "empty": "", "with dots": "a.b", "with quotes": "a'b", "with percent": "a%b", "long": "n" * 500, "spaces": "a b"}.items():
        book(f"model/create, name {title}", lambda: client.create_logged_model(exp, name=name).name)
    book("model/create in unknown experiment", lambda: client.create_logged_model("987654321", name="x"))
    book("model/create from unknown run", lambda: client.create_logged_model(exp, name="x", source_run_id="0" * 32).source_run_id)
    book("model/read", client.get_logged_model, one)
    book("model/read unknown", client.get_logged_model, "m-" + "0" * 32)
    book("model/tag", lambda: (client.set_logged_model_tags(one, {"b": "2", "a": "3"}), client.get_logged_model(one).tags)[1])
    book("model/untag", lambda: (client.delete_logged_model_tag(one, "b"), client.get_logged_model(one).tags)[1])
    book("model/untag twice", lambda: client.delete_logged_model_tag(one, "b"))
    book("model/tag of unknown", lambda: client.set_logged_model_tags("m-" + "0" * 32, {"b": "2"}))
    book("model/tag, key too long", lambda: client.set_logged_model_tags(one, {"k" * 251: "x"}))
    book("model/tag, value too long", lambda: client.set_logged_model_tags(one, {"k": "x" * 8001}))
    book("model/params", lambda: (client.log_model_params(one, {"q": "3"}), client.get_logged_model(one).params)[1])
    book("model/params again", lambda: client.log_model_params(one, {"q": "4"}))
    book("model/params, value too long", lambda: client.log_model_params(one, {"z": "x" * 6001}))
    for status in ("READY", "FAILED", "PENDING", "NONSENSE"):
        book(f"model/finalize {status}", lambda: client.finalize_logged_model(one, status).status)
    book("model/finalize unknown", lambda: client.finalize_logged_model("m-" + "0" * 32, "READY"))
    book("model/metric", lambda: (client.log_metric(source, "f1", 0.25, timestamp=5, step=2, model_id=one), client.log_metric(source, "f1", 0.75, timestamp=9, step=7, model_id=one), client.get_logged_model(one).metrics)[2])
    book("model/metric in a batch", lambda: (client.log_batch(source, metrics=[Metric("g", 1.5, 4, 1, model_id=one)]), sorted(m.key for m in client.get_logged_model(one).metrics))[1])
    book("model/metric with a dataset", lambda: (client.log_metric(source, "h", 0.5, timestamp=5, step=2, model_id=one, dataset_name="iris", dataset_digest="d1"), [[m.dataset_name, m.dataset_digest] for m in client.get_logged_model(one).metrics if m.key == "h"])[1])
    book("model/metric history of the run", lambda: client.get_metric_history(source, "f1"))
    book("model/outputs", lambda: (client.log_outputs(source, [mlflow.entities.LoggedModelOutput(one, 3)]), client.get_run(source).outputs)[1])
    book("model/inputs", lambda: (client.log_inputs(source, models=[mlflow.entities.LoggedModelInput(one)]), client.get_run(source).inputs.model_inputs)[1])
    book("model/outputs of unknown run", lambda: client.log_outputs("0" * 32, [mlflow.entities.LoggedModelOutput(one, 3)]))
    book("model/delete", client.delete_logged_model, one)
    book("model/deleted, read", client.get_logged_model, one)
    book("model/delete twice", client.delete_logged_model, one)
    book("model/delete unknown", client.delete_logged_model, "m-" + "0" * 32)


def searches(book, client, exp):
    where = book("models/experiment", lambda: client.create_experiment(f"{client.get_experiment(exp).name}2"), called="exp models2")
    run = book("models/run", lambda: client.create_run(where, start_time=1, run_name="s").info.run_id, called="run models")
    for name, acc, kind, layer in [("m1", 0.9, "a", "1"), ("m2", 0.7, "b", "2"), ("m3", None, "a", "3"), ("m1b", 0.8, "b", "1")]:
        def plant():
            made = client.create_logged_model(where, name=name, tags={"kind": kind}, params={"layer": layer}, model_type="agent" if kind == "a" else "other", source_run_id=run)
            if acc is not None:
                client.log_metric(run, "acc", acc, timestamp=5, step=1, model_id=made.model_id, dataset_name="iris" if acc > 0.75 else "wine", dataset_digest="d")
            client.finalize_logged_model(made.model_id, "READY" if name != "m2" else "FAILED")
            return made.model_id
        book(f"models/plant {name}", plant, called=f"model {name}")
    find = lambda text=None, **more: [m.name for m in client.search_logged_models([where], filter_string=text, **{"order_by": [{"field_name": "name"}], **more})]  # noqa: E731
    for text in ["", "name = 'm1'", "name LIKE 'm1%'", "name ILIKE 'M1%'", "name != 'm1'", "tags.kind = 'a'", "params.layer = '1'", "metrics.acc > 0.75", "metrics.acc <= 0.9 AND tags.kind = 'b'", "model_type = 'agent'", "status = 'READY'", "status != 'READY'",
                 f"source_run_id = '{run}'", "creation_timestamp > 0", "creation_time > 0", "attributes.name = 'm1'", "params.layer LIKE '_'", "name IN ('m1', 'm2')", "model_id != 'x'", "last_updated_timestamp > 5"]:
        book(f"models/search {text.replace(str(run), '')}", find, text)
    for text in ["name", "nme = 'x'", "metrics.acc = 'x'", "name > 'a'", "params.layer = 1", "name = 'a' OR name = 'b'", "tags.kind", "dataset.name = 'iris'"]:
        book(f"models/search wrong {text}", find, text)
    book("models/search by dataset", find, "metrics.acc > 0.1", datasets=[{"dataset_name": "iris"}])
    for order in [[{"field_name": "metrics.acc", "ascending": False}], [{"field_name": "metrics.acc"}], [{"field_name": "name", "ascending": False}], [{"field_name": "creation_timestamp"}], [{"field_name": "creation_time"}], [{"field_name": "nme"}], [{"field": "name"}], [{"field_name": "params.layer"}],
                  [{"field_name": "metrics.acc", "dataset_name": "iris"}]]:
        book(f"models/order {order}", lambda: find(order_by=order))
    def walk(size):
        token, got = None, []
        while True:
            page = client.search_logged_models([where], max_results=size, order_by=[{"field_name": "name"}], page_token=token)
            got.append([m.name for m in page])
            token = page.token
            if not token or len(got) > 9:
                return got
    for size in (1, 3, 4):
        book(f"models/pages of {size}", walk, size)
    for size in (0, -1, 50, 51, 10000):
        book(f"models/max results {size}", lambda: len(find(max_results=size)))
    book("models/bad page token", lambda: find(page_token="zzz"))
