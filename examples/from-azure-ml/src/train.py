"""Fits a line to the points of a CSV file and keeps the coefficients."""
import argparse
import csv
import json
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--points", required=True)
parser.add_argument("--out", required=True)
arguments = parser.parse_args()

with open(arguments.points) as file:
    points = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]
count = len(points)
mean_x = sum(x for x, _ in points) / count
mean_y = sum(y for _, y in points) / count
slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
line = {"points": count, "slope": round(slope, 4), "offset": round(mean_y - slope * mean_x, 4)}
print(json.dumps(line))

folder = pathlib.Path(arguments.out)
folder.mkdir(parents=True, exist_ok=True)
(folder / "line.json").write_text(json.dumps(line))
