"""Metrics, params, tags and batches: limits, immutability, numbers that are not, oversized and misshapen requests."""

from mlflow.entities import Metric, Param, RunTag

NAMES = ["plain", "a/b/c", "with space", "dots.and-dashes_1", "colon:key", "実験", "a//b", "/abs", "../up", "a/../b", "./a", "a/", ".", "..", "", "!bad", "a\nb", "a;b", "k" * 250, "k" * 251, "quote'd", 'dq"x', "a%20b", "(x)", "a,b", "a@b"]
VALUES = [0, -0.0, 1, 1.5, -2.25, 1e308, -1e308, 5e-324, 0.1, 123456789.123456789, float("nan"), float("inf"), float("-inf"), True, "3.5", "abc", "nan", None, 10**400]


def steps(book, at):
    client = at.client
    exp = book("log/experiment", client.create_experiment, f"{at.p}.log", called="exp log")
    fresh = lambda name: client.create_run(exp, start_time=1, run_name=name).info.run_id  # noqa: E731
    metrics(book, client, fresh)
    params(book, client, fresh)
    tags(book, client, fresh)
    batches(book, client, fresh)
    for title, act in [("metric", lambda: client.log_metric("0" * 32, "m", 1.0)), ("param", lambda: client.log_param("0" * 32, "p", "1")), ("tag", lambda: client.set_tag("0" * 32, "t", "1")),
                       ("batch", lambda: client.log_batch("0" * 32, metrics=[Metric("a", 1.0, 1, 0)])), ("history", lambda: client.get_metric_history("0" * 32, "m"))]:
        book(f"log/unknown run, {title}", act)


def short(name):
    return repr(name) if len(str(name)) < 40 else f"{str(name)[:3]}.. of {len(str(name))}"


def metrics(book, client, fresh):
    run = book("metric/run", fresh, "m", called="run m")
    for name in NAMES:
        book(f"metric/name {short(name)}", client.log_metric, run, name, 1.0, 5, 0)
    book("metric/names read", lambda: {short(k): v for k, v in client.get_run(run).data.metrics.items()})
    for index, value in enumerate(VALUES):
        book(f"metric/value {short(value)}", lambda: client.log_metric(run, f"v{index}", value, 5, 0))
        book(f"metric/value {short(value)}, read", lambda: client.get_run(run).data.metrics[f"v{index}"])
        book(f"metric/value {short(value)}, history", lambda: client.get_metric_history(run, f"v{index}"))
    for step in [0, 1, -5, 2**31, 2**62, 2**63 - 1, 2**63, 1.7, "4", "x", None]:
        book(f"metric/step {step!r}", lambda: client.log_metric(run, f"s{step}", 1.0, 5, step))
        book(f"metric/step {step!r}, read", lambda: client.get_metric_history(run, f"s{step}"))
    for when in [0, -1, 1, 2**62, 2**63 - 1, 1.9, "7", "x"]:
        book(f"metric/time {when!r}", lambda: client.log_metric(run, f"t{when}", 1.0, when, 0))
        book(f"metric/time {when!r}, read", lambda: client.get_metric_history(run, f"t{when}"))
    latest(book, client, fresh)


def latest(book, client, fresh):
    """Which of several points is the latest: the greatest step, then time, then value; nan is a value too."""
    cases = {"later step": [(1, 5, 1), (2, 5, 2)], "earlier step": [(1, 5, 3), (2, 6, 2)], "same step, later time": [(1, 5, 1), (2, 6, 1)], "same step, earlier time": [(1, 6, 1), (2, 5, 1)],
             "same step and time, greater value": [(1, 5, 1), (2, 5, 1)], "same step and time, smaller value": [(2, 5, 1), (1, 5, 1)], "all the same": [(1, 5, 1), (1, 5, 1), (1, 5, 1)],
             "nan last": [(1, 5, 1), (float("nan"), 5, 2)], "nan first": [(float("nan"), 5, 2), (1, 5, 1)], "nan at the same point": [(1, 5, 1), (float("nan"), 5, 1)], "nan twice": [(float("nan"), 5, 1), (float("nan"), 5, 1)],
             "negative steps": [(1, 5, -2), (2, 5, -1), (3, 5, -3)], "inf at the same point": [(1, 5, 1), (float("inf"), 5, 1)], "value then nan then value": [(1, 5, 1), (float("nan"), 5, 1), (9, 5, 1)]}
    for title, points in cases.items():
        for way in ("one by one", "batch"):
            def act():
                run = fresh(title)
                if way == "batch":
                    client.log_batch(run, metrics=[Metric("k", v, t, s) for v, t, s in points])
                else:
                    for v, t, s in points:
                        client.log_metric(run, "k", v, t, s)
                history = [(m.value, m.timestamp, m.step) for m in client.get_metric_history(run, "k")]
                return [client.get_run(run).data.metrics["k"], sorted(history, key=lambda p: (p[2], p[1], str(p[0])))]
            book(f"metric/latest, {title}, {way}", act)


