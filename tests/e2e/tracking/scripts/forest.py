"""Searches over small forests with scikit-learn. Nothing here knows of Peregrine: MLflow logs by itself."""
import mlflow
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV

mlflow.autolog()
features, labels = load_iris(return_X_y=True, as_frame=True)
GridSearchCV(RandomForestClassifier(random_state=7), {"n_estimators": [2, 8], "max_depth": [2, 4]}, cv=3).fit(features, labels)
print("mlflow", mlflow.__version__)
