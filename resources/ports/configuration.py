"""Configuration: the settings and plug-ins that a workload's objects depend on beside the workload itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from engine.version import VERSION
from resources.ports.fabric import Fabric
from resources.ports.scheduler import Scheduler

WAITER = f"grove-initc:{VERSION}"
"""The image of this release."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the people who run the engine have chosen."""

    schedulers: Mapping[str, Scheduler]
    """The enabled scheduler back ends by name."""
    default_scheduler: str
    """The one for pods that name none."""
    waiter: str = WAITER
    """The image of the container in which pods wait for those that they start after."""

    topology: bool = False
    """Whether topology constraints are acted on."""

    fabrics: tuple[Fabric, ...] = ()
    """The vendors' fabrics whose domains workloads may be in."""
    drain: timedelta = timedelta(minutes=5)
    """For how long what uses a domain may take to go before the domain goes without waiting for it any longer."""

    def scheduler(self, name: str) -> Scheduler:
        """The back end that a pod asks for. Raises `KeyError` when it is not enabled."""
        return self.schedulers[name or self.default_scheduler]


def pinned(image: str) -> str:
    """An image with the tag of this release, unless it has one of its own, or a digest."""
    _, _, name = image.rpartition("/")
    return image if ":" in name or "@" in name else f"{image}:{VERSION}"
