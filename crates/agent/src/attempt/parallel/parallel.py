"""Works through an input in mini-batches: `init()` once a process, `run(mini_batch)` for each, `shutdown()` at the end.

The same file has three roles. On every node a driver keeps a thread for each worker process: it asks for a mini-batch,
hands it to its worker and tells what came of it. The driver of rank 0 is the coordinator as well: it cuts the input into
mini-batches, deals them out over TCP (each side proves that it knows the attempt's key), counts failures and collects
what `run` returns. A worker is a process of its own with the user's script in it, so that it can be killed when it hangs
and replaced when it dies. Nothing but the standard library is needed; pandas where tables are read or returned.
"""

import argparse
import collections
import hashlib
import importlib.util
import inspect
import io
import json
import logging
import os
import re
import select
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import traceback
import types
import urllib.request
from multiprocessing.connection import Client, Listener, answer_challenge, deliver_challenge

HERE = os.path.abspath(__file__)
# How much of what went wrong is passed on.
TEXT = 4000


def driver_arguments(text):
    """What of the program's arguments is for the driver, and the rest."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--error_threshold", type=int)
    parser.add_argument("--allowed_failed_percent", type=float, default=100)
    parser.add_argument("--task_overhead_timeout", type=float, default=600)
    parser.add_argument("--progress_update_timeout", type=float)
    parser.add_argument("--first_task_creation_timeout", type=float, default=600)
    parser.add_argument("--copy_logs_to_parent", default="False")
    parser.add_argument("--metrics_name_prefix", default="")
    parser.add_argument("--push_metrics_to_parent", default="False")
    parser.add_argument("--resource_monitor_interval", type=float, default=600)
    return parser.parse_known_args(shlex.split(text))


class Job:
    """The settings of the attempt, and which node this is."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.__dict__.update(json.load(file))
        self.path = path
        self.driver, self.program = driver_arguments(self.arguments)
        if self.driver.error_threshold is not None:
            self.error_threshold = self.driver.error_threshold
        self.rank = int(os.environ.get("RANK", "0"))
        self.nodes = int(os.environ.get("WORLD_SIZE", "1"))
        hosts = os.environ.get("AZ_BATCH_HOST_LIST", "127.0.0.1").split(",")
        own = hosts[self.rank] if len(hosts) == self.nodes else hosts[0]
        # Nodes of one machine have one address; they are told apart by it, so each has a name of its own.
        self.node = own if self.nodes == 1 or len(set(hosts)) == self.nodes else f"{own}_{self.rank}"
        if not self.concurrency:
            self.concurrency = len(os.sched_getaffinity(0))

    def log(self, name):
        path = os.path.join(self.logs, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def note(self, name, text):
        """Adds a line of ours to a log."""
        with open(self.log(name), "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text.rstrip()}\n")


# ---- the input -------------------------------------------------------------------------------------------------------


class BadInput(Exception):
    """The input cannot be cut into mini-batches; the text says why."""


def files_of(root):
    if os.path.isfile(root):
        return [("", root)]
    found = []
    for folder, folders, names in os.walk(root, followlinks=True):
        folders.sort()
        found += [(os.path.relpath(os.path.join(folder, name), root), os.path.join(folder, name)) for name in sorted(names)]
    return [(name, path) for name, path in found if name != "MLTable"]


def partition_pattern(steps):
    """How the columns of an MLTable's `partition_format` stand in a path, as a pattern."""
    formats = [step.get("partition_format") for step in steps if isinstance(step, dict)]
    formats += [list(step.values())[0].get("partition_format") for step in steps
                if isinstance(step, dict) and isinstance(next(iter(step.values()), None), dict)]
    text = next((text for text in formats if text), None)
    if not text:
        return None
    parts = re.split(r"\{(\w+)(?::([^}]*))?\}", text.strip("/"))
    made = re.escape(parts[0])
    for name, form, literal in zip(parts[1::3], parts[2::3], parts[3::3]):
        depth = (form or "").count("/")
        made += "(?P<%s>[^/]+%s)%s" % (name, "/[^/]+" * depth, re.escape(literal))
    return re.compile("(?:^|/)" + made + "$")


def path_columns(name, pattern, keys):
    """What a file's path says of it: by the MLTable's format, by `key=value` folders, or by folders in the keys' order."""
    if pattern is not None:
        found = pattern.search(name)
        return found.groupdict() if found else {}
    folders = name.split("/")[:-1]
    named = dict(part.split("=", 1) for part in folders if "=" in part)
    return named or dict(zip(keys, folders))


def read_table(path, steps):
    import pandas

    kinds = {name: options or {} for step in steps if isinstance(step, dict) for name, options in step.items()}
    end = path.lower().rsplit(".", 1)[-1]
    if "read_parquet" in kinds or (end == "parquet" and "read_delimited" not in kinds):
        return pandas.read_parquet(path)
    if "read_json_lines" in kinds or end in ("json", "jsonl"):
        return pandas.read_json(path, lines="read_json_lines" in kinds or end == "jsonl")
    options = kinds.get("read_delimited", {})
    if not isinstance(options, dict):
        options = {}
    header = None if str(options.get("header", "")) in ("no_header", "False", "false") else 0
    table = pandas.read_csv(path, sep=options.get("delimiter", ","), header=header, encoding=options.get("encoding", "utf-8").replace("utf8", "utf-8"))
    if header is None:
        table.columns = [f"Column{number + 1}" for number in table.columns]
    return table


class Tables:
    """The tables read last: neighbours among mini-batches are cut from the same file."""

    def __init__(self):
        self.kept = collections.OrderedDict()

    def table(self, path, steps, columns):
        if path not in self.kept:
            self.kept[path] = read_table(path, steps)
            for name, value in columns.items():
                if name not in self.kept[path]:
                    self.kept[path][name] = value
            while len(self.kept) > 2:
                self.kept.popitem(last=False)
        return self.kept[path]


def mini_batches(job):
    """The input cut up: a dict for each mini-batch, with what a worker needs to make it."""
    made = []
    for source in job.inputs:
        files = files_of(source["path"])
        if not files:
            raise BadInput(f"the input `{source['name']}` holds no file")
        steps = source.get("transformations") or []
        if job.partition_keys:
            made += partitioned(job, files, steps)
        elif job.rows:
            made += by_bytes(job, files, steps)
        else:
            size = max(1, job.mini_batch_size)
            paths = [path for _, path in files]
            made += [{"files": paths[at : at + size]} for at in range(0, len(paths), size)]
    return made


def partitioned(job, files, steps):
    keys, tables = job.partition_keys, Tables()
    pattern = partition_pattern(steps)
    groups = collections.OrderedDict()
    for name, path in files:
        columns = path_columns(name, pattern, [] if job.rows else keys)
        if all(key in columns for key in keys):
            groups.setdefault(tuple(str(columns[key]) for key in keys), []).append((path, columns))
            continue
        if not job.rows:
            raise BadInput(f"the path `{name}` does not say what {', '.join(keys)} is (next step: put files into folders such as `{keys[0]}=a/`)")
        table = tables.table(path, steps, columns)
        missing = [key for key in keys if key not in table]
        if missing:
            raise BadInput(f"`{name}` has no column {', '.join(missing)} (it has: {', '.join(map(str, table.columns))})")
        for values in table[keys].drop_duplicates().astype(str).itertuples(index=False, name=None):
            groups.setdefault(values, []).append((path, columns))
    if not job.rows:
        return [{"files": [path for path, _ in group], "keys": dict(zip(keys, values))} for values, group in groups.items()]
    return [{"tables": group, "steps": steps, "keys": dict(zip(keys, values))} for values, group in groups.items()]


def by_bytes(job, files, steps):
    tables, made, spans, held = Tables(), [], [], 0.0
    for _, path in files:
        rows = len(tables.table(path, steps, {}))
        each = os.path.getsize(path) / max(rows, 1)
        at = 0
        while at < rows:
            room = max(1, int((job.mini_batch_size - held) / max(each, 1e-9)))
            end = min(rows, at + room)
            spans.append((path, at, end))
            held += (end - at) * each
            at = end
            if held + each > job.mini_batch_size:
                made.append({"spans": spans, "steps": steps})
                spans, held = [], 0.0
    return made + ([{"spans": spans, "steps": steps}] if spans else [])


def materialise(task, tables):
    """What `run` is given."""
    if "files" in task:
        return task["files"]
    import pandas

    if "spans" in task:
        parts = [tables.table(path, task["steps"], {}).iloc[begin:end] for path, begin, end in task["spans"]]
    else:
        parts = []
        for path, columns in task["tables"]:
            table = tables.table(path, task["steps"], columns)
            for key, value in task["keys"].items():
                table = table[table[key].astype(str) == value]
            parts.append(table)
    return pandas.concat(parts, ignore_index=True)


# ---- the coordinator -------------------------------------------------------------------------------------------------


class Coordinator:
    """Who has which mini-batch, what became of them, and when it is over. All under one lock."""

    def __init__(self, job):
        self.job = job
        self.changed = threading.Condition()
        self.begun = time.time()
        self.queue, self.total, self.created = collections.deque(), 0, False
        self.held = {}
        self.done = self.failed = self.items = self.failed_items = self.retried = 0
        self.init_failures = 0
        self.missing = {}
        self.reason = None
        self.moved_at = time.monotonic()
        self.overview = f"job_progress_overview.{time.strftime('%Y%m%d%H', time.gmtime())}.txt"
        self.told = self.posted = 0.0
        self.rows = None
        if job.append_to:
            self.rows = open(job.append_to + ".part", "w", encoding="utf-8")

    def create(self):
        tasks = mini_batches(self.job)
        with self.changed:
            self.total, self.created = len(tasks), True
            self.queue.extend({"id": at, "tries": 0, **task} for at, task in enumerate(tasks))
            self.changed.notify_all()
        self.job.note("sys/master_role.txt", f"{len(tasks)} mini-batches")

    def over(self):
        return self.reason is not None or (self.created and self.done + self.failed == self.total)

    def fail(self, reason):
        with self.changed:
            self.reason = self.reason or reason
            self.changed.notify_all()
        self.job.note("sys/master_role.txt", reason)

    def next(self, who):
        """The next mini-batch, once there is one; `None` when there will be no more."""
        with self.changed:
            self.changed.wait_for(lambda: self.queue or self.over())
            if self.over():
                return None
            task = self.queue.popleft()
            task["tries"] += 1
            self.held[who] = task
            return task

    def report(self, who, told):
        with self.changed:
            task = self.held.pop(who)
            self.moved_at = time.monotonic()
            if told["is"] == "init":
                self.put_back(task, counted=False)
                self.init_failures += 1
                if self.init_failures > self.job.max_retries:
                    self.reason = self.reason or f"`init` failed {self.init_failures} times: {told['text'].strip().splitlines()[-1]}"
            elif told["is"] == "done":
                self.finish(told)
            else:
                self.missed(task, told)
            self.check()
            self.changed.notify_all()

    def put_back(self, task, counted=True):
        task["tries"] -= 0 if counted else 1
        self.queue.append(task)

    def finish(self, told):
        short = max(0, told["items"] - told["returned"]) if told["compared"] else 0
        self.failed_items += short
        self.items += told["items"]
        if short:
            self.failed += 1
            self.job.note("user/error.txt", f"a mini-batch of {told['items']} items came back with {told['returned']}")
        else:
            self.done += 1
        if self.rows is not None:
            self.rows.write(told["text"])
            self.rows.flush()

    def missed(self, task, told):
        last = told["text"].strip().splitlines()[-1]
        again = task["tries"] <= self.job.max_retries
        self.job.note("user/error.txt", f"mini-batch {task['id']}, try {task['tries']}: {last}")
        if again:
            self.retried += 1
            return self.put_back(task)
        self.failed += 1
        self.items += told["items"]
        self.failed_items += told["items"]
        print(f"mini-batch {task['id']} failed after {task['tries']} tries: {last}", flush=True)

    def check(self):
        job = self.job
        percent = 100 * self.failed / max(self.total, 1)
        for is_over, text in (
            (0 <= job.mini_batch_error_threshold < self.failed, f"{self.failed} mini-batches failed, and `mini_batch_error_threshold` is {job.mini_batch_error_threshold}"),
            (0 <= job.error_threshold < self.failed_items, f"{self.failed_items} items failed, and `error_threshold` is {job.error_threshold}"),
            (percent > job.driver.allowed_failed_percent, f"{percent:.0f} % of the mini-batches failed, and `allowed_failed_percent` is {job.driver.allowed_failed_percent:g}"),
        ):
            if is_over:
                self.reason = self.reason or text

    def came(self, hello):
        with self.changed:
            self.missing.setdefault(hello["node"], hello["slots"])

    def went(self, hello):
        with self.changed:
            self.missing[hello["node"]] -= 1
            self.changed.notify_all()

    def all_told(self, seconds):
        """Waits until every worker of every node has come and heard that there is nothing more to do."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.missing) == self.job.nodes and not any(self.missing.values()), seconds)

    def lost(self, who):
        with self.changed:
            if who in self.held:
                self.put_back(self.held.pop(who), counted=False)
                self.changed.notify_all()

    def attend(self):
        """Watches over progress until it is over; the exit code."""
        driver, job = self.job.driver, self.job
        stuck = driver.progress_update_timeout or (job.max_retries + 1) * (job.timeout + driver.task_overhead_timeout) + 600
        while True:
            with self.changed:
                self.changed.wait_for(self.over, timeout=0.2)
                over, quiet = self.over(), time.monotonic() - self.moved_at
            if over:
                break
            if not self.created and time.time() - self.begun > driver.first_task_creation_timeout:
                self.fail(f"no mini-batch was made within {driver.first_task_creation_timeout:g} s (`--first_task_creation_timeout`)")
            elif quiet > stuck:
                self.fail(f"no mini-batch came back for {quiet:.0f} s (`--progress_update_timeout`)")
            self.tell()
        self.tell(last=True)
        if self.rows is not None:
            self.rows.close()
            if self.reason is None:
                os.replace(job.append_to + ".part", job.append_to)
            else:
                os.remove(job.append_to + ".part")
        if self.reason is not None:
            print(f"error: {self.reason}; what `run` said is in logs/user/error", flush=True)
        return 1 if self.reason is not None else 0

    def tell(self, last=False):
        now = time.monotonic()
        if not last and now - self.told < 1:
            return
        self.told = now
        left = self.total - self.done - self.failed
        lines = (
            f"started at: {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(self.begun))}",
            f"seconds so far: {time.time() - self.begun:.1f}",
            f"mini-batches created: {self.total}{'' if self.created else ' (listing the input)'}",
            f"mini-batches processed: {self.done + self.failed}",
            f"mini-batches failed: {self.failed}",
            f"mini-batches tried again: {self.retried}",
            f"mini-batches left: {left}",
            f"items processed: {self.items}",
            f"items failed: {self.failed_items}",
        )
        path = self.job.log(self.overview)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.replace(path + ".new", path)
        if last:
            print(f"mini-batches: {self.done + self.failed} of {self.total} processed, {self.failed} failed; items: {self.items}, {self.failed_items} failed", flush=True)
        if last or now - self.posted > 10:
            self.posted = now
            self.post({"Total MiniBatches": self.total, "Remaining MiniBatches": left, "Processed MiniBatches": self.done + self.failed,
                       "Failed MiniBatches": self.failed, "Processed Items": self.items, "Failed Items": self.failed_items})

    def post(self, metrics):
        """Tracking is told; a job does not fail because nobody listens."""
        address, token = os.environ.get("MLFLOW_TRACKING_URI", ""), os.environ.get("MLFLOW_TRACKING_TOKEN", "")
        if not address.startswith("http") or not token:
            return
        at, prefix = int(time.time() * 1000), self.job.driver.metrics_name_prefix
        body = {"run_id": os.environ.get("MLFLOW_RUN_ID"), "metrics": [
            {"key": prefix + key, "value": value, "timestamp": at, "step": int(time.time() - self.begun)} for key, value in metrics.items()]}
        request = urllib.request.Request(
            address.rstrip("/") + "/api/2.0/mlflow/runs/log-batch", json.dumps(body).encode(),
            {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        try:
            context = ssl.create_default_context(cafile=os.environ.get("REQUESTS_CA_BUNDLE"))
            urllib.request.urlopen(request, timeout=5, context=context).close()
        except Exception as error:
            self.job.note("sys/master_role.txt", f"progress could not be logged: {error}")


def serve(coordinator, listener, key):
    def attend(connection):
        # Here, not where connections are taken: whoever says nothing holds up nobody.
        try:
            deliver_challenge(connection, key)
            answer_challenge(connection, key)
            hello = json.loads(connection.recv_bytes())
        except Exception:
            return connection.close()
        who = hello["who"]
        coordinator.came(hello)
        try:
            while True:
                task = coordinator.next(who)
                connection.send_bytes(json.dumps(task).encode())
                if task is None:
                    break
                coordinator.report(who, json.loads(connection.recv_bytes()))
        except (EOFError, OSError):
            coordinator.lost(who)
        coordinator.went(hello)

    while True:
        threading.Thread(target=attend, args=(listener.accept(),), daemon=True).start()


# ---- a node ----------------------------------------------------------------------------------------------------------

WORKERS = {}


class Worker:
    """A process with the user's script in it."""

    def __init__(self, job, number):
        self.job, self.number = job, number
        to_read, self.to_worker = os.pipe()
        self.from_worker, to_write = os.pipe()
        out = open(job.log(f"user/stdout/{job.node}/process{number}.stdout.txt"), "ab")
        err = open(job.log(f"user/stderr/{job.node}/process{number}.stderr.txt"), "ab")
        environ = dict(os.environ, AZUREML_PARALLEL_PROCESS=str(number))
        environ.pop("PEREGRINE_GANG_KEY", None)
        self.process = subprocess.Popen(
            [sys.executable, "-u", HERE, "worker", job.path, str(to_read), str(to_write)],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=(to_read, to_write), env=environ, start_new_session=True)
        for end in (to_read, to_write):
            os.close(end)
        out.close()
        err.close()
        self.buffer = b""
        WORKERS[number] = self

    def ask(self, task):
        with os.fdopen(os.dup(self.to_worker), "wb") as pipe:
            pipe.write(json.dumps(task).encode() + b"\n")

    def answer(self, seconds):
        """What it says within the time, or `None` where it says nothing, or `EOFError` where it is gone."""
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.from_worker], [], [], left)[0]:
                return None
            piece = os.read(self.from_worker, 1 << 20)
            if not piece:
                raise EOFError
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def end(self, seconds=0.0):
        """Lets it shut down for a while, then kills it and what it started."""
        WORKERS.pop(self.number, None)
        os.close(self.to_worker)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.from_worker)

    def how_it_died(self):
        code = self.process.wait()
        return f"the worker process was ended by signal {-code}" if code < 0 else f"the worker process exited with code {code}"


