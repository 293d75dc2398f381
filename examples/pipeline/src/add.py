"""Adds the numbers of a file, each times a factor."""

import argparse
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("numbers", type=pathlib.Path)
parser.add_argument("scale", type=float)
parser.add_argument("total", type=pathlib.Path)
parser.add_argument("--note", default="")
args = parser.parse_args()
total = sum(args.scale * float(line) for line in (args.numbers / "numbers.txt").read_text().split())
args.total.parent.mkdir(parents=True, exist_ok=True)
args.total.write_text(str(total))
print(f"total {total} {args.note}")
