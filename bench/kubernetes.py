"""P5: jobs on a cluster beside the same Volcano Jobs made by a bare client, how soon ends are known, the operator's size.

Usage: bench/kubernetes.py [launch] [ends] [gang] [idle] [install]   (all of them without a name)
PEREGRINE_BIN names our binary. PEREGRINE_TEST_CLUSTER is the file of variables of a cluster with Volcano and fake nodes, such
as `cargo xtask cluster up --name bench --fake-nodes 1000 --no-node` makes; `install` wants one with a real node and our image
instead (`--name NAME --binary FILE`). PEREGRINE_BENCH_JOBS (1000) and PEREGRINE_BENCH_ROUNDS (3) say how much.
Server and operator run on this machine beside the cluster. Both sides make the same objects: the bare client repeats one that
our operator made, from as many kept connections as our jobs are submitted from, by server-side apply as `kubectl apply
--server-side` would, and by plain creates. Pods are counted by a watch. Needs Python 3.9.
"""

import base64
import calendar
import concurrent.futures
import contextlib
import http.client
import json
import os
import ssl
import statistics
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
ROUNDS = int(os.environ.get("PEREGRINE_BENCH_ROUNDS", "3"))
GANG = 128
CONNECTIONS = 32
PATIENCE_S = 900
SPACE = "peregrine-bench"
SAYS = "fake.peregrine.test/"
WORKSPACE = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/default/providers/Microsoft.MachineLearningServices/workspaces/default"
VERSION = "api-version=2024-04-01"
VOLCANO = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{SPACE}"
VOLCANO_JOBS = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{SPACE}/jobs"
ROOT = Path(__file__).resolve().parent.parent


def instance_type(name, gpus):
    amounts = {"cpu": "100m", "memory": "64Mi"}
    return {
        "apiVersion": "amlarc.azureml.com/v1alpha1", "kind": "InstanceType", "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"peregrine.test/node": "fake"},
            "tolerations": [{"key": "peregrine.test/fake", "operator": "Exists"}],
            "resources": {"requests": amounts, "limits": amounts | ({"nvidia.com/gpu": gpus} if gpus else {})},
        },
    }