class Slot:
    """One worker at a time, and the mini-batches it is given."""

    def __init__(self, job, number):
        self.job, self.number, self.worker = job, number, None

    def live(self, address, key):
        connection = self.connect(address, key)
        hello = {"who": f"{self.job.node}/{self.number}", "node": self.job.node, "slots": self.job.concurrency}
        connection.send_bytes(json.dumps(hello).encode())
        while True:
            task = json.loads(connection.recv_bytes())
            if task is None:
                break
            connection.send_bytes(json.dumps(self.work(task)).encode())
        if self.worker is not None:
            self.worker.end(30)

    def connect(self, address, key):
        """The coordinator may still be starting; one that never comes up ends the attempt by itself."""
        until = time.monotonic() + self.job.driver.first_task_creation_timeout
        while True:
            try:
                return Client(address, authkey=key)
            except (ConnectionError, EOFError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def work(self, task):
        items = len(task.get("files", ())) or sum(end - begin for _, begin, end in task.get("spans", ())) or 1
        if self.worker is None:
            failure = self.start()
            if failure:
                return {"is": "init", "text": self.failed(failure)}
        until = time.monotonic() + self.job.timeout
        try:
            self.worker.ask(task)
            told = self.worker.answer(self.job.timeout)
            if told is not None and told["is"] == "begun":
                items = told["items"]
                told = self.worker.answer(max(0.0, until - time.monotonic()))
        except (EOFError, BrokenPipeError):
            return self.replaced(self.worker.how_it_died(), items)
        if told is None:
            return self.replaced(f"`run` took longer than the {self.job.timeout} s of `retry_settings.timeout`", items)
        if told["is"] == "failed":
            self.failed(told["text"])
        return {"items": items, **told}

    def start(self):
        self.worker = Worker(self.job, self.number)
        self.job.note(f"sys/node/{self.job.node}/process{self.number}.txt", f"started worker {self.worker.process.pid}")
        try:
            told = self.worker.answer(self.job.driver.task_overhead_timeout)
        except EOFError:
            told = {"text": self.worker.how_it_died()}
        if told is None:
            told = {"text": f"`init` took longer than the {self.job.driver.task_overhead_timeout:g} s of `--task_overhead_timeout`"}
        if told.get("is") == "ready":
            return None
        self.drop()
        return told["text"]

    def drop(self):
        self.worker.end()
        self.worker = None

    def replaced(self, text, items):
        self.drop()
        return {"is": "failed", "items": items, "text": self.failed(text)}

    def failed(self, text):
        self.job.note(f"user/error/{self.job.node}/process{self.number}.txt", text)
        return text[-TEXT:]


def monitor(job):
    """Readings of the node, as often as was asked for."""
    while True:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        disk, load = shutil.disk_usage("."), os.getloadavg()
        with open("/proc/meminfo", encoding="ascii") as file:
            memory = {line.split(":")[0]: line.split()[1] for line in file}
        rows = [("node_disk_usage.csv", "time,total_bytes,used_bytes,free_bytes", f"{disk.total},{disk.used},{disk.free}"),
                ("node_resource_usage.csv", "time,load_1m,memory_total_kib,memory_available_kib", f"{load[0]},{memory['MemTotal']},{memory['MemAvailable']}")]
        for number, worker in list(WORKERS.items()):
            try:
                with open(f"/proc/{worker.process.pid}/stat", encoding="ascii") as file:
                    told = file.read().rsplit(")", 1)[1].split()
                rows.append(("processes_resource_usage.csv", "time,process,pid,cpu_ticks,resident_pages",
                             f"process{number},{worker.process.pid},{int(told[11]) + int(told[12])},{told[21]}"))
            except OSError:
                pass
        for name, head, row in rows:
            path = job.log(f"perf/{job.node}/{name}")
            is_new = not os.path.exists(path)
            with open(path, "a", encoding="utf-8") as file:
                file.write((head + "\n" if is_new else "") + f"{stamp},{row}\n")
        with open(job.log(time.strftime(f"perf/{job.node}/os/%Y%m%d%H/processes_%M", time.gmtime())), "w", encoding="utf-8") as file:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as name:
                        file.write(f"{pid} {name.read()}")
                except OSError:
                    pass
        time.sleep(job.driver.resource_monitor_interval)


def node(job):
    key = hashlib.sha256((os.environ.get("PEREGRINE_GANG_KEY") or os.urandom(32).hex()).encode()).digest()
    alone = job.nodes == 1
    address = ("127.0.0.1", 0) if alone else (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    coordinator = None
    if job.rank == 0:
        if job.append_to and os.path.exists(job.append_to) and os.path.getsize(job.append_to):
            print(f"error: `{os.path.basename(job.append_to)}` is in the output already (next step: give the job an output folder of its own)", flush=True)
            return 1
        coordinator = Coordinator(job)
        listener = Listener(("127.0.0.1" if alone else "", address[1]), backlog=256)
        address = listener.address if alone else address
        threading.Thread(target=serve, args=(coordinator, listener, key), daemon=True).start()
        threading.Thread(target=created, args=(coordinator,), daemon=True).start()
    if job.driver.resource_monitor_interval > 0:
        threading.Thread(target=monitor, args=(job,), daemon=True).start()
    slots = [threading.Thread(target=guarded, args=(coordinator, Slot(job, number), address, key), daemon=True) for number in range(job.concurrency)]
    for slot in slots:
        slot.start()
    if coordinator is None:
        for slot in slots:
            slot.join()
        return 1 if guarded.failed else 0
    code = coordinator.attend()
    # After a failure nobody is waited for: workers in the middle of something are ended.
    coordinator.all_told(job.driver.first_task_creation_timeout if code == 0 else 0)
    end = time.monotonic() + (30 if code == 0 else 0)
    for slot in slots:
        slot.join(max(0.0, end - time.monotonic()))
    return code


def created(coordinator):
    try:
        coordinator.create()
    except BadInput as error:
        coordinator.fail(str(error))
    except Exception as error:
        traceback.print_exc()
        coordinator.fail(f"the input cannot be cut up: {type(error).__name__}: {error}")


def guarded(coordinator, slot, address, key):
    try:
        slot.live(address, key)
    except Exception as error:
        guarded.failed = True
        traceback.print_exc()
        if coordinator is not None:
            coordinator.fail(f"a worker cannot be kept: {type(error).__name__}: {error}")


guarded.failed = False

# ---- a worker --------------------------------------------------------------------------------------------------------


class MlflowScript:
    """What stands in for a script where there is an MLflow model and no code: a line for every row of every file."""

    def __init__(self, folder):
        self.folder = folder

    def init(self):
        import mlflow.pyfunc

        self.model = mlflow.pyfunc.load_model(self.folder)

    def run(self, mini_batch):
        import pandas

        made = []
        for path in mini_batch:
            predictions = self.model.predict(read_table(path, []))
            values = predictions.values.tolist() if hasattr(predictions, "values") else list(predictions)
            values = [value[0] if isinstance(value, list) and len(value) == 1 else value for value in values]
            made.append(pandas.DataFrame({"row": range(len(values)), "prediction": values, "file": os.path.basename(path)}))
        return pandas.concat(made)


def load(job):
    if job.mlflow:
        return MlflowScript(job.mlflow)
    entry = os.path.abspath(job.entry)
    logger = logging.getLogger("EntryScript")
    package = types.ModuleType("azureml_user")
    module = types.ModuleType("azureml_user.parallel_run")
    module.EntryScript = type("EntryScript", (), {"logger": logger, "log_dir": job.logs, "working_dir": os.getcwd()})
    package.parallel_run = module
    sys.modules.update({"azureml_user": package, "azureml_user.parallel_run": module})
    sys.argv = [entry] + job.program
    sys.path[0] = os.path.dirname(entry)
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(entry))[0], entry)
    script = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = script
    spec.loader.exec_module(script)
    return script


