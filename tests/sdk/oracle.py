"""What the real SDK sends for a file: `load_*`, then create, with the network replaced by a stand-in in this process.

Nothing leaves the process. The stand-in keeps every PUT of a resource and answers it with the resource itself, says 404
to every look-up of a thing that was not put, and takes every upload.
"""

import base64
import contextlib
import io
import json
import logging
import os
import re
import time
import warnings
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

SUBSCRIPTION, GROUP, WORKSPACE = "00000000-0000-0000-0000-000000000001", "rg1", "ws1"
HOST = "https://oracle.invalid"
PROVIDER = "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.MachineLearningServices".format(SUBSCRIPTION, GROUP)
SCOPE = PROVIDER + "/workspaces/" + WORKSPACE
SYSTEM = {"createdAt": "2026-01-01T00:00:00+00:00", "createdBy": "o", "createdByType": "User", "lastModifiedAt": "2026-01-01T00:00:00+00:00"}

METADATA = [{
    "name": "Oracle", "portal": HOST, "authentication": {"loginEndpoint": HOST, "audiences": [HOST], "tenant": "t", "identityProvider": "AAD"},
    "media": HOST, "graphAudience": HOST, "graph": HOST, "resourceManager": HOST,
    "suffixes": {"storage": "oracle.invalid", "storageEndpoint": "oracle.invalid", "azureDataLakeStoreFileSystem": "", "acrLoginServer": "", "sqlServerHostname": "",
                 "azureDataLakeAnalyticsCatalogAndJob": "", "keyVaultDns": ""},
    "batch": "", "resourceManagerEndpoint": HOST, "vmImageAliasDoc": "", "sqlManagement": "", "activeDirectoryDataLake": "", "gallery": "",
}]


def prepare():
    """Points the SDK at the stand-in; must run before it is imported."""
    os.environ["ARM_CLOUD_METADATA_URL"] = HOST + "/metadata/endpoints?api-version=2019-05-01"
    os.environ["AZUREML_CURRENT_CLOUD"] = "Oracle"
    os.environ["AZURE_ML_CLI_PRIVATE_FEATURES_ENABLED"] = "false"
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)


