"""Webhooks of the registry: kept, listed, changed, deleted. None is sent: nothing of the registry changes while
they stand, and their address is one that the internet no longer routes but that counts as public."""


def steps(book, at):
    root = "/api/2.0/mlflow/webhooks"
    good = {"name": f"{at.p}.hook", "url": "https://192.88.99.1/hook", "events": [{"entity": "REGISTERED_MODEL", "action": "CREATED"}], "description": "words", "status": "ACTIVE"}
    ids = {}

    def make():
        got = book.web.post(book.base + root, json=good, timeout=60)
        if got.ok:
            ids["one"] = book.call("hook", got.json()["webhook"]["webhook_id"])
        return book.answer(got, None)
    book("webhook/create", make)
    one = ids.get("one", "none")
    book.wire("webhook/get", "GET", f"{root}/{one}")
    book.wire("webhook/get unknown", "GET", f"{root}/{'0' * 32}")
    book.wire("webhook/list", "GET", root, show=lambda b: [w["name"] for w in b.get("webhooks", []) if w["name"].startswith(at.p)])
    for title, change in {"no url": {"url": None}, "plain http": {"url": "http://192.88.99.1/x"}, "not a url": {"url": "hello"}, "no name": {"name": None}, "name with space": {"name": "a b"}, "no events": {"events": []}, "unknown entity": {"events": [{"entity": "CAT", "action": "CREATED"}]},
                          "unknown action": {"events": [{"entity": "REGISTERED_MODEL", "action": "EATEN"}]}, "action not of the entity": {"events": [{"entity": "REGISTERED_MODEL", "action": "DELETED"}]}, "unknown status": {"status": "MAYBE"}, "loopback": {"url": "https://127.0.0.1/x"}}.items():
        body = {k: v for k, v in {**good, "name": f"{at.p}.w", **change}.items() if v is not None}
        book.wire(f"webhook/create, {title}", "POST", root, body, show=lambda b: sorted(b["webhook"]))
    book.wire("webhook/update", "PATCH", f"{root}/{one}", {"status": "DISABLED", "description": "other"})
    book.wire("webhook/update nothing", "PATCH", f"{root}/{one}", {}, show=lambda b: b["webhook"]["status"])
    book.wire("webhook/update unknown", "PATCH", f"{root}/{'0' * 32}", {"status": "DISABLED"})
    book.wire("webhook/max results 0", "GET", root, query={"max_results": 0}, show=lambda b: "any")
    book.wire("webhook/max results 1001", "GET", root, query={"max_results": 1001}, show=lambda b: "any")
    book.wire("webhook/delete", "DELETE", f"{root}/{one}")
    book.wire("webhook/delete twice", "DELETE", f"{root}/{one}")
