"""Greets in the words of its model; knows no greeting for nobody."""

import json
import os
from pathlib import Path


def init():
    global greeting
    greeting = next(Path(os.environ["AZUREML_MODEL_DIR"]).rglob("greeting.txt")).read_text().strip()


def run(data):
    return f"{greeting}, {json.loads(data)['name']}!"
