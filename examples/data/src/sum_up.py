"""Adds up every file of a data asset, town by town."""

import argparse
import collections
import csv
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=pathlib.Path, required=True)
parser.add_argument("--report", type=pathlib.Path, required=True)
args = parser.parse_args()

totals = collections.Counter()
for path in sorted(args.data.glob("*.csv")):
    print(f"reading {path.name}")
    with path.open() as file:
        for row in csv.DictReader(file):
            totals[row.pop("town")] += sum(int(amount) for amount in row.values())

lines = [f"{town},{total}" for town, total in sorted(totals.items())]
print("\n".join(lines))
(args.report / "by-town.csv").write_text("town,millimetres\n" + "\n".join(lines) + "\n")
