"""A loss that falls step by step, to where the rate and the depth allow."""

import argparse
import json
import math
from pathlib import Path

import mlflow

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, required=True)
parser.add_argument("--depth", type=int, required=True)
parser.add_argument("--out", type=Path, required=True)
args = parser.parse_args()

floor = 0.1 * (math.log(args.rate) + 3) ** 2 + 0.05 * (args.depth - 5) ** 2
for step in range(10):
    loss = floor + math.exp(-step)
    mlflow.log_metric("loss", loss, step=step)
args.out.mkdir(parents=True, exist_ok=True)
(args.out / "model.json").write_text(json.dumps({"rate": args.rate, "depth": args.depth, "loss": loss}))
print(f"loss {loss:.4f}")
