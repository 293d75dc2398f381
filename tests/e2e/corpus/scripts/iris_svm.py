import argparse

import pandas
from sklearn.svm import SVC

parser = argparse.ArgumentParser()
parser.add_argument("--iris-csv", required=True)
parser.add_argument("--C", type=float, required=True)
parser.add_argument("--kernel", required=True)
parser.add_argument("--coef0", type=float, required=True)
args = parser.parse_args()
frame = pandas.read_csv(args.iris_csv)
x, y = frame.drop(columns="species"), frame["species"]
model = SVC(C=args.C, kernel=args.kernel, coef0=args.coef0).fit(x, y)
print(f"svm {args.kernel} C={args.C}: accuracy {model.score(x, y):.2f}")
