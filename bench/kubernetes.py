"""P5: a thousand jobs on a cluster, from submit to pod, beside the same Volcano Jobs made by a bare client; the operator's size.

Usage: bench/kubernetes.py [launch] [idle] [gang]   (all of them without a name)
PEREGRINE_BIN names our binary, PEREGRINE_CLUSTER the file of variables of a cluster with fake nodes and Volcano, such as
`cargo xtask cluster up --name bench --fake-nodes 1000 --no-node` makes. Server and operator run on this machine beside it.
Both sides make the same objects: the bare client repeats one that our operator made, over as many kept connections. Pods are
counted by a watch. `idle` needs pods to look at: it fills the cluster first. Needs Python 3.9.
"""

import base64
import concurrent.futures
import http.client
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from run import BIN, Server, free_port, table, verdict  # noqa: E402

JOBS = int(os.environ.get("PEREGRINE_BENCH_JOBS", "1000"))
CONNECTIONS = 32
SPACE = "peregrine-bench"
WORKSPACE = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/default/providers/Microsoft.MachineLearningServices/workspaces/default"
VERSION = "api-version=2024-04-01"
TYPE = {
    "apiVersion": "amlarc.azureml.com/v1alpha1", "kind": "InstanceType", "metadata": {"name": "bench"},
    "spec": {
        "nodeSelector": {"peregrine.test/node": "fake"},
        "tolerations": [{"key": "peregrine.test/fake", "operator": "Exists"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}},
    },
}
JOBS_OF = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{SPACE}/jobs"


class Cluster:
    """The API server as its administrator, over one kept connection a thread."""

    def __init__(self):
        file = os.environ.get("PEREGRINE_CLUSTER") or Path.home() / ".cache/peregrine/cluster/test/env"
        self.facts = dict(line.split("=", 1) for line in Path(file).read_text().splitlines() if "=" in line)
        view = json.loads(self.kubectl("config", "view", "--raw", "-o", "json"))
        self.at = urllib.parse.urlsplit(view["clusters"][0]["cluster"]["server"])
        self.user = view["users"][0]["user"]
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        if "client-certificate-data" in self.user or "client-certificate" in self.user:
            with tempfile.NamedTemporaryFile("wb", suffix=".pem") as both:
                for part in ("client-certificate", "client-key"):
                    data = self.user.get(f"{part}-data")
                    both.write(base64.b64decode(data) if data else Path(self.user[part]).read_bytes())
                both.flush()
                self.tls.load_cert_chain(both.name)
        self.local = threading.local()

    def kubectl(self, *args):
        command = [self.facts["KUBECTL"], "--kubeconfig", self.facts["KUBECONFIG"], *args]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def connect(self):
        return http.client.HTTPSConnection(self.at.hostname, self.at.port, context=self.tls, timeout=600)

    def ask(self, method, path, body=None):
        line = self.local.__dict__.setdefault("line", None) or self.connect()
        self.local.line = line
        head = {"content-type": "application/json"}
        if "token" in self.user:
            head["authorization"] = f"Bearer {self.user['token']}"
        line.request(method, path, None if body is None else json.dumps(body), head)
        answer = line.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")

    def fresh_space(self):
        self.kubectl("delete", "namespace", SPACE, "--ignore-not-found", "--wait=true")
        self.kubectl("create", "namespace", SPACE)
        while self.ask("GET", f"/api/v1/namespaces/{SPACE}/serviceaccounts/default")[0] != 200:
            time.sleep(0.1)