def lines_of(returned):
    """How many items came back, and each as a line."""
    if type(returned).__name__ in ("DataFrame", "Series") and hasattr(returned, "to_csv"):
        text = io.StringIO()
        returned.to_csv(text, header=False, index=False)
        return len(returned), text.getvalue()
    if not isinstance(returned, (list, tuple)):
        raise TypeError(f"`run` must return a list, a tuple or a DataFrame, not {type(returned).__name__}")
    return len(returned), "".join(f"{item}\n" for item in returned)


def worker(job, to_read, to_write):
    def tell(told):
        with os.fdopen(os.dup(to_write), "wb") as pipe:
            pipe.write(json.dumps(told).encode() + b"\n")

    logging.basicConfig(level=getattr(logging, job.logging_level.upper(), logging.INFO), stream=sys.stdout)
    try:
        script = load(job)
        if hasattr(script, "init"):
            script.init()
        run = script.run
        wants_context = len(inspect.signature(run).parameters) > 1
    except BaseException:
        tell({"is": "init", "text": traceback.format_exc()[-TEXT:]})
        return 1
    tell({"is": "ready"})
    tables = Tables()
    for line in os.fdopen(to_read, "rb"):
        task = json.loads(line)
        try:
            batch = materialise(task, tables)
            if "tables" in task:
                # How many rows a partition has is known to nobody else, should this process die over them.
                tell({"is": "begun", "items": len(batch)})
            context = types.SimpleNamespace(minibatch_index=task["id"], partition_key_value=task.get("keys"), dataset=None)
            returned, text = lines_of(run(batch, context) if wants_context else run(batch))
            told = {"is": "done", "items": len(batch), "returned": returned, "compared": "keys" not in task, "text": text if job.append_to else ""}
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            told = {"is": "failed", "text": traceback.format_exc()[-TEXT:]}
        tell(told)
    if hasattr(script, "shutdown"):
        script.shutdown()
    return 0


def main(role, path, *pipes):
    job = Job(path)
    if role == "worker":
        return worker(job, *map(int, pipes))

    def leave(number, _frame):
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        return node(job)
    finally:
        for one in list(WORKERS.values()):
            one.end()


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(code) if sys.argv[1] == "node" else sys.exit(code)
