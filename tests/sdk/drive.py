"""Drives a real Peregrine server with the unmodified azure-ai-ml package and checks what really happened.

Usage: drive.py [NAME-PART ...]        (all operations without a name)

The environment is what `peregrine sdk env` prints, and nothing else configures the client. PEREGRINE_BIN and
PEREGRINE_HOME let it ask the CLI whether a change made by the SDK is seen there. It works in a folder of its own
(SDK_WORK, or a temporary one). Each operation prints PASS, REFUSED or FAIL; the last line is a summary in JSON.
Exit code 0 means that nothing failed.
"""

import contextlib
import hashlib
import io
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
# Without it the client refuses control flow, which is a preview.
os.environ["AZURE_ML_CLI_PRIVATE_FEATURES_ENABLED"] = "True"
os.environ.setdefault("AZUREML_RUN_POLLING_INTERVAL_MIN", "1")
os.environ.setdefault("AZUREML_RUN_POLLING_INTERVAL_MAX", "2")
SUBSCRIPTION = os.environ["PEREGRINE_SUBSCRIPTION"]
GROUP = os.environ["PEREGRINE_RESOURCE_GROUP"]
WORKSPACE = os.environ["PEREGRINE_WORKSPACE"]
# The longest one operation may take.
PATIENCE_S = 90

# Operations of parts that are not built yet, each with what is said of it. Anything else that fails is a fault, and so
# is an operation of this list that works.
REFUSED = {
    "spark_create": r"`Spark` jobs cannot run yet",
}

WORK = Path(os.environ.get("SDK_WORK") or tempfile.mkdtemp(prefix="peregrine-sdk-"))
WORK.mkdir(parents=True, exist_ok=True)
os.chdir(WORK)

# The client reads the cloud when it is imported, so everything above comes first.
import requests  # noqa: E402
from azure.core.exceptions import HttpResponseError
from azure.ai.ml import (  # noqa: E402
    Input, MLClient, Output, PyTorchDistribution, command, dsl, load_component, load_job, load_online_endpoint,
)
from azure.ai.ml import __version__ as SDK  # noqa: E402
from azure.ai.ml._artifacts._artifact_utilities import download_artifact_from_aml_uri  # noqa: E402
from azure.ai.ml.constants import AssetTypes, ListViewType  # noqa: E402
from azure.ai.ml.constants._endpoint import EndpointInvokeFields  # noqa: E402
from azure.ai.ml.entities import *  # noqa: E402,F403
from azure.identity import DefaultAzureCredential  # noqa: E402

logging.disable(logging.WARNING)


class Tap:
    """Counts the client's requests on their way out; changes nothing."""

    def __init__(self):
        self.calls = []
        plain = requests.Session.send

        def send(session, request, **kwargs):
            answer = plain(session, request, **kwargs)
            text = "" if kwargs.get("stream") and "/blob/" in request.url else answer.text
            self.calls.append((request.method, request.url, answer.status_code, text))
            return answer

        requests.Session.send = send

    @contextlib.contextmanager
    def listening(self):
        first = len(self.calls)
        heard = []
        yield heard
        heard.extend(self.calls[first:])


tap = Tap()
ml = MLClient(DefaultAzureCredential(), SUBSCRIPTION, GROUP, WORKSPACE)
# Where metadata cannot be read the client quietly goes to the public cloud; better to stop at once.
origin = os.environ["ARM_CLOUD_METADATA_URL"].split("/metadata/")[0]
if ml._base_url.rstrip("/") != origin:
    sys.exit(f"the client is pointed at {ml._base_url}, not at {origin}")

STEPS = []
S = {}


def step(function):
    STEPS.append(function)
    return function


def write(path, content):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def tree(folder):
    """Contents by relative path of all files below a folder."""
    folder = Path(folder)
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def fetch(uri):
    """What lies at an `azureml://` address, as the SDK itself downloads it."""
    to = Path(tempfile.mkdtemp(dir=WORK))
    download_artifact_from_aml_uri(uri=uri, destination=str(to), datastore_operation=ml.datastores)
    return tree(to)


