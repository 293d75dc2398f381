#!/usr/bin/env python3
"""Compares what our command line sends with what the SDK sends, file by file, and prints agreement per kind.

Usage: bodies.py --corpus DIR --peregrine BINARY [--only TEXT] [--save FILE | --saved FILE] [--verbose]

The SDK runs in this process against a stand-in (oracle.py), on a scratch copy of the corpus in which everything that
files refer to exists (scratch.py). Our side is `peregrine NOUN create -f FILE --dry-run`. What is generated (names of
jobs, ids of code, anonymous environments and components) is replaced on both sides by the content it stands for.
Every difference is printed; those with a reason in reasons.py are counted apart. Exit code 1 if any has none.
"""

import argparse
import collections
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from urllib.parse import unquote

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle
import reasons
import scratch

SECRET = "(not shown)"
SECRETS = {"adminUserPassword", "password", "key", "sasToken", "clientSecret", "certificate", "privateKeyData"}


def main():
    args = arguments()
    with tempfile.TemporaryDirectory(prefix="bodies-") as folder:
        # The name of the working folder is the default experiment on both sides.
        place = os.path.join(folder, "corpus")
        scratch.make(args.corpus, place)
        os.chdir(place)
        files = [row for row in scratch.files(args.corpus) if args.only in row[0] or args.only == row[1]]
        theirs = recorded(args, files, place)
        return report(args, files, theirs, place)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--peregrine", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--save", help="keep what the SDK sends")
    parser.add_argument("--saved", help="use what an earlier run kept")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def recorded(args, files, place):
    """What the SDK sends for each file, or why it sends nothing."""
    if args.saved:
        with open(args.saved) as text:
            return json.load(text)
    client, sent = oracle.Oracle(), {}
    for path, kind, noun, verdict in files:
        if verdict != "accepts" or kind in reasons.OUTSIDE:
            continue
        try:
            sent[path] = {"sent": client.bodies(noun, os.path.join(place, path))}
        except Exception as error:  # whatever the SDK raises is its answer
            sent[path] = {"error": "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:300])}
    if args.save:
        with open(args.save, "w") as out:
            json.dump(sent, out)
    return sent


def report(args, files, theirs, place):
    counts, unexplained = collections.defaultdict(collections.Counter), 0
    for path, kind, noun, verdict in files:
        if verdict != "accepts":
            counts[kind]["not loaded by the SDK"] += 1
            continue
        if kind in reasons.OUTSIDE:
            counts[kind][reasons.OUTSIDE[kind]] += 1
            continue
        differences = compare(args, path, noun, theirs.get(path, {}), place)
        if differences and differences[0].startswith("neither sends"):
            counts[kind]["refused by both at create"] += 1
            print("refused by both %s: %s\n  %s" % (kind, path, differences[0]))
            continue
        reason = reasons.of(differences)
        word = "equal" if not differences else ("explained" if reason else "DIFFERENT")
        counts[kind][word] += 1
        if differences:
            print("%s %s: %s" % (word, kind, path))
            if reason:
                print("  because %s" % reason)
            if not reason or args.verbose:
                for line in differences[: 200 if args.verbose else 12]:
                    print("  " + line)
            unexplained += word == "DIFFERENT"
    print("\nagreement per kind")
    for kind in sorted(counts):
        total = sum(counts[kind].values())
        print("  %-20s %3d files: %s" % (kind, total, ", ".join("%d %s" % (n, w) for w, n in sorted(counts[kind].items()))))
    print("unexplained differences: %d" % unexplained)
    return 1 if unexplained else 0


def compare(args, path, noun, theirs, place):
    """Each difference in one line; none when both send the same."""
    command = [args.peregrine, noun, "create", "-f", os.path.join(place, path), "--dry-run", "-o", "json",
               "--subscription", oracle.SUBSCRIPTION, "-g", oracle.GROUP, "-w", oracle.WORKSPACE]
    ours = subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=60)
    if "error" in theirs or "sent" not in theirs:
        error = theirs.get("error", "nothing recorded")
        if ours.returncode == 0:
            return ["the SDK sends nothing: " + error]
        return ["neither sends: the SDK says %s; ours says %s" % (error[:160], " ".join(ours.stderr.split())[:300])]
    if ours.returncode != 0:
        return ["ours sends nothing: " + " ".join(ours.stderr.split())[:400]]
    left, right = normal(labelled(json.loads(ours.stdout))), normal(theirs["sent"])
    return list(differences(left, right))


