"""Stands in for a trained model: a straight line whose slope and offset are the model's data."""

import json
import os


class Thermometer:
    def __init__(self, folder):
        with open(os.path.join(folder, "line.json")) as file:
            self.line = json.load(file)

    def predict(self, table, params=None):
        return (table["fahrenheit"] * self.line["slope"] + self.line["offset"]).round(1).tolist()


def _load_pyfunc(folder):
    return Thermometer(folder)
