"""The rules behind the client's back: what the wire carries when a field is missing, of the wrong type, unknown or too much."""

import json

POINT = {"key": "k", "value": 1.0, "timestamp": 5, "step": 0}


def steps(book, at):
    client = at.client
    exp = book("wire/experiment", client.create_experiment, f"{at.p}.wire", called="exp wire")
    run = book("wire/run", lambda: client.create_run(exp, start_time=1, run_name="w").info.run_id, called="run wire")
    shapes(book, exp, run)
    required(book, exp, run)
    types(book, exp, run)
    batch(book, run)
    bodies(book, run)
    reads(book, exp, run)


def shapes(book, exp, run):
    """Whole answers, so that a field missing from one of them is seen."""
    book.api("wire/experiment get", "GET", "experiments/get", {"experiment_id": exp})
    book.api("wire/experiment get by name", "GET", "experiments/get-by-name", {"experiment_name": book.prefix + ".wire"})
    book.api("wire/experiment search", "POST", "experiments/search", {"max_results": 5, "filter": f"name = '{book.prefix}.wire'"})
    book.api("wire/experiment search by get", "GET", "experiments/search", {"max_results": 5, "filter": f"name = '{book.prefix}.wire'"}, show=lambda b: len(b["experiments"]))
    book.api("wire/experiment list", "GET", "experiments/list", {"max_results": 5}, show=lambda b: "experiments" in b)
    book.api("wire/run create", "POST", "runs/create", {"experiment_id": exp, "start_time": 7, "run_name": "x", "user_id": "me", "tags": [{"key": "a", "value": "b"}]})
    book.api("wire/run create, time as text", "POST", "runs/create", {"experiment_id": exp, "start_time": "7", "run_name": "x"}, show=lambda b: b["run"]["info"]["start_time"])
    book.api("wire/run create, empty body", "POST", "runs/create", {})
    book.api("wire/run get", "GET", "runs/get", {"run_id": run})
    book.api("wire/run get by run_uuid", "GET", "runs/get", {"run_uuid": run}, show=lambda b: b["run"]["info"]["run_name"])
    book.api("wire/run update", "POST", "runs/update", {"run_id": run, "status": "FINISHED", "end_time": 99})
    book.api("wire/run update, status number", "POST", "runs/update", {"run_id": run, "status": 3, "end_time": 99}, show=lambda b: b["run_info"]["status"])
    book.api("wire/run update, unknown status", "POST", "runs/update", {"run_id": run, "status": "DONE"}, show=lambda b: b["run_info"]["status"])
    book.api("wire/run update, lower case status", "POST", "runs/update", {"run_id": run, "status": "failed"}, show=lambda b: b["run_info"]["status"])
    book.api("wire/run search", "POST", "runs/search", {"experiment_ids": [exp], "filter": "attributes.run_name = 'w'"})
    book.api("wire/run search finds none", "POST", "runs/search", {"experiment_ids": [exp], "filter": "attributes.run_name = 'zzz'"})
    book.api("wire/run search, view", "POST", "runs/search", {"experiment_ids": [exp], "run_view_type": "DELETED_ONLY"})
    book.api("wire/run search, wrong view", "POST", "runs/search", {"experiment_ids": [exp], "run_view_type": "SOME", "filter": "attributes.run_name = 'w'"}, show=lambda b: len(b.get("runs", [])))
    book.api("wire/log metric", "POST", "runs/log-metric", {"run_id": run, **POINT})
    book.api("wire/log param", "POST", "runs/log-parameter", {"run_id": run, "key": "p", "value": "1"})
    book.api("wire/set tag", "POST", "runs/set-tag", {"run_id": run, "key": "t", "value": "1"})
    book.api("wire/delete tag", "POST", "runs/delete-tag", {"run_id": run, "key": "t"})
    book.api("wire/history", "GET", "metrics/get-history", {"run_id": run, "metric_key": "k"})
    book.wire("wire/health", "GET", "/health", brief=True)
    book.wire("wire/version", "GET", "/version", brief=True)
    book.wire("wire/server info", "GET", "/api/3.0/mlflow/server-info", show=sorted)
    book.wire("wire/ui's own root", "POST", "/ajax-api/2.0/mlflow/runs/search", {"experiment_ids": [exp], "max_results": 1}, show=lambda b: len(b["runs"]))
    book.api("wire/unknown route", "GET", "nothing/here")
    book.api("wire/wrong method", "GET", "runs/create")
    book.api("wire/wrong method, put", "PUT", "runs/get")


