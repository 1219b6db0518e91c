"""Port: what a backend implements, and what it is given."""

from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.report.printable import printable
from engine.resource import Body
from resources.dynamo.backends.addresses import NodeAddresses
from resources.dynamo.backends.executor import Executor
from resources.dynamo.model.form import PodForm
from resources.dynamo.model.graph import Role

RANK = "DYNAMO_RANK"
"""The variable with the rank of a pod within its replica: 0 is the leader."""
LEADER = "DYNAMO_LEADER_ADDRESS"
"""The variable with the host of the leader."""
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
    form: PodForm = PodForm.FIRST
    """The form of the pod."""
    executor: Executor = Executor.RAY
    """By what the nodes of a vLLM service join."""
    node_gpus: int | None = None
    """The GPUs of one node that vLLM has; None if the service names no number."""
    user: int | None = None
    """The number of the user that the container or its pod names; None if they name none."""
    without_ray: str = ""
    """The image of the container if it is known to have no Ray."""
    is_of_role: bool = False
    """Whether the container belongs to one role alone: then the command of its user joins the nodes."""

    @property
    def knows_ranks(self) -> bool:
        """Whether the pod has the third form or a later one."""
        return self.form.includes(PodForm.THIRD)

    @property
    def is_recorded(self) -> bool:
        """Whether the pod has the second form or a later one."""
        return self.form is not PodForm.FIRST

    def warning(self, reason: str) -> str:
        """A warning that names the service and the role."""
        return f"service {printable(self.service)}, {self.role}: {reason}"


class RewrittenContainer(Struct, frozen=True):
    """The main container as its framework needs it."""

    container: Body
    volumes: tuple[Body, ...] = ()
    """Volumes that the pod needs besides."""
    init_containers: tuple[Body, ...] = ()
    """Init containers that the pod needs besides, behind those of the user."""
    shared_envs: tuple[Body, ...] = ()
    """The variables of it that concern every container of the pod."""
    shared_mounts: tuple[Body, ...] = ()
    """The mounts of it that concern every container of the pod."""
    warnings: tuple[str, ...] = ()

    def with_warnings(self, *warnings: str) -> "RewrittenContainer":
        """The same with further warnings."""
        return replace(self, warnings=(*self.warnings, *warnings)) if warnings else self


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
