"""Options: size and timing of the simulated part of a cluster. All times are seconds of the clock that the actors are given."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from grove_sandbox.installation.installation import NAMESPACE_OF_DRIVER


def _capacity() -> Mapping[str, str]:
    return {"cpu": "128", "memory": "1Ti", "ephemeral-storage": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}


PARTS: Final = frozenset({"controller", "plugins", "daemons", "daemonSets"})


class DriverOptions(Struct, frozen=True):
    """Size and timing of the DRA driver for ComputeDomains."""

    namespace: str = NAMESPACE_OF_DRIVER
    max_nodes: int = 18
    """How many nodes of one NVLink clique a domain may have."""
    imex_start: float = 2.0
    """From a daemon's start until it is ready."""
    imex_loss: float = 5.0
    """From the loss of a domain until the containers in it exit."""
    host_managed: bool = False
    """Whether the hosts run IMEX: the driver then starts no daemons and does not know which nodes have joined a domain."""
    parts: frozenset[str] = PARTS
    """The parts that run: the controller, the plugins on nodes, the daemons, and the controller of its DaemonSets."""
    deference: float = 0.0
    """How long a kube-controller-manager has to take over a DaemonSet before it is carried out here."""


class ActorOptions(Struct, frozen=True):
    """Size and timing of all actors."""

    nodes: int = 0
    """How many simulated nodes are registered at the start."""
    capacity: Mapping[str, str] = field(default_factory=_capacity)
    """Capacity and allocatable of each node, as quantities."""
    nodes_per_rack: int = 18
    racks_per_zone: int = 4
    gangs: bool = False
    """Whether kube-scheduler's kinds for gangs are served. Then it places gangs by its PodGroups, and without them single pods."""
    schedulers: frozenset[str] = frozenset()
    """The `schedulerName`s that the scheduler serves; empty: any."""
    termination: float = 1.0
    """From a pod's deletion until its containers have ended, if its grace period is not shorter."""
    heartbeat: float = 0.0
    """Between renewals of a node's Lease, for control planes that watch them; 0: none are written."""
    certificate_authority: str = ""
    """PEM for service account tokens (`ca.crt`); empty: it is left out."""
    driver: DriverOptions = field(default_factory=DriverOptions)
