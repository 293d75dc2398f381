"""Nodes without machines: registers them, keeps their leases, and plays the lives of the pods bound to them.

A pod's annotations, or labels, say how it lives; without any it runs until it is deleted:
  fake.peregrine.test/seconds    how long its containers run
  fake.peregrine.test/exit-code  how they end (0 unless said)
  fake.peregrine.test/reason     `OOMKilled`, `Evicted`, or a reason for which they never start: `ErrImagePull`, ...
A node's annotation `fake.peregrine.test/silent` stops its heartbeats, as if its machine were gone.

With `--autoscale MAX` it is also a cluster autoscaler: unschedulable pods that ask for nodes labelled
`peregrine.test/node=scaled` bring them, from none on, and idle ones go.
"""

import argparse
import heapq
import http.client
import itertools
import json
import math
import pathlib
import queue
import ssl
import threading
import time
import traceback
import urllib.parse
from datetime import datetime, timezone

SAYS = "fake.peregrine.test/"
LABEL = "peregrine.test/node"
TAINT = {"key": "peregrine.test/fake", "effect": "NoSchedule"}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
HEARTBEAT = 20.0
WORKERS = 8
UNITS = {"m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


class Api:
    """The API server, over one connection a thread."""

    def __init__(self, url, token, ca):
        self.at = urllib.parse.urlsplit(url)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.tls = ssl.create_default_context(cafile=ca)
        self.local = threading.local()

    def connect(self, timeout):
        return http.client.HTTPSConnection(self.at.hostname, self.at.port, context=self.tls, timeout=timeout)

    def call(self, method, path, body=None, patch="merge"):
        """The status and the answer. Tries until the server answers: a fake node outlives its API server."""
        headers = dict(self.headers)
        if method == "PATCH":
            headers["Content-Type"] = f"application/{patch}-patch+json"
        data = None if body is None else json.dumps(body)
        while True:
            try:
                link = self.local.__dict__.get("link") or self.connect(30)
                self.local.link = link
                link.request(method, path, data, headers)
                answer = link.getresponse()
                text = answer.read()
                if answer.status not in (429, 500, 503, 504):
                    return answer.status, json.loads(text or b"{}")
            except (OSError, http.client.HTTPException, ValueError):
                self.local.link = None
            time.sleep(0.5)

    def watch(self, path, version):
        """Events from a version on, until the stream ends or the version is too old."""
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion={version}"
        link = self.connect(330)
        try:
            link.request("GET", f"{path}?{query}", headers=self.headers)
            answer = link.getresponse()
            while answer.status == 200 and (line := answer.readline()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                yield event
        except (OSError, http.client.HTTPException, ValueError):
            return
        finally:
            link.close()


class Kubelet:
    """All the nodes and their pods. `lives` holds pods by uid as last seen; `due` what happens later."""

    def __init__(self, api, args):
        self.api, self.args = api, args
        self.shape = dict(pair.split("=", 1) for pair in args.shape.split(","))
        self.nodes, self.lives, self.silent = {}, {}, set()
        self.acted, self.joining, self.due = set(), set(), []
        self.work, self.lock = queue.Queue(), threading.Condition()
        self.addresses = itertools.count(1)

    def run(self):
        for act in [self.labour] * WORKERS + [self.clock, self.beat] + ([self.scale] if self.args.autoscale else []):
            threading.Thread(target=forever, args=(act,), daemon=True).start()
        forever(self.follow)

    def labour(self):
        act, *args = self.work.get()
        act(*args)

    def clock(self):
        """Hands over what is due."""
        with self.lock:
            wait = self.due[0][0] - time.time() if self.due else 60
            if wait > 0:
                self.lock.wait(wait)
                return
            _, _, act, args = heapq.heappop(self.due)
        self.work.put((act, *args))

    def later(self, at, act, *args):
        with self.lock:
            heapq.heappush(self.due, (at, next(self.addresses), act, args))
            self.lock.notify()

    # Nodes.

    def beat(self):
        """One round of heartbeats, spread over its time so that a thousand nodes are no burst."""
        status, listed = self.api.call("GET", f"/api/v1/nodes?labelSelector={LABEL}+in+(fake,scaled)")
        if status != 200:
            raise RuntimeError(f"cannot list nodes: {status} {listed}")
        seen = {node["metadata"]["name"]: node for node in listed["items"]}
        wanted = {f"fake-{n:04}" for n in range(self.args.nodes)}
        for name in wanted - seen.keys() - self.joining:
            self.joining.add(name)
            self.work.put((self.register, name))
        for name in [n for n in seen if n.startswith("fake-") and n not in wanted]:
            self.work.put((self.remove_node, name))
        self.nodes = {n: self.nodes.get(n, time.time()) for n in seen.keys() | wanted | self.newborn(seen)}
        before = self.silent
        self.silent = {n for n, node in seen.items() if SAYS + "silent" in node["metadata"].get("annotations", {})}
        for pod in [p for p in list(self.lives.values()) if p["spec"].get("nodeName") in before - self.silent]:
            self.see(pod)
        alive = [n for n in seen if n not in self.silent]
        began = time.time()
        for at, name in enumerate(alive):
            self.work.put((self.renew, name, is_ready(seen[name])))
            time.sleep(max(0, began + HEARTBEAT * (at + 1) / len(alive) - time.time()))
        if not alive:
            time.sleep(1)

    def newborn(self, seen):
        """Nodes registered while the list was on its way."""
        return {n for n, born in self.nodes.items() if n not in seen and time.time() - born < 10}

    def register(self, name):
        labels = {LABEL: name.split("-")[0], "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        taints = [TAINT] if self.args.taint else []
        node = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": self.node_status()}
        self.nodes.setdefault(name, time.time())
        self.api.call("POST", "/api/v1/nodes", node)
        self.api.call("POST", LEASES, {"metadata": {"name": name}, "spec": lease(name)})
        self.joining.discard(name)

    def renew(self, name, ready):
        """The lease, and the word that the node is ready where the cluster has lost faith in it."""
        status, _ = self.api.call("PATCH", f"{LEASES}/{name}", {"spec": lease(name)})
        if status == 404:
            self.api.call("POST", LEASES, {"metadata": {"name": name}, "spec": lease(name)})
        if not ready:
            self.api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": self.node_status()}, "strategic-merge")

    def remove_node(self, name):
        self.api.call("DELETE", f"/api/v1/nodes/{name}")
        self.api.call("DELETE", f"{LEASES}/{name}")
        self.nodes.pop(name, None)

    def node_status(self):
        kinds = [("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False")]
        return {
            "capacity": self.shape,
            "allocatable": self.shape,
            "conditions": [condition(kind, value, "FakeKubelet") for kind, value in kinds],
            "nodeInfo": dict.fromkeys(
                ["machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
                 "kubeProxyVersion"], "fake",
            ) | {"kubeletVersion": "v0.0.0-fake", "operatingSystem": "linux", "architecture": "amd64"},
        }

    # Pods.

    def follow(self):
        """Lists, then watches from there; starts over when the stream is lost."""
        status, listed = self.api.call("GET", "/api/v1/pods")
        if status != 200:
            raise RuntimeError(f"cannot list pods: {status} {listed}")
        present = {pod["metadata"]["uid"] for pod in listed["items"]}
        for uid in self.lives.keys() - present:
            self.forget(uid)
        for pod in listed["items"]:
            self.see(pod)
        for event in self.api.watch("/api/v1/pods", listed["metadata"]["resourceVersion"]):
            if event["type"] == "DELETED":
                self.forget(event["object"]["metadata"]["uid"])
            elif event["type"] != "BOOKMARK":
                self.see(event["object"])

    def forget(self, uid):
        self.lives.pop(uid, None)
        self.acted -= {(uid, "start"), (uid, "end"), (uid, "delete")}

    def see(self, pod):
        uid, node, phase = pod["metadata"]["uid"], pod["spec"].get("nodeName", ""), pod["status"].get("phase")
        self.lives[uid] = pod
        if not node.startswith(("fake-", "scaled-")) or node in self.silent:
            return
        if "deletionTimestamp" in pod["metadata"]:
            self.once(uid, "delete", time.time(), self.delete, pod)
        elif phase == "Pending":
            self.once(uid, "start", time.time(), self.start, pod)
        elif phase == "Running":
            if not is_ready(pod):
                # The cluster loses faith in the pods of a lost node; the kubelet that is back says how they are.
                self.work.put((self.patch, pod, {"conditions": [condition("Ready", "True")]}))
            if (seconds := says(pod, "seconds")) is not None:
                began = datetime.fromisoformat(pod["status"]["startTime"].replace("Z", "+00:00")).timestamp()
                self.once(uid, "end", began + float(seconds), self.end, pod)

    def once(self, uid, what, when, act, pod):
        with self.lock:
            if (uid, what) not in self.acted:
                self.acted.add((uid, what))
                self.later(when, act, pod)

    def start(self, pod):
        reason = says(pod, "reason")
        if reason and reason not in ("OOMKilled", "Evicted"):
            waiting = {"waiting": {"reason": reason, "message": "so said the pod's annotation"}}
            return self.patch(pod, {"startTime": stamp(), "containerStatuses": containers(pod, waiting, False)})
        number = next(self.addresses)
        address = f"10.99.{number // 250 % 250}.{number % 250 + 1}"
        ready = [condition(kind, "True") for kind in ("Initialized", "ContainersReady", "Ready")]
        inits = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": stamp(), "finishedAt": stamp()}}
        self.patch(pod, {
            "phase": "Running", "startTime": stamp(), "podIP": address, "podIPs": [{"ip": address}],
            "hostIP": "10.98.0.1", "conditions": ready,
            "initContainerStatuses": containers(pod, inits, True, "initContainers"),
            "containerStatuses": containers(pod, {"running": {"startedAt": stamp()}}, True),
        })

    def end(self, pod):
        if pod["metadata"]["uid"] not in self.lives:
            return
        if pod["spec"]["nodeName"] in self.silent:
            return self.acted.discard((pod["metadata"]["uid"], "end"))
        reason = says(pod, "reason")
        code = int(says(pod, "exit-code") or (137 if reason else 0))
        why = "OOMKilled" if reason == "OOMKilled" else "Error" if code else "Completed"
        ended = {"exitCode": code, "reason": why, "startedAt": pod["status"]["startTime"], "finishedAt": stamp()}
        status = {
            "phase": "Failed" if code else "Succeeded",
            "conditions": [condition(kind, "False", "PodCompleted") for kind in ("ContainersReady", "Ready")],
            "containerStatuses": containers(pod, {"terminated": ended}, False),
        }
        if reason == "Evicted":
            status |= {"reason": reason, "message": "The node was low on resource: memory."}
            status["conditions"].append(condition("DisruptionTarget", "True", "TerminationByKubelet"))
        self.patch(pod, status)

    def delete(self, pod):
        exact = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self.api.call("DELETE", at(pod), exact)

    def patch(self, pod, status):
        """The uid makes this a no to a later pod of the same name."""
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        code, answer = self.api.call("PATCH", at(pod) + "/status", body, "strategic-merge")
        if code not in (200, 404, 409):
            print(f"{at(pod)}: {code} {answer.get('message')}", flush=True)

    # The autoscaler.

    def scale(self):
        """Nodes enough for what no node can hold, less those that have just come; idle ones go."""
        time.sleep(1)
        pods = list(self.lives.values())
        used = {pod["spec"].get("nodeName") for pod in pods if pod["status"].get("phase") in ("Pending", "Running")}
        scaled = {n: born for n, born in self.nodes.items() if n.startswith("scaled-")}
        wants = [requests(pod) for pod in pods if self.would_help(pod)]
        most = max((sum(w.get(r, 0) for w in wants) / quantity(have) for r, have in self.shape.items()), default=0)
        coming = sum(n not in used and time.time() - born < 10 for n, born in scaled.items())
        for _ in range(min(math.ceil(most) - coming, self.args.autoscale - len(scaled))):
            name = f"scaled-{next(self.addresses)}-{int(time.time())}"
            self.nodes[name] = time.time()
            self.work.put((self.register, name))
        for name in used & scaled.keys():
            self.nodes[name] = time.time()
        if not wants:
            idle = [n for n, since in scaled.items() if n not in used and time.time() - since > self.args.idle_seconds]
            for name in idle:
                self.work.put((self.remove_node, name))

    def would_help(self, pod):
        """Whether a scheduler has given up on the pod and a node of our shape could take it."""
        unschedulable = any(
            c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in pod["status"].get("conditions", [])
        )
        chosen = pod["spec"].get("nodeSelector", {})
        tolerates = not self.args.taint or any(
            t.get("key") in (None, TAINT["key"]) for t in pod["spec"].get("tolerations", [])
        )
        small = all(need <= quantity(self.shape.get(r, "0")) for r, need in requests(pod).items())
        free = not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
        return unschedulable and free and small and tolerates and chosen == {LABEL: "scaled"}


def forever(act):
    """One odd pod must not take a thousand nodes down."""
    while True:
        try:
            act()
        except Exception:
            traceback.print_exc()
            time.sleep(1)


def lease(name):
    return {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": stamp(micros=True)}


def at(pod):
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def says(pod, key):
    meta = pod["metadata"]
    return (meta.get("labels", {}) | meta.get("annotations", {})).get(SAYS + key)


def stamp(micros=False):
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micros else "%Y-%m-%dT%H:%M:%SZ")


def condition(kind, value, reason=""):
    now = stamp()
    times = {"lastTransitionTime": now} | ({"lastHeartbeatTime": now} if reason == "FakeKubelet" else {})
    return {"type": kind, "status": value, "reason": reason, **times}


def containers(pod, state, ready, key="containers"):
    return [
        {"name": c["name"], "image": c["image"], "imageID": c["image"], "containerID": f"fake://{c['name']}",
         "ready": ready, "started": ready, "restartCount": 0, "state": state}
        for c in pod["spec"].get(key, [])
    ]


def is_ready(thing):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in thing["status"].get("conditions", []))


def quantity(text):
    unit = next((u for u in ("Ki", "Mi", "Gi", "Ti", "m", "k", "M", "G", "T") if text.endswith(u)), "")
    return float(text.removesuffix(unit)) * UNITS.get(unit, 1)


def requests(pod):
    total = {"pods": 1.0}
    for container in pod["spec"]["containers"]:
        for name, text in container.get("resources", {}).get("requests", {}).items():
            total[name] = total.get(name, 0) + quantity(text)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token-file", type=pathlib.Path, required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--shape", default="cpu=64,memory=512Gi,ephemeral-storage=1Ti,pods=110,nvidia.com/gpu=8")
    parser.add_argument("--taint", action="store_true", help="keep pods away that do not tolerate peregrine.test/fake")
    parser.add_argument("--autoscale", type=int, default=0, metavar="MAX")
    parser.add_argument("--idle-seconds", type=float, default=60)
    args = parser.parse_args()
    Kubelet(Api(args.server, args.token_file.read_text().strip(), args.ca), args).run()


if __name__ == "__main__":
    main()