class StandIn:
    """Answers as a workspace would in which nothing is registered yet."""

    def __init__(self):
        self.clear()

    def clear(self, latest=False):
        """`latest`: a name that is asked for has one version."""
        self.sent, self.kept, self.latest = [], {}, latest

    def answer(self, method, url, body):
        parts = urlsplit(url)
        path = unquote(parts.path)
        if path.startswith("/metadata/"):
            return 200, METADATA, {}
        if ".blob." in parts.netloc or path.startswith("/blob/"):
            return self.blob(method, parts.query)
        if path.endswith("/startPendingUpload"):
            return 200, self.pending(path), {}
        if path.endswith("/listSecrets"):
            return 200, {"secretsType": "Sas", "sasToken": "sv=1&sig=x"}, {}
        if method in ("PUT", "PATCH"):
            return self.put(method, path, body)
        if method == "POST":
            return 200, {}, {}
        return self.get(path, parse_qs(parts.query))

    def blob(self, method, query):
        head = {"ETag": '"1"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "x-ms-version": "2020-01-01", "Date": "Thu, 01 Jan 2026 00:00:00 GMT"}
        if method == "PUT":
            return 200 if "comp=metadata" in query else 201, None, head
        if method == "HEAD":
            return 404, None, {"x-ms-error-code": "BlobNotFound"}
        return 200, '<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs/><NextMarker/></EnumerationResults>', dict(head, **{"Content-Type": "application/xml"})

    def pending(self, path):
        container = "https://a.blob.oracle.invalid/" + path.split("/versions/")[0].rsplit("/", 1)[1]
        return {"pendingUploadId": "1", "pendingUploadType": "TemporaryBlobReference", "blobReferenceForConsumption": {
            "blobUri": container, "storageAccountArmId": "s", "credential": {"credentialType": "SAS", "sasUri": container + "?sv=1&sig=x"}}}

    def put(self, method, path, body):
        sent = json.loads(body) if body else {}
        self.sent.append({"method": method, "path": path, "body": sent})
        kept = dict(json.loads(json.dumps(sent)), id=path, name=path.rsplit("/", 1)[1], type="x", systemData=SYSTEM)
        kept.setdefault("properties", {})
        if "deployments" in path and "Microsoft.Resources" in path:
            kept["properties"] = {"provisioningState": "Succeeded", "outputs": {}}
        elif "/jobs/" in path:
            kept["properties"].update(status="NotStarted", services={})
        elif any("/%s/" % noun in path for noun in ("computes", "onlineEndpoints", "batchEndpoints", "schedules", "workspaces")):
            kept["properties"]["provisioningState"] = "Succeeded"
        if "/models/" in path:
            kept["properties"].setdefault("flavors", {})
        self.kept[path] = kept
        return 200, kept, {}

    def get(self, path, query):
        if path in self.kept:
            return 200, self.kept[path], {}
        if path == SCOPE or path.lower() == SCOPE.lower():
            return 200, workspace(), {}
        if path.endswith("/operations"):
            return 200, {"value": []}, {}
        if path.endswith("/versions") and "hash" in query:
            return 200, {"value": []}, {}
        if path.endswith("/versions"):
            name = path.split("/")[-2]
            return 200, {"value": [version(path + "/1", name)]}, {}
        if path.endswith("/datastores"):
            return 200, {"value": [datastore("workspaceblobstore")]}, {}
        if "/datastores/" in path:
            return 200, datastore(path.rsplit("/", 1)[1]), {}
        if path.endswith("/discovery"):
            return 200, {"api": HOST, "studio": HOST, "history": HOST}, {}
        if re.search(r"/(online|batch)Endpoints/[^/]+$", path):
            return 200, endpoint(path), {}
        if path.endswith("/deployments"):
            return 200, {"value": []}, {}
        if re.search(r"/(data|models|environments|components)/[^/]+$", path) and self.latest:
            return 200, {"id": path, "name": path.rsplit("/", 1)[1], "type": "x", "systemData": SYSTEM, "properties": {"latestVersion": "1", "nextVersion": "2", "dataType": "uri_folder"}}, {}
        if re.search(r"/(data|models|environments)/[^/]+/versions/[^/]+$", path) and self.latest:
            return 200, version(path, path.split("/")[-3]), {}
        if "/computes/" in path:
            return 200, compute(path), {}
        return 404, {"error": {"code": "NotFound", "message": "nothing is here"}}, {}


def workspace():
    return {"id": SCOPE, "name": WORKSPACE, "type": "x", "location": "local", "tags": {}, "systemData": SYSTEM, "kind": "Default", "properties": {
        "workspaceId": "11111111-1111-1111-1111-111111111111", "discoveryUrl": HOST + "/discovery", "provisioningState": "Succeeded",
        "storageAccount": "s", "friendlyName": WORKSPACE, "mlFlowTrackingUri": HOST}}


def datastore(name):
    return {"id": SCOPE + "/datastores/" + name, "name": name, "type": "x", "systemData": SYSTEM, "properties": {
        "datastoreType": "AzureBlob", "accountName": "a", "containerName": "c", "endpoint": "oracle.invalid", "protocol": "https", "isDefault": name == "workspaceblobstore",
        "tags": {}, "credentials": {"credentialsType": "Sas"}}}


def compute(path):
    return {"id": path, "name": path.rsplit("/", 1)[1], "type": "x", "location": "local", "tags": {}, "systemData": SYSTEM, "properties": {
        "computeType": "AmlCompute", "provisioningState": "Succeeded", "properties": {"vmSize": "Standard_DS3_v2", "scaleSettings": {"minNodeCount": 0, "maxNodeCount": 1}}}}


def endpoint(path):
    mode = "Key" if "onlineEndpoints" in path else "AADToken"
    return {"id": path, "name": path.rsplit("/", 1)[1], "type": "x", "location": "local", "tags": {}, "systemData": SYSTEM, "properties": {
        "authMode": mode, "provisioningState": "Succeeded", "properties": {}, "traffic": {}, "mirrorTraffic": {}, "scoringUri": HOST, "defaults": {}}}


def version(path, name):
    return {"id": path, "name": "1", "type": "x", "systemData": SYSTEM, "properties": {
        "isAnonymous": False, "isArchived": False, "tags": {}, "properties": {}, "flavors": {}, "image": "i", "modelUri": "azureml://x", "dataUri": "azureml://x", "dataType": "uri_folder",
        "componentSpec": {"name": name, "version": "1", "type": "command", "command": "echo", "environment": "azureml:e:1", "inputs": {}, "outputs": {}}}}


class Credential:
    def get_token(self, *scopes, **_):
        from azure.core.credentials import AccessToken

        def part(value):
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        until = int(time.time()) + 3600
        claims = {"aud": scopes[0][: -len("/.default")], "exp": until, "oid": "o", "tid": "t"}
        return AccessToken("%s.%s.c2ln" % (part({"alg": "HS256", "typ": "JWT"}), part(claims)), until)


def install(stand_in):
    """Every HTTP call of this process goes to the stand-in."""
    import requests

    def request(self, method, url, **kw):
        data = kw.get("data")
        if kw.get("json") is not None:
            data = json.dumps(kw["json"])
        if hasattr(data, "read"):
            data = data.read()
        if isinstance(data, bytes) and method in ("PUT", "PATCH") and "application/json" in str((kw.get("headers") or {}).get("Content-Type", "")):
            data = data.decode()
        status, body, headers = stand_in.answer(method.upper(), url, data)
        answer = requests.Response()
        answer.status_code, answer.url, answer.reason = status, url, "said"
        text = body if isinstance(body, str) else ("" if body is None else json.dumps(body))
        answer.headers.update({"Content-Type": "application/json", **headers, "Content-Length": str(len(text))})
        answer._content = text.encode()
        answer.raw = io.BytesIO(answer._content)
        answer.raw.headers = answer.headers
        answer.raw.enforce_content_length = False
        answer.encoding = "utf-8"
        answer.request = requests.Request(method, url).prepare()
        return answer

    requests.sessions.Session.request = request


class Oracle:
    """One client; `bodies(noun, file)` is what it sends."""

    def __init__(self):
        prepare()
        self.stand_in = StandIn()
        install(self.stand_in)
        import azure.ai.ml as ml

        self.ml = ml
        self.client = ml.MLClient(Credential(), SUBSCRIPTION, GROUP, WORKSPACE, enable_telemetry=False)

    def bodies(self, noun, file):
        self.stand_in.clear(latest=noun in ("job", "schedule"))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            self.create(noun, file)
        return self.stand_in.sent

    def create(self, noun, file):
        from azure.ai.ml.entities import _load_functions as more

        ml, client = self.ml, self.client
        if noun == "job":
            client.jobs.create_or_update(ml.load_job(file))
        elif noun == "component":
            client.components.create_or_update(ml.load_component(file))
        elif noun in ("environment", "data", "model", "datastore"):
            operations = {"environment": client.environments, "data": client.data, "model": client.models, "datastore": client.datastores}[noun]
            operations.create_or_update(getattr(ml, "load_" + noun)(file))
        elif noun == "compute":
            client.compute.begin_create_or_update(ml.load_compute(file))
        elif noun == "schedule":
            client.schedules.begin_create_or_update(more.load_schedule(file))
        elif noun == "workspace":
            client.workspaces.begin_create(ml.load_workspace(file))
        elif noun == "online-endpoint":
            client.online_endpoints.begin_create_or_update(ml.load_online_endpoint(file))
        elif noun == "online-deployment":
            client.online_deployments.begin_create_or_update(ml.load_online_deployment(file), skip_script_validation=True)
        elif noun == "batch-endpoint":
            client.batch_endpoints.begin_create_or_update(ml.load_batch_endpoint(file))
        elif noun == "batch-deployment":
            with open(file) as text:
                kind = (yaml.safe_load(text) or {}).get("type")
            load = {"model": more.load_model_batch_deployment, "pipeline": more.load_pipeline_component_batch_deployment}
            client.batch_deployments.begin_create_or_update(load.get(kind, ml.load_batch_deployment)(file), skip_script_validation=True)
        else:
            raise ValueError("no operation for " + noun)
