"""Every address the reference server answers is served here too, or left out for a reason.

Asks the installed mlflow which addresses it has and the server of MLFLOW_TRACKING_URI for its description. A missing address
without a reason ends in failure, and so does a reason that explains nothing any more.
"""

import json
import os
import re
import sys
from urllib.parse import urlsplit

import requests
from mlflow.server import handlers

GENERATIVE = "belongs to the evaluation of generative applications, which is not part of tracking"
UPLOADS = "for stores that clients reach themselves; here files go through the server as one stream, and clients are told so"
LEFT_OUT = {
    "/api/2.0/mlflow-artifacts/presigned/": UPLOADS,
    "/api/2.0/mlflow/artifacts/presigned-": UPLOADS,
    "/api/2.0/mlflow/get-online-trace-details": "traces",
    "/api/2.0/mlflow/traces": "traces: no client needs them to log runs or models",
    "/api/2.0/mlflow/unified-traces": "traces",
    "/api/2.0mlflow/": "an address the reference has by a slip of its own; it is served under the right one",
    "/api/3.0/mlflow/datasets": GENERATIVE,
    "/api/3.0/mlflow/gateway": "a gateway to language models",
    "/api/3.0/mlflow/issues": GENERATIVE,
    "/api/3.0/mlflow/label-schemas": GENERATIVE,
    "/api/3.0/mlflow/prompt-optimization": GENERATIVE,
    "/api/3.0/mlflow/review-queues": GENERATIVE,
    "/api/3.0/mlflow/scorers": GENERATIVE,
    "/api/3.0/mlflow/traces": "traces: no client needs them to log runs or models",
    "/api/3.0/mlflow/workspaces": "workspaces are Azure's resources; each looks like a server of its own to MLflow",
    "/graphql": "for the pages of `mlflow ui`",
}


def plain(path):
    path = re.sub(r"<[^>]*>|\{[^}]*\}", "{}", path)
    # Uploads in parts are one address with the step as a name.
    return re.sub(r"/mpu/(create|complete|abort)/", "/mpu/{}/", path)


root = "{0.scheme}://{0.netloc}".format(urlsplit(os.environ["MLFLOW_TRACKING_URI"]))
described = requests.get(f"{root}/openapi.json", timeout=60).json()["paths"]
served = {(method.upper(), plain(path)) for path, methods in described.items() for method in methods}
asked, missing, used = 0, [], set()
for path, _, methods in handlers.get_endpoints():
    if path.startswith("/ajax-api"):  # the same once more, for pages
        continue
    for method in methods:
        asked += 1
        if (method, plain(path)) in served:
            continue
        reason = next((prefix for prefix in LEFT_OUT if path.startswith(prefix)), None)
        used.add(reason)
        if reason is None:
            missing.append(f"{method} {path}")
stale = sorted(set(LEFT_OUT) - used)
print(json.dumps({"asked": asked, "missing": missing, "stale": stale}))
sys.exit(1 if missing or stale else 0)
