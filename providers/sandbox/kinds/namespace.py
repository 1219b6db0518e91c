"""Namespaces: their label, their own finalizer, and their phases."""

from collections.abc import Mapping
from typing import Any

from providers.sandbox.kinds.rules import Rules, Scene
from providers.sandbox.types import names

Body = Mapping[str, Any]
Draft = dict[str, Any]
_NAME = "kubernetes.io/metadata.name"


def _default(namespace: Draft) -> None:
    if name := namespace["metadata"].get("name"):
        namespace["metadata"].setdefault("labels", {})[_NAME] = name


def _create(namespace: Draft, _: Scene) -> None:
    finalizers = namespace["spec"].get("finalizers") or []
    namespace["spec"] = {"finalizers": finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _update(namespace: Draft, old: Body, _: Scene) -> None:
    namespace["spec"] = old["spec"]
    namespace["status"] = old["status"]


def _update_status(namespace: Draft, old: Body, _: Scene) -> None:
    namespace["spec"] = old["spec"]


NAMESPACE = Rules(
    default=_default,
    create=_create,
    update=_update,
    status=_update_status,
    name_faults=names.label_faults,
)
