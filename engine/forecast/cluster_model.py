"""ClusterModel: how everything else in a cluster answers to what the engine writes, as a forecast assumes."""

from enum import StrEnum
from typing import Protocol

from engine.forecast.store import ForecastStore


class Assumption(StrEnum):
    """What a forecast takes for granted about the cluster."""

    CAPACITY = "capacity"
    """A new pod without a scheduling gate is scheduled and ready by the next pass."""
    FAILURES_STAY = "failures stay"
    """A pod that has failed, is failing, or cannot be scheduled stays so; other pods become ready."""
    DELETION = "deletion"
    """A deleted pod terminates in one pass; one whose deletion is overdue stays."""
    KUBERNETES = "kubernetes"
    """Other objects go at once, other programs remove their finalizers, dependents are collected, and token Secrets are filled."""
    FABRIC = "fabric"
    """The driver of the fabric creates and removes what belongs to a domain."""
    NOBODY_ELSE = "nobody else"
    """No autoscaler, user or program changes anything."""


class ClusterModel(Protocol):
    """A cluster's answers. It has a state: what it has still to do."""

    def answer(self, store: ForecastStore) -> frozenset[Assumption]:
        """Change the store as the cluster does between two passes. Returns the assumptions that this relies on; none if nothing changed."""
        ...
