"""A notebook's worth of Azure ML code, unchanged: connect, submit, watch, fetch.

Before it: eval "$(peregrine sdk env)"
"""
import os
import pathlib

from azure.ai.ml import Input, MLClient, Output, command
from azure.identity import DefaultAzureCredential

here = pathlib.Path(__file__).parent
ml_client = MLClient(
    DefaultAzureCredential(),
    os.environ["PEREGRINE_SUBSCRIPTION"],
    os.environ["PEREGRINE_RESOURCE_GROUP"],
    os.environ["PEREGRINE_WORKSPACE"],
)
job = ml_client.jobs.create_or_update(
    command(
        display_name="fit-a-line",
        code=str(here / "src"),
        command="python train.py --points ${{inputs.points}} --out ${{outputs.model}}",
        inputs={"points": Input(type="uri_file", path=str(here / "points.csv"))},
        outputs={"model": Output(type="uri_folder")},
        environment="azureml:AzureML-Minimal@latest",
        compute="local",
    )
)
print("submitted", job.name)
ml_client.jobs.stream(job.name)
ml_client.jobs.download(job.name, output_name="model", download_path="fetched")
print((pathlib.Path("fetched") / "named-outputs" / "model" / "line.json").read_text())
