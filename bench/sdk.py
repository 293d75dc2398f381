"""What the Azure ML SDK costs the server: the calls of one submit, and pages of a long list.

Part of bench/run.py (`sdk`, `pages`). The calls are recorded from the real SDK and replayed by a thin client over one
connection without TLS, so that what is measured is the server.
"""

import http.client
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import time
import venv
from pathlib import Path

VERSION = "1.35.2"
TOOLS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "peregrine" / "tools"
JOBS = 100_000

# Runs inside the environment of the SDK: submits twice, prints the calls of the second time.
RECORD = '''
import json, logging, os, pathlib, sys
logging.disable(logging.WARNING)
import requests
from azure.ai.ml import Input, MLClient, command
from azure.identity import DefaultAzureCredential
ml = MLClient(DefaultAzureCredential(), os.environ["PEREGRINE_SUBSCRIPTION"], os.environ["PEREGRINE_RESOURCE_GROUP"], os.environ["PEREGRINE_WORKSPACE"])
pathlib.Path("src").mkdir(exist_ok=True)
pathlib.Path("src/train.py").write_text("print(1)\\n")
pathlib.Path("a.csv").write_text("1,2\\n")
def submit():
    job = command(code="src", command="/bin/true", environment="bench:1", compute="local", experiment_name="bench",
                  inputs={"lr": 0.1, "data": Input(type="uri_file", path="a.csv")})
    return ml.jobs.create_or_update(job).name
submit()
calls, plain = [], requests.Session.send
def send(session, request, **kwargs):
    answer = plain(session, request, **kwargs)
    body = request.body.decode() if isinstance(request.body, bytes) else request.body if isinstance(request.body, str) else None
    calls.append({"method": request.method, "url": request.url, "body": body, "status": answer.status_code,
                  "headers": {k: v for k, v in request.headers.items() if k.lower() in ("authorization", "content-type", "x-ms-version", "x-ms-blob-type", "if-none-match")}})
    return answer
requests.Session.send = send
name = submit()
print(json.dumps({"name": name, "calls": calls}))
'''


def sdk_python():
    """The Python of an environment with the SDK, shared with the tests; None where it cannot be installed."""
    folder = TOOLS / f"azure-ai-ml-{VERSION}"
    python = folder / "bin" / "python"
    if (folder / "complete").exists():
        return python
    try:
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "uv"], check=True, timeout=300)
        packages = [f"azure-ai-ml=={VERSION}", "azure-identity", "azure-storage-blob", "PyJWT", "requests", "mlflow-skinny"]
        subprocess.run([python, "-m", "uv", "pip", "install", "-q", "--python", python, *packages], check=True, timeout=600)
        (folder / "complete").write_text(VERSION)
    except (subprocess.SubprocessError, OSError):
        return None
    return python


def record(server, python):
    printed = server.run("sdk", "env", "--dotenv")
    variables = {name: value.strip('"') for name, value in (line.split("=", 1) for line in printed.splitlines())}
    done = subprocess.run([python, "-c", RECORD], env={**server.env, **variables}, cwd=server.folder, check=True,
                          capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout.splitlines()[-1])


class Thin:
    """One connection that is kept open, and nothing around it."""

    def __init__(self, server):
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port)

    def ask(self, method, path, body=None, headers=None):
        begin = time.perf_counter()
        self.connection.request(method, path, body, headers or {})
        answer = self.connection.getresponse()
        content = answer.read()
        return (time.perf_counter() - begin) * 1000, answer.status, content


def round_trip(server, rounds):
    """Milliseconds of all calls of a submit, and of each kind of call."""
    recorded = record(server, sdk_python())
    # Calls that go to another host than the server do not exist; metadata is asked for again and again.
    calls = [(c, "/" + c["url"].split("/", 3)[3]) for c in recorded["calls"]]
    thin, totals, kinds = Thin(server), [], {}
    for n in range(rounds):
        name = f"replayed-{n}"
        total = 0.0
        for call, path in calls:
            path = path.replace(recorded["name"], name)
            body = call["body"].replace(recorded["name"], name) if call["body"] else None
            ms, status, content = thin.ask(call["method"], path, body, call["headers"])
            assert status == call["status"], (path, status, content[:300])
            total += ms
            kinds.setdefault(f"{call['method']} {kind(path)}", []).append(ms)
        totals.append(total)
    return statistics.median(totals), len(calls), kinds


def kind(path):
    path = path.split("?")[0]
    if path.startswith("/metadata/"):
        return "cloud metadata"
    parts = path.split("/workspaces/")[-1].split("/")
    return "blob" if path.startswith("/blob/") else parts[1] if len(parts) > 1 else "workspace"


def fill(home, count):
    """Multiplies the jobs on record, with the server away: what a list costs does not depend on how they came."""
    base = sqlite3.connect(Path(home, "peregrine.db"))
    columns = [row[1] for row in base.execute("pragma table_info(jobs)") if row[1] not in ("seq", "name")]
    have = base.execute("select count(*) from jobs").fetchone()[0]
    names = ", ".join(columns)
    base.execute(f"with recursive n(i) as (select 1 union all select i + 1 from n where i < ?) "
                 f"insert into jobs (name, {names}) select 'copy-' || n.i, {names} from n join "
                 f"(select * from jobs order by seq limit 1 offset 0) first", (count - have,))
    base.commit()
    base.close()


def pages(server, path, most):
    """Milliseconds of each page of a list, how many jobs they showed, and the server's CPU time for each in milliseconds."""
    thin, times, shown = Thin(server), [], 0
    before = cpu_ms(server.pid)
    while path and len(times) < most:
        ms, status, content = thin.ask("GET", path, headers={"authorization": f"Bearer {server.token}"})
        assert status == 200, content[:300]
        page = json.loads(content)
        times.append(ms)
        shown += len(page["value"])
        path = page["nextLink"] and "/" + page["nextLink"].split("/", 3)[3]
    return times, shown, (cpu_ms(server.pid) - before) / len(times)


def cpu_ms(pid):
    """CPU time of a process so far; unlike the clock on the wall, it does not depend on what else the machine does."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