class Cluster:
    """The API server as its administrator, over one kept connection a thread."""

    def __init__(self):
        file = os.environ.get("PEREGRINE_TEST_CLUSTER") or Path.home() / ".cache/peregrine/cluster/test/env"
        self.facts = dict(line.split("=", 1) for line in Path(file).read_text().splitlines() if "=" in line)
        view = json.loads(self.kubectl("config", "view", "--raw", "-o", "json"))
        self.at = urllib.parse.urlsplit(view["clusters"][0]["cluster"]["server"])
        self.user = view["users"][0]["user"]
        self.head = {"authorization": f"Bearer {self.user['token']}"} if "token" in self.user else {}
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

    def kubectl(self, *args, stdin=None):
        command = [self.facts["KUBECTL"], "--kubeconfig", self.facts["KUBECONFIG"], *args]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, input=stdin).stdout

    def connect(self):
        return http.client.HTTPSConnection(self.at.hostname, self.at.port, context=self.tls, timeout=PATIENCE_S)

    def ask(self, method, path, body=None, kind="application/json"):
        kept = self.local.__dict__.get("line")
        self.local.line = line = kept or self.connect()
        try:
            line.request(method, path, None if body is None else json.dumps(body), self.head | {"content-type": kind})
            answer = line.getresponse()
            return answer.status, json.loads(answer.read() or b"{}")
        except ConnectionError:
            # One that was idle for long has been closed.
            self.local.line = None
            if not kept:
                raise
            return self.ask(method, path, body, kind)

    def fresh_space(self):
        if self.ask("GET", f"/api/v1/namespaces/{SPACE}")[0] == 200:
            # The namespace stays: for half a minute after one is deleted, the API server looks it up for every object.
            for path in (VOLCANO_JOBS, f"{VOLCANO}/podgroups", *(f"/api/v1/namespaces/{SPACE}/{kind}" for kind in ("pods", "secrets"))):
                while self.ask("GET", f"{path}?limit=1")[1]["items"]:
                    # One request for all of a kind, which the API server gives up after a minute.
                    with contextlib.suppress(ConnectionError):
                        self.ask("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
                    time.sleep(0.5)
            return
        self.kubectl("create", "namespace", SPACE)
        while self.ask("GET", f"/api/v1/namespaces/{SPACE}/serviceaccounts/default")[0] != 200:
            time.sleep(0.1)


class Pods:
    """When pods of the namespace with a label came, ran and ended, as a watch saw it."""

    def __init__(self, cluster, label=""):
        self.came, self.ran, self.over, self.jobs, self.cluster, self.label = {}, {}, {}, {}, cluster, label
        self.ready = threading.Event()
        threading.Thread(target=self.watch, daemon=True).start()
        self.ready.wait()

    def watch(self):
        # The API server ends a watch that is slow to read; a new one begins with everything there is.
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.follow()

    def follow(self):
        line = self.cluster.connect()
        query = f"watch=1&timeoutSeconds=3600&labelSelector={self.label}"
        line.request("GET", f"/api/v1/namespaces/{SPACE}/pods?{query}", headers=self.cluster.head)
        answer = line.getresponse()
        self.ready.set()
        for text in answer:
            pod = json.loads(text)["object"]
            name, phase, now = pod["metadata"].get("name"), pod.get("status", {}).get("phase"), time.perf_counter()
            self.came.setdefault(name, now)
            self.jobs[name] = pod["metadata"].get("labels", {}).get("peregrine.dev/job")
            for seen, phases in ((self.ran, ("Running",)), (self.over, ("Succeeded", "Failed"))):
                if phase in phases:
                    seen.setdefault(name, now)

    def until(self, what, count):
        """Waits for so many; when the last of them was seen."""
        seen, deadline = getattr(self, what), time.time() + PATIENCE_S
        while len(seen) < count:
            assert time.time() < deadline, f"{len(seen)} of {count} pods {what}"
            time.sleep(0.02)
        return max(list(seen.values()))


class Ours:
    """Server and operator on this machine, and the target `lab` on the cluster."""

    def __init__(self, cluster):
        self.cluster, self.server, self.line = cluster, Server(), threading.local()

    def __enter__(self):
        server = self.server.__enter__()
        try:
            self.begin(server)
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self, server):
        self.operator = None
        Path(server.folder, "token").write_text(self.call("PUT", "/clusters/bench", {})["token"])
        self.cluster.kubectl("apply", "-f", str(ROOT / "deploy/crds/instancetypes.yaml"))
        self.cluster.kubectl("wait", "--for=condition=Established", "crd/instancetypes.amlarc.azureml.com")
        types = {"apiVersion": "v1", "kind": "List", "items": [instance_type("bench", 0), instance_type("bench-gpus", 8)]}
        self.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(types))
        self.log = open(Path(server.folder, "operator.log"), "w")
        self.operator = subprocess.Popen([
            BIN, "operator", "--server", f"http://127.0.0.1:{server.port}", "--token-file", f"{server.folder}/token",
            "--image", self.cluster.facts["PEREGRINE_IMAGE"], "--namespace", "default", "--listen", f"127.0.0.1:{free_port()}",
            "--kubeconfig", self.cluster.facts["KUBECONFIG"], "--settings", '{"enableTraining": true, "memoryReservation": false}',
        ], env=server.env, stderr=self.log)
        deadline = time.time() + 120
        while not {"bench", "bench-gpus"} <= {kind["name"] for kind in self.call("GET", "/clusters/bench")["instanceTypes"]}:
            assert self.operator.poll() is None and time.time() < deadline, Path(server.folder, "operator.log").read_text()
            time.sleep(0.1)
        server.run("compute", "attach", "--type", "kubernetes", "-n", "lab", "--namespace", SPACE, "-o", "none")
        spec = Path(server.folder, "env.yml")
        spec.write_text("name: bench\nversion: 1\nimage: none:1\n")
        server.run("environment", "create", "-f", str(spec), "-o", "none")

    def __exit__(self, *_):
        if self.operator:
            self.operator.terminate()
            self.operator.wait()
            self.log.close()
        self.server.__exit__()

    def call(self, method, path, body=None):
        try:
            answer, text = self.exchange(method, path, body)
        except (http.client.RemoteDisconnected, ConnectionError):
            # The server closes a connection that was idle for a minute; everything asked here may be asked twice.
            self.line.kept = None
            answer, text = self.exchange(method, path, body)
        assert answer.status in (200, 201), f"{answer.status} to {path}: {text[:300]}"
        return json.loads(text)

    def exchange(self, method, path, body):
        line = self.line.__dict__.get("kept") or http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        self.line.kept = line
        head = {"content-type": "application/json", "authorization": f"Bearer {self.server.token}"}
        line.request(method, path, None if body is None else json.dumps(body), head)
        answer = line.getresponse()
        return answer, answer.read()

    def submit(self, name, kind="bench", parts=1):
        properties = {
            "jobType": "Command", "command": "true", "environmentId": f"{WORKSPACE}/environments/bench/versions/1",
            "computeId": f"{WORKSPACE}/computes/lab", "resources": {"instanceType": kind, "instanceCount": parts},
        }
        self.call("PUT", f"{WORKSPACE}/jobs/{name}?{VERSION}", {"properties": properties})

    def statuses(self):
        """Every job with its status, page after page."""
        path = f"{WORKSPACE}/jobs?{VERSION}"
        while path:
            page = self.call("GET", path)
            yield from ((job["name"], job["properties"]["status"]) for job in page["value"])
            path = page.get("nextLink") and "/" + page["nextLink"].split("/", 3)[3]

    def size(self):
        """Memory in MiB and CPU seconds so far."""
        status = Path(f"/proc/{self.operator.pid}/status").read_text()
        rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
        user, system = Path(f"/proc/{self.operator.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return rss / 1024, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def abreast(act, items):
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(act, items))


