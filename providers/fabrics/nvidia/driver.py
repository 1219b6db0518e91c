"""Driver: finds the controller of the DRA driver, and words messages about the driver's parts."""

from collections.abc import Iterable

from engine.observed import Live
from providers.fabrics.nvidia.names import COMPONENT_LABELS


def controllers(deployments: Iterable[Live]) -> list[Live]:
    """The Deployments among these that are the driver's controller."""
    return [live for live in deployments if any(live.labels.get(key) == "controller" for key in COMPONENT_LABELS)]


def in_namespace(noun: str, namespace: str) -> str:
    """A part of the driver in words, with the driver's namespace if that is not empty: `DRA driver (namespace nvidia)`."""
    return f"{noun} (namespace {namespace})" if namespace else noun


def check_controller(namespace: str) -> str:
    """The advice to check the controller; `namespace` is the driver's, or empty if it is not known."""
    where = f"kubectl -n {namespace} get deployments,pods" if namespace else "engine preflight"
    return f"check that the controller of the DRA driver runs: {where}"


def check_plugin(namespace: str) -> str:
    """The advice to check the kubelet plugin; `namespace` is the driver's, or empty if it is not known."""
    how = f": kubectl -n {namespace} get pods -o wide" if namespace else ""
    return f"check that the kubelet plugin of the DRA driver runs on the nodes with GPUs{how}"