def params(book, client, fresh):
    run = book("param/run", fresh, "p", called="run p")
    for name in NAMES:
        book(f"param/name {short(name)}", client.log_param, run, name, "1")
    read = lambda: {short(k): v if len(v) < 60 else len(v) for k, v in client.get_run(run).data.params.items()}  # noqa: E731
    book("param/names read", read)
    for index, value in enumerate(["", " ", "x", 5, 1.5, True, None, [1, 2], {"a": 1}, "line\nbreak", "実験", "'; drop table params; --", "v" * 6000, "v" * 6001, "v" * 8000, "v" * 500_000, "v" * 5_000_000]):
        title = short(value) if not isinstance(value, str) or len(value) < 40 else f"of {len(value)}"
        book(f"param/value {title}", lambda: (client.log_param(run, f"v{index}", value), None)[1])
    book("param/values read", read)
    book("param/same again", client.log_param, run, "plain", "1")
    book("param/other value", client.log_param, run, "plain", "2")
    book("param/other value, read", lambda: client.get_run(run).data.params["plain"])
    book("param/case differs", client.log_param, run, "PLAIN", "2")
    for title, pairs in {"same twice": [("q", "1"), ("q", "1")], "different twice": [("r", "1"), ("r", "2")], "one taken": [("new1", "1"), ("plain", "9")], "one taken, same": [("new2", "1"), ("plain", "1")]}.items():
        book(f"param/batch, {title}", lambda: client.log_batch(run, params=[Param(k, v) for k, v in pairs]))
        book(f"param/batch, {title}, read", lambda: {k: v for k, v in client.get_run(run).data.params.items() if k in ("q", "r", "new1", "new2", "plain")})


def tags(book, client, fresh):
    run = book("tag/run", fresh, "t", called="run t")
    for name in NAMES:
        book(f"tag/name {short(name)}", client.set_tag, run, name, "1")
    read = lambda: {short(k): v if len(v) < 60 else len(v) for k, v in client.get_run(run).data.tags.items()}  # noqa: E731
    book("tag/names read", read)
    for index, value in enumerate(["", "x", 5, None, {"a": 1}, "v" * 5000, "v" * 5001, "v" * 8000, "v" * 8001, "v" * 500_000]):
        title = short(value) if not isinstance(value, str) or len(value) < 40 else f"of {len(value)}"
        book(f"tag/value {title}", client.set_tag, run, f"v{index}", value)
    book("tag/values read", read)
    book("tag/overwrite", client.set_tag, run, "plain", "2")
    book("tag/overwrite, read", lambda: client.get_run(run).data.tags["plain"])
    book("tag/delete", client.delete_tag, run, "plain")
    book("tag/delete twice", client.delete_tag, run, "plain")
    book("tag/delete unknown", client.delete_tag, run, "never")
    book("tag/deleted, read", lambda: "plain" in client.get_run(run).data.tags)
    book("tag/batch, same key twice", lambda: client.log_batch(run, tags=[RunTag("b", "1"), RunTag("b", "2")]))
    book("tag/batch, same key twice, read", lambda: client.get_run(run).data.tags["b"])
    book("tag/note", client.set_tag, run, "mlflow.note.content", "# note")
    book("tag/delete from unknown run", client.delete_tag, "0" * 32, "a")


def batches(book, client, fresh):
    run = book("batch/run", fresh, "b", called="run b")
    points = lambda n, of=0: [Metric(f"m{of}.{i}", float(i), 1000 + i, i) for i in range(n)]  # noqa: E731
    book("batch/nothing", client.log_batch, run)
    book("batch/all three", client.log_batch, run, metrics=points(3), params=[Param("p", "1"), Param("q", "2")], tags=[RunTag("t", "1")])
    book("batch/all three, read", client.get_run, run)
    for title, (m, k, t) in {"1000 metrics": (1000, 0, 0), "1001 metrics": (1001, 0, 0), "100 params": (0, 100, 0), "101 params": (0, 101, 0), "100 tags": (0, 0, 100), "101 tags": (0, 0, 101), "1000 in all": (800, 100, 100), "1001 in all": (801, 100, 100)}.items():
        def act():
            one = fresh(title)
            client.log_batch(one, metrics=points(m), params=[Param(f"p{i}", "x") for i in range(k)], tags=[RunTag(f"t{i}", "x") for i in range(t)])
            data = client.get_run(one).data
            return [len(data.metrics), len(data.params), len([t for t in data.tags if t.startswith("t")])]
        book(f"batch/{title}", act)
    book("batch/one key, many points", lambda: client.log_batch(run, metrics=[Metric("loss", 1 / (i + 1), 10 + i, i) for i in range(500)]))
    book("batch/one key, many points, read", lambda: [client.get_run(run).data.metrics["loss"], len(client.get_metric_history(run, "loss"))])
    book("batch/sent again", lambda: client.log_batch(run, metrics=[Metric("loss", 1 / (i + 1), 10 + i, i) for i in range(500)]))
    book("batch/sent again, read", lambda: len(client.get_metric_history(run, "loss")))
    wrong = {"bad metric name": dict(metrics=[Metric("ok", 1.0, 1, 0), Metric("b!d", 1.0, 1, 0)]), "bad param": dict(params=[Param("ok", "1"), Param("b!d", "1")]), "bad tag": dict(tags=[RunTag("ok", "1"), RunTag("../x", "1")]),
             "param too long": dict(params=[Param("long", "v" * 6001)]), "tag too long": dict(tags=[RunTag("long", "v" * 8001)]), "param taken, metric new": dict(params=[Param("p", "other")], metrics=[Metric("never", 1.0, 1, 0)])}
    for title, options in wrong.items():
        book(f"batch/{title}", lambda: client.log_batch(run, **options))
    book("batch/nothing of the wrong ones", lambda: sorted(k for k in client.get_run(run).data.metrics if k in ("ok", "never")))
    book("batch/in time order", lambda: client.log_batch(run, metrics=[Metric("z", 3.0, 3, 3), Metric("z", 1.0, 1, 1), Metric("z", 2.0, 2, 2)]))
    book("batch/in time order, read", lambda: [client.get_run(run).data.metrics["z"], [m.step for m in client.get_metric_history(run, "z")]])
