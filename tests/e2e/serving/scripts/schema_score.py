"""Doubles numbers; says by decorators what it takes."""

import numpy as np
from inference_schema.parameter_types.numpy_parameter_type import NumpyParameterType
from inference_schema.schema_decorators import input_schema, output_schema


def init():
    pass


@input_schema("data", NumpyParameterType(np.array([[1.0, 2.0]])))
@output_schema(NumpyParameterType(np.array([[2.0, 4.0]])))
def run(data):
    return (data * 2).tolist()
