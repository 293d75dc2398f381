"""Searching runs: every entity, comparator and kind of quoting, orders with gaps in them, pages, and what is refused."""

from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag, ViewType

T0 = 1_700_000_000_000
# name, start, status, metrics, params, tags
RUNS = [
    ("ada", 1, "FINISHED", {"acc": 0.9, "loss": 0.1, "m with space": 1.0}, {"lr": "0.1", "opt": "adam", "n": "10"}, {"team": "blue", "k.dot": "x"}),
    ("bob", 2, "FINISHED", {"acc": 0.8, "loss": 0.2}, {"lr": "0.01", "opt": "SGD", "n": "9"}, {"team": "Blue"}),
    ("cyd", 3, "FAILED", {"acc": float("nan"), "loss": 0.3}, {"lr": "0.1", "opt": "adam"}, {"team": "red", "mlflow.note.content": "hello"}),
    ("dee", 4, "KILLED", {"acc": float("inf")}, {"opt": "sgd"}, {}),
    ("eve", 5, "RUNNING", {"loss": 0.5}, {"lr": "1"}, {"team": "red", "weird key": "v'1"}),
    ("fay", 6, "FINISHED", {"acc": float("-inf"), "loss": -0.5}, {"lr": "0.10", "p with space": "y", "空": "z"}, {"team": ""}),
    ("gus", 7, "SCHEDULED", {}, {}, {"team": "blue_1"}),
    ("hal", 8, "FINISHED", {"acc": 0.8, "a/b": 5.0}, {"lr": "0.01"}, {"team": "100%"}),
]
FILTERS = """
metrics.acc > 0.8|metrics.acc >= 0.8|metrics.acc = 0.8|metrics.acc != 0.8|metrics.acc < 0.9|metrics.acc <= 0.9|metric.acc > 0.85|metrics.acc > -1|metrics.acc > 1e300|metrics.loss < 0
metrics.`m with space` = 1|metrics."m with space" = 1|metrics.`a/b` > 4|metrics.a/b > 4|metrics.none > 0|metrics.acc = 0.80|metrics.acc>0.8|metrics.acc > .85|metrics.acc > 1.|metrics.loss = -0.5|metrics.acc > 8e-1
params.lr = '0.1'|params.lr = "0.1"|params.lr != '0.1'|params.opt LIKE 'a%'|params.opt LIKE 'sg_'|params.opt ILIKE 'SGD'|params.opt ILIKE '%D%'|parameter.lr = '1'|param.lr = '1'|params.`p with space` = 'y'|params."p with space" = 'y'
params.空 = 'z'|params.`空` = 'z'|params.none = 'x'|params.none != 'x'|params.lr > '0.05'|params.lr = ''|params.n = '9'|params.opt like 'a%'
tags.team = 'blue'|tags.team != 'blue'|tags.team LIKE 'blue%'|tags.team LIKE 'blue\\_1'|tags.team LIKE 'blue_1'|tags.team ILIKE 'BLUE'|tag.team = 'red'|tags.team = ''|tags.`k.dot` = 'x'|tags.k.dot = 'x'|tags.`weird key` = "v'1"|tags.`weird key` LIKE 'v%1'
tags.mlflow.note.content = 'hello'|tags.team LIKE '100%'|tags.team LIKE '%\\%'|tags.none = 'x'|tags.none != 'x'|tags.mlflow.runName = 'ada'|tags.team IS NULL|tags.team IS NOT NULL|params.lr IS NULL|params.lr IS NOT NULL|metrics.acc IS NULL
status = 'FINISHED'|status != 'FINISHED'|attributes.status = 'RUNNING'|attribute.status = 'FAILED'|run.status = 'KILLED'|attr.status = 'KILLED'|status = 'finished'|status LIKE 'F%'|status ILIKE 'f%'|attributes.status IN ('FAILED', 'KILLED')|status = 'NOPE'
run_name = 'ada'|attributes.run_name != 'ada'|attributes.`run_name` = 'bob'|run_name LIKE '%d%'|run_name ILIKE 'A%'|attributes.`Run name` = 'ada'|attributes."run name" = 'ada'|name = 'ada'|attributes.name = 'ada'|run_name IN ('ada','bob')
start_time = 1700000000003|start_time > 1700000000003|start_time >= 1700000000003 AND start_time < 1700000000006|attributes.start_time != 1700000000003|end_time > 0|created > 1700000000006|Created > 1700000000006|attributes.created <= 1700000000002|start_time > '5'|start_time LIKE '1%'
user_id = 'surfer'|attributes.user_id LIKE 'surf%'|user = 'surfer'|attributes.user_id != 'surfer'|artifact_uri LIKE '%artifacts'|attributes.artifact_uri ILIKE '%ARTIFACTS'|lifecycle_stage = 'active'|experiment_id = '1'
metrics.acc > 0.7 AND params.lr = '0.01'|metrics.acc > 0.7 and tags.team = 'blue' AND status = 'FINISHED'|params.lr = '0.1' AND params.opt = 'adam' AND metrics.loss > 0.2|metrics.acc >= 0.8 AND metrics.acc <= 0.8
dataset.name = 'iris'|datasets.name = 'iris'|dataset.name LIKE 'ir%'|dataset.name ILIKE 'IR%'|dataset.digest = 'd1'|dataset.digest IN ('d1', 'd2')|dataset.context = 'train'|dataset.name = 'iris' AND dataset.context = 'test'|dataset.name != 'iris'|dataset.name IN ('iris', 'wine')|dataset.context LIKE 't%'
""".strip()
WRONG = """
metrics.acc|metrics.acc >|> 0.5|metrics.acc = 'x'|metrics.acc LIKE '1'|metrics.acc IN (1, 2)|params.lr = 0.1|params.lr = x|tags.team = blue|tags.team = 5|metrics.acc > 0.5 OR metrics.acc < 0.1|NOT metrics.acc > 5|(metrics.acc > 0.5)|metrics.acc > 0.5 AND|AND metrics.acc > 0.5
metrics.acc > 0.5; drop table runs|metrics.acc > 0.5 --|foo.bar = 'x'|bar = 'x'|metrics. > 1|metrics > 1|params.`lr = '1'|params.lr = '0.1|status > 'FINISHED'|start_time = 'yesterday'|start_time = 1.5|run_id > 'a'|attributes.none = 'x'|tags.team IN ('a')|params.lr IN ('a')
status IN 'a'|run_id IN ()|run_id IN ('a', 5)|run_id IN ("a",)|metrics.acc == 0.5|metrics.acc <> 0.5|metrics.acc BETWEEN 1 AND 2|1 = 1|'' = ''|params.lr = '0.1' OR '1'='1'|tags.team = 'x' UNION SELECT 1|dataset.foo = 'x'|dataset.name > 'x'|dataset.digest = 5|metrics.acc = nan|metrics.acc = inf|metrics.acc > 0.5, params.lr = '1'|params.lr='1' params.opt='2'|tags.team NOT LIKE 'x'|model.name = 'x'|inputs.x = 'y'
""".strip()