class Pods:
    """Counts pods of the namespace as they appear and end."""

    def __init__(self, cluster):
        self.came, self.ran, self.over, self.cluster = {}, {}, {}, cluster
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        line = self.cluster.connect()
        head = {"authorization": f"Bearer {self.cluster.user['token']}"} if "token" in self.cluster.user else {}
        line.request("GET", f"/api/v1/namespaces/{SPACE}/pods?watch=1&timeoutSeconds=3600", headers=head)
        for text in line.getresponse():
            pod = json.loads(text)["object"]
            name, phase = pod["metadata"].get("name"), pod.get("status", {}).get("phase")
            self.came.setdefault(name, time.perf_counter())
            for seen, phases in ((self.ran, ("Running",)), (self.over, ("Succeeded", "Failed"))):
                if phase in phases:
                    seen.setdefault(name, time.perf_counter())

    def until(self, what, count):
        deadline = time.time() + 900
        while len(getattr(self, what)) < count:
            assert time.time() < deadline, f"{len(getattr(self, what))} of {count} pods {what}"
            time.sleep(0.02)
        return max(getattr(self, what).values())


class Ours:
    """Server and operator on this machine, a target on the cluster."""

    def __init__(self, cluster):
        self.cluster, self.server = cluster, Server()

    def __enter__(self):
        server = self.server.__enter__()
        self.line = threading.local()
        token = self.call("PUT", "/clusters/bench", {})["token"]
        Path(server.folder, "token").write_text(token)
        self.cluster.kubectl("apply", "-f", str(Path(__file__).resolve().parent.parent / "deploy/crds/instancetypes.yaml"))
        Path(server.folder, "type.json").write_text(json.dumps(TYPE))
        self.cluster.kubectl("wait", "--for=condition=Established", "crd/instancetypes.amlarc.azureml.com")
        self.cluster.kubectl("apply", "-f", f"{server.folder}/type.json")
        self.log = open(Path(server.folder, "operator.log"), "w")
        self.operator = subprocess.Popen([
            BIN, "operator", "--server", f"http://127.0.0.1:{server.port}", "--token-file", f"{server.folder}/token",
            "--image", self.cluster.facts["PEREGRINE_IMAGE"], "--namespace", SPACE, "--listen", f"127.0.0.1:{free_port()}",
            "--kubeconfig", self.cluster.facts["KUBECONFIG"], "--settings", '{"enableTraining": true, "memoryReservation": false}',
        ], env=server.env, stderr=self.log)
        server.run("compute", "attach", "--type", "kubernetes", "-n", "lab", "--namespace", SPACE, "-o", "none")
        spec = Path(server.folder, "env.yml")
        spec.write_text("name: bench\nversion: 1\nimage: none:1\n")
        server.run("environment", "create", "-f", str(spec), "-o", "none")
        return self

    def __exit__(self, *_):
        self.operator.terminate()
        self.operator.wait()
        self.log.close()
        self.server.__exit__()

    def call(self, method, path, body):
        line = self.line.__dict__.get("kept") or http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=600)
        self.line.kept = line
        head = {"content-type": "application/json", "authorization": f"Bearer {self.server.token}"}
        line.request(method, path, json.dumps(body), head)
        answer = line.getresponse()
        text = answer.read()
        assert answer.status in (200, 201), f"{answer.status} to {path}: {text[:300]}"
        return json.loads(text)

    def submit(self, name, parts=1):
        properties = {
            "jobType": "Command", "command": "true", "environmentId": "azureml:bench:1",
            "computeId": f"{WORKSPACE}/computes/lab", "resources": {"instanceType": "bench", "instanceCount": parts},
        }
        self.call("PUT", f"{WORKSPACE}/jobs/{name}?{VERSION}", {"properties": properties})

    def size(self):
        """Memory in MiB and CPU seconds so far."""
        status = Path(f"/proc/{self.operator.pid}/status").read_text()
        rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
        user, system = Path(f"/proc/{self.operator.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return rss / 1024, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def abreast(act, count):
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(act, range(count)))


def copies(cluster, job):
    """The same Volcano Job under other names, as a bare client would send it."""
    meta = {"labels": job["metadata"]["labels"], "annotations": job["metadata"]["annotations"]}

    def make(n):
        body = {"apiVersion": job["apiVersion"], "kind": "Job", "metadata": {"name": f"copy-{n}", **meta}, "spec": job["spec"]}
        for labels in (body["metadata"], body["spec"]["tasks"][0]["template"]["metadata"]):
            labels["labels"] = {k: v for k, v in labels["labels"].items() if not k.startswith("peregrine.dev/")}
        status, answer = cluster.ask("POST", JOBS_OF, body)
        assert status == 201, answer

    return make