def cli(*args):
    done = subprocess.run([os.environ["PEREGRINE_BIN"], *args, "-o", "json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def until(what, so, patience=30):
    deadline = time.monotonic() + patience
    while not so():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


def ended(name):
    until(f"the end of {name}", lambda: ml.jobs.get(name).status in ("Completed", "Failed", "Canceled"), 60)
    return ml.jobs.get(name).status


def raised(kind, act):
    """The text of an error that must come."""
    try:
        act()
    except kind as error:
        return str(error)
    raise AssertionError("nothing was refused")


def names(items):
    return [item.name for item in items]


# Files the operations upload. What the job makes of them is known beforehand.
CSV = b"x,y\n1,2\n3,4\n"
LINES = 8
TRAIN = f'''import argparse, hashlib, json, os, pathlib, time
p = argparse.ArgumentParser()
p.add_argument("--lr"); p.add_argument("--data"); p.add_argument("--out")
a = p.parse_args()
data = pathlib.Path(a.data).read_bytes()
for n in range({LINES}):
    print(f"line {{n}} lr={{a.lr}} mark={{os.environ.get('MARK')}}", flush=True)
    time.sleep(0.5)
out = pathlib.Path(a.out); out.mkdir(parents=True, exist_ok=True)
(out / "result.bin").write_bytes(hashlib.sha256(data).digest() * 1000)
os.makedirs("outputs", exist_ok=True)
pathlib.Path("outputs/metrics.json").write_text(json.dumps({{"rows": data.count(b"\\n")}}))
'''
RESULT = hashlib.sha256(CSV).digest() * 1000
LOG = "".join(f"line {n} lr=0.1 mark=here\n" for n in range(LINES))
SCORE = """import json, os
def init():
    global MODEL
    MODEL = os.path.join(os.environ["AZUREML_MODEL_DIR"], "model", "conf", "model.json")
    print("loading", MODEL, "for", os.environ.get("A"), flush=True)
    json.load(open(MODEL))
def run(data):
    return {"kind": json.load(open(MODEL))["kind"], "asked": json.loads(data)}
"""
EACH = """import os
def run(mini_batch):
    return [os.path.basename(path) for path in mini_batch]
"""
SERVING = "name: serving\ndependencies:\n- python=3.11\n- pip:\n  - azureml-inference-server-http\n"
LARGE = 70 << 20


def prepare():
    write("data/a.csv", CSV)
    write("data/deep/b.bin", bytes(range(256)) * 64)
    write("data/empty.txt", b"")
    write("src/train.py", TRAIN)
    write("score/score.py", SCORE)
    write("each/each.py", EACH)
    write("model/weights.bin", bytes(reversed(range(256))) * 512)
    write("model/conf/model.json", '{"kind": "linear"}')
    write("serving.yml", SERVING)
    write("context/Dockerfile", "FROM python:3.11\n")
    write("request.json", '{"data": [1, 2, 3]}')
    block = hashlib.sha512(b"peregrine").digest() * 1024
    with open("large.bin", "wb") as file:
        for n in range(LARGE // len(block)):
            file.write(n.to_bytes(8, "big") + block[8:])


# --- workspaces ------------------------------------------------------------------------------------------------


@step
def workspaces_get():
    found = ml.workspaces.get(WORKSPACE)
    assert found.name == WORKSPACE and found.location and found.discovery_url, found


@step
def workspaces_list():
    assert WORKSPACE in names(ml.workspaces.list())


@step
def workspaces_list_sub():
    assert WORKSPACE in names(ml.workspaces.list(scope="subscription"))


@step
def workspace_update():
    ml.workspaces.begin_update(Workspace(name=WORKSPACE, description="seen by the sdk", tags={"by": "sdk"})).result()
    again = ml.workspaces.get(WORKSPACE)
    assert again.description == "seen by the sdk" and again.tags.get("by") == "sdk", again


@step
def workspace_create_new():
    made = ml.workspaces.begin_create(Workspace(name="second", location="local", description="another one")).result()
    assert made.name == "second" and "second" in names(ml.workspaces.list())
    other = MLClient(DefaultAzureCredential(), SUBSCRIPTION, GROUP, "second")
    assert list(other.jobs.list()) == [] and other.datastores.get_default().name == "workspaceblobstore"
    ml.workspaces.begin_delete("second", delete_dependent_resources=False).result()
    assert "second" not in names(ml.workspaces.list())


@step
def workspace_keys():
    ml.workspaces.get_keys(WORKSPACE)


# --- compute ---------------------------------------------------------------------------------------------------


@step
def compute_local():
    here = ml.compute.get("local")
    assert here.name == "local" and here.provisioning_state == "Succeeded", here


@step
def compute_create_aml():
    wanted = AmlCompute(name="cpu-cluster", size="STANDARD_D2_V2", min_instances=0, max_instances=4,
                        idle_time_before_scale_down=120, tier="Dedicated", tags={"a": "b"})
    ml.compute.begin_create_or_update(wanted).result()
    kept = ml.compute.get("cpu-cluster")
    assert (kept.max_instances, kept.tags) == (4, {"a": "b"}), kept
    assert kept.provisioning_state == "Succeeded", kept
    # What was shown can be sent back.
    kept.max_instances = 3
    assert ml.compute.begin_create_or_update(kept).result().max_instances == 3


@step
def compute_attach_k8s():
    cluster = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Kubernetes/connectedClusters/edge1"
    attach = lambda: ml.compute.begin_attach(KubernetesCompute(name="k8s1", namespace="ml-jobs", resource_id=cluster)).result()
    assert "extension install --cluster-name edge1" in raised(Exception, attach), "no such cluster is registered"
    assert ml.compute.get("k8s1").provisioning_state == "Failed"


@step
def compute_attach_vm():
    machine = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute/virtualMachines/vm1"
    secret = VirtualMachineSshSettings(admin_username="u", admin_password="hunter2-secret", ssh_port=22)
    with tap.listening() as heard:
        attached = ml.compute.begin_attach(VirtualMachineCompute(name="vm1", resource_id=machine, ssh_settings=secret))
        try:
            attached.result()
            raise AssertionError("there is no such machine")
        except HttpResponseError as error:
            assert "cannot reach `vm1:22`" in str(error), error
        assert ml.compute.get("vm1").provisioning_state == "Failed"
    assert heard and "hunter2-secret" not in str([answer for *_, answer in heard]), "a secret came back"


@step
def compute_list():
    assert "local" in names(ml.compute.list())


@step
def compute_list_type():
    assert "local" not in names(ml.compute.list(compute_type="kubernetes"))


@step
def compute_get():
    assert ml.compute.get("cpu-cluster").type == "amlcompute"


@step
def compute_list_nodes():
    until("the node of this machine", lambda: len(list(ml.compute.list_nodes("local"))) == 1)


@step
def compute_list_sizes():
    assert "Standard_DS3_v2" in names(ml.compute.list_sizes())


@step
def compute_usages():
    assert list(ml.compute.list_usage())


@step
def compute_delete():
    ml.compute.begin_delete("vm1", action="Detach").result()
    assert "vm1" not in names(ml.compute.list())


# --- datastores ------------------------------------------------------------------------------------------------


@step
def datastore_default():
    store = ml.datastores.get_default(include_secrets=True)
    assert store.name == "workspaceblobstore" and store.credentials.sas_token, store


@step
def datastore_list():
    assert {"workspaceblobstore", "workspaceartifactstore"} <= set(names(ml.datastores.list()))


@step
def datastore_create():
    key = "c2VjcmV0LWtleS1vZi10aGUtdGVzdA=="
    wanted = AzureBlobDatastore(name="ds2", account_name="acct", container_name="c",
                                credentials=AccountKeyConfiguration(account_key=key))
    assert ml.datastores.create_or_update(wanted).name == "ds2"
    shown = ml.datastores.get("ds2")
    assert shown.account_name == "acct" and key not in str(shown) and key not in repr(shown.credentials.__dict__)
    ml.datastores.delete("ds2")
    assert "ds2" not in names(ml.datastores.list())


# --- environments ----------------------------------------------------------------------------------------------


@step
def env_create():
    ml.environments.create_or_update(Environment(name="env1", version="1", image="python:3.11", description="plain"))
    found = ml.environments.get("env1", "1")
    assert (found.image, found.version, found.description) == ("python:3.11", "1", "plain"), found


@step
def env_create_autoversion():
    conda = {"name": "x", "dependencies": ["python=3.11", {"pip": ["six"]}]}
    first = ml.environments.create_or_update(Environment(name="env2", image="python:3.11", conda_file=conda))
    second = ml.environments.create_or_update(Environment(name="env2", image="python:3.12"))
    same = ml.environments.create_or_update(Environment(name="env2", image="python:3.12"))
    assert (first.version, second.version, same.version) == ("1", "2", "2"), (first.version, second.version, same.version)


@step
def env_build_context():
    made = ml.environments.create_or_update(Environment(name="env3", version="1", build=BuildContext(path="context")))
    inside = made.build.path.split("/LocalUpload/")[1]
    back = fetch(f"azureml://datastores/workspaceblobstore/paths/LocalUpload/{inside}")
    assert [content for name, content in back.items() if name.endswith("Dockerfile")] == [b"FROM python:3.11\n"], back


@step
def env_list():
    assert {"env1", "env2"} <= set(names(ml.environments.list()))
    assert sorted(e.version for e in ml.environments.list(name="env2")) == ["1", "2"]


@step
def env_get_label():
    assert ml.environments.get("env2", label="latest").version == "2"


@step
def env_archive():
    ml.environments.archive("env2", "1")
    assert [e.version for e in ml.environments.list(name="env2")] == ["2"]
    ml.environments.restore("env2", "1")
    assert len(list(ml.environments.list(name="env2"))) == 2


# --- data and models -------------------------------------------------------------------------------------------


@step
def data_file():
    made = ml.data.create_or_update(Data(name="d1", version="1", path="data/a.csv", type=AssetTypes.URI_FILE))
    assert list(fetch(ml.data.get("d1", "1").path).values()) == [CSV]
    with tap.listening() as heard:
        ml.data.create_or_update(Data(name="d1", version="2", path="data/a.csv", type=AssetTypes.URI_FILE))
    assert not [call for call in heard if call[0] == "PUT" and "/blob/" in call[1]], "the same bytes were sent twice"
    S["d1"] = made.id


@step
def data_folder():
    made = ml.data.create_or_update(Data(name="d2", path="data", type=AssetTypes.URI_FOLDER))
    back = {name.removeprefix("data/"): content for name, content in fetch(made.path).items()}
    assert back == tree("data"), sorted(back)


@step
def data_large():
    with tap.listening() as heard:
        made = ml.data.create_or_update(Data(name="large", version="1", path="large.bin", type=AssetTypes.URI_FILE))
    blocks = [call for call in heard if re.search(r"comp=block(&|$)", call[1])]
    assert len(blocks) > 4, f"{LARGE >> 20} MiB went up in {len(blocks)} blocks"
    (back,) = fetch(made.path).values()
    assert hashlib.sha256(back).digest() == hashlib.sha256(Path("large.bin").read_bytes()).digest()


@step
def data_get_list():
    assert {"d1", "d2"} <= set(names(ml.data.list()))
    assert sorted(d.version for d in ml.data.list(name="d1")) == ["1", "2"]
    assert ml.data.get("d1", label="latest").version == "2"


@step
def data_archive():
    ml.data.archive("d1", "2")
    assert [d.version for d in ml.data.list(name="d1")] == ["1"]
    assert [d.version for d in ml.data.list(name="d1", list_view_type=ListViewType.ARCHIVED_ONLY)] == ["2"]
    ml.data.restore("d1", "2")


@step
def model_create():
    ml.models.create_or_update(Model(name="m1", version="1", path="model", type=AssetTypes.CUSTOM_MODEL, description="x"))
    assert ml.models.get("m1", "1").description == "x"
    assert "m1" in names(ml.models.list()) and [m.version for m in ml.models.list(name="m1")] == ["1"]


@step
def model_download():
    ml.models.download("m1", "1", download_path="got-model")
    (root,) = Path("got-model").rglob("weights.bin")
    assert tree(root.parent) == tree("model")


@step
def model_archive():
    ml.models.archive("m1", "1")
    assert [m.version for m in ml.models.list(name="m1")] == []
    ml.models.restore("m1", "1")
    assert [m.version for m in ml.models.list(name="m1")] == ["1"]


# --- command jobs ----------------------------------------------------------------------------------------------


def training(**more):
    asked = dict(
        code="src", environment="env1:1", compute="azureml:local", experiment_name="exp1", display_name="shown",
        command="python3 train.py --lr ${{inputs.lr}} --data ${{inputs.data}} --out ${{outputs.out}}",
        inputs={"lr": 0.1, "data": Input(type="uri_file", path="data/a.csv")},
        outputs={"out": Output(type="uri_folder")}, environment_variables={"MARK": "here"},
    )
    asked.update(more)
    return command(**asked)


def echo(line="echo hello", **more):
    asked = dict(command=line, environment="env1:1", compute="azureml:local", experiment_name="exp1")
    return command(**{**asked, **more})


@step
def job_create():
    made = ml.jobs.create_or_update(training())
    S["job"] = made.name
    assert made.status in ("Queued", "NotStarted", "Preparing", "Running"), made.status
    assert made.studio_url.startswith("https://"), made.studio_url


@step
def job_get():
    job = ml.jobs.get(S["job"])
    assert (job.type, job.display_name, job.experiment_name) == ("command", "shown", "exp1"), job
    assert "--lr ${{inputs.lr}}" in job.command and job.environment_variables["MARK"] == "here", job
    assert set(job.inputs) == {"lr", "data"} and set(job.outputs) == {"out"} and job.compute.endswith("local"), job


class Watch(io.StringIO):
    """Remembers when each line of the job was printed, and where the job was then."""

    def __init__(self):
        super().__init__()
        self.first = None

    def write(self, text):
        if self.first is None and text.startswith("line "):
            self.first = ml.jobs.get(S["job"]).status
        return super().write(text)


@step
def job_stream():
    watch = Watch()
    with contextlib.redirect_stdout(watch):
        ml.jobs.stream(S["job"])
    printed = "".join(line + "\n" for line in watch.getvalue().splitlines() if line.startswith("line "))
    assert printed == LOG, printed
    assert watch.first == "Running", f"the first line came when the job was {watch.first}"
    assert ml.jobs.get(S["job"]).status == "Completed"


@step
def job_list():
    assert S["job"] in names(ml.jobs.list())
    assert S["job"] in names(ml.jobs.list(max_results=5))


@step
def job_download():
    ml.jobs.download(S["job"], download_path="got", all=True)
    got = tree("got")
    assert got["named-outputs/out/result.bin"] == RESULT
    assert got["artifacts/user_logs/std_log.txt"] == LOG.encode()
    assert got["artifacts/outputs/metrics.json"] == b'{"rows": 3}', sorted(got)


@step
def job_download_output():
    ml.jobs.download(S["job"], download_path="got-out", output_name="out")
    assert list(tree("got-out").values()) == [RESULT]


@step
def job_create_same_code():
    with tap.listening() as heard:
        made = ml.jobs.create_or_update(training(
            environment=Environment(image="python:3.11"), inputs={"lr": 1}, command="echo ${{inputs.lr}} && ls *.py",
            outputs={}))
    sent = [call for call in heard if "startPendingUpload" in call[1] or (call[0] == "PUT" and "/blob/" in call[1])]
    assert not sent, f"the same code was sent twice: {sent}"
    assert ended(made.name) == "Completed"
    ml.jobs.download(made.name, download_path="got-same")
    assert tree("got-same")["artifacts/user_logs/std_log.txt"] == b"1\ntrain.py\n", tree("got-same")


@step
def job_input_asset():
    """Data by asset and by another job's output."""
    made = ml.jobs.create_or_update(echo(
        "cat ${{inputs.data}} && wc -c < ${{inputs.made}}/result.bin",
        inputs={"data": Input(type="uri_file", path="azureml:d1:1"),
                "made": Input(type="uri_folder", path=f"azureml://jobs/{S['job']}/outputs/out")}))
    assert ended(made.name) == "Completed"
    ml.jobs.download(made.name, download_path="got-inputs")
    log = tree("got-inputs")["artifacts/user_logs/std_log.txt"]
    assert log == CSV + f"{len(RESULT)}\n".encode(), log


@step
def job_registers_output():
    made = ml.jobs.create_or_update(echo(
        "mkdir -p ${{outputs.kept}} && echo kept > ${{outputs.kept}}/k.txt",
        outputs={"kept": Output(type="uri_folder", name="kept-by-job", version="7")}))
    assert ended(made.name) == "Completed"
    back = fetch(ml.data.get("kept-by-job", "7").path)
    assert [content for name, content in back.items() if name.endswith("k.txt")] == [b"kept\n"], back


@step
def job_cancel():
    beat = WORK / "beat"
    line = f"echo $$ > {beat}.pid; while true; do date +%s%N > {beat}; sleep 0.05; done"
    made = ml.jobs.create_or_update(echo(line))
    until("the first beat", lambda: beat.exists() and beat.read_text().strip())
    ml.jobs.begin_cancel(made.name).result()
    last = beat.read_text()
    assert ml.jobs.get(made.name).status == "Canceled"
    pid = int(Path(f"{beat}.pid").read_text())
    assert not Path(f"/proc/{pid}").exists(), f"process {pid} of a canceled job lives"
    # Twenty beats would fit in here.
    time.sleep(1)
    assert beat.read_text() == last, "the job beats on after it was canceled"
    ml.jobs.begin_cancel(made.name).result()


@step
def job_archive():
    ml.jobs.archive(S["job"])
    assert S["job"] not in names(ml.jobs.list())
    assert S["job"] in names(ml.jobs.list(list_view_type=ListViewType.ARCHIVED_ONLY))
    ml.jobs.restore(S["job"])
    assert S["job"] in names(ml.jobs.list())


@step
def job_update():
    job = ml.jobs.get(S["job"])
    job.tags = {"new": "tag"}
    job.display_name = "renamed"
    changed = ml.jobs.create_or_update(job)
    assert (changed.tags.get("new"), changed.display_name) == ("tag", "renamed"), changed
    seen = cli("job", "show", "-n", S["job"])
    assert (seen["tags"]["new"], seen["display_name"], seen["status"]) == ("tag", "renamed", "Completed"), seen


@step
def job_show_services():
    assert not ml.jobs.show_services(S["job"])


@step
def job_children():
    assert list(ml.jobs.list(parent_job_name=S["job"])) == []


@step
def job_fails():
    made = ml.jobs.create_or_update(echo("echo before the end; exit 3"))
    with contextlib.redirect_stdout(io.StringIO()):
        said = raised(Exception, lambda: (ended(made.name), ml.jobs.stream(made.name)))
    assert "exited with code 3" in said and "before the end" in said, said


@step
def job_local_form():
    """`local` by its bare name means this machine to the client, and is sent without a target."""
    made = ml.jobs.create_or_update(echo("echo on this machine", compute="local"))
    assert ended(made.name) == "Completed"


@step
def job_distributed():
    line = "echo rank $RANK of $WORLD_SIZE"
    made = ml.jobs.create_or_update(echo(line, instance_count=1,
                                         distribution=PyTorchDistribution(process_count_per_instance=2)))
    assert ended(made.name) == "Completed"
    ml.jobs.download(made.name, download_path="got-ranks")
    said = b"".join(content for name, content in tree("got-ranks").items() if "user_logs/std_log" in name)
    assert b"rank 0 of 2" in said and b"rank 1 of 2" in said, said


@step
def job_wrong_references():
    wrong = echo()
    wrong.environment, wrong.compute = "no-such-env:9", "no-such-target"
    said = raised(Exception, lambda: ml.jobs.create_or_update(wrong))
    assert "no-such-env" in said and "no-such-target" in said and "local" in said, said
    said = raised(Exception, lambda: ml.jobs.get("no_such_job"))
    assert "there is no job `no_such_job`" in said, said


@step
def job_on_a_managed_cluster():
    made = ml.jobs.create_or_update(echo("echo from a node", compute="cpu-cluster"))
    until("the job on the cluster", lambda: ml.jobs.get(made.name).status == "Completed")
    assert len(list(ml.compute.list_nodes("cpu-cluster"))) == 1, "the node that ran it stays for a while"


@step
def job_yaml():
    write("job.yml", """$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
type: command
code: ./src
command: >-
  python3 train.py --lr ${{inputs.lr}} --data ${{inputs.data}} --out ${{outputs.out}}
inputs:
  lr: 0.1
  data: {type: uri_file, path: ./data/a.csv}
outputs:
  out: {type: uri_folder, mode: upload}
environment: azureml:env1@latest
environment_variables: {MARK: here}
compute: azureml:local
resources: {instance_count: 1}
queue_settings: {job_tier: standard}
experiment_name: yml
""")
    made = ml.jobs.create_or_update(load_job("job.yml"))
    assert ended(made.name) == "Completed"
    ml.jobs.download(made.name, download_path="got-yaml", all=True)
    got = tree("got-yaml")
    assert (got["named-outputs/out/result.bin"], got["artifacts/user_logs/std_log.txt"]) == (RESULT, LOG.encode())


# --- components and the kinds of jobs to come ------------------------------------------------------------------


COMPONENT = """$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: trainc
version: 1
display_name: T
inputs:
  data: {type: uri_folder}
  lr: {type: number, default: 0.1}
outputs:
  model: {type: uri_folder}
code: ./src
environment: azureml:env1:1
command: cp -r ${{inputs.data}}/. ${{outputs.model}}/ && echo ${{inputs.lr}} > ${{outputs.model}}/lr.txt
"""


@step
def component_create():
    write("comp.yml", COMPONENT)
    ml.components.create_or_update(load_component("comp.yml"))
    found = ml.components.get("trainc", "1")
    assert found.display_name == "T" and "trainc" in names(ml.components.list()), found


@step
def sweep_create():
    from azure.ai.ml.sweep import BanditPolicy, Uniform
    trial = training()(lr=Uniform(0.01, 0.9))
    sweep = trial.sweep(sampling_algorithm="random", primary_metric="acc", goal="Maximize")
    sweep.set_limits(max_total_trials=4, max_concurrent_trials=2, timeout=7200)
    sweep.early_termination = BanditPolicy(evaluation_interval=1, slack_factor=0.1)
    sweep.experiment_name, sweep.compute = "sw", "azureml:local"
    made = ml.jobs.create_or_update(sweep)
    assert made.type == "sweep" and ended(made.name) == "Completed", made
    trials = list(ml.jobs.list(parent_job_name=made.name))
    assert {trial.name for trial in trials} == {f"{made.name}_{n}" for n in range(4)}, trials
    assert len({trial.tags["hyperparameters"] for trial in trials}) == 4


@step
def sweep_best():
    from azure.ai.ml.sweep import Choice
    write("trial/log.py", LOGS_LOSS)
    trial = command(code="trial", environment="env1:1", outputs={"model": Output(type="uri_folder")}, inputs={"lr": 1},
                    command="echo ${{inputs.lr}} > ${{outputs.model}}/lr.txt && python3 log.py ${{inputs.lr}}")
    sweep = trial(lr=Choice([1, 3, 7])).sweep(sampling_algorithm="grid", primary_metric="loss", goal="Minimize")
    sweep.set_limits(max_total_trials=3, max_concurrent_trials=2)
    sweep.experiment_name, sweep.compute = "sw", "azureml:local"
    made = ml.jobs.create_or_update(sweep)
    assert ended(made.name) == "Completed", made
    best = ml.jobs.get(made.name).properties["best_child_run_id"]
    assert json.loads(ml.jobs.get(best).tags["hyperparameters"]) == {"lr": 3}, ml.jobs.get(best).tags
    ml.jobs.download(made.name, download_path="best-trial", output_name="model")
    assert tree("best-trial")["named-outputs/model/lr.txt"].strip() == b"3", tree("best-trial")


def pipeline():
    first = load_component("comp.yml")
    second = command(name="evalc", inputs={"m": Input(type="uri_folder")}, outputs={"o": Output(type="uri_folder")},
                     code="src", command="cat ${{inputs.m}}/lr.txt ${{inputs.m}}/a.csv > ${{outputs.o}}/final.txt",
                     environment="env1:1")

    @dsl.pipeline(name="pp", default_compute="local", experiment_name="pipe")
    def made(data, lr=0.3):
        trained = first(data=data, lr=lr)
        return {"final": second(m=trained.outputs.model).outputs.o}

    job = made(data=Input(type="uri_folder", path="data"))
    job.settings.default_datastore = "workspaceblobstore"
    return job


@step
def pipeline_create():
    made = ml.jobs.create_or_update(pipeline())
    S["pipe"] = made.name
    assert made.type == "pipeline" and set(made.jobs) == {"trained", "evalc"}, made.jobs


@step
def pipeline_stream():
    with contextlib.redirect_stdout(io.StringIO()):
        ml.jobs.stream(S["pipe"])
    assert ended(S["pipe"]) == "Completed"


@step
def pipeline_children():
    children = list(ml.jobs.list(parent_job_name=S["pipe"]))
    assert {(child.display_name, child.status) for child in children} == {("trained", "Completed"), ("evalc", "Completed")}
    assert S["pipe"] in names(ml.jobs.list()) and children[0].name not in names(ml.jobs.list())


@step
def pipeline_download():
    ml.jobs.download(S["pipe"], download_path="piped", output_name="final")
    assert tree("piped")["named-outputs/final/final.txt"] == b"0.3\n" + CSV, sorted(tree("piped"))


@step
def pipeline_reuse():
    again = ml.jobs.create_or_update(pipeline()).name
    assert ended(again) == "Completed"
    for child in ml.jobs.list(parent_job_name=again):
        assert child.properties["azureml.isreused"] == "true", child.properties


LOGS_LOSS = '''import json, os, ssl, sys, time, urllib.request as web
point = {"run_id": os.environ["MLFLOW_RUN_ID"], "key": "loss", "value": abs(float(sys.argv[1]) - 3), "timestamp": int(time.time() * 1000)}
asked = web.Request(os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric", json.dumps(point).encode(),
                    {"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "Content-Type": "application/json"})
web.urlopen(asked, context=ssl.create_default_context(cafile=os.environ.get("REQUESTS_CA_BUNDLE")))
'''


@step
def pipeline_sweep():
    from azure.ai.ml.sweep import Choice
    write("trial/log.py", LOGS_LOSS)
    trained = command(
        name="tryc", inputs={"lr": Input(type="number"), "data": Input(type="uri_folder")},
        outputs={"model": Output(type="uri_folder")}, code="trial", environment="env1:1",
        command="cp ${{inputs.data}}/a.csv ${{outputs.model}}/ && echo ${{inputs.lr}} > ${{outputs.model}}/lr.txt && "
                "python3 log.py ${{inputs.lr}}").component
    used = command(name="usec", inputs={"m": Input(type="uri_folder")}, outputs={"o": Output(type="uri_folder")},
                   command="cat ${{inputs.m}}/lr.txt > ${{outputs.o}}/best.txt", environment="env1:1")

    @dsl.pipeline(default_compute="local", experiment_name="pipe")
    def made(data):
        tuned = trained(lr=Choice([1, 3, 7]), data=data).sweep(sampling_algorithm="grid", primary_metric="loss", goal="minimize")
        tuned.set_limits(max_total_trials=3, max_concurrent_trials=2)
        tuned.outputs.model = Output(type="uri_folder", name="tuned-model")
        return {"best": used(m=tuned.outputs.model).outputs.o}

    job = ml.jobs.create_or_update(made(data=Input(type="uri_folder", path="data")))
    assert ended(job.name) == "Completed"
    children = {child.display_name: child for child in ml.jobs.list(parent_job_name=job.name)}
    assert set(children) == {"tuned", "usec"} and ml.jobs.get(children["tuned"].name).type == "sweep", children
    assert len(list(ml.jobs.list(parent_job_name=children["tuned"].name))) == 3
    ml.jobs.download(job.name, download_path="swept", output_name="best")
    assert tree("swept")["named-outputs/best/best.txt"].strip() == b"3", tree("swept")
    assert ml.data.get("tuned-model", label="latest").path, "the best trial's output is an asset"


def component(name, line, inputs, outputs):
    ports = {"inputs": inputs, "outputs": outputs}
    spec = {"type": "command", "name": name, "command": line, "environment": "azureml:env1:1", **ports}
    return load_component(write(f"{name}.yml", json.dumps(spec)))


def says_its_word():
    folder = {"type": "uri_folder"}
    each = component("eachc", "echo ${{inputs.word}} > ${{outputs.said}}/word.txt", {"word": {"type": "string"}}, {"said": folder})
    line = "cat $(find ${{inputs.said}}/ -name word.txt | sort) > ${{outputs.all}}/all.txt"
    return each, component("allsaidc", line, {"said": folder}, {"all": folder})


def is_said(made, words):
    job = ml.jobs.create_or_update(made())
    assert ended(job.name) == "Completed"
    ml.jobs.download(job.name, download_path=job.name, output_name="all")
    assert tree(job.name)["named-outputs/all/all.txt"].split() == words, tree(job.name)


@step
def pipeline_loops():
    from azure.ai.ml.dsl._do_while import do_while
    from azure.ai.ml.dsl._parallel_for import parallel_for

    each, all_said = says_its_word()
    number, folder = {"type": "integer"}, {"type": "uri_folder"}
    control = {"is_control": True}
    turn = component(
        "turnc", "n=$((${{inputs.n}} + 1)); echo $n > ${{outputs.next}}; echo $n > ${{outputs.seen}}/n.txt; "
                 "if [ $n -lt 3 ]; then echo true; else echo false; fi > ${{outputs.more}}",
        {"n": number}, {"next": {"type": "integer", **control}, "more": {"type": "boolean", **control}, "seen": folder})
    gather = component("gatherc", "cat ${{inputs.seen}}/n.txt > ${{outputs.all}}/all.txt; cat $(find ${{inputs.said}}/ -name word.txt | sort) >> "
                       "${{outputs.all}}/all.txt", {"seen": folder, "said": folder}, {"all": folder})

    @dsl.pipeline(default_compute="local", experiment_name="pipe")
    def made():
        body = turn(n=0)
        do_while(body=body, condition=body.outputs.more, mapping={"next": body.inputs.n}, max_iteration_count=9)
        said = each(word="nothing")
        loop = parallel_for(body=said, items=[{"word": "a"}, {"word": "b"}])
        end = gather(seen=body.outputs.seen, said=loop.outputs.said)
        return {"all": end.outputs.all}

    # The second time turns of the first loop are reused, those of the second have a folder of their own to fill.
    for _ in range(2):
        is_said(made, [b"3", b"a", b"b"])

    lister = component("listc", """echo '[{"word": "c"}, {"word": "d"}]' > ${{outputs.list}}""", {}, {"list": {"type": "uri_file"}})

    @dsl.pipeline(default_compute="local", experiment_name="pipe")
    def over_what_a_step_makes():
        said = each(word="nothing")
        loop = parallel_for(body=said, items=lister().outputs.list, max_concurrency=1)
        return {"all": all_said(said=loop.outputs.said).outputs.all}

    is_said(over_what_a_step_makes, [b"c", b"d"])


@step
def pipeline_branches():
    from azure.ai.ml.dsl._condition import condition
    from azure.ai.ml.dsl._do_while import do_while

    each, _ = says_its_word()
    flag, number = {"type": "boolean", "is_control": True}, {"type": "integer"}
    ask = component("askc", "if [ ${{inputs.n}} -gt 2 ]; then echo true; else echo false; fi > ${{outputs.big}}", {"n": number}, {"big": flag})
    turn = component("roundc", "echo 9 > ${{outputs.next}}; if [ ${{inputs.n}} -lt 9 ]; then echo true; else echo false; fi > ${{outputs.more}}",
                     {"n": number}, {"more": flag, "next": {"type": "integer", "is_control": True}})

    @dsl.pipeline(default_compute="local", experiment_name="pipe")
    def made(n):
        asked = ask(n=n)
        large = each(word="large")
        small = each(word="small")
        body = turn(n=n)
        do_while(body=body, condition=body.outputs.more, mapping={"next": body.inputs.n}, max_iteration_count=3)
        condition(condition=asked.outputs.big, true_block=[large, body], false_block=small)

    for n, ran in [(3, {"asked", "large", "body.0", "body.1"}), (2, {"asked", "small"})]:
        job = ml.jobs.create_or_update(made(n=n))
        assert ended(job.name) == "Completed"
        found = {child.display_name for child in ml.jobs.list(parent_job_name=job.name)}
        assert found == ran, (n, found)


@step
def pipeline_table_loop():
    from azure.ai.ml.dsl._parallel_for import parallel_for

    each, all_said = says_its_word()
    lister = component("tablec", r"""printf 'paths:\n- file: ./all.csv\n' > ${{outputs.list}}/MLTable; printf 'word\ne\nf\n' > ${{outputs.list}}/all.csv""",
                       {}, {"list": {"type": "mltable"}})

    # The rows are made, and each is worked on, on nodes that come for it.
    @dsl.pipeline(default_compute="cpu-cluster", experiment_name="pipe")
    def over_rows():
        said = each(word="nothing")
        loop = parallel_for(body=said, items=lister().outputs.list)
        return {"all": all_said(said=loop.outputs.said).outputs.all}

    is_said(over_rows, [b"e", b"f"])


@step
def pipeline_cancel():
    @dsl.pipeline(default_compute="local", experiment_name="pipe")
    def made():
        command(name="long", command="sleep 100", environment="env1:1")()

    name = ml.jobs.create_or_update(made()).name
    ml.jobs.begin_cancel(name).wait()
    assert ended(name) == "Canceled"


@step
def pipeline_yaml():
    write("pipe.yml", """$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
experiment_name: py
settings: {default_compute: azureml:local, default_datastore: azureml:workspaceblobstore}
inputs: {lr: 0.5}
jobs:
  a:
    type: command
    component: file:./comp.yml
    inputs: {data: {type: uri_folder, path: ./data}, lr: "${{parent.inputs.lr}}"}
    outputs: {model: {type: uri_folder, mode: upload}}
  b:
    type: command
    component: azureml:trainc:1
    inputs: {data: "${{parent.jobs.a.outputs.model}}"}
""")
    assert ended(ml.jobs.create_or_update(load_job("pipe.yml")).name) == "Completed"


@step
def parallel_create():
    from azure.ai.ml.parallel import RunFunction, parallel_run_function
    task = RunFunction(code="each", entry_script="each.py", environment="env1:1", append_row_to="${{outputs.o}}")
    each = parallel_run_function(
        name="par", inputs={"d": Input(type="uri_folder")}, outputs={"o": Output(type="uri_folder")},
        input_data="${{inputs.d}}", instance_count=2, mini_batch_size="1", mini_batch_error_threshold=1,
        max_concurrency_per_instance=1, error_threshold=1, logging_level="INFO",
        retry_settings={"max_retries": 1, "timeout": 60}, task=task)

    @dsl.pipeline(default_compute="local")
    def made(d):
        return {"rows": each(d=d).outputs.o}

    name = ml.jobs.create_or_update(made(d=Input(type="uri_folder", path="data"))).name
    assert ended(name) == "Completed", name
    ml.jobs.download(name, download_path="got-rows", output_name="rows")
    rows = [path.read_text() for path in Path("got-rows").rglob("*.txt")]
    assert len(rows) == 1 and "a.csv" in rows[0], rows


@step
def spark_create():
    from azure.ai.ml import spark
    job = spark(display_name="sp", code="src", entry={"file": "train.py"}, driver_cores=1, driver_memory="2g",
                executor_cores=2, executor_memory="2g", executor_instances=2, compute="local",
                inputs={"f": Input(type="uri_file", mode="direct",
                                   path="azureml://datastores/workspaceblobstore/paths/x.csv")},
                args="--f ${{inputs.f}}", conf={"spark.k": "v"})
    ml.jobs.create_or_update(job)


@step
def schedule_create():
    from azure.ai.ml.entities import CronTrigger, JobSchedule
    wanted = JobSchedule(name="sch1", trigger=CronTrigger(expression="0 * * * *", time_zone="UTC"), create_job=pipeline())
    ml.schedules.begin_create_or_update(wanted).result()
    kept = ml.schedules.get("sch1")
    assert kept.trigger.expression == "0 * * * *" and kept.provisioning_state == "Succeeded", kept
    # Without a start it begins at once.
    assert ended(made_by("sch1")[0]) == "Completed"


def made_by(schedule, count=1):
    """The jobs that a schedule has started, once they are so many."""
    made = lambda: [job.name for job in ml.jobs.list() if (job.properties or {}).get("peregrine.schedule") == schedule]
    until(f"{count} jobs of {schedule}", lambda: len(made()) >= count, 30)
    return made()


@step
def schedule_recurrence():
    from azure.ai.ml.entities import JobSchedule, RecurrencePattern, RecurrenceTrigger
    when = RecurrenceTrigger(frequency="week", interval=2, start_time="2026-01-05T08:00:00", time_zone="W. Europe Standard Time",
                             schedule=RecurrencePattern(hours=8, minutes=[0, 30], week_days=["monday"]))
    ml.schedules.begin_create_or_update(JobSchedule(name="sch2", trigger=when, create_job=pipeline())).result()
    kept = ml.schedules.get("sch2")
    assert kept.trigger.schedule.minutes == [0, 30] and kept.trigger.time_zone == "W. Europe Standard Time", kept
    ml.schedules.begin_delete("sch2").result()


@step
def schedule_trigger():
    name = ml.schedules.trigger("sch1").job_name
    assert ended(name) == "Completed" and name in made_by("sch1", 2)


@step
def schedule_list():
    assert "sch1" in names(ml.schedules.list())


@step
def schedule_disable():
    ml.schedules.begin_disable("sch1").result()
    assert ml.schedules.get("sch1").is_enabled is False


@step
def schedule_delete():
    ml.schedules.begin_delete("sch1").result()
    assert "sch1" not in names(ml.schedules.list())


# --- endpoints -------------------------------------------------------------------------------------------------


def scoring(**more):
    """What every deployment here has in common; `KubernetesOnlineDeployment` has no more than this."""
    return dict(
        environment=Environment(image="python:3.11-slim", conda_file="serving.yml"),
        code_configuration=CodeConfiguration(code="score", scoring_script="score.py"),
        readiness_probe=ProbeSettings(period=1, initial_delay=0, timeout=2, failure_threshold=30, success_threshold=1),
        **more)


def asked(endpoint, deployment=None):
    # The SDK keeps the deployment of one call in the headers of all later ones.
    EndpointInvokeFields.DEFAULT_HEADER.pop(EndpointInvokeFields.MODEL_DEPLOYMENT, None)
    answer = json.loads(ml.online_endpoints.invoke(endpoint, request_file="request.json", deployment_name=deployment))
    assert answer == {"kind": "linear", "asked": {"data": [1, 2, 3]}}, answer


@step
def online_endpoint_create():
    wanted = KubernetesOnlineEndpoint(name="ep1", compute="local", auth_mode="key", description="d", tags={"a": "b"})
    ml.online_endpoints.begin_create_or_update(wanted).result()
    kept = ml.online_endpoints.get("ep1")
    assert (kept.description, kept.tags) == ("d", {"a": "b"}) and kept.scoring_uri, kept
    assert kept.provisioning_state == "Succeeded", kept.provisioning_state


@step
def online_deployment_create():
    wanted = KubernetesOnlineDeployment(
        name="blue", endpoint_name="ep1", model=Model(path="model"), instance_type="defaultinstancetype",
        instance_count=1, environment_variables={"A": "1"},
        liveness_probe=ProbeSettings(period=10, initial_delay=10, timeout=2, failure_threshold=3, success_threshold=1),
        request_settings=OnlineRequestSettings(request_timeout_ms=3000, max_concurrent_requests_per_instance=4),
        resources=ResourceRequirementsSettings(requests=ResourceSettings(cpu="0.1", memory="0.5Gi"),
                                               limits=ResourceSettings(cpu="1", memory="1Gi")), **scoring())
    made = ml.online_deployments.begin_create_or_update(wanted).result()
    assert made.provisioning_state == "Succeeded", made.provisioning_state
    asked("ep1", "blue")


@step
def online_deployment_registered():
    wanted = KubernetesOnlineDeployment(name="green", endpoint_name="ep1", model="azureml:m1:1", instance_count=1, **scoring())
    ml.online_deployments.begin_create_or_update(wanted).result()
    asked("ep1", "green")


@step
def online_get_list():
    assert "ep1" in names(ml.online_endpoints.list())
    assert sorted(names(ml.online_deployments.list("ep1"))) == ["blue", "green"]
    blue = ml.online_deployments.get("blue", "ep1")
    assert (blue.instance_count, blue.environment_variables["A"]) == (1, "1"), blue


@step
def online_traffic():
    endpoint = ml.online_endpoints.get("ep1")
    endpoint.traffic = {"blue": 90, "green": 10}
    ml.online_endpoints.begin_create_or_update(endpoint).result()
    assert ml.online_endpoints.get("ep1").traffic == {"blue": 90, "green": 10}


@step
def online_keys():
    keys = ml.online_endpoints.get_keys("ep1")
    ml.online_endpoints.begin_regenerate_keys("ep1", key_type="primary").result()
    again = ml.online_endpoints.get_keys("ep1")
    assert keys.primary_key != again.primary_key and keys.secondary_key == again.secondary_key
    uri = ml.online_endpoints.get("ep1").scoring_uri
    code = lambda key: requests.post(uri, json={"data": [1]}, headers={"Authorization": f"Bearer {key}"}).status_code
    until("the new key to open it", lambda: code(again.primary_key) == 200)
    until("the old key to be refused", lambda: code(keys.primary_key) == 401)
    assert code(keys.secondary_key) == 200, "the other key stopped working"


@step
def online_invoke():
    asked("ep1")


@step
def online_logs():
    assert "for 1" in ml.online_deployments.get_logs("blue", "ep1", 50)
    ml.online_deployments.get_logs("blue", "ep1", 50, container_type="storage-initializer")


@step
def online_scale():
    deployment = ml.online_deployments.get("blue", "ep1")
    deployment.instance_count = 2
    ml.online_deployments.begin_create_or_update(deployment).result()
    assert ml.online_deployments.get("blue", "ep1").instance_count == 2
    asked("ep1", "blue")


@step
def online_broken():
    write("broken/score.py", "def init():\n    raise RuntimeError('no such colour')\ndef run(data):\n    return data\n")
    wanted = KubernetesOnlineDeployment(
        name="red", endpoint_name="ep1", model="azureml:m1:1", instance_count=1,
        **{**scoring(), "code_configuration": CodeConfiguration(code="broken", scoring_script="score.py")})
    said = raised(Exception, lambda: ml.online_deployments.begin_create_or_update(wanted).result())
    assert "no such colour" in said, said
    assert ml.online_deployments.get("red", "ep1").provisioning_state == "Failed"
    ml.online_deployments.begin_delete("red", "ep1").result()


@step
def online_delete():
    said = raised(Exception, lambda: ml.online_deployments.begin_delete("green", "ep1").result())
    assert "10 % of the traffic" in said, said
    endpoint = ml.online_endpoints.get("ep1")
    endpoint.traffic = {"blue": 100}
    ml.online_endpoints.begin_create_or_update(endpoint).result()
    ml.online_deployments.begin_delete("green", "ep1").result()
    until("green to be gone", lambda: names(ml.online_deployments.list("ep1")) == ["blue"])
    ml.online_endpoints.begin_delete("ep1").result()
    until("ep1 to be gone", lambda: "ep1" not in names(ml.online_endpoints.list()))


@step
def managed_online():
    ml.online_endpoints.begin_create_or_update(ManagedOnlineEndpoint(name="ep2", auth_mode="aml_token")).result()
    assert ml.online_endpoints.get("ep2").provisioning_state == "Succeeded"


@step
def managed_deployment():
    wanted = ManagedOnlineDeployment(
        name="bbb", endpoint_name="ep2", model="azureml:m1:1", instance_type="Standard_DS3_v2", instance_count=1, **scoring())
    ml.online_deployments.begin_create_or_update(wanted).result()
    endpoint = ml.online_endpoints.get("ep2")
    endpoint.traffic = {"bbb": 100}
    ml.online_endpoints.begin_create_or_update(endpoint).result()
    asked("ep2")
    ml.online_endpoints.begin_delete("ep2").result()


@step
def online_yaml():
    write("ep.yml", "$schema: https://azuremlschemas.azureedge.net/latest/kubernetesOnlineEndpoint.schema.json\n"
                    "name: ep3\ncompute: azureml:k8s1\nauth_mode: key\n")
    ml.online_endpoints.begin_create_or_update(load_online_endpoint("ep.yml")).result()
    assert ml.online_endpoints.get("ep3").auth_mode.lower() == "key"


@step
def batch_endpoint_create():
    ml.batch_endpoints.begin_create_or_update(BatchEndpoint(name="be1", description="b")).result()


@step
def batch_deployment_create():
    from azure.ai.ml.constants import BatchDeploymentOutputAction
    settings = ModelBatchDeploymentSettings(
        instance_count=2, max_concurrency_per_instance=2, mini_batch_size=10, output_file_name="p.csv",
        output_action=BatchDeploymentOutputAction.APPEND_ROW, logging_level="info", error_threshold=-1,
        retry_settings=BatchRetrySettings(max_retries=3, timeout=30))
    wanted = ModelBatchDeployment(
        name="bd1", endpoint_name="be1", model="azureml:m1:1", environment="azureml:env1:1", compute="local",
        code_configuration=CodeConfiguration(code="each", scoring_script="each.py"), settings=settings)
    ml.batch_deployments.begin_create_or_update(wanted).result()


@step
def batch_default():
    endpoint = ml.batch_endpoints.get("be1")
    endpoint.defaults.deployment_name = "bd1"
    ml.batch_endpoints.begin_create_or_update(endpoint).result()
    assert ml.batch_endpoints.get("be1").defaults.deployment_name == "bd1"
    assert names(ml.batch_deployments.list("be1")) == ["bd1"]


@step
def batch_invoke():
    job = ml.batch_endpoints.invoke("be1", deployment_name="bd1", inputs={"in": Input(type="uri_folder", path="data")})
    S["batch"] = job.name
    assert ended(job.name) == "Completed", job.name
    assert ml.jobs.get(job.name).tags["azureml.batchrun"] == "true"


@step
def batch_list_jobs():
    assert [job.name for job in ml.batch_endpoints.list_jobs("be1")] == [S["batch"]]
    assert [job.name for job in ml.batch_deployments.list_jobs("be1", name="bd1")] == [S["batch"]]


@step
def batch_download():
    ml.jobs.download(S["batch"], download_path="got-batch", output_name="score")
    assert "a.csv" in next(Path("got-batch").rglob("p.csv")).read_text()


@step
def pipeline_batch_deployment():
    component = load_component("comp.yml")

    @dsl.pipeline(name="pbd")
    def made(data: Input(type="uri_folder")):
        component(data=data, lr=0.1)

    built = ml.components.create_or_update(made._pipeline_builder.build(user_provided_kwargs={}))
    wanted = PipelineComponentBatchDeployment(name="pbd", endpoint_name="be1", component=built,
                                              settings={"default_compute": "local"})
    ml.batch_deployments.begin_create_or_update(wanted).result()
    job = ml.batch_endpoints.invoke("be1", deployment_name="pbd", inputs={"data": Input(type="uri_folder", path="data")})
    assert ended(job.name) == "Completed", job.name
    child, = ml.jobs.list(parent_job_name=job.name)
    ml.jobs.download(child.name, download_path="got-pbd", all=True)
    assert any(name.endswith("/lr.txt") and text.strip() == b"0.1" for name, text in tree("got-pbd").items()), tree("got-pbd")


@step
def batch_delete():
    for deployment in names(ml.batch_deployments.list("be1")):
        ml.batch_deployments.begin_delete(deployment, "be1").result()
    ml.batch_endpoints.begin_delete("be1").result()
    assert "be1" not in names(ml.batch_endpoints.list())


# --- running them ----------------------------------------------------------------------------------------------


class TooLong(Exception):
    pass


def alarm(*_):
    raise TooLong(f"took more than {PATIENCE_S} s")


def attempt(function):
    """What became of an operation, and what it said."""
    quiet = io.StringIO()
    signal.alarm(PATIENCE_S)
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            function()
        error = None
    except Exception as caught:
        error = caught
    finally:
        signal.alarm(0)
    wanted = REFUSED.get(function.__name__)
    if error is None and wanted is None:
        return "PASS", ""
    if error is None:
        return "FAIL", f"works, though it is listed as refused with /{wanted}/: take it off the list"
    said = " ".join(f"{type(error).__name__}: {error}".split())
    if wanted is not None and not isinstance(error, (AssertionError, TooLong)) and re.search(wanted, said):
        return "REFUSED", said
    if os.environ.get("SDK_TRACE"):
        traceback.print_exception(error)
    return "FAIL", said


def main():
    prepare()
    signal.signal(signal.SIGALRM, alarm)
    only = sys.argv[1:]
    counts = {"PASS": 0, "REFUSED": 0, "FAIL": 0}
    failed = []
    unknown = set(REFUSED) - {function.__name__ for function in STEPS}
    assert not unknown, f"listed as refused but not an operation: {unknown}"
    for function in STEPS:
        name = function.__name__
        if only and not any(part in name for part in only):
            continue
        begin = time.monotonic()
        verdict, said = attempt(function)
        counts[verdict] += 1
        if verdict == "FAIL":
            failed.append(name)
        print(f"{verdict:8}{name:30}{time.monotonic() - begin:6.1f} s  {said[:600]}".rstrip(), flush=True)
    if "SDK_WORK" not in os.environ:
        shutil.rmtree(WORK, ignore_errors=True)
    print(json.dumps({"sdk": SDK, "passed": counts["PASS"], "refused": counts["REFUSED"], "failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
