"""The same script against the reference server and against ours: every step must answer the same.

Usage: differential.py [--live] [--start | --self] [--wording] [--client PYTHON] [--reference PYTHON] [CHAPTER ...]

Ours is the server that MLFLOW_TRACKING_URI, MLFLOW_TRACKING_TOKEN and REQUESTS_CA_BUNDLE name; with `--start` it is
PEREGRINE_BIN on a fresh home; with `--self` a second reference server, which proves the script itself. `--client` is a
Python that has the mlflow client to use (or MLFLOW_CLIENT_PYTHON), `--reference` one that has the whole mlflow (or
MLFLOW_REFERENCE_PYTHON); without them they are installed from the package index. The reference's answers are kept in
`reference/`, by version of client and server; `--live` asks it anew and keeps what it says. `--wording` also lists where
only the words of an error differ. Exit code 0: no difference that `allowed.py` does not explain.
"""

import argparse
import contextlib
import fnmatch
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from pathlib import Path

from allowed import ALLOWED

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "peregrine" / "mlflow"
REFERENCE = "3.17.2"
MISSING = "<nothing>"


def main():
    options = arguments()
    client = options.client or os.environ.get("MLFLOW_CLIENT_PYTHON") or options.reference or installed()
    version = output(client, "import mlflow; print(mlflow.__version__)")
    kept = HERE / "reference" / f"client-{version}-server-{REFERENCE}.json"
    if options.live:
        with reference(options) as env:
            theirs = walk(client, env, options.chapters)
        if not options.chapters:
            keep(kept, theirs)
    else:
        theirs = load(kept, options.chapters)
    with ours(options) as env:
        mine = walk(client, env, options.chapters)
    return report(dict(theirs), dict(mine), options, version)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--self", action="store_true", dest="itself")
    parser.add_argument("--wording", action="store_true")
    parser.add_argument("--client")
    parser.add_argument("--reference", default=os.environ.get("MLFLOW_REFERENCE_PYTHON"))
    parser.add_argument("--out", help="folder for both books, to look at")
    parser.add_argument("chapters", nargs="*")
    return parser.parse_args()


def output(python, code):
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, cwd="/").stdout.strip()


def installed():
    """A Python with the whole reference, from the package index, made once."""
    folder = CACHE / REFERENCE
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"mlflow=={REFERENCE}"], check=True)
        (folder / "ready").touch()
    return str(python)


def walk(client, env, chapters):
    with tempfile.TemporaryDirectory(prefix="differential-") as folder:
        out = Path(folder, "book.json")
        subprocess.run([client, str(HERE / "surface.py"), str(out), *chapters], check=True, env={**os.environ, **env}, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text())


def source():
    """What the kept answers belong to: the script that asked."""
    files = [HERE / "book.py", HERE / "surface.py", *sorted((HERE / "steps").glob("*.py"))]
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]


def keep(path, pages):
    """One line a step, without the words of errors: their class is what is compared."""
    def bare(value):
        if isinstance(value, dict):
            return {k: bare(v) for k, v in value.items() if k != "message"}
        return [bare(v) for v in value] if isinstance(value, list) else value
    path.parent.mkdir(exist_ok=True)
    lines = [json.dumps([step, bare(answer)], sort_keys=True) for step, answer in pages]
    path.write_text('{"script": "%s", "pages": [\n%s\n]}\n' % (source(), ",\n".join(lines)))


def load(path, chapters):
    if not path.exists():
        sys.exit(f"no answers of the reference are kept in {path.name}; ask it with --live")
    kept = json.loads(path.read_text())
    if kept["script"] != source():
        sys.exit(f"the script has changed since {path.name} was kept; ask the reference again with --live")
    if chapters:
        sys.exit("single chapters are compared with --live")
    return kept["pages"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def reference(options):
    """The reference server on a fresh database, as its documentation starts it."""
    python = options.reference or installed()
    assert output(python, "import mlflow; print(mlflow.__version__)") == REFERENCE, f"--reference must have mlflow {REFERENCE}"
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="reference-") as folder, open(Path(folder, "log"), "w") as log:
        env = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}
        server = subprocess.Popen([python, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{folder}/m.db", "--artifacts-destination", f"{folder}/files", "--port", str(port), "--workers", "1"],
                                  cwd=folder, env={**env, "MLFLOW_DISABLE_TELEMETRY": "true"}, stdout=log, stderr=log, start_new_session=True)
        try:
            ready(f"http://127.0.0.1:{port}/health", server)
            yield {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}", "MLFLOW_TRACKING_TOKEN": ""}
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)  # nothing of it is kept
            server.wait(30)


