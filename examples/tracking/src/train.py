"""Trains a small tree and logs it with MLflow, as a script for Azure ML does: no address, no token, no run to start."""
import argparse

import mlflow
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

parser = argparse.ArgumentParser()
parser.add_argument("--depth", type=int, default=4)
depth = parser.parse_args().depth

mlflow.sklearn.autolog(log_input_examples=False, log_datasets=False)
features, labels = make_classification(n_samples=2000, n_features=12, random_state=7)
train_x, test_x, train_y, test_y = train_test_split(features, labels, random_state=7)
for step in range(1, depth + 1):
    model = DecisionTreeClassifier(max_depth=step, random_state=7)
    if step < depth:
        with mlflow.utils.autologging_utils.disable_autologging():
            model.fit(train_x, train_y)
    else:
        model.fit(train_x, train_y)
    mlflow.log_metric("held_out_accuracy", model.score(test_x, test_y), step=step)
mlflow.set_tag("kind", "tree")
print("logged to run", mlflow.active_run().info.run_id)
