import argparse

import lightgbm
import pandas

parser = argparse.ArgumentParser()
parser.add_argument("--iris-csv", required=True)
frame = pandas.read_csv(parser.parse_args().iris_csv)
x, y = frame.drop(columns="species"), frame["species"].astype("category").cat.codes
model = lightgbm.LGBMClassifier(n_estimators=10, min_child_samples=1).fit(x, y)
print(f"lightgbm {lightgbm.__version__}: accuracy {model.score(x, y):.2f}")