def launch(cluster):
    cluster.fresh_space()
    with Ours(cluster) as ours:
        pods = Pods(cluster)
        ours.submit("first")
        pods.until("came", 1)
        job = cluster.ask("GET", JOBS_OF)[1]["items"][0] | {"apiVersion": "batch.volcano.sh/v1alpha1"}
        began = time.perf_counter()
        abreast(lambda n: ours.submit(f"job-{n}"), JOBS)
        submitted = time.perf_counter() - began
        mine = pods.until("came", JOBS + 1) - began
    cluster.fresh_space()
    pods = Pods(cluster)
    began = time.perf_counter()
    abreast(copies(cluster, job), JOBS)
    bare = pods.until("came", JOBS) - began
    table(f"{JOBS:,} jobs of one pod, from the first submit to the last pod", ["what", "seconds", "x bare", "goal", ""], [
        ["Peregrine: submitted over HTTP, recorded, planned, made by the operator", f"{mine:.1f}", f"{mine / bare:.2f}", "<= 1.10", verdict(mine <= 1.1 * bare)],
        ["of it: until the last was submitted", f"{submitted:.1f}", "", "", ""],
        [f"the same Volcano Jobs, bare client, {CONNECTIONS} connections", f"{bare:.1f}", "1.00", "", ""],
    ])


def idle(cluster):
    cluster.fresh_space()
    pod = {"metadata": {}, "spec": {
        "nodeSelector": {"peregrine.test/node": "fake"}, "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}],
    }}
    count = 5 * JOBS

    def make(n):
        cluster.ask("POST", f"/api/v1/namespaces/{SPACE}/pods", pod | {"metadata": {"name": f"pod-{n}"}})

    pods = Pods(cluster)
    abreast(make, count)
    pods.until("ran", count)
    nodes = len(cluster.ask("GET", "/api/v1/nodes?limit=100000")[1]["items"])
    with Ours(cluster) as ours:
        time.sleep(20)
        _, before = ours.size()
        time.sleep(60)
        rss, after = ours.size()
    share = (after - before) / 60 * 100
    table(f"The operator, idle, with {nodes:,} nodes and {count:,} pods", ["measure", "Peregrine", "goal", ""], [
        ["memory (RSS)", f"{rss:.1f} MiB", "<= 64 MiB", verdict(rss <= 64)],
        ["CPU over a minute", f"{share:.1f} % of a core", "<= 5 %", verdict(share <= 5)],
    ])


def gang(cluster):
    parts = min(128, JOBS)
    cluster.fresh_space()
    with Ours(cluster) as ours:
        pods = Pods(cluster)
        began = time.perf_counter()
        ours.submit("gang", parts)
        mine = pods.until("ran", parts) - began
        job = cluster.ask("GET", JOBS_OF)[1]["items"][0] | {"apiVersion": "batch.volcano.sh/v1alpha1"}
    cluster.fresh_space()
    pods = Pods(cluster)
    began = time.perf_counter()
    copies(cluster, job)(0)
    bare = pods.until("ran", parts) - began
    table(f"A gang of {parts} pods, from submit to all running", ["what", "seconds", "x bare"], [
        ["Peregrine", f"{mine:.1f}", f"{mine / bare:.2f}"], ["plain Volcano Job", f"{bare:.1f}", "1.00"],
    ])


def main():
    cluster = Cluster()
    wanted = sys.argv[1:] or ["launch", "idle", "gang"]
    for name in wanted:
        {"launch": launch, "idle": idle, "gang": gang}[name](cluster)
    cluster.kubectl("delete", "namespace", SPACE, "--ignore-not-found", "--wait=false")


if __name__ == "__main__":
    main()
