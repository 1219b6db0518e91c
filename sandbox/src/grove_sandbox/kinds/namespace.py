"""Namespaces: their name label, their finalizer in the spec, and their phase."""

from grove_sandbox.kinds.rules import Draft, Environment, Rules, keep_spec
from grove_sandbox.product import Body, label_faults

_NAME = "kubernetes.io/metadata.name"


def _default(namespace: Draft) -> None:
    if name := namespace["metadata"].get("name"):
        namespace["metadata"].setdefault("labels", {})[_NAME] = name


def _create(namespace: Draft, _: Environment) -> None:
    finalizers = namespace["spec"].get("finalizers") or []
    namespace["spec"] = {"finalizers": finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _update(namespace: Draft, old: Body, _: Environment) -> None:
    namespace["spec"] = old["spec"]
    namespace["status"] = old["status"]


NAMESPACE = Rules(
    default=_default,
    create=_create,
    update=_update,
    status=keep_spec,
    name_faults=label_faults,
)
