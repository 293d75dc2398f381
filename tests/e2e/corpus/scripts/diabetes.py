import argparse

import pandas
from sklearn.linear_model import LinearRegression

parser = argparse.ArgumentParser()
parser.add_argument("--diabetes-csv", required=True)
frame = pandas.read_csv(parser.parse_args().diabetes_csv)
x, y = frame.drop(columns="target"), frame["target"]
print(f"linear regression: r2 {LinearRegression().fit(x, y).score(x, y):.2f}")
