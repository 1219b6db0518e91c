"""ServiceState: how many replicas of a service exist, are updated and can be used, on either path."""

from typing import Any

from msgspec import Struct

NOT_FOUND = "resource not found"
"""The reason of a service whose object does not exist (yet)."""


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

    @property
    def is_ready(self) -> bool:
        """Whether all replicas that are specified can be used."""
        return not self.reason

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
