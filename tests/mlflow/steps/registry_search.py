"""Searching the registry: models and versions by filter, order and page."""

import time


def steps(book, at):
    client, p = at.client, at.p
    plant(book, client, p, at)
    models(book, client, p)
    versions(book, client, p, at)


def plant(book, client, p, at):
    for name, tags in [("s.ant", {"kind": "a"}), ("s.Bee", {"kind": "b"}), ("s.cat", {"kind": "a", "n": "1"}), ("s.dog", {})]:
        time.sleep(0.003)  # update times are told apart by order_by
        book(f"find/plant {name}", lambda: client.create_registered_model(f"{p}.{name}", tags=tags).name)
    for index, name in enumerate(["s.ant", "s.ant", "s.cat", "s.ant", "s.Bee"]):
        time.sleep(0.003)
        book(f"find/plant version {index}", lambda: client.create_model_version(f"{p}.{name}", at.place if index % 2 == 0 else f"s3://bucket/{index}", at.reg_run if index % 2 == 0 else None, tags={"i": str(index), "even": str(index % 2 == 0)}).version)


def models(book, client, p):
    mine = f"name LIKE '{p}.s.%'"
    find = lambda text=None, **more: [m.name for m in client.search_registered_models(f"{mine} AND {text}" if text else mine, **more)]  # noqa: E731
    for text in ["", f"name = '{p}.s.ant'", f"name != '{p}.s.ant'", f"name LIKE '%.s._at'", f"name ILIKE '%.S.B%'", "tags.kind = 'a'", "tag.kind = 'a'", "tags.kind != 'a'", "tags.kind LIKE '%'", "tags.`kind` ILIKE 'A'", "tags.kind = 'a' AND tags.n = '1'"]:
        book(f"registered search/{text.replace(p, '')}", find, text)
    for text in ["name", "name > 'a'", "nme = 'x'", "tags.kind > 'a'", "tags.kind = 5", "name = 'a' OR name = 'b'", "run_id = 'x'", "name = a", "name IN ('a')", "params.x = 'y'", "name = 'a'; drop table x", "(name = 'a')", "name LIKE '%' AND", "version_number > 1"]:
        book(f"registered search wrong/{text}", lambda: len(client.search_registered_models(text)) * 0)
    for order in [["name"], ["name DESC"], ["name ASC"], ["timestamp DESC"], ["last_updated_timestamp ASC"], ["last_updated_timestamp DESC", "name"], ["creation_timestamp"], ["nme"], ["name UP"], ["name ASC, x"], [""], None]:
        book(f"registered order/{order}", lambda: find(order_by=order))

    def walk(size):
        token, got = None, []
        while True:
            page = client.search_registered_models(mine, max_results=size, order_by=["name"], page_token=token)
            got.append([m.name for m in page])
            token = page.token
            if not token or len(got) > 9:
                return got
    for size in (1, 3, 4, 100):
        book(f"registered pages/{size}", walk, size)
    for size in (0, -1, 1000, 1001, 100_000):
        book(f"registered max/{size}", lambda: len(find(max_results=size)))
    book("registered bad token", lambda: find(page_token="zzz"))
    book("registered whole", lambda: client.search_registered_models(f"name = '{p}.s.ant'"))


def versions(book, client, p, at):
    mine = f"name = '{p}.s.ant'"
    find = lambda text=mine, **more: [[v.name, v.version] for v in client.search_model_versions(text, **more)]  # noqa: E731
    for text in [mine, f"name LIKE '{p}.s.%'", f"name ILIKE '{p}.S.%'", f"{mine} AND version_number = 2", f"{mine} AND version_number > 1", f"{mine} AND version_number <= 2", f"{mine} AND version_number != 2", f"run_id = '{at.reg_run}' AND name LIKE '{p}.s.%'",
                 f"name LIKE '{p}.s.%' AND run_id IN ('{at.reg_run}')", f"name LIKE '{p}.s.%' AND run_id IN ('{at.reg_run}', 'x')", f"name LIKE '{p}.s.%' AND tags.i = '1'", f"name LIKE '{p}.s.%' AND tags.even = 'True' AND version_number = 1", f"name LIKE '{p}.s.%' AND source_path = 's3://bucket/1'",
                 f"name LIKE '{p}.s.%' AND source_path LIKE 's3%'", f"name LIKE '{p}.s.%' AND tags.i ILIKE '2'", f"name = '{p}.s.none'", f"name LIKE '{p}.s.%' AND tags.i != '1'", f"name != '{p}.s.ant' AND name LIKE '{p}.s.%'"]:
        book(f"version search/{text.replace(p, '').replace(str(at.reg_run), 'RUN')}", find, text, order_by=["name", "version_number"])
    for text in ["name", "nme = 'x'", "version_number = '1'", "version_number LIKE '1'", "run_id > 'x'", "run_id IN ()", "run_id IN (1)", "name = 'a' OR name = 'b'", "tags.i = 1", "name IN ('a')", "current_stage = 'None'", "run_id LIKE 'x'", "source_path > 'x'", "version = 1", "metrics.x > 1"]:
        book(f"version search wrong/{text}", lambda: len(client.search_model_versions(text)) * 0)
    for order in [["version_number"], ["version_number DESC"], ["version_number ASC"], ["name", "version_number DESC"], ["last_updated_timestamp DESC"], ["creation_timestamp ASC"], ["creation_timestamp DESC"], ["nme"], ["version_number UP"], None]:
        book(f"version order/{order}", lambda: find(f"name LIKE '{p}.s.%'", order_by=order))

    def walk(size):
        token, got = None, []
        while True:
            page = client.search_model_versions(f"name LIKE '{p}.s.%'", max_results=size, order_by=["name", "version_number"], page_token=token)
            got.append([f"{v.name} {v.version}" for v in page])
            token = page.token
            if not token or len(got) > 9:
                return got
    for size in (1, 2, 5, 100):
        book(f"version pages/{size}", walk, size)
    for size in (0, -1, 200_000, 200_001):
        book(f"version max/{size}", lambda: len(find(max_results=size)))
    book("version bad token", lambda: find(page_token="zzz"))
