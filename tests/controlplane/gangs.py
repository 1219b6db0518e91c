"""Gangs of kube-scheduler on a control plane: the flags that it needs, and whether all of them are asked to have it (GANGS)."""

import os
from typing import Final

GATES: Final = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true"
"""With these kube-scheduler of Kubernetes 1.37 schedules gangs, hierarchies and topologies."""
FLAT_GATES: Final = "--feature-gates=GenericWorkload=true"
"""With these it schedules gangs, and the API server drops their topology."""
VERSIONS: Final = "--runtime-config=scheduling.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha3=true"
PROTECTION: Final = "podgroup-protection-controller"
"""The controller that releases PodGroups when their pods are gone."""


def gates_asked_for() -> str:
    """The gates that the environment variable GANGS asks for (`make e2e GANGS=on`). Raises `ValueError` if it is neither on nor off."""
    return GATES if are_asked_for() else ""


def are_asked_for() -> bool:
    """Whether the environment variable GANGS asks for gangs. Raises `ValueError` if it is neither on nor off."""
    value = os.environ.get("GANGS") or "off"
    if value not in ("on", "off"):
        raise ValueError(f"GANGS: on or off, not {value}")
    return value == "on"
