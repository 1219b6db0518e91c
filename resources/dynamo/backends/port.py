"""Port: what a backend implements, and what it is given."""

from typing import Any, Protocol

from msgspec import Struct

from engine.report.printable import printable
from engine.resource import Body
from resources.dynamo.backends.addresses import NodeAddresses
from resources.dynamo.model.graph import Role

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


class Placement(Struct, frozen=True):
    """Where a container of a multinode service runs."""

    service: str
    """The service in the user's spelling."""
    role: Role
    nodes: int
    addresses: NodeAddresses
    gpus: int | None
    """The GPUs of one node by which processes are counted; None if the service names no number."""
    ssh_secret: str
    """The Secret with the SSH key pair."""
    is_current: bool = False
    """Whether the pod has the current form (`resources.dynamo.model.form`)."""

    def warning(self, reason: str) -> str:
        """A warning that names the service and the role."""
        return f"service {printable(self.service)}, {self.role}: {reason}"


class RewrittenContainer(Struct, frozen=True):
    """The main container as its framework needs it."""

    container: Body
    volumes: tuple[Body, ...] = ()
    """Volumes that the pod needs besides."""
    warnings: tuple[str, ...] = ()


class FrameworkBackend(Protocol):
    """One framework."""

    @property
    def cache_variable(self) -> str:
        """The variable that names the directory of the compilation cache; empty if the framework has none."""

    @property
    def cache_directory(self) -> str:
        """Where the compilation cache is mounted unless the service says so; empty if it must say so."""

    def rewritten(self, container: Body, placement: Placement) -> RewrittenContainer:
        """The container of a leader or a worker. Not called for single-node services. Raises `PodFault`."""


def without_probes(container: Body) -> dict[str, Any]:
    """The container of a worker that no probe can reach."""
    return {field: value for field, value in container.items() if field not in PROBES}
