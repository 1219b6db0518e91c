"""Configuration: the operator's choices and the plug-ins that the objects of a workload depend on."""

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct

from engine.version import VERSION
from resources.ports.dynamo import DynamoSettings
from resources.ports.fabric import Fabric
from resources.ports.scheduler import Scheduler

WAITER_IMAGE = f"grove-initc:{VERSION}"
"""The default image of the init container that waits for other cliques: the one of this release."""


class Configuration(Struct, frozen=True):
    """What the operator has configured, with the plug-ins it names."""

    schedulers: Mapping[str, Scheduler]
    """The enabled scheduler back ends by name."""
    default_scheduler: str
    """The name of the back end for pods that name none."""
    waiter_image: str = WAITER_IMAGE
    """The image of the init container in which a pod waits for the cliques that it starts after."""

    topology: bool = False
    """Whether topology-aware scheduling is enabled: otherwise topology constraints have no effect."""

    fabrics: tuple[Fabric, ...] = ()
    """The enabled fabrics."""
    drain_timeout: timedelta = timedelta(minutes=5)
    """How long the deletion of a domain waits for terminating pods and claims that use it."""
    dynamo: DynamoSettings = DynamoSettings()
    """The choices for DynamoGraphDeployments."""

    def scheduler(self, name: str) -> Scheduler:
        """The back end of that name; an empty name means the default. Raises `KeyError` if it is not enabled."""
        return self.schedulers[name or self.default_scheduler]


def pinned(image: str) -> str:
    """The image with the tag of this release, unless it already has a tag or a digest."""
    return tagged(image, VERSION)


def tagged(image: str, tag: str) -> str:
    """The image with that tag (empty: that of this release), unless it already has a tag or a digest."""
    _, _, name = image.rpartition("/")
    return image if ":" in name or "@" in name else f"{image}:{tag or VERSION}"