def normal(sent):
    """Resources by path, with what was generated replaced by what it stands for."""
    names, out = {}, {}
    for one in sent:
        path, body = unquote(one["path"]), one["body"]
        if "Microsoft.Resources/deployments" in path:
            path, body = template(body)
        body = replaced(cleaned(body), names)
        generated = re.search(r"/codes/[^/]+/versions/|/(CliV2AnonymousEnvironment|azureml_anonymous)/versions/|/models/[0-9a-f]{64}/versions/|/jobs/[a-z]+_[a-z]+_[a-z0-9]{10}$", path)
        if generated:
            digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]
            names[path] = re.sub(r"(/codes/|/versions/|/models/|/jobs/).*", r"\1", path) + "*" + digest
            body = replaced(unnamed(body, path), names)
        out[names.get(path, path) if "/jobs/" not in path else re.sub(r"/jobs/[a-z]+_[a-z]+_[a-z0-9]{10}$", "/jobs/*", path)] = body
    return out


def unnamed(body, path):
    """A job without a name of its own shows the generated one."""
    properties = body.get("properties", {})
    if properties.get("displayName") == path.rsplit("/", 1)[1]:
        properties["displayName"] = "*"
    return body


def replaced(value, names):
    if isinstance(value, dict):
        return {key: replaced(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [replaced(inner, names) for inner in value]
    if isinstance(value, str):
        prefix = "azureml:" if value.startswith("azureml:/sub") else ""
        return prefix + names.get(value[len(prefix):], value[len(prefix):])
    return value


def cleaned(value, key=""):
    if isinstance(value, dict):
        kept = {name: cleaned(inner, name) for name, inner in value.items() if inner is not None}
        kept.pop("client_component_hash", None)
        if kept.get("hbiWorkspace") is False:
            kept.pop("hbiWorkspace")
        return kept
    if isinstance(value, list):
        return [cleaned(inner) for inner in value]
    if key == "codeUri":
        return "*"
    if key == "contextUri":
        value = value[value.find("LocalUpload"):]
    if isinstance(value, str) and "LocalUpload/" in value:
        # Where an upload lies is generated: below a hash of its content, ours or the SDK's.
        return re.sub(r"LocalUpload/[0-9a-f]{32,64}/", "LocalUpload/*/", value)
    if key == "condaFile":
        return yaml.safe_load(value)
    if key in SECRETS and isinstance(value, str):
        return SECRET
    return value


def template(body):
    """The SDK wraps a workspace into a deployment template; what matters of it is the parameters."""
    parameters = {key: inner["value"] for key, inner in body["properties"]["parameters"].items()}
    tags = {key: text for key, text in parameters["tagValues"].items() if key != "createdByToolkit"}
    properties = {"friendlyName": parameters["friendlyName"], "description": parameters["description"]}
    if parameters.get("confidential_data") == "true":
        properties["hbiWorkspace"] = True
    if parameters.get("imageBuildCompute"):
        properties["imageBuildCompute"] = parameters["imageBuildCompute"]
    if parameters.get("publicNetworkAccess") == "Disabled":
        properties["publicNetworkAccess"] = "Disabled"
    path = oracle.PROVIDER + "/workspaces/" + parameters["workspaceName"]
    return path, {"location": parameters["location"], "tags": tags, "properties": properties}


def differences(ours, theirs, at=""):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(set(ours) | set(theirs)):
            place = at + "/" + key if at else key.replace(oracle.SCOPE, "")
            if key not in theirs:
                yield "%s: only ours: %s" % (place, json.dumps(ours[key])[:160])
            elif key not in ours:
                yield "%s: only the SDK's: %s" % (place, json.dumps(theirs[key])[:160])
            else:
                yield from differences(ours[key], theirs[key], place)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, "%s[%d]" % (at, index))
    elif ours != theirs:
        yield "%s: ours %s, the SDK's %s" % (at, json.dumps(ours)[:160], json.dumps(theirs)[:160])


def labelled(value, key="", kind=""):
    """The SDK asks which version of an asset is the latest; ours leaves that to the server. The stand-in says 1."""
    if isinstance(value, dict):
        kind = str(value.get("job_input_type") or value.get("jobInputType") or key)
        return {name: labelled(inner, name, kind) for name, inner in value.items()}
    if isinstance(value, list):
        return [labelled(inner) for inner in value]
    label = isinstance(value, str) and re.fullmatch(r"azureml:([^/:@]+)@latest", value)
    if not label or label.group(1).startswith("AzureML-"):
        return value
    plural = {"environment": "environments", "environmentId": "environments", "componentId": "components", "model": "models", "assetId": "components" if kind == "componentId" else "models"}
    plural = plural.get(key, "models" if kind.endswith("_model") else "data")
    prefix = "azureml:" if key == "environment" else ""
    return "%s%s/%s/%s/versions/1" % (prefix, oracle.SCOPE, plural, label.group(1))


if __name__ == "__main__":
    sys.exit(main())
