"""Greets in the words of its model; knows no greeting for nobody."""

import json
import os
from pathlib import Path


def init():
    global greeting
    # The model's folder keeps its name below the model directory: `model-1` or `model-2`.
    greeting = next(Path(os.environ["AZUREML_MODEL_DIR"]).glob("*/greeting.txt")).read_text().strip()


def run(data):
    return f"{greeting}, {json.loads(data)['name']}!"
