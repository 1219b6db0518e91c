"""Publications: what an installation publishes, on a sandbox cluster."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from engine.errors import NotFound
from providers.snapshot import as_yaml
from resources.base.kinds import CONFIG_MAP
from resources.install.operator_configuration import publication_object
from resources.install.publication import NAME, NAMESPACE, published
from resources.ports.configuration import WAITER_IMAGE
from resources.settings import valid_settings
from tests.enginectl.box import Box

LINE = "configuration: installation in grove-system, version 0.1.0 (ConfigMap kube-public/grove-engine)"
NONE = "configuration: defaults (no installation: there is no ConfigMap kube-public/grove-engine)"


def publication(configuration: Mapping[str, Any], **data: str) -> dict[str, Any]:
    """The object of an installation in `grove-system` with this configuration; `data` replaces entries of it."""
    made = published(valid_settings(configuration), WAITER_IMAGE, "grove-system")
    body = publication_object(made, as_yaml(made.configuration))
    return {**body, "data": {**body["data"], **{key.replace("_", "."): value for key, value in data.items()}}}


def publish(box: Box, body: dict[str, Any]) -> None:
    """What `kubectl apply` does with the object."""
    client = box.cluster.client("user")
    with suppress(NotFound):
        box.portal.call(client.delete, CONFIG_MAP, NAMESPACE, NAME)
    box.portal.call(client.create, CONFIG_MAP, NAMESPACE, body)


def stored(box: Box) -> dict[str, Any]:
    """The object as the cluster has it."""
    return box.portal.call(box.cluster.client("user").get, CONFIG_MAP, NAMESPACE, NAME)
