"""Domain: a fabric domain that pods of a set are to be in, and how it stands."""

from dataclasses import dataclass

from engine.ids import ResourceId
from engine.operation import Alarm
from engine.resource import Resource
from resources.ports import Fabric, Wish


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """One domain. The same object as before where nothing about it has changed."""

    id: ResourceId
    fabric: Fabric
    wish: Wish
    template: str
    """The ResourceClaimTemplate through which pods get into it."""
    resource: Resource | None
    """What is to become of it; None for a domain that somebody else has made, which is only used."""
    trouble: str = ""
    """Why no pod that is to be in it can be made now; empty if they can."""
    waiting: str = ""
    """What the cluster still has to do for it."""
    alarm: Alarm | None = None
    """What people must be told about it."""
