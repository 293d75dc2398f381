"""The history of a metric: whole, in pages, of many runs, thinned."""

from mlflow.entities import Metric


def steps(book, at):
    client = at.client
    exp = book("history/experiment", client.create_experiment, f"{at.p}.hist", called="exp hist")
    run = book("history/run", lambda: client.create_run(exp, start_time=1, run_name="h").info.run_id, called="run h")
    other = book("history/other run", lambda: client.create_run(exp, start_time=2, run_name="h2").info.run_id, called="run h2")
    for start in range(0, 2500, 500):
        book(f"history/log {start}", lambda: client.log_batch(run, metrics=[Metric("loss", 1.0 / (i + 1), 1_000_000 + i * 10, i) for i in range(start, start + 500)]))
    book("history/log other", lambda: client.log_batch(other, metrics=[Metric("loss", float(i % 7), 1_000_000 + i, i * 10) for i in range(300)]))
    book("history/whole", lambda: summary(client.get_metric_history(run, "loss")))
    book("history/of a key never logged", lambda: client.get_metric_history(run, "none"))
    book("history/out of order", lambda: client.log_batch(run, metrics=[Metric("ooo", float(i), t, s) for i, (t, s) in enumerate([(30, 3), (10, 1), (20, 2), (10, 5), (10, 1)])]))
    book("history/out of order, read", lambda: sorted((m.timestamp, m.step, m.value) for m in client.get_metric_history(run, "ooo")))
    pages(book, run)
    bulk(book, run, other)


def summary(points):
    return {"count": len(points), "first": points[0], "last": points[-1], "sum of steps": sum(m.step for m in points)}


def brief(steps):
    return steps if len(steps) < 40 else {"count": len(steps), "first": steps[0], "last": steps[-1], "sum": sum(steps)}


def pages(book, run):
    def walk(size):
        token, sizes, seen = None, [], []
        while True:
            query = {"run_id": run, "metric_key": "loss", "max_results": size, **({"page_token": token} if token else {})}
            got = book.web.get(f"{book.base}/api/2.0/mlflow/metrics/get-history", params=query, timeout=60).json()
            sizes.append(len(got.get("metrics", [])))
            seen += [m["step"] for m in got.get("metrics", [])]
            token = got.get("next_page_token")
            if not token or len(sizes) > 40:
                return {"sizes": sizes, "distinct": len(set(seen)), "first": seen[0], "last": seen[-1]}
    for size in (100, 999, 1000, 2500, 2501, 25000):
        book(f"history/pages of {size}", walk, size)
    for size in ("0", "-1", "x", "1000000"):
        book.api(f"history/max results {size}", "GET", "metrics/get-history", {"run_id": run, "metric_key": "loss", "max_results": size}, show=lambda b: {"metrics": len(b.get("metrics", [])), "more": "next_page_token" in b})
    book.api("history/bad token", "GET", "metrics/get-history", {"run_id": run, "metric_key": "loss", "max_results": 5, "page_token": "%%%"}, show=lambda b: len(b["metrics"]))
    book.api("history/one page", "GET", "metrics/get-history", {"run_id": run, "metric_key": "loss", "max_results": 2}, show=lambda b: b["metrics"])
    book.api("history/without a key", "GET", "metrics/get-history", {"run_id": run})
    book.api("history/without a run", "GET", "metrics/get-history", {"metric_key": "loss"})
    book.api("history/run_uuid", "GET", "metrics/get-history", {"run_uuid": run, "metric_key": "ooo"}, show=lambda b: len(b["metrics"]))
    book.api("history/unknown run", "GET", "metrics/get-history", {"run_id": "0" * 32, "metric_key": "ooo"})


def bulk(book, run, other):
    """What charts ask for: the history of one metric in several runs."""
    path = "/ajax-api/2.0/mlflow/metrics/get-history-bulk"
    count = lambda body: {"count": len(body["metrics"]), "first": body["metrics"][:1], "by run": [sum(m["run_id"] == r for m in body["metrics"]) for r in (run, other)]}  # noqa: E731
    steps_of = lambda body: [brief([m["step"] for m in body.get("metrics", []) if m["run_id"] == r]) for r in (run, other)]  # noqa: E731
    book.wire("history/bulk", "GET", path, query={"run_id": [run, other], "metric_key": "loss"}, show=lambda b: {**count(b), "first": "any"})
    book.wire("history/bulk, at most", "GET", path, query={"run_id": [run], "metric_key": "loss", "max_results": 7}, show=count)
    book.wire("history/bulk, no run", "GET", path, query={"metric_key": "loss"})
    book.wire("history/bulk, no key", "GET", path, query={"run_id": run})
    book.wire("history/bulk, too many runs", "GET", path, query={"run_id": [run] * 101, "metric_key": "loss"})
    book.wire("history/interval for the ui", "GET", path + "-interval", query={"run_ids": [run], "metric_key": "loss", "max_results": 3}, show=steps_of)
    path = "/api/2.0/mlflow/metrics/get-history-bulk-interval"
    for title, more in {"whole": {}, "10": {"max_results": 10}, "2500": {"max_results": 2500}, "steps 100 to 110": {"start_step": 100, "end_step": 110}, "steps 0 to 2000, 5": {"start_step": 0, "end_step": 2000, "max_results": 5},
                        "steps 5 to 5": {"start_step": 5, "end_step": 5}, "max 1": {"max_results": 1}}.items():
        book.wire(f"history/interval, {title}", "GET", path, query={"run_ids": [run, other], "metric_key": "loss", **more}, show=steps_of)
    for title, query in {"no run": {"metric_key": "loss"}, "no key": {"run_ids": run}, "backwards": {"run_ids": run, "metric_key": "loss", "start_step": 9, "end_step": 3}, "start alone": {"run_ids": run, "metric_key": "loss", "start_step": 9},
                         "max 0": {"run_ids": run, "metric_key": "loss", "max_results": 0}, "max 2501": {"run_ids": run, "metric_key": "loss", "max_results": 2501}, "start of letters": {"run_ids": run, "metric_key": "loss", "start_step": "a", "end_step": "b"},
                         "101 runs": {"run_ids": [run] * 101, "metric_key": "loss"}}.items():
        book.wire(f"history/interval wrong, {title}", "GET", path, query=query)