def copies(cluster, job, apply=True):
    """The same Volcano Job under other names, as a bare client would send it: applied, or created."""
    # Volcano may take a Job for one of the same name that was deleted a while ago, and make nothing of it.
    run = time.monotonic_ns()
    plain = lambda labels: {key: value for key, value in labels.items() if not key.startswith("peregrine.dev/")}
    spec, meta = json.loads(json.dumps(job["spec"])), job["metadata"]
    template = spec["tasks"][0]["template"]["metadata"]
    template["labels"] = plain(template["labels"])

    def make(n):
        labels = {"labels": plain(meta["labels"]), "annotations": meta["annotations"]}
        body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": f"copy-{run}-{n}", **labels}, "spec": spec}
        if apply:
            path = f"{VOLCANO_JOBS}/copy-{run}-{n}?fieldManager=bench"
            status, answer = cluster.ask("PATCH", path, body, "application/apply-patch+yaml")
        else:
            status, answer = cluster.ask("POST", VOLCANO_JOBS, body)
        assert status == 201, answer

    return make


def first_job(cluster):
    return cluster.ask("GET", VOLCANO_JOBS)[1]["items"][0]


def settle(cluster):
    """What the round before left is no burden on the next."""
    cluster.fresh_space()
    time.sleep(5)


def load():
    return f"load average {os.getloadavg()[0]:.0f}"


