"""Walks the whole tracking and registry surface of the real MLflow client and writes down every answer.

Usage: surface.py OUT.json [CHAPTER ...]        (all chapters without a name)

MLFLOW_TRACKING_URI, MLFLOW_TRACKING_TOKEN and REQUESTS_CA_BUNDLE configure the client, as they would for anyone; nothing
here knows which server it talks to. OUT.json is a list of [step, answer]; see `book.py` for the form of an answer.
"""

import importlib
import json
import logging
import os
import secrets
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
warnings.filterwarnings("ignore")

import mlflow  # noqa: E402  (reads its settings when it is imported)
from mlflow import MlflowClient  # noqa: E402

from book import Book  # noqa: E402

CHAPTERS = ["experiments", "runs", "logging", "history", "search", "inputs", "artifacts", "fluent", "models", "registry", "registry_search", "wire", "webhooks"]


def main(out, *only):
    for name in ("mlflow", "urllib3", "alembic"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    client = MlflowClient()
    place = client._tracking_client.store.get_host_creds()
    prefix = "sf" + secrets.token_hex(5)
    book = Book(place.host, place.token, prefix)
    with tempfile.TemporaryDirectory(prefix="surface-") as folder:
        os.chdir(folder)
        at = SimpleNamespace(client=client, p=prefix, folder=Path(folder), three=int(mlflow.__version__.split(".")[0]) >= 3)
        for chapter in CHAPTERS:
            if only and chapter not in only:
                continue
            begin, before = time.perf_counter(), len(book.pages)
            importlib.import_module(f"steps.{chapter}").steps(book, at)
            print(f"{chapter}: {len(book.pages) - before} steps, {time.perf_counter() - begin:.1f} s", file=sys.stderr)
        os.chdir("/")
    names = [step for step, _ in book.pages]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"steps of one name: {sorted(twice)}"
    Path(out).write_text(json.dumps(book.pages, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), *sys.argv[2:])