def steps(book, at):
    client = at.client
    exp = book("search/experiment", client.create_experiment, f"{at.p}.search", called="exp search")
    other = book("search/other experiment", client.create_experiment, f"{at.p}.search2", called="exp other")
    ids = {row[0]: plant(book, client, exp, *row) for row in RUNS}
    gone = book("search/planted and deleted", lambda: client.create_run(exp, start_time=T0 + 9, run_name="ian").info.run_id)
    book("search/delete one", client.delete_run, gone)
    book("search/in the other", lambda: bool(client.create_run(other, start_time=T0 + 10, run_name="joy")))
    book("search/datasets", lambda: [client.log_inputs(ids[run], datasets=[DatasetInput(Dataset(name, digest, "local", "{}"), [InputTag("mlflow.data.context", context)])]) for run, name, digest, context in
                                     [("ada", "iris", "d1", "train"), ("bob", "iris", "d1", "test"), ("cyd", "wine", "d2", "train"), ("ada", "wine", "d2", "test")]])
    names = lambda text="", order=None, view=ViewType.ACTIVE_ONLY, where=(exp,), **more: [r.info.run_name for r in client.search_runs(list(where), text, view, order_by=order, **more)]  # noqa: E731
    for line in FILTERS.splitlines():
        for text in line.split("|"):
            book(f"search/{text}", names, text, ["run_name ASC"])
    for line in WRONG.splitlines():
        for text in line.split("|"):
            book(f"search wrong/{text}", names, text)
    book("search/by run id", lambda: names(f"run_id = '{ids['ada']}'"))
    book("search/by run ids", lambda: names(f"run_id IN ('{ids['ada']}', '{ids['cyd']}')", ["run_name"]))
    book("search/not run ids", lambda: names(f"attributes.run_id NOT IN ('{ids['ada']}', '{ids['cyd']}')", ["run_name"]))
    book("search/by run id, upper word", lambda: names(f"attributes.run_id in ('{ids['ada']}')"))
    book("search/not run id", lambda: names(f"attributes.run_id != '{ids['ada']}'", ["run_name"]))
    book("search/run id like", lambda: names(f"attributes.run_id LIKE '{ids['ada'][:20]}%'"))
    book("search/run id ilike", lambda: names(f"run_id ILIKE '{ids['ada'].upper()}'"))
    orders(book, names)
    for kind in (ViewType.ACTIVE_ONLY, ViewType.DELETED_ONLY, ViewType.ALL):
        book(f"search/view {ViewType.to_string(kind)}", names, "", ["run_name"], kind)
    book("search/two experiments", names, "", ["run_name"], where=(exp, other))
    book("search/two experiments, default order", names, "", None, where=(exp, other))
    book("search/unknown experiment", names, "", None, where=("987654321",))
    book("search/unknown beside known", names, "", ["run_name"], where=("987654321", other))
    book("search/no experiment", names, "", None, where=())
    pages(book, client, exp, names)
    book("search/whole answer", lambda: client.search_runs([exp], "run_name = 'ada'"))


