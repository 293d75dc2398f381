"""Counts the bytes of a request that is no JSON."""

import json

from azureml_inference_server_http.api.aml_request import rawhttp
from azureml_inference_server_http.api.aml_response import AMLResponse


def init():
    pass


@rawhttp
def run(request):
    return AMLResponse(json.dumps({"bytes": len(request.get_data())}), 200)
