"""ServiceState: how many replicas of a service exist, are updated and can be used, on either path."""

from enum import StrEnum
from typing import Any

from msgspec import Struct

NOT_FOUND = "resource not found"
"""The reason of a service whose object does not exist (yet)."""


class NotReady(StrEnum):
    """Why a service is not ready, as the reason of the condition of its graph."""

    OTHER = "some_resources_are_not_ready"
    """Its object does not exist yet, or something else is missing."""
    STARTING = "pods_not_ready"
    UPDATING = "updating"
    """Replicas with the current template are missing."""
    NO_ROOM = "insufficient_capacity"
    """The scheduler has found no node for a pod."""
    SEVERAL = "mixed_not_ready_reasons"
    """Services are not ready for different reasons."""


class ServiceState(Struct, frozen=True):
    """The observed state of one service of a graph."""

    service: str
    """The key in `spec.services`."""
    component_kind: str
    """The kind of the object that runs the service: PodClique, PodCliqueScalingGroup, Deployment or LeaderWorkerSet."""
    component_name: str
    """The name of that object; of several, the first one's."""
    replicas: int = 0
    """The replicas that exist."""
    updated_replicas: int = 0
    """The replicas whose pods have the current template."""
    ready_replicas: int | None = None
    """The replicas that are ready; None for kinds that do not count them."""
    available_replicas: int | None = None
    """The replicas that are available; None for kinds that do not count them."""
    reason: str = ""
    """Why the service is not ready, as the condition of the graph names it; empty if it is ready."""
    exists: bool = True
    """Whether its object exists."""
    has_room: bool = True
    """Whether the scheduler has found nodes for its pods, as far as it has reported."""

    is_paused: bool = False
    """Whether it is a Deployment that is paused while pods have an earlier template: its controller replaces none."""

    @property
    def is_ready(self) -> bool:
        """Whether all replicas that are specified can be used."""
        return not self.reason

    @property
    def cause(self) -> NotReady:
        """Why the service is not ready."""
        if not self.exists:
            return NotReady.OTHER
        if not self.has_room:
            return NotReady.NO_ROOM
        return NotReady.UPDATING if self.updated_replicas < self.replicas else NotReady.STARTING

    @property
    def status(self) -> dict[str, Any]:
        """The entry of the service in `status.services` of the graph. Counts that its kind does not have are left out."""
        optional = {"readyReplicas": self.ready_replicas, "availableReplicas": self.available_replicas}
        return {
            "componentKind": self.component_kind,
            "componentName": self.component_name,
            "replicas": self.replicas,
            "updatedReplicas": self.updated_replicas,
            **{field: count for field, count in optional.items() if count is not None},
        }
