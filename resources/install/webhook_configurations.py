"""Webhook configurations: which requests the API server sends to the engine's Service."""

from collections.abc import Iterator
from typing import Any

from resources.install.installation import NAME, EngineInstallation, metadata
from resources.install.webhooks import installed


def webhook_configurations(installation: EngineInstallation) -> Iterator[dict[str, Any]]:
    """The configurations without a CA: the engine adds that of its certificate, or whoever provides the certificate does."""
    for webhook in installed(protected=installation.protects, graphs=installation.graphs):
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
