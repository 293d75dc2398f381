"""Experiments: made, found, renamed, tagged, deleted, restored, searched."""

import time

from mlflow.entities import ViewType


def steps(book, at):
    client, p = at.client, at.p
    one = book("experiment/create", client.create_experiment, f"{p}.one", tags={"team": "blue", "size": "10"}, called="exp one")
    book("experiment/get", client.get_experiment, one)
    book("experiment/get by name", client.get_experiment_by_name, f"{p}.one")
    book("experiment/get by unknown name", client.get_experiment_by_name, f"{p}.none")
    book("experiment/get unknown id", client.get_experiment, "987654321")
    book("experiment/get id of letters", client.get_experiment, "letters")
    book("experiment/create twice", client.create_experiment, f"{p}.one")
    for title, name in [("empty name", ""), ("name of spaces", "   "), ("long name", p + "x" * 500), ("longest name", p + "x" * (500 - len(p))),
                        ("name with slash", f"{p}/a/b"), ("name with quotes", f"{p} o'clock \"x\""), ("name in Japanese", f"{p} 実験"),
                        ("name of a number", 12), ("no name", None), ("case differs", f"{p}.ONE")]:
        book(f"experiment/create, {title}", lambda: bool(client.create_experiment(name)))
    for title, place in [("with fragment", "http://h/p#f"), ("with query", "s3://b/p?x=1"), ("with dots", "s3://b/../p"), ("own place", f"s3://bucket/{p}"), ("trailing slash", f"s3://bucket/{p}/")]:
        made = book(f"experiment/create, location {title}", client.create_experiment, f"{p}.at {title}", artifact_location=place, called=f"exp {title}")
        if made:
            book(f"experiment/get, location {title}", lambda: client.get_experiment(made).artifact_location)
    tags(book, client, one)
    lives(book, client, p)
    searches(book, client, p)
    book("experiment/the default one", lambda: client.get_experiment("0").name)


def tags(book, client, one):
    read = lambda: client.get_experiment(one).tags  # noqa: E731
    for title, key, value in [("new", "a", "1"), ("again", "a", "2"), ("number", "n", 3), ("empty", "e", ""), ("with dots", "mlflow.note.content", "# hi"),
                              ("key with slash", "a/b", "x"), ("key with bad characters", "a!b", "x"), ("long key", "k" * 251, "x"), ("longest key", "k" * 250, "x"),
                              ("key like a path", "../up", "x"), ("empty key", "", "x"), ("long value", "lv", "v" * 5001), ("longest value", "lv2", "v" * 20000), ("too long value", "lv3", "v" * 20001)]:
        book(f"experiment/tag {title}", client.set_experiment_tag, one, key, value)
    book("experiment/tags read", lambda: {k: len(v) if len(v) > 50 else v for k, v in read().items()})
    book("experiment/delete tag", lambda: client.delete_experiment_tag(one, "a"))
    book("experiment/delete tag twice", lambda: client.delete_experiment_tag(one, "a"))
    book("experiment/tags left", lambda: sorted(k[:20] for k in read()))
    book("experiment/tag of unknown", client.set_experiment_tag, "987654321", "a", "1")


def lives(book, client, p):
    two = book("experiment/create two", client.create_experiment, f"{p}.two", called="exp two")
    run = book("experiment/run in two", lambda: client.create_run(two, run_name="r").info.run_id, called="run of two")
    book("experiment/rename", client.rename_experiment, two, f"{p}.due")
    book("experiment/renamed", lambda: client.get_experiment(two).name)
    book("experiment/rename to a taken name", client.rename_experiment, two, f"{p}.one")
    book("experiment/rename to nothing", client.rename_experiment, two, "")
    book("experiment/rename unknown", client.rename_experiment, "987654321", "x")
    book("experiment/old name is free", client.get_experiment_by_name, f"{p}.two")
    book("experiment/delete", client.delete_experiment, two)
    book("experiment/delete twice", client.delete_experiment, two)
    book("experiment/deleted, get", lambda: client.get_experiment(two).lifecycle_stage)
    book("experiment/deleted, by name", lambda: client.get_experiment_by_name(f"{p}.due").lifecycle_stage)
    book("experiment/deleted, its run", lambda: client.get_run(run).info.lifecycle_stage)
    book("experiment/deleted, create its name", client.create_experiment, f"{p}.due")
    book("experiment/deleted, rename", client.rename_experiment, two, f"{p}.tre")
    book("experiment/deleted, create run", client.create_run, two)
    book("experiment/deleted, log to its run", client.log_metric, run, "m", 1.0)
    book("experiment/deleted, tag", client.set_experiment_tag, two, "a", "1")
    book("experiment/restore", client.restore_experiment, two)
    book("experiment/restore twice", client.restore_experiment, two)
    book("experiment/restored", lambda: client.get_experiment(two).lifecycle_stage)
    book("experiment/restored, its run", lambda: client.get_run(run).info.lifecycle_stage)
    book("experiment/delete unknown", client.delete_experiment, "987654321")
    book("experiment/restore unknown", client.restore_experiment, "987654321")