def launch(cluster):
    ours, submits, applied, created = [], [], [], []
    for round_ in range(ROUNDS):
        settle(cluster)
        with Ours(cluster) as side:
            side.submit("first")
            pods = Pods(cluster, "peregrine.dev/attempt")
            pods.until("came", 1)
            job = first_job(cluster)
            began = time.perf_counter()
            abreast(lambda n: side.submit(f"job-{n}"), range(JOBS))
            submits.append(time.perf_counter() - began)
            ours.append(pods.until("came", JOBS + 1) - began)
            print(f"round {round_}: ours {ours[-1]:.1f} s, the last was submitted after {submits[-1]:.1f} s, {load()}", flush=True)
        for how, apply, times in (("applied", True, applied), ("created", False, created)):
            settle(cluster)
            pods = Pods(cluster)
            began = time.perf_counter()
            abreast(copies(cluster, job, apply), range(JOBS))
            times.append(pods.until("came", JOBS) - began)
            print(f"round {round_}: bare, {how}, {times[-1]:.1f} s, {load()}", flush=True)
    o, s, a, c = map(statistics.median, (ours, submits, applied, created))
    ratio = statistics.median(mine / other for mine, other in zip(ours, applied))
    more = statistics.median(other / one for other, one in zip(created, applied))
    table(f"{JOBS:,} jobs of one pod, from the first submit to the last pod (median of {ROUNDS} interleaved rounds, {load()})",
          ["what", "seconds", "x applied", "goal", ""], [
        ["Peregrine: submitted over HTTP, recorded, planned, made by the operator with a Secret each", f"{o:.1f}", f"{ratio:.2f}", "<= 1.10", verdict(ratio <= 1.1)],
        ["of it: until the last was submitted", f"{s:.1f}", "", "", ""],
        [f"the same Volcano Jobs, server-side apply by a bare client, {CONNECTIONS} connections", f"{a:.1f}", "1.00", "", ""],
        ["the same by plain creates", f"{c:.1f}", f"{more:.2f}", "", ""],
    ])