def required(book, exp, run):
    for path, body in {"experiments/create": {"name": "x"}, "experiments/delete": {"experiment_id": exp}, "experiments/restore": {"experiment_id": exp}, "experiments/update": {"experiment_id": exp, "new_name": "n"}, "experiments/set-experiment-tag": {"experiment_id": exp, "key": "k", "value": "v"},
                       "runs/update": {"run_id": run}, "runs/delete": {"run_id": run}, "runs/restore": {"run_id": run}, "runs/log-metric": {"run_id": run, **POINT}, "runs/log-parameter": {"run_id": run, "key": "mp", "value": "v"}, "runs/set-tag": {"run_id": run, "key": "k", "value": "v"},
                       "runs/delete-tag": {"run_id": run, "key": "k"}, "runs/log-batch": {"run_id": run}, "runs/log-inputs": {"run_id": run}, "registered-models/create": {"name": "x"}, "registered-models/rename": {"name": "x", "new_name": "y"}, "model-versions/create": {"name": "x", "source": "y"},
                       "registered-models/set-tag": {"name": "x", "key": "k", "value": "v"}, "model-versions/set-tag": {"name": "x", "version": "1", "key": "k", "value": "v"}, "model-versions/transition-stage": {"name": "x", "version": "1", "stage": "None"}, "registered-models/alias": {"name": "x", "alias": "a", "version": "1"}}.items():
        for left in body:
            if (path, left) not in {("runs/restore", ""), ("experiments/restore", "")}:
                book.api(f"wire/{path} without {left}", "POST", path, {k: v for k, v in body.items() if k != left})
    for path, body in {"experiments/get": {}, "experiments/get-by-name": {}, "runs/get": {}, "artifacts/list": {}, "registered-models/get": {}, "model-versions/get": {"name": "x"}, "model-versions/get-download-uri": {"name": "x"}, "registered-models/alias": {"name": "x"}}.items():
        book.api(f"wire/get {path} with {sorted(body)}", "GET", path, body or None)
    book.api("wire/delete model without a name", "DELETE", "registered-models/delete", {})
    book.api("wire/update version without a name", "PATCH", "model-versions/update", {"version": "1"})


def types(book, exp, run):
    wrong = [5, True, None, [], {}, ["x"], 1.5]
    for value in wrong:
        book.api(f"wire/run id {value!r}", "POST", "runs/log-metric", {**POINT, "run_id": value})
        book.api(f"wire/key {value!r}", "POST", "runs/log-metric", {"run_id": run, **POINT, "key": value})
        book.api(f"wire/tag value {value!r}", "POST", "runs/set-tag", {"run_id": run, "key": "wt", "value": value})
        book.api(f"wire/param value {value!r}", "POST", "runs/log-parameter", {"run_id": run, "key": f"wp{value}", "value": value})
        book.api(f"wire/experiment name {value!r}", "POST", "experiments/create", {"name": value})
        book.api(f"wire/experiment id {value!r}", "POST", "runs/create", {"experiment_id": value}, show=lambda b: "run" in b)
        book.api(f"wire/filter {value!r}", "POST", "runs/search", {"experiment_ids": [exp], "filter": value}, show=lambda b: "runs" in b)
        book.api(f"wire/order {value!r}", "POST", "runs/search", {"experiment_ids": [exp], "order_by": value}, show=lambda b: "runs" in b)
        book.api(f"wire/experiment ids {value!r}", "POST", "runs/search", {"experiment_ids": value}, show=lambda b: "runs" in b)
        book.api(f"wire/tags {value!r}", "POST", "runs/create", {"experiment_id": exp, "run_name": "q", "tags": value}, show=lambda b: len(b["run"]["data"]["tags"]))
    for value in [1, "1", "1.5", "NaN", "nan", "Infinity", "-Infinity", "inf", "abc", "", True, None, [], {}, "1e400", 10**40, "0x10", " 2 "]:
        book.api(f"wire/metric value {str(value)[:20]!r} {type(value).__name__}", "POST", "runs/log-metric", {"run_id": run, **POINT, "value": value, "key": "mv"})
    for field in ("timestamp", "step"):
        for value in [1, "1", 1.0, 1.5, "1.0", "x", "", None, True, [], -1, "-1", 2**63, str(2**63), -(2**63), 1e3]:
            book.api(f"wire/{field} {value!r}", "POST", "runs/log-metric", {"run_id": run, **POINT, field: value, "key": "mf"})
    for value in [1, "1", "x", 0, -1, 50000, 50001, 1.5, None, "", True, 2**31, 2**40]:
        book.api(f"wire/search max results {value!r}", "POST", "runs/search", {"experiment_ids": [exp], "max_results": value}, show=lambda b: "runs" in b)
        book.api(f"wire/experiment max results {value!r}", "POST", "experiments/search", {"max_results": value, "filter": f"name = '{book.prefix}.wire'"}, show=lambda b: len(b["experiments"]))


