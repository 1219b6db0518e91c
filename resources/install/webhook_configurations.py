"""Webhook configurations: which requests the API server sends to the engine's Service."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.ids import Kind
from resources.admission.request import Act
from resources.install.installation import NAME, EngineInstallation, metadata
from resources.install.webhooks import installed


def webhook_configurations(installation: EngineInstallation, protected: Mapping[Kind, frozenset[Act]]) -> Iterator[dict[str, Any]]:
    """The configurations; that of managed objects is asked about the `protected` operations: kind -> operations.

    They have no CA: the engine adds that of its certificate, or whoever provides the certificate does.
    """
    for webhook in installed(protected, graphs=installation.graphs):
        service = {
            "name": NAME,
            "namespace": installation.namespace,
            "path": webhook.path,
            "port": installation.port("webhooks"),
        }
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": webhook.kind,
            "metadata": metadata(webhook.configuration, component="webhooks"),
            "webhooks": [webhook.body({"service": service}, installation.namespaces)],
        }
