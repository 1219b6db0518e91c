"""Settings: how large and how quick the simulated part of a cluster is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from providers.sandbox.installation.installation import NAMESPACE_OF_DRIVER


def _capacity() -> Mapping[str, str]:
    return {"cpu": "128", "memory": "1Ti", "ephemeral-storage": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}


PARTS: Final = frozenset({"controller", "plugins", "daemons", "daemonSets"})


@dataclass(frozen=True, slots=True)
class Driver:
    """How the DRA driver for ComputeDomains is played."""

    namespace: str = NAMESPACE_OF_DRIVER
    max_nodes: int = 18
    """How many nodes of one NVLink clique a domain may have."""
    imex_start: float = 2.0
    """Seconds from a daemon's start until it is ready."""
    imex_loss: float = 5.0
    """Seconds until containers exit whose domain has gone from under them."""
    parts: frozenset[str] = PARTS
    """What of it is up: its controller, its plugins on the nodes, its daemons; and whoever carries out its DaemonSets."""
    deference: float = 0.0
    """Seconds in which a kube-controller-manager may take up a DaemonSet, before it is carried out here."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the actors need to know besides the API. Every figure in seconds is of the clock they are given."""

    nodes: int = 0
    """How many simulated Nodes the kubelet registers at its start."""
    capacity: Mapping[str, str] = field(default_factory=_capacity)
    """Capacity and allocatable of each of them, as quantities."""
    nodes_per_rack: int = 18
    racks_per_zone: int = 4
    schedulers: frozenset[str] = frozenset()
    """The `schedulerName`s that the scheduler serves; empty: any."""
    termination: float = 1.0
    """Seconds until a pod's processes obey a deletion, where its grace period does not end before."""
    heartbeat: float = 0.0
    """Seconds between renewals of a Node's Lease, for control planes that watch them; 0: none are written."""
    certificate_authority: str = ""
    """PEM that goes into service account tokens as `ca.crt`; empty: it is left out."""
    driver: Driver = field(default_factory=Driver)