def plant(book, client, exp, name, start, status, metrics, params, tags):
    def act():
        run = client.create_run(exp, start_time=T0 + start, run_name=name, tags={"mlflow.user": "surfer"}).info.run_id
        client.log_batch(run, [Metric(k, v, 1, 0) for k, v in metrics.items()], [Param(k, v) for k, v in params.items()], [RunTag(k, v) for k, v in tags.items()])
        if status != "RUNNING":
            client.set_terminated(run, status, end_time=T0 + start + 100)
        return run
    return book(f"search/plant {name}", act, called=f"run {name}")


def orders(book, names):
    for order in ["metrics.acc", "metrics.acc ASC", "metrics.acc DESC", "metrics.acc desc", "metric.loss ASC", "metrics.none", "metrics.`m with space` DESC", "metrics.\"a/b\"", "params.lr", "params.lr DESC", "params.n", "parameter.opt ASC", "tags.team", "tags.team DESC",
                  "tags.`weird key`", "status", "status DESC", "attributes.status ASC", "start_time", "start_time DESC", "attributes.start_time ASC", "end_time DESC", "end_time ASC", "run_name DESC", "attributes.run_name", "attributes.`Run Name`", "created", "Created DESC", "user_id"]:
        book(f"search/order {order}", names, "", [order])
    book("search/order artifact_uri", lambda: sorted(names("", ["artifact_uri"])))
    for order in [["metrics.acc DESC", "params.lr ASC"], ["params.opt", "metrics.loss DESC"], ["tags.team", "start_time"], ["metrics.acc", "metrics.acc DESC"], ["start_time", "start_time"], ["status", "run_name"], []]:
        book(f"search/orders {order}", names, "", order)
    for order in ["", "acc", "metrics.acc UP", "metrics.acc ASC DESC", "metrics.acc, params.lr", "foo.bar", "metrics", "metrics.", "1", "dataset.name", "metrics.acc; drop table runs", "attributes.none", "run_id", "experiment_id", "lifecycle_stage"]:
        book(f"search/order wrong {order}", lambda: len(names("", [order])))


def pages(book, client, exp, names):
    def walk(size, order, text=""):
        token, got = None, []
        while True:
            page = client.search_runs([exp], text, max_results=size, order_by=order, page_token=token)
            got.append([r.info.run_name for r in page])
            token = page.token
            if not token or len(got) > 20:
                return got
    for size in (1, 3, 4, 8, 9, 1000):
        book(f"search/pages of {size}", walk, size, ["metrics.acc DESC"])
    book("search/pages in default order", walk, 3, None)
    book("search/pages of a filter", walk, 2, ["params.lr"], "metrics.loss > 0")
    for size in (0, -1, 50000, 50001):
        book(f"search/max results {size}", lambda: len(names("", None, max_results=size)))
    for token in ["nonsense", "e30=", "MTIz", "-1"]:
        book(f"search/bad page token {token}", lambda: len(names("", None, page_token=token)))
