"""Trains a random forest on data made here, and checks that it has learned something.

The model goes to the output named on the command line; the figures go there and to ./outputs.
"""

import argparse
import json
import pathlib

import joblib
import sklearn
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--trees", type=int, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    args = parser.parse_args()

    x, y = make_classification(n_samples=args.rows, n_features=20, n_informative=8, random_state=7)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, random_state=7)
    print(f"scikit-learn {sklearn.__version__}: {len(x_train)} rows to learn from, {len(x_test)} to test on", flush=True)

    # Trees are added in four rounds, so that the log shows how the model gets better.
    forest = RandomForestClassifier(n_estimators=0, warm_start=True, random_state=7)
    metrics = {}
    for part in range(1, 5):
        forest.n_estimators = max(1, args.trees * part // 4)
        forest.fit(x_train, y_train)
        metrics = {
            "trees": forest.n_estimators,
            "accuracy": round(accuracy_score(y_test, forest.predict(x_test)), 4),
            "auc": round(roc_auc_score(y_test, forest.predict_proba(x_test)[:, 1]), 4),
        }
        print(json.dumps(metrics), flush=True)
    if metrics["accuracy"] < 0.8:
        raise SystemExit(f"accuracy {metrics['accuracy']} is no better than a guess would be")

    save(args.model, forest, metrics)
    print("the model and its figures are stored")


def save(model: pathlib.Path, forest: RandomForestClassifier, metrics: dict) -> None:
    joblib.dump(forest, model / "model.joblib")
    captured = pathlib.Path("outputs")
    captured.mkdir(exist_ok=True)
    for folder in (model, captured):
        (folder / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")


main()
