"""The client's whole surface of webhooks, against the receiver whose address is the argument.

Says what the client was answered as one line of JSON; what the receiver heard is the caller's to look at.
"""

import json
import sys

from mlflow import MlflowClient
from mlflow.entities.webhook import WebhookEvent, WebhookStatus

client, url = MlflowClient(), sys.argv[1]
events = [WebhookEvent.from_str(word) for word in ("registered_model.created", "model_version.created", "model_version_tag.set", "model_version_alias.created")]
hook = client.create_webhook(name="client", url=url, events=events, secret="a well kept word", description="words")
tested = client.test_webhook(hook.webhook_id)
silent = client.update_webhook(hook.webhook_id, status=WebhookStatus.DISABLED)
client.create_registered_model("unheard")
again = client.update_webhook(hook.webhook_id, status=WebhookStatus.ACTIVE)
client.create_registered_model("net", tags={"a": "1"})
client.create_model_version("net", "s3://bucket/model")
client.set_model_version_tag("net", "1", "stage", "gold")
client.set_registered_model_alias("net", "best", "1")
brief = client.create_webhook(name="brief", url=url, events=events[:1])
listed = [hook.name for hook in client.list_webhooks()]
client.delete_webhook(brief.webhook_id)
print(json.dumps({
    "tested": [tested.success, tested.response_status, tested.response_body], "silent": str(silent.status), "again": str(again.status),
    "read": [str(event) for event in client.get_webhook(hook.webhook_id).events], "listed": listed, "left": len(client.list_webhooks()),
}))
