"""The fluent API, as training scripts use it: active runs, nesting, context managers, search as a table."""

import mlflow
import numpy
import pandas


def steps(book, at):
    book("fluent/set experiment", lambda: mlflow.set_experiment(f"{at.p}.fluent").name)
    book("fluent/set experiment again", lambda: mlflow.set_experiment(f"{at.p}.fluent").lifecycle_stage)
    whole(book)
    nested(book)
    failing(book)
    resumed(book)
    loose(book)
    tables(book, at)
    while mlflow.active_run():
        mlflow.end_run()


def whole(book):
    def act():
        with mlflow.start_run(run_name="whole", tags={"a": "b"}, description="what it is") as run:
            book.call("run whole", run.info.run_id)
            mlflow.log_param("lr", 0.1)
            mlflow.log_params({"opt": "adam", "n": 3})
            for step in range(5):
                mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
            mlflow.log_metrics({"acc": 0.9, "np": numpy.float32(0.5)}, step=4)
            mlflow.set_tag("t", "v")
            mlflow.set_tags({"u": 1, "w": None})
            mlflow.log_text("hello", "note.txt")
            mlflow.log_dict({"k": 1}, "conf/c.json")
            mlflow.log_table({"q": ["a", "b"], "n": [1, 2]}, "table.json")
            mlflow.log_input(mlflow.data.from_pandas(pandas.DataFrame({"x": [1.0, 2.0]}), source="here.csv", name="frame"), context="training")
        return mlflow.get_run(run.info.run_id)
    made = book("fluent/whole", act)
    book("fluent/whole, history", lambda: [[m.step, m.value] for m in mlflow.MlflowClient().get_metric_history(made.info.run_id, "loss")])
    book("fluent/whole, table", lambda: mlflow.load_table("table.json", [made.info.run_id]).to_dict("list"))
    book("fluent/whole, artifacts", lambda: sorted(f.path for f in mlflow.artifacts.list_artifacts(run_id=made.info.run_id)))
    book("fluent/last run", lambda: mlflow.last_active_run().info.run_name)
    book("fluent/metric at a time", lambda: mlflow.log_metric("late", 1.0, timestamp=5, run_id=made.info.run_id))
    book("fluent/asynchronous", lambda: (mlflow.log_metric("async", 2.0, step=1, synchronous=False, run_id=made.info.run_id).wait(), mlflow.get_run(made.info.run_id).data.metrics["async"])[1])


def nested(book):
    def act():
        with mlflow.start_run(run_name="outer") as outer:
            book.call("run outer", outer.info.run_id)
            for index in range(2):
                with mlflow.start_run(run_name=f"inner {index}", nested=True) as inner:
                    mlflow.log_param("index", index)
        found = mlflow.search_runs(filter_string=f"tags.mlflow.parentRunId = '{outer.info.run_id}'", output_format="list", order_by=["params.index"])
        return [[r.info.run_name, r.data.params] for r in found] + [mlflow.get_parent_run(inner.info.run_id).info.run_name]
    book("fluent/nested", act)

    def refused():
        with mlflow.start_run(run_name="a"):
            mlflow.start_run(run_name="b")
    book("fluent/two at once", refused)
    while mlflow.active_run():
        mlflow.end_run()


def failing(book):
    def act():
        try:
            with mlflow.start_run(run_name="failing") as run:
                raise ValueError("as planned")
        except ValueError:
            return mlflow.get_run(run.info.run_id).info.status
    book("fluent/failing", act)
    for status in ("FINISHED", "KILLED"):
        book(f"fluent/end as {status}", lambda: (lambda r: (mlflow.end_run(status), mlflow.get_run(r.info.run_id).info.status)[1])(mlflow.start_run(run_name=status)))


def resumed(book):
    def act():
        with mlflow.start_run(run_name="resumed") as run:
            mlflow.log_metric("m", 1.0, step=0)
        with mlflow.start_run(run_id=run.info.run_id) as again:
            status = again.info.status
            mlflow.log_metric("m", 2.0, step=1)
        done = mlflow.get_run(run.info.run_id)
        return [status, done.info.status, done.data.metrics]
    book("fluent/resumed", act)
    book("fluent/resume unknown", lambda: mlflow.start_run(run_id="0" * 32))

    def of_deleted():
        with mlflow.start_run(run_name="gone") as run:
            pass
        mlflow.delete_run(run.info.run_id)
        mlflow.start_run(run_id=run.info.run_id)
    book("fluent/resume deleted", of_deleted)


def loose(book):
    book("fluent/log without a run", lambda: (mlflow.log_metric("x", 1.0), mlflow.active_run().info.status, mlflow.end_run())[1])

    def over():
        with mlflow.start_run(run_name="over"):
            mlflow.log_param("p", 1)
            mlflow.log_param("p", 2)
    book("fluent/param changed in a run", over)
    while mlflow.active_run():
        mlflow.end_run()


def tables(book, at):
    book("fluent/search as a table", lambda: sorted(c for c in mlflow.search_runs(experiment_names=[f"{at.p}.fluent"]).columns if not c.startswith("tags.mlflow.source")))
    book("fluent/search by name", lambda: sorted(mlflow.search_runs(experiment_names=[f"{at.p}.fluent"], filter_string="params.lr = '0.1'")["tags.mlflow.runName"]))
    book("fluent/search at most", lambda: len(mlflow.search_runs(experiment_names=[f"{at.p}.fluent"], max_results=3)))
    book("fluent/search in no experiment", lambda: len(mlflow.search_runs(experiment_names=[f"{at.p}.nothing"])))
    book("fluent/search experiments", lambda: [e.name for e in mlflow.search_experiments(filter_string=f"name = '{at.p}.fluent'")])

    def gone():
        made = mlflow.create_experiment(f"{at.p}.gone")
        mlflow.delete_experiment(made)
        mlflow.set_experiment(f"{at.p}.gone")
    book("fluent/set a deleted experiment", gone)
    book("fluent/set experiment tag", lambda: (mlflow.set_experiment(f"{at.p}.fluent"), mlflow.set_experiment_tag("k", "v"), mlflow.get_experiment_by_name(f"{at.p}.fluent").tags)[2])
