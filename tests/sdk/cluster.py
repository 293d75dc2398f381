"""A Kubernetes cluster through the unmodified azure-ai-ml package: attach it, run a job on it, fetch what it made, detach it.

Usage: cluster.py CLUSTER NAMESPACE IMAGE. The environment is what `peregrine sdk env` prints, and nothing else configures
the client. Exit code 0 means that everything was as it should be.
"""

import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
os.environ.setdefault("AZUREML_RUN_POLLING_INTERVAL_MIN", "1")
os.environ.setdefault("AZUREML_RUN_POLLING_INTERVAL_MAX", "2")

from azure.ai.ml import MLClient, Output, command  # noqa: E402
from azure.ai.ml.entities import Environment, KubernetesCompute  # noqa: E402
from azure.identity import DefaultAzureCredential  # noqa: E402

logging.disable(logging.WARNING)


def main(cluster, namespace, image):
    subscription, group, workspace = (os.environ[f"PEREGRINE_{part}"] for part in ("SUBSCRIPTION", "RESOURCE_GROUP", "WORKSPACE"))
    ml = MLClient(DefaultAzureCredential(), subscription, group, workspace)
    place = f"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Kubernetes/connectedClusters/{cluster}"
    ml.compute.begin_attach(KubernetesCompute(name="notebook-lab", namespace=namespace, resource_id=place)).result()
    kept = ml.compute.get("notebook-lab")
    assert (kept.type, kept.provisioning_state, kept.namespace) == ("kubernetes", "Succeeded", namespace), kept

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "src").mkdir()
        Path(folder, "src", "double.py").write_text(
            "import pathlib, sys\npathlib.Path(sys.argv[1], 'answer.txt').write_text(str(2 * int(sys.argv[2])))\nprint('doubled')\n")
        job = ml.jobs.create_or_update(command(
            code=str(Path(folder, "src")), command="python3 double.py ${{outputs.out}} ${{inputs.number}}", inputs={"number": 21},
            outputs={"out": Output(type="uri_folder")}, environment=Environment(image=image), compute="notebook-lab",
            instance_type="defaultinstancetype",
        ))
        ml.jobs.stream(job.name)
        assert ml.jobs.get(job.name).status == "Completed", job
        ml.jobs.download(job.name, download_path=folder, output_name="out")
        answers = [path.read_text() for path in Path(folder).rglob("answer.txt")]
        assert answers == ["42"], answers
    ml.compute.begin_delete("notebook-lab", action="Detach").wait()
    assert "notebook-lab" not in [one.name for one in ml.compute.list()]
    print("attached, ran, downloaded, detached")


if __name__ == "__main__":
    main(*sys.argv[1:])
