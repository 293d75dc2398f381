"""Multiplies by the number in the model's file, wherever below the model's folder that lies."""

import json
import os
import pathlib


def init():
    global FACTOR
    place = pathlib.Path(os.environ["AZUREML_MODEL_DIR"])
    found = [place] if place.is_file() else sorted(place.rglob("*.txt"))
    FACTOR = float(found[0].read_text())


def run(data):
    return {"scores": [FACTOR * x for x in json.loads(data)["data"]]}
