"""Runs: made, read, updated, ended, deleted, restored, nested."""

from mlflow.entities import RunStatus

T0 = 1_700_000_000_000


def steps(book, at):
    client, p = at.client, at.p
    exp = at.exp = book("run/experiment", client.create_experiment, f"{p}.runs", called="exp runs")
    made = book("run/create", client.create_run, exp, start_time=T0, run_name="first", tags={"a": "1", "mlflow.user": "me"})
    run = book.call("run first", made and made.info.run_id)
    book("run/get", client.get_run, run)
    book("run/create with a name as tag", lambda: client.create_run(exp, tags={"mlflow.runName": "by tag"}).info.run_name)
    book("run/create with both names", lambda: client.create_run(exp, run_name="x", tags={"mlflow.runName": "y"}).info.run_name)
    book("run/create with equal names", lambda: client.create_run(exp, run_name="x", tags={"mlflow.runName": "x"}).info.run_name)
    book("run/create without a name", lambda: bool(client.create_run(exp).info.run_name))
    book("run/create with an empty name", lambda: bool(client.create_run(exp, run_name="").info.run_name))
    book("run/create, long name", lambda: client.create_run(exp, run_name="n" * 300).info.run_name)
    book("run/create, number as tag value", lambda: client.create_run(exp, run_name="q", tags={"n": 5}).data.tags)
    book("run/create, tag key too long", lambda: client.create_run(exp, run_name="q", tags={"k" * 251: "v"}).data.tags)
    book("run/create, tag value too long", lambda: client.create_run(exp, run_name="q", tags={"k": "v" * 8001}).data.tags)
    book("run/create, start time 0", lambda: client.create_run(exp, run_name="q", start_time=0).info.start_time)
    book("run/create in unknown experiment", client.create_run, "987654321")
    book("run/create in no experiment", client.create_run, "")
    for unknown in ["0" * 32, "nope", "", "../..", "a" * 300]:
        book(f"run/get unknown {unknown[:32] or 'nothing'}", client.get_run, unknown)
    updates(book, client, exp)
    ends(book, client, exp)
    deleted(book, client, exp)
    nested(book, client, exp)


def updates(book, client, exp):
    run = book("run/update, made", lambda: client.create_run(exp, start_time=T0, run_name="u").info.run_id, called="run u")
    show = lambda: (lambda r: [r.info.status, r.info.run_name, r.info.end_time, r.data.tags.get("mlflow.runName")])(client.get_run(run))  # noqa: E731
    book("run/update name", client.update_run, run, name="renamed")
    book("run/update name, read", show)
    book("run/update status", client.update_run, run, status="FINISHED")
    book("run/update status, read", show)
    book("run/update both", client.update_run, run, status="KILLED", name="third")
    book("run/update both, read", show)
    book("run/update nothing", client.update_run, run)
    book("run/update to unknown status", client.update_run, run, status="DONE")
    book("run/update name to nothing", client.update_run, run, name="")
    book("run/update name to nothing, read", show)
    book("run/update back to running", client.update_run, run, status="RUNNING")
    book("run/update back to running, read", show)
    book("run/rename by tag", client.set_tag, run, "mlflow.runName", "by tag")
    book("run/rename by tag, read", show)
    book("run/update unknown", client.update_run, "0" * 32, status="FINISHED")
    for status in ["SCHEDULED", "FAILED"]:
        book(f"run/update to {status}", client.update_run, run, status=status)
        book(f"run/update to {status}, read", show)


def ends(book, client, exp):
    for status in [None, "FINISHED", "FAILED", "KILLED", "RUNNING", "SCHEDULED", "WRONG"]:
        def act():
            run = client.create_run(exp, start_time=T0, run_name=f"end {status}").info.run_id
            client.set_terminated(run, status=status, end_time=T0 + 5)
            info = client.get_run(run).info
            return [info.status, info.start_time, info.end_time]
        book(f"run/end {status}", act)

    def twice():
        run = client.create_run(exp, run_name="end twice").info.run_id
        client.set_terminated(run, "FAILED", end_time=T0 + 7)
        client.set_terminated(run, "FINISHED", end_time=T0 + 9)
        info = client.get_run(run).info
        client.log_metric(run, "after", 1.0, timestamp=1)
        return [info.status, info.end_time, client.get_run(run).data.metrics]
    book("run/end twice, log after", twice)
    book("run/end unknown", client.set_terminated, "0" * 32)
    book("run/end, words", lambda: sorted(RunStatus.all_status()))


def deleted(book, client, exp):
    run = book("run/delete, made", lambda: client.create_run(exp, start_time=T0, run_name="d").info.run_id, called="run d")
    book("run/delete", client.delete_run, run)
    book("run/deleted, read", client.get_run, run)
    book("run/delete twice", client.delete_run, run)
    for title, act in [("metric", lambda: client.log_metric(run, "m", 1.0)), ("param", lambda: client.log_param(run, "p", "1")), ("tag", lambda: client.set_tag(run, "t", "1")),
                       ("delete tag", lambda: client.delete_tag(run, "t")), ("batch", lambda: client.log_batch(run, params=[])), ("update", lambda: client.update_run(run, status="FINISHED")),
                       ("end", lambda: client.set_terminated(run)), ("history", lambda: client.get_metric_history(run, "m")), ("artifacts", lambda: client.list_artifacts(run))]:
        book(f"run/deleted, {title}", act)
    book("run/restore", client.restore_run, run)
    book("run/restored, read", lambda: client.get_run(run).info.lifecycle_stage)
    book("run/restore twice", client.restore_run, run)
    book("run/delete unknown", client.delete_run, "0" * 32)
    book("run/restore unknown", client.restore_run, "0" * 32)


def nested(book, client, exp):
    parent = book("run/parent", lambda: client.create_run(exp, start_time=T0, run_name="parent").info.run_id, called="run parent")
    child = book("run/child", lambda: client.create_run(exp, start_time=T0 + 1, run_name="child", tags={"mlflow.parentRunId": parent}).info.run_id, called="run child")
    book("run/grandchild", lambda: client.create_run(exp, start_time=T0 + 2, run_name="grandchild", tags={"mlflow.parentRunId": child}).info.run_name)
    book("run/parent of child", lambda: client.get_parent_run(child).info.run_name)
    book("run/parent of parent", client.get_parent_run, parent)
    book("run/children", lambda: [r.info.run_name for r in client.search_runs([exp], f"tags.mlflow.parentRunId = '{parent}'")])
    book("run/delete parent", client.delete_run, parent)
    book("run/child of a deleted parent", lambda: client.get_run(child).info.lifecycle_stage)
