"""Scores a file by the number in it, times the number of the model: as rows, and in files of its own with what it is told."""

import glob
import os


def init():
    global factor
    (path,) = glob.glob(os.path.join(os.environ["AZUREML_MODEL_DIR"], "**", "factor.txt"), recursive=True)
    with open(path) as text:
        factor = int(text.read())


def run(batch):
    rows = []
    for path in batch:
        with open(path) as text:
            rows.append(f"{os.path.basename(path)},{factor * int(text.read())}")
    own = os.path.join(os.environ["AZUREML_BI_OUTPUT_PATH"], os.path.basename(batch[0]) + ".scored")
    with open(own, "w") as out:
        print(*rows, os.environ.get("OPENAI_API_VERSION", ""), sep="\n", file=out)
    return rows
