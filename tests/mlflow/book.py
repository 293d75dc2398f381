"""The book of one run of the surface: what each step answered, in words that do not depend on the server.

Names given out by the server (ids, times, addresses) are replaced by placeholders: the ones a step calls by name with
`call`, the rest by their shape. Two servers that behave alike fill in equal books.
"""

import base64
import json
import math
import re
import time
from enum import Enum

import mlflow
import requests
from mlflow.exceptions import MlflowException

# Tags whose value belongs to the machine the script runs on.
OF_THE_MACHINE = {"mlflow.user", "mlflow.source.name", "mlflow.source.type", "mlflow.source.git.commit", "mlflow.source.git.branch", "mlflow.log-model.history"}
# Keys whose value belongs to the machine or the moment, wherever they are.
OF_THE_MOMENT = {"user_id", "model_size_bytes", "mlflow_version", "trace_id", "request_id", "token_usage"}
HEX = r"[0-9a-f]{32}"
# What a message is about, most telling first; a message of no class stands for itself.
CLASSES = [
    (r"filter string|[Ss]earch filter|comparator|comparison|attribute key|entity type|only supported for|not quoted|parsing a list|Expected .*(value|quoted)", "filter"),
    (r"order[ _]?by|ordering", "order"),
    (r"page_?token|page token", "page token"),
    (r"already exists|already registered|[Dd]uplicate|UNIQUE constraint", "exists"),
    (r"Changing param|cannot be overwritten|already been logged|with value='|different value", "immutable"),
    (r"must be in the 'active' state|must be in 'active' lifecycle|must be in the 'deleted'|lifecycle|not in the active|deleted state", "lifecycle"),
    (r"not found|does not exist|No Experiment|no such|doesn't exist|could not find|No .* exists|no run|unable to find|[Nn]o such|No tag|[Tt]here is no|ensure that the path|[Uu]nable to find", "missing"),
    (r"[Mm]issing value for required|is required|must be provided|must be specified|cannot be empty|must supply|must not be empty|Missing", "required"),
    (r"exceeds? |more than|between \d|exceeded|at most|too long|maximum|limit|up to|must be at most|length", "value"),
    (r"stage", "stage"),
    (r"alias", "alias"),
    (r"parse|JSON|json|convert|type", "value"),
    (r"[Ii]nvalid|must |may only|should|not allowed|unsupported|[Gg]ot |can't|[Cc]annot|[Cc]ould not|must|not supported|[Ii]llegal|not valid", "value"),
]