def ready(url, server):
    for _ in range(600):
        if server.poll() is not None:
            sys.exit(f"the server at {url} ended with {server.returncode}")
        with contextlib.suppress(OSError):
            if urllib.request.urlopen(url, timeout=5).status == 200:
                return
        time.sleep(0.1)
    sys.exit(f"the server at {url} did not become ready within a minute")


@contextlib.contextmanager
def ours(options):
    if options.itself:
        with reference(options) as env:
            yield env
    elif options.start:
        with peregrine() as env:
            yield env
    else:
        if not os.environ.get("MLFLOW_TRACKING_URI"):
            sys.exit("MLFLOW_TRACKING_URI names no server; or use --start")
        yield {}


@contextlib.contextmanager
def peregrine():
    binary = os.environ["PEREGRINE_BIN"]
    with tempfile.TemporaryDirectory(prefix="peregrine-mlflow-") as folder:
        env = {**os.environ, "PEREGRINE_HOME": f"{folder}/home"}
        port = free_port()
        subprocess.run([binary, "server", "start", "--listen", f"127.0.0.1:{free_port()}", "--http", f"127.0.0.1:{port}", "-o", "none"], env=env, check=True)
        try:
            yield {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}", "MLFLOW_TRACKING_TOKEN": Path(folder, "home", "keys", "user.token").read_text().strip()}
        finally:
            subprocess.run([binary, "server", "stop", "-o", "none"], env=env, check=False, stderr=subprocess.DEVNULL)
            end_all(folder)


def end_all(folder):
    """Agents outlive their server by design; those of a home that goes away do not."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if entry.name.isdigit() and folder in (entry / "cmdline").read_text():
                os.kill(int(entry.name), signal.SIGKILL)


def differences(theirs, mine, path=""):
    """Every leaf that differs, as (path, theirs, mine)."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for key in sorted({*theirs, *mine}):
            yield from differences(theirs.get(key, MISSING), mine.get(key, MISSING), f"{path}/{key}" if path else key)
    elif isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
        for index, (a, b) in enumerate(zip(theirs, mine)):
            yield from differences(a, b, f"{path}/{index}")
    elif theirs != mine:
        yield path, theirs, mine


def status(answer):
    """The HTTP status behind an answer, where one is known."""
    for part in (answer.get("error"), answer.get("ok")):
        if isinstance(part, dict) and isinstance(part.get("status"), int):
            return part["status"]
    return None


def kind_of(step, path, theirs, mine, used):
    if path.endswith("message"):
        return "unknown wording" if theirs == MISSING else "wording"
    for key, reason in ALLOWED.items():
        steps, _, place = key.partition(" # ")
        if fnmatch.fnmatchcase(step, steps) and fnmatch.fnmatchcase(path, place or "*"):
            used.add(key)
            return "allowed"
    return "difference"


def report(theirs, mine, options, version):
    if options.out:
        Path(options.out).mkdir(parents=True, exist_ok=True)
        for name, pages in (("theirs", theirs), ("mine", mine)):
            Path(options.out, f"{name}.json").write_text(json.dumps(pages, indent=1, sort_keys=True))
    found, used = {"difference": [], "allowed": [], "wording": [], "unknown wording": [], "better": []}, set()
    for step in list(theirs) + [s for s in mine if s not in theirs]:
        a, b = theirs.get(step, {MISSING: True}), mine.get(step, {MISSING: True})
        if status(a) == 500 and 400 <= (status(b) or 0) < 500:
            found["better"].append((step, "", "500", str(status(b))))
            continue
        for path, x, y in differences(a, b):
            found[kind_of(step, path, x, y, used)].append((step, path, x, y))
    return show(found, [k for k in ALLOWED if k not in used and fnmatch.filter(theirs, k.partition(" # ")[0])], len(theirs), options, version)


def show(found, stale, steps, options, version):
    for name in ("difference", "wording") if options.wording else ("difference",):
        for step, path, theirs, mine in found[name]:
            print(f"{name}: {step}\n    at {path}\n    reference: {short(theirs)}\n    ours:      {short(mine)}")
    for key in stale:
        print(f"stale: `{key}` of allowed.py explains nothing any more")
    steps_of = lambda name: len({step for step, *_ in found[name]})  # noqa: E731
    print(json.dumps({"client": version, "reference": REFERENCE, "steps": steps, "agree": steps - len({s for n in ("difference", "allowed", "better") for s, *_ in found[n]}), "differ": steps_of("difference"), "allowed": steps_of("allowed"),
                      "refused where the reference breaks": steps_of("better"), "other words": steps_of("wording"), "stale": len(stale)}))
    return 1 if found["difference"] or stale else 0


def short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 300 else text[:300] + "…"


if __name__ == "__main__":
    sys.exit(main())
