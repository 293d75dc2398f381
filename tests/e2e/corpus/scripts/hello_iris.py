import argparse

import pandas

parser = argparse.ArgumentParser()
parser.add_argument("--iris-csv", required=True)
frame = pandas.read_csv(parser.parse_args().iris_csv)
print(f"{len(frame)} flowers of {frame['species'].nunique()} species")