def batch(book, run):
    send = lambda step, **body: book.api(f"wire/batch {step}", "POST", "runs/log-batch", {"run_id": run, **body})  # noqa: E731
    points = lambda n, name="b": [{**POINT, "key": f"{name}{i}"} for i in range(n)]  # noqa: E731
    send("empty")
    send("with empty lists", metrics=[], params=[], tags=[])
    send("1000 metrics", metrics=points(1000))
    send("1001 metrics", metrics=points(1001))
    send("100 params", params=[{"key": f"bp{i}", "value": "v"} for i in range(100)])
    send("101 params", params=[{"key": f"bp{i}", "value": "v"} for i in range(101)])
    send("100 tags", tags=[{"key": f"bt{i}", "value": "v"} for i in range(100)])
    send("101 tags", tags=[{"key": f"bt{i}", "value": "v"} for i in range(101)])
    send("1001 in all", metrics=points(901), tags=[{"key": f"bt{i}", "value": "v"} for i in range(100)])
    send("over a megabyte", tags=[{"key": f"big{i}", "value": "v" * 7900} for i in range(99)], params=[{"key": f"big{i}", "value": "v" * 5900} for i in range(99)])
    send("over two megabytes", tags=[{"key": f"big{i}", "value": "v" * 25000} for i in range(99)])
    for title, value in {"metrics a map": {"metrics": {}}, "metrics a word": {"metrics": "x"}, "metric a word": {"metrics": ["x"]}, "metric empty": {"metrics": [{}]}, "metric without value": {"metrics": [{"key": "k", "timestamp": 1}]}, "metric without time": {"metrics": [{"key": "k", "value": 1.0}]},
                         "metric without step": {"metrics": [{"key": "k", "value": 1.0, "timestamp": 1}]}, "metric without key": {"metrics": [{"value": 1.0, "timestamp": 1}]}, "metric value a word": {"metrics": [{**POINT, "value": "x"}]}, "metric NaN": {"metrics": [{**POINT, "value": "NaN"}]},
                         "param without value": {"params": [{"key": "pv"}]}, "param without key": {"params": [{"value": "v"}]}, "param value number": {"params": [{"key": "pn", "value": 5}]}, "tag without value": {"tags": [{"key": "tv"}]}, "tag without key": {"tags": [{"value": "v"}]},
                         "unknown field": {"colour": "blue"}, "unknown field in a metric": {"metrics": [{**POINT, "colour": "blue"}]}, "null metric": {"metrics": [None]}, "null metrics": {"metrics": None}, "long param": {"params": [{"key": "lp", "value": "v" * 6001}]},
                         "long tag": {"tags": [{"key": "lt", "value": "v" * 8001}]}, "same param twice": {"params": [{"key": "tw", "value": "1"}, {"key": "tw", "value": "1"}]}, "time negative": {"metrics": [{**POINT, "timestamp": -4}]}}.items():
        send(title, **value)
    book.api("wire/batch read", "GET", "runs/get", {"run_id": run}, show=lambda b: [len(b["run"]["data"].get(k, [])) for k in ("metrics", "params", "tags")])
    book.api("wire/batch on unknown run", "POST", "runs/log-batch", {"run_id": "0" * 32, "metrics": [POINT]})
    book.api("wire/batch by run_uuid", "POST", "runs/log-batch", {"run_uuid": run, "metrics": [POINT]})


def bodies(book, run):
    raw = lambda step, data, kind="application/json": book.api(f"wire/body {step}", "POST", "runs/log-metric", raw=data, headers={"Content-Type": kind} if kind else None)  # noqa: E731
    whole = json.dumps({"run_id": run, **POINT})
    raw("nothing", b"")
    raw("not json", b"{nope")
    raw("a list", b"[]")
    raw("a word", b'"hello"')
    raw("a number", b"5")
    raw("null", b"null")
    raw("json in json", json.dumps(whole).encode())
    raw("with charset", whole.encode(), "application/json; charset=utf-8")
    raw("as text", whole.encode(), "text/plain")
    raw("as a form", whole.encode(), "application/x-www-form-urlencoded")
    raw("of no type", whole.encode(), None)
    raw("bad utf-8", b'{"run_id": "\xff\xfe"}')
    raw("NaN bare", whole.replace("1.0", "NaN").encode())
    raw("key twice", whole.replace('"key": "k"', '"key": "k", "key": "k2"').encode())
    raw("deep", b'{"run_id": ' + b"[" * 3000 + b"]" * 3000 + b"}")
    raw("camel case", json.dumps({"runId": run, **POINT}).encode())
    raw("zero byte in key", json.dumps({"run_id": run, **POINT, "key": "a\0b"}).encode())


def reads(book, exp, run):
    book.api("wire/read with an unknown query", "GET", "runs/get", {"run_id": run, "colour": "blue"}, show=lambda b: b["run"]["info"]["run_name"])
    book.api("wire/read with run id twice", "GET", "runs/get", {"run_id": [run, "x"]}, show=lambda b: b["run"]["info"]["run_name"])
    book.api("wire/read with an empty run id", "GET", "runs/get", {"run_id": ""})
    book.api("wire/registered search whole", "GET", "registered-models/search", {"filter": f"name = '{book.prefix}.none'"})
    book.api("wire/version search whole", "GET", "model-versions/search", {"filter": f"name = '{book.prefix}.none'"})
    book.api("wire/registered search twice ordered", "GET", "registered-models/search", {"filter": f"name LIKE '{book.prefix}%'", "order_by": ["name DESC", "timestamp"], "max_results": 2}, show=lambda b: [m["name"] for m in b.get("registered_models", [])])
    book.api("wire/latest versions by get", "GET", "registered-models/get-latest-versions", {"name": f"{book.prefix}.none"})
    book.api("wire/search with a page token of another", "POST", "runs/search", {"experiment_ids": [exp], "page_token": "eyJvZmZzZXQiOiAyfQ==", "max_results": 1}, show=lambda b: "runs" in b)