def searches(book, client, p):
    for index, (name, color) in enumerate([("alpha", "red"), ("Beta", "green"), ("gamma", "red"), ("delta", None), ("epsilon", "GREEN")]):
        time.sleep(0.003)  # creation times are told apart by order_by
        made = client_create(book, client, f"{p}.s.{name}", {"color": color, "rank": str(index)} if color else {"rank": str(index)})
        if name == "delta":
            book("experiment/search, delete one", client.delete_experiment, made)
    mine = f"name LIKE '{p}.s.%'"
    names = lambda **options: [e.name for e in client.search_experiments(**options)]  # noqa: E731
    for text in ["", f"name = '{p}.s.alpha'", f"name != '{p}.s.alpha'", f"name LIKE '{p}.s.%a'", f"name ILIKE '{p}.S.B%'", f"name LIKE '{p}.s.B%'", "tags.color = 'red'", "tags.color != 'red'",
                 "tags.color LIKE 'gr%'", "tags.color ILIKE 'gr%'", "tags.`color` = 'red'", "tags.\"color\" = 'red'", "tag.color = 'red'", "attribute.name LIKE '%amma'", "attributes.name LIKE '%amma'",
                 "tags.color = 'red' AND tags.rank = '2'", "tags.color = 'red' and name LIKE '%alpha'", "creation_time > 0", "creation_time < 5", "last_update_time >= 0", "creation_time = 3",
                 "name LIKE '%s._eta'", "experiment_id = '0'", "experiment_id != '0'", "tags.color IS NULL", "tags.color IS NOT NULL"]:
        book(f"experiment/search {text.replace(p, '')}", lambda: names(filter_string=f"{mine} AND {text}" if text else mine, order_by=["name ASC"]))
    for text in ["name", "name = alpha", "name > 'a'", "nme = 'x'", "tags.color > 'a'", "name = 'a' OR name = 'b'", "params.x = 'y'", "creation_time = 'now'", "name IN ('a')", "(name = 'a')", "name = 'a' AND", "tags.color = 5",
                 "name = 'a'; drop table experiments", "tags. = 'x'", "name LIKE 5", "'a' = name", "metrics.a > 1"]:
        book(f"experiment/search wrong {text}", lambda: len(names(filter_string=text)))
    for order in [["name"], ["name DESC"], ["name desc"], ["creation_time ASC"], ["creation_time DESC"], ["last_update_time DESC"], ["attribute.name DESC"], ["creation_time ASC", "name DESC"], ["experiment_id ASC"], None, []]:
        book(f"experiment/order {order}", lambda: names(filter_string=mine, order_by=order))
    for order in [["nme"], ["name UP"], ["tags.color"], ["name, creation_time"], [""], ["name ASC DESC"]]:
        book(f"experiment/order wrong {order}", lambda: len(names(filter_string=mine, order_by=order)))
    for kind in (ViewType.ACTIVE_ONLY, ViewType.DELETED_ONLY, ViewType.ALL):
        book(f"experiment/view {ViewType.to_string(kind)}", lambda: names(view_type=kind, filter_string=mine, order_by=["name"]))
    pages(book, client, mine)


def client_create(book, client, name, tags):
    try:
        return client.create_experiment(name, tags=tags)
    except Exception as error:
        return book(f"experiment/search, create {name[-6:]}", lambda: (_ for _ in ()).throw(error))


def pages(book, client, mine):
    def walk(size):
        token, got = None, []
        while True:
            page = client.search_experiments(filter_string=mine, order_by=["name"], max_results=size, page_token=token)
            got.append([e.name for e in page])
            token = page.token
            if not token:
                return got
    for size in (1, 2, 3, 4, 5, 50):
        book(f"experiment/pages of {size}", walk, size)
    for size in (0, -1, 50000, 50001, 10**9):
        book(f"experiment/max results {size}", lambda: len(client.search_experiments(filter_string=mine, max_results=size)))
    book("experiment/bad page token", lambda: len(client.search_experiments(filter_string=mine, page_token="not a token")))
