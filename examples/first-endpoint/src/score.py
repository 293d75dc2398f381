"""A price from the size and the rooms of a house: weights from the model's folder, one line of arithmetic."""

import json
import os
from pathlib import Path


def init():
    global weights
    found = Path(os.environ["AZUREML_MODEL_DIR"]) / "model" / "weights.json"
    weights = json.loads(found.read_text())
    print(f"loaded {found}")


def run(data):
    houses = json.loads(data)["houses"]
    price = lambda house: weights["base"] + sum(weights[key] * house[key] for key in ("square_metres", "rooms"))
    return {"prices": [price(house) for house in houses]}
