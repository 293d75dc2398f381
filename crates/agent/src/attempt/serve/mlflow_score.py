"""Answers requests with an MLflow model, for deployments that bring no script of their own.

`input_data` is Azure's form, answered with the predictions alone; `dataframe_split`, `dataframe_records`, `instances`
and `inputs` are MLflow's, answered with `{"predictions": ...}`. What a caller got wrong is answered with 400.
"""

import base64
import datetime
import json
import math
import os

import mlflow.pyfunc
import numpy
import pandas
from azureml_inference_server_http.api.aml_response import AMLResponse
from mlflow.exceptions import MlflowException

FORMS = ("input_data", "dataframe_split", "dataframe_records", "instances", "inputs")


class Refused(Exception):
    """The caller's mistake, in words for the caller."""


def init():
    global model, schema
    model = mlflow.pyfunc.load_model(os.environ["PEREGRINE_MLFLOW_MODEL"])
    schema = model.metadata.get_input_schema()


def run(data):
    try:
        form, value, params = understand(data)
        table = read(form, value)
    except (Refused, MlflowException, ValueError, TypeError, KeyError) as error:
        return AMLResponse({"message": f"the request cannot be read: {error}"}, 400, json_str=True)
    try:
        predictions = plain(model.predict(table, params=params) if params else model.predict(table))
    except MlflowException as error:
        # MLflow compares the input with the model's signature before it asks the model.
        return AMLResponse({"message": f"the model does not take this input: {error}"}, 400, json_str=True)
    return predictions if form == "input_data" else {"predictions": predictions}


def understand(data):
    """The form of the request, what it holds, and the parameters beside it."""
    body = json.loads(data)
    forms = [form for form in FORMS if form in body] if isinstance(body, dict) else []
    if len(forms) != 1:
        raise Refused(f"it must be a JSON object with one of {', '.join(FORMS)}")
    params = body.get("params")
    if params is not None and not isinstance(params, dict):
        raise Refused("`params` must be an object")
    return forms[0], body[forms[0]], params


def read(form, value):
    """The input as the model takes it."""
    if form == "dataframe_split" or is_split(value):
        if not is_split(value):
            raise Refused("`dataframe_split` must be an object with `columns` and `data`")
        return frame({key: value[key] for key in ("columns", "index", "data") if key in value}, "split")
    if form == "dataframe_records" or is_records(value):
        return frame(value, "records")
    if schema is not None and not schema.is_tensor_spec():
        return frame(columns(value), "records")
    return tensor(value)


def is_split(value):
    return isinstance(value, dict) and isinstance(value.get("data"), list) and "columns" in value


def is_records(value):
    return isinstance(value, list) and len(value) > 0 and all(isinstance(row, dict) for row in value)


def columns(value):
    """Rows for a model whose columns have names, or the same without names."""
    if isinstance(value, dict):
        return pandas.DataFrame({name: items if isinstance(items, list) else [items] for name, items in value.items()}).to_dict("records")
    rows = value if isinstance(value, list) else [value]
    rows = [row if isinstance(row, list) else [row] for row in rows]
    names = schema.input_names() if schema.has_input_names() else range(len(rows[0]) if rows else 0)
    if any(len(row) != len(names) for row in rows):
        raise Refused(f"each row must have {len(names)} values")
    return [dict(zip(names, row)) for row in rows]


def frame(value, orient):
    """A table whose types are the signature's as far as JSON can say them."""
    try:
        from mlflow.utils.proto_json_utils import dataframe_from_parsed_json
    except ImportError:
        return pandas.DataFrame(**value) if orient == "split" else pandas.DataFrame(value)
    return dataframe_from_parsed_json(value, pandas_orient=orient, schema=schema)


def tensor(value):
    if isinstance(value, dict):
        named = {spec.name: spec.type for spec in schema.inputs} if schema is not None else {}
        return {name: numpy.asarray(items, dtype=named.get(name)) for name, items in value.items()}
    return numpy.asarray(value, dtype=schema.inputs[0].type if schema is not None else None)


def plain(value):
    """The same in what JSON knows."""
    if isinstance(value, pandas.DataFrame):
        return plain(value.to_dict(orient="records"))
    if isinstance(value, (pandas.Series, numpy.ndarray, numpy.generic)):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (datetime.date, datetime.datetime, pandas.Timestamp)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value