def ends(cluster):
    """Pods fail together; when does the server show it?"""
    settle(cluster)
    with Ours(cluster) as side:
        pods = Pods(cluster, "peregrine.dev/attempt")
        abreast(lambda n: side.submit(f"job-{n}"), range(JOBS))
        pods.until("ran", JOBS)
        listed = cluster.ask("GET", f"/api/v1/namespaces/{SPACE}/pods?labelSelector=peregrine.dev/attempt")[1]["items"]
        at = time.time() + JOBS / 50

        def end(pod):
            start = time.strptime(pod["status"]["startTime"], "%Y-%m-%dT%H:%M:%SZ")
            says = {SAYS + "reason": "OOMKilled", SAYS + "seconds": f"{at - calendar.timegm(start):.1f}"}
            path = f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}"
            status, answer = cluster.ask("PATCH", path, {"metadata": {"annotations": says}}, "application/merge-patch+json")
            assert status == 200, answer

        abreast(end, listed)
        shown, deadline = {}, time.time() + PATIENCE_S
        while len(shown) < JOBS:
            assert time.time() < deadline, f"{len(shown)} of {JOBS} ends are shown, {len(pods.over)} pods are over"
            now = time.perf_counter()
            for name, status in side.statuses():
                if status == "Failed":
                    shown.setdefault(name, now)
            time.sleep(0.05)
        pods.until("over", JOBS)
    late = sorted(shown[pods.jobs[name]] - seen for name, seen in pods.over.items())
    middle, slow, most = late[len(late) // 2], late[len(late) * 99 // 100], late[-1]
    spread = max(pods.over.values()) - min(pods.over.values())
    table(f"{JOBS:,} pods fail within {spread:.1f} s: from the pod's status to the job's end on record, as a list shows it ({load()})",
          ["measure", "Peregrine", "goal", ""], [
        ["median", f"{middle:.2f} s", "", ""], ["p99", f"{slow:.2f} s", "", ""], ["the last", f"{most:.2f} s", "<= 2 s", verdict(most <= 2)],
    ])


def gang(cluster):
    ours, bare = [], []
    for _ in range(ROUNDS):
        settle(cluster)
        with Ours(cluster) as side:
            pods = Pods(cluster, "peregrine.dev/attempt")
            began = time.perf_counter()
            side.submit("gang", "bench-gpus", GANG)
            ours.append(pods.until("ran", GANG) - began)
            job = first_job(cluster)
        settle(cluster)
        pods = Pods(cluster)
        began = time.perf_counter()
        copies(cluster, job)(0)
        bare.append(pods.until("ran", GANG) - began)
    o, b = statistics.median(ours), statistics.median(bare)
    ratio = statistics.median(mine / other for mine, other in zip(ours, bare))
    table(f"A gang of {GANG} pods of 8 GPUs, from submit to all running (median of {ROUNDS} interleaved rounds, {load()})", ["what", "seconds", "x bare"], [
        ["Peregrine", f"{o:.1f}", f"{ratio:.2f}"], ["plain Volcano Job", f"{b:.1f}", "1.00"],
    ])


def idle(cluster):
    cluster.fresh_space()
    pod = {"spec": {
        "nodeSelector": {"peregrine.test/node": "fake"}, "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}],
    }}
    count = 5 * JOBS

    def make(n):
        status, answer = cluster.ask("POST", f"/api/v1/namespaces/{SPACE}/pods", pod | {"metadata": {"name": f"pod-{n}"}})
        assert status == 201, answer

    pods = Pods(cluster)
    abreast(make, range(count))
    pods.until("ran", count)
    nodes = len(cluster.ask("GET", "/api/v1/nodes?limit=100000")[1]["items"])
    with Ours(cluster) as side:
        time.sleep(20)
        _, before = side.size()
        time.sleep(60)
        rss, after = side.size()
    share = (after - before) / 60 * 100
    table(f"The operator, idle, with {nodes:,} nodes and {count:,} pods ({load()})", ["measure", "Peregrine", "goal", ""], [
        ["memory (RSS)", f"{rss:.1f} MiB", "<= 64 MiB", verdict(rss <= 64)],
        ["CPU over a minute", f"{share:.1f} % of a core", "<= 5 %", verdict(share <= 5)],
    ])


def install(cluster):
    """On a real node: the extension until it is ready, and a target until its checks have passed."""
    host, installs, attaches = cluster.facts["HOST_ADDRESS"], [], []
    with tempfile.TemporaryDirectory(prefix="peregrine-bench-") as folder:
        home, address = Path(folder, "home"), f"{host}:{free_port()}"
        env = {**os.environ, "PEREGRINE_HOME": str(home)}
        run = lambda *args: subprocess.run([BIN, *args], env=env, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        certify(folder, host)
        home.mkdir(parents=True)
        (home / "peregrine.toml").write_text(f'[server]\nauthority_file = "{folder}/ca.pem"\n')
        run("server", "start", "--listen", address, "--tls-cert", "server.pem", "--tls-key", "server.key", "-o", "none")
        (home / "peregrine.toml").write_text(f'[server]\nauthority_file = "{folder}/ca.pem"\nurl = "https://{address}"\n')
        reach = ["--kubeconfig", cluster.facts["KUBECONFIG"]]
        try:
            for _ in range(ROUNDS):
                cluster.fresh_space()
                began = time.perf_counter()
                run("extension", "install", "--cluster-name", "bench", *reach, "--server", f"https://{address}",
                    "--image", cluster.facts["PEREGRINE_IMAGE"], "--config", "enableTraining=True")
                installs.append(time.perf_counter() - began)
                began = time.perf_counter()
                run("compute", "attach", "--type", "kubernetes", "-n", "lab", "--namespace", SPACE)
                attaches.append(time.perf_counter() - began)
                run("compute", "detach", "-n", "lab", "--yes")
                run("extension", "uninstall", *reach, "--yes")
        finally:
            run("server", "stop", "-o", "none")
    table(f"On a real node (median of {ROUNDS}, {load()})", ["measure", "seconds"], [
        ["`extension install` to ready", f"{statistics.median(installs):.1f}"],
        ["`compute attach`, with its checks and a pod that ran", f"{statistics.median(attaches):.1f}"],
    ])


def certify(folder, host):
    """An authority, and a certificate for this address."""
    def openssl(*args):
        new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        subprocess.run([*new, *args], check=True, cwd=folder, capture_output=True)

    openssl("-subj", "/CN=bench authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "server.key", "-out", "server.pem", "-subj", "/CN=bench server",
            "-addext", f"subjectAltName=IP:{host}", "-addext", "basicConstraints=critical,CA:FALSE")


BENCHES = {"launch": launch, "ends": ends, "gang": gang, "idle": idle, "install": install}


def main():
    os.environ.setdefault("PEREGRINE_SERVER_RATE_LIMIT", "0")
    cluster = Cluster()
    try:
        for name in sys.argv[1:] or BENCHES:
            BENCHES[name](cluster)
    finally:
        cluster.kubectl("delete", "namespace", SPACE, "--ignore-not-found")


if __name__ == "__main__":
    main()