class Book:
    """Runs steps and writes down their answers."""

    def __init__(self, base, token, prefix, only=()):
        self.pages, self.names, self.only, self.prefix = [], {}, only, prefix
        self.base, self.since = base.rstrip("/"), time.time() * 1000
        self.web = requests.Session()
        if token:
            self.web.headers["Authorization"] = f"Bearer {token}"

    def call(self, name, value):
        """Names a value the server has given out; it appears in the book under that name from here on."""
        if value:
            self.names[str(value)] = f"<{name}>"
        return value

    def __call__(self, step, act, *args, called=None, **options):
        """Does a step. The answer itself is returned (nothing if it failed); its normal form goes into the book.

        With `called`, the answer is an id, known under that name from here on.
        """
        try:
            answer = act(*args, **options)
            if called:
                self.call(called, answer)
                self.pages.append((step, {"ok": f"<{called}>"}))
                return answer
            self.pages.append((step, {"ok": self.normal(view(answer))}))
            return answer
        except MlflowException as error:
            self.pages.append((step, {"error": self.problem(error)}))
        except requests.HTTPError as error:
            self.pages.append((step, {"error": {"kind": "HTTPError", **self.normal(self.answer(error.response, None))}}))
        except Exception as error:  # a step that cannot be done because an earlier one went wrong, or a fault of the client
            self.pages.append((step, {"broken": {"kind": type(error).__name__, "message": self.words(str(error))[:300]}}))
        return None

    def wire(self, step, method, path, body=None, query=None, raw=None, headers=None, show=None, brief=False):
        """A request as the wire carries it: status, error code and body, whatever they are; or only the first two."""
        def act():
            sent = {"data": raw} if raw is not None else {"json": body} if body is not None else {}
            got = self.web.request(method, self.base + path, params=query, headers=headers, timeout=60, **sent)
            answer = self.answer(got, show)
            return {k: v for k, v in answer.items() if k in ("status", "code", "class")} if brief else answer
        return self(step, act)

    def api(self, step, method, path, body=None, **options):
        """The same under the tracking API's own root."""
        if method == "GET" and body is not None:
            options["query"], body = body, None
        return self.wire(step, method, "/api/2.0/mlflow/" + path, body, **options)

    @staticmethod
    def answer(got, show):
        try:
            body = got.json()
        except ValueError:
            kind = got.headers.get("Content-Type", "").split(";")[0]
            return {"status": got.status_code, "content": kind, "bytes": len(got.content)} if got.ok else {"status": got.status_code}
        if isinstance(body, dict) and "error_code" in body:
            message = str(body.get("message", ""))
            return {"status": got.status_code, "code": body["error_code"], "class": class_of(message), "message": message}
        if not got.ok:  # an answer in words that are not MLflow's; only its status is of interest
            return {"status": got.status_code}
        return {"status": got.status_code, "body": show(body) if show else body}

    def problem(self, error):
        status = getattr(error, "get_http_status_code", lambda: None)()
        message = self.words(error.message if isinstance(error.message, str) else str(error))
        message = message.removeprefix(f"{error.error_code}: ")
        return {"kind": type(error).__name__, "status": status, "code": error.error_code, "class": class_of(message), "message": message[:500]}

    def normal(self, value, key=None):
        if isinstance(value, dict):
            if set(value) == {"key", "value"} and value["key"] in OF_THE_MACHINE:
                return {"key": value["key"], "value": "<machine>"}
            return {self.words(str(k)): "<machine>" if k in OF_THE_MACHINE else self.normal(v, k) for k, v in sorted(value.items(), key=lambda kv: str(kv[0]))}
        if isinstance(value, (list, tuple)):
            return [self.normal(v) for v in value]
        if key in OF_THE_MOMENT and value is not None:
            return "<moment>"
        if isinstance(value, bool) or value is None:
            return value
        if key == "experiment_id":
            return self.names.get(str(value), str(value))
        if isinstance(value, float):
            return number(value, self.since)
        if isinstance(value, int):
            return "<now>" if self.since - 120_000 < value < self.since + 3_600_000 else value
        text = self.words(str(value))
        return text if len(text) < 400 else f"{text[:20]}.. of {len(text)}"

    def words(self, text):
        """Text without what the server made up."""
        if re.fullmatch(r"\d{13}", text) and self.since - 120_000 < int(text) < self.since + 3_600_000:
            return "<now>"
        for value, name in sorted(self.names.items(), key=lambda pair: -len(pair[0])):
            if len(value) >= 8:
                text = text.replace(value, name)
            else:
                text = re.sub(rf"(^|[/:='\"\[( ]){re.escape(value)}(?=$|[/'\"\]). ,])" if not value.isdigit() else
                              rf"(artifacts:/|experiments/|id=|ID=|ID |id |[Ee]xperiment ){value}(?=$|[/'\". ,])", lambda m: m.group(1) + name, text)
        text = text.replace(self.prefix, "<p>").replace(self.base, "<server>")
        text = re.sub(r"\{('[^']*'(, )?)+\}", lambda m: "{" + ", ".join(sorted(re.findall(r"'[^']*'", m.group()))) + "}", text)
        text = re.sub(r"\bm-" + HEX, "<model id>", text)
        text = re.sub(HEX, "<id>", text)
        text = re.sub(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", "<id>", text)
        text = re.sub(r"mlflow-artifacts:/+", "mlflow-artifacts:/", text)
        text = re.sub(r"/tmp/[\w./-]*", "<folder>", text)
        text = re.sub(r"\b[a-z]+-[a-z]+-\d{1,3}\b", "<random name>", text)
        return re.sub(r"\b0x[0-9a-f]+\b", "<address>", text)


def number(value, since):
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if since - 120_000 < value < since + 3_600_000:
        return "<now>"
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def class_of(message):
    for pattern, name in CLASSES:
        if re.search(pattern, message):
            return name
    return message[:60]


def view(value):
    """Any answer of the client as plain data."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, dict):
        return {str(view(k)): view(v) for k, v in value.items()}
    if isinstance(value, mlflow.store.entities.PagedList):
        return {"items": [view(v) for v in value], "more": bool(value.token)}
    if isinstance(value, (list, tuple, set)):
        return [view(v) for v in value]
    if isinstance(value, mlflow.entities._mlflow_object._MlflowObject):
        return {k: view(v) for k, v in value if not k.startswith("_")}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    try:
        return view(vars(value))
    except TypeError:
        return json.loads(json.dumps(value, default=str))
