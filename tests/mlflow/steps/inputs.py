"""Datasets that runs have read."""

from mlflow.entities import Dataset, DatasetInput, InputTag


def steps(book, at):
    client = at.client
    exp = book("input/experiment", client.create_experiment, f"{at.p}.in", called="exp in")
    run = book("input/run", lambda: client.create_run(exp, start_time=1, run_name="in").info.run_id, called="run in")
    other = book("input/other run", lambda: client.create_run(exp, start_time=2, run_name="in2").info.run_id, called="run in2")
    of = lambda name="n", digest="d", kind="local", source="{}", schema=None, profile=None, tags=(): DatasetInput(Dataset(name, digest, kind, source, schema, profile), [InputTag(k, v) for k, v in tags])  # noqa: E731
    inputs = lambda of_run: sorted(([d.dataset.name, d.dataset.digest, d.dataset.source_type, d.dataset.source, d.dataset.schema, d.dataset.profile, sorted((t.key, t.value) for t in d.tags)] for d in client.get_run(of_run).inputs.dataset_inputs), key=str)  # noqa: E731
    book("input/log", lambda: client.log_inputs(run, [of("iris", "d1", "code", '{"a": 1}', '{"s": 1}', '{"rows": 3}', [("mlflow.data.context", "train"), ("x", "y")])]))
    book("input/read", inputs, run)
    book("input/again", lambda: client.log_inputs(run, [of("iris", "d1", "code", '{"a": 1}', '{"s": 1}', '{"rows": 3}', [("mlflow.data.context", "train")])]))
    book("input/again, read", inputs, run)
    book("input/again with another tag", lambda: client.log_inputs(run, [of("iris", "d1", tags=[("mlflow.data.context", "test")])]))
    book("input/again with another tag, read", inputs, run)
    book("input/two at once", lambda: client.log_inputs(run, [of("a", "1"), of("b", "2")]))
    book("input/the same twice at once", lambda: client.log_inputs(run, [of("c", "3"), of("c", "3")]))
    book("input/read all", inputs, run)
    book("input/in another run", lambda: client.log_inputs(other, [of("iris", "d1", "elsewhere", "{}")]))
    book("input/in another run, read", inputs, other)
    book("input/none", lambda: client.log_inputs(run, []))
    book("input/nothing", lambda: client.log_inputs(run))
    book("input/unknown run", lambda: client.log_inputs("0" * 32, [of()]))
    limits = {"name empty": of(""), "digest empty": of(digest=""), "kind empty": of(kind=""), "source empty": of(source=""), "name 500": of("n" * 500), "name 501": of("n" * 501), "digest 36": of(digest="d" * 36), "digest 37": of(digest="d" * 37),
              "source 65535": of(source="s" * 65535), "source 65536": of(source="s" * 65536), "schema 1048575": of("sch", schema="s" * 1048575), "schema 1048576": of("sch2", schema="s" * 1048576), "tag key 255": of("tk", tags=[("k" * 255, "v")]),
              "tag key 256": of("tk2", tags=[("k" * 256, "v")]), "tag value 500": of("tv", tags=[("k", "v" * 500)]), "tag value 501": of("tv2", tags=[("k", "v" * 501)]), "tag key empty": of("te", tags=[("", "v")])}
    for title, dataset in limits.items():
        book(f"input/limit, {title}", lambda: client.log_inputs(run, [dataset]))
    book("input/how many", lambda: len(client.get_run(run).inputs.dataset_inputs))
    book.wire("input/datasets of experiments", "POST", "/ajax-api/2.0/mlflow/experiments/search-datasets", {"experiment_ids": [exp]}, show=lambda b: sorted([d["name"][:5], d["digest"][:5], d.get("context", "")] for d in b["dataset_summaries"]))
