"""Blue and green behind one address through the unmodified azure-ai-ml package: create, all traffic, scale, second deployment, by
header, 90/10, 0/100, mirror, delete.

Usage: blue_green.py COMPUTE ENVIRONMENT ENDPOINT-FILE BLUE-FILE GREEN-FILE, with `request.json` beside. The environment is what
`peregrine sdk env` prints, and nothing else configures the client. Exit code 0 means that everything was as it should be.
"""

import collections
import json
import logging
import os
import ssl
import sys
import time
import urllib.request
import warnings

warnings.filterwarnings("ignore")

from azure.ai.ml import MLClient, load_online_deployment, load_online_endpoint  # noqa: E402
from azure.identity import DefaultAzureCredential  # noqa: E402

logging.disable(logging.WARNING)
NAME = "my-endpoint"
CALLS = 240
# What chi-square with one degree of freedom exceeds once in a thousand fair trials.
UNLIKELY = 10.83
# The server's own router shows a certificate of the server's own authority.
TRUST = ssl.create_default_context(cafile=os.environ.get("REQUESTS_CA_BUNDLE"))


def main(compute, environment, endpoint_file, *files):
    place = (os.environ[f"PEREGRINE_{part}"] for part in ("SUBSCRIPTION", "RESOURCE_GROUP", "WORKSPACE"))
    ml = MLClient(DefaultAzureCredential(), *place)
    ml.online_endpoints.begin_create_or_update(load_online_endpoint(endpoint_file, params_override=[{"compute": f"azureml:{compute}"}])).result()
    blue, green = (load_online_deployment(file, params_override=[{"environment": environment}]) for file in files)
    ml.online_deployments.begin_create_or_update(blue).result()
    share(ml, traffic={"blue": 100})
    uri, key = ml.online_endpoints.get(NAME).scoring_uri, ml.online_endpoints.get_keys(NAME).primary_key
    ask = lambda deployment=None: call(uri, key, deployment)
    assert ask() == ("blue", [3.0, 6.0, 9.0])
    blue = ml.online_deployments.get("blue", NAME)
    blue.instance_count = 2
    ml.online_deployments.begin_create_or_update(blue).result()
    assert ml.online_deployments.get("blue", NAME).instance_count == 2

    ml.online_deployments.begin_create_or_update(green).result()
    assert ask() == ("blue", [3.0, 6.0, 9.0])
    assert ask("green") == ("green", [5.0, 10.0, 15.0])
    answer = json.loads(ml.online_endpoints.invoke(NAME, request_file="request.json", deployment_name="green"))
    assert answer == {"scores": [5.0, 10.0, 15.0]}, answer
    share(ml, traffic={"blue": 90, "green": 10})
    seen = collections.Counter(ask()[0] for _ in range(CALLS))
    off = seen["blue"] - 0.9 * CALLS
    assert off * off / (0.9 * CALLS) + off * off / (0.1 * CALLS) < UNLIKELY, seen
    share(ml, traffic={"blue": 0, "green": 100})
    until("the cluster's router to know", lambda: {ask()[0] for _ in range(20)} == {"green"})

    before = asked_of_blue(ml)
    share(ml, mirror_traffic={"blue": 50})
    until("a copy to reach blue", lambda: ask()[0] == "green" and asked_of_blue(ml) > before)
    share(ml, mirror_traffic={"blue": 0})
    ml.online_deployments.begin_delete("blue", NAME).result()
    assert ask() == ("green", [5.0, 10.0, 15.0])
    ml.online_endpoints.begin_delete(NAME).result()
    assert NAME not in [one.name for one in ml.online_endpoints.list()]
    print("blue became green")


def share(ml, **shares):
    endpoint = ml.online_endpoints.get(NAME)
    for what, to in shares.items():
        setattr(endpoint, what, to)
    ml.online_endpoints.begin_create_or_update(endpoint).result()


def until(what, so):
    end = time.monotonic() + 60
    while not so():
        assert time.monotonic() < end, f"waited in vain for {what}"


def asked_of_blue(ml):
    return ml.online_deployments.get_logs("blue", NAME, 5000).count("asked for")


def call(uri, key, deployment):
    request = urllib.request.Request(uri, open("request.json", "rb").read(), {"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
    if deployment:
        request.add_header("azureml-model-deployment", deployment)
    with urllib.request.urlopen(request, timeout=30, context=TRUST) as answer:
        return answer.headers["azureml-model-deployment"], json.load(answer)["scores"]


if __name__ == "__main__":
    main(*sys.argv[1:])
