"""Domain: a fabric domain that pods of a set are to be in, and how it stands."""

from dataclasses import dataclass

from engine.ids import ResourceId
from engine.observed import Live
from engine.plan import Alarm
from engine.resource import Policy, Resource
from resources.base import labels
from resources.ports.fabric import DomainRequest, Fabric


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """One domain. The same object as before where nothing about it has changed."""

    id: ResourceId
    fabric: Fabric
    request: DomainRequest
    template: str
    """The ResourceClaimTemplate through which pods get into it."""
    resource: Resource | None
    """What is to become of it; None for a domain that somebody else has made, which is only used."""
    trouble: str = ""
    """Why no pod that is to be in it can be made now; empty if they can."""
    pending: str = ""
    """What the cluster still has to do for it."""
    alarm: Alarm | None = None
    """What people must be told about it."""


def policy_of(fabric: Fabric, *, shared: bool = False) -> Policy:
    """How differences of a domain are treated: what it is, is said once; the driver has the last word before ours on its way out."""
    return Policy(seeded=(("spec",),), finalizers=(fabric.finalizer,), release_last=True, shared=shared)


def is_made_here(live: Live, fabric: Fabric) -> bool:
    """Whether a domain is of our making; a user's is used and never touched (N9)."""
    return live.labels.get(labels.MANAGED_BY) == labels.MANAGER or fabric.finalizer in (live.body["metadata"].get("finalizers") or ())
