"""A job of the unmodified SDK on a managed cluster and on a machine attached over SSH.

Usage: targets.py ADDRESS PORT USER PRIVATE-KEY-FILE     (with what `peregrine sdk env` prints)
"""
import os
import sys

from azure.ai.ml import MLClient, command
from azure.ai.ml.entities import AmlCompute, VirtualMachineCompute, VirtualMachineSshSettings
from azure.identity import DefaultAzureCredential

address, port, user, key = sys.argv[1:]
subscription, group = os.environ["PEREGRINE_SUBSCRIPTION"], os.environ["PEREGRINE_RESOURCE_GROUP"]
ml = MLClient(DefaultAzureCredential(), subscription, group, os.environ["PEREGRINE_WORKSPACE"])


def runs_on(target):
    job = command(command="echo here", environment="azureml:AzureML-Minimal@latest", compute=target)
    job = ml.jobs.create_or_update(job)
    ml.jobs.stream(job.name)
    ended = ml.jobs.get(job.name)
    assert (ended.status, ended.compute) == ("Completed", target), (ended.status, ended.compute)


ml.compute.begin_create_or_update(AmlCompute(name="crew", size="Standard_D1_v2", min_instances=0, max_instances=1)).result()
runs_on("crew")
assert len(list(ml.compute.list_nodes("crew"))) == 1

machine = f"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{address}"
ssh = VirtualMachineSshSettings(admin_username=user, ssh_private_key_file=key, ssh_port=int(port))
attached = ml.compute.begin_attach(VirtualMachineCompute(name="box", resource_id=machine, ssh_settings=ssh)).result()
assert attached.provisioning_state == "Succeeded", attached
runs_on("box")
ml.compute.begin_delete("box", action="Detach").result()
ml.compute.begin_delete("crew").result()
assert {target.name for target in ml.compute.list()} == {"local"}
print("both ran it")
