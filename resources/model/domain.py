"""Domain: a fabric domain that pods of a set request, with its state."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from engine.ids import ResourceId
from engine.observed import Live
from engine.plan import Alarm
from engine.resource import Policy, Resource
from resources.base import labels
from resources.ports.fabric import DomainRequest, Fabric


class Holders(Struct, frozen=True):
    """The users of a domain that is being deleted, and that our finalizer keeps until they are gone."""

    replicas: frozenset[int]
    """The indices of the replicas of this set whose pods use it."""
    others: str
    """The users that are neither pods of this set nor their claims, in words; empty if there are none."""


class Domain(Struct, frozen=True, eq=False):
    """One requested domain. Compared by identity: the memo returns the same object while nothing about the domain changes."""

    id: ResourceId
    fabric: Fabric
    request: DomainRequest
    template: str
    """The name of the ResourceClaimTemplate that its pods claim."""
    resource: Resource | None
    """The desired domain object; None for a domain that somebody else created, which pods use and the engine never changes."""
    blocker: str = ""
    """Why no pod of the domain can be created now; empty if pods can be created."""
    blocked: bool = False
    """Whether somebody else has to act before a pod of the domain can be created; otherwise a later pass creates it."""
    pending: str = ""
    """What the cluster still has to do for the domain; empty if nothing."""
    alarm: Alarm | None = None
    """The alarm to publish about the domain, if there is one."""
    held_by: Holders | None = None
    """Its users, while it is being deleted and is kept for them; else None."""
    released: str = ""
    """Why it is released although pods of the set claim it: they have all completed (N33); empty if it is not."""
    cut_alarm: Alarm | None = None
    """The alarm to publish about pods that are cut off from the domain, if there are any."""


def policy_of(fabric: Fabric, *, shared: bool = False) -> Policy:
    """The policy of a domain object: its spec is sent once, and our finalizer is released after the driver's."""
    return Policy(seeded=(("spec",),), finalizers=(fabric.finalizer,), release_last=True, shared=shared)


def subject_of(id: ResourceId, root: str, index: int | str) -> str:
    """A domain of one replica of the set `root`, for messages: `for replica 0`, after its name if that is not `<set>-<index>` (R30)."""
    return f"for replica {index}" if id.name == f"{root}-{index}" else f"{id.name} for replica {index}"


def is_foreign(live: Live, fabric: Fabric, root_uid: str, *, shared: bool) -> bool:
    """Whether a domain of a requested name belongs to somebody else than the set with the uid `root_uid`.

    A domain for one replica must be controlled by the set. A shared one must not be a domain that the engine created for one replica.
    """
    if shared:
        return live.controller is not None and is_managed(live, fabric)
    return live.controller is None or live.controller.uid != root_uid


def is_managed(live: Live, fabric: Fabric) -> bool:
    """Whether the engine created this domain. A domain that a user created is used and never changed (N9)."""
    return live.labels.get(labels.MANAGED_BY) == labels.MANAGER or fabric.finalizer in (live.body["metadata"].get("finalizers") or ())


REQUIRED_TERMS, PREFERRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
"""The fields of a pod affinity."""


class DomainPlacement(StrEnum):
    """The values of the annotation `labels.DOMAIN_PLACEMENT` of a set."""

    REQUIRED = "required"
    """Pods only run in the island of the other pods of their domain; otherwise they stay Pending."""
    PREFERRED = "preferred"
    """Pods run there if there is room, otherwise elsewhere."""


def placement_of(annotations: Mapping[str, Any]) -> DomainPlacement | None:
    """What the annotations of a set ask for; None if nothing, or if the value is invalid: admission may have been bypassed."""
    value = annotations.get(labels.DOMAIN_PLACEMENT)
    return next((placement for placement in DomainPlacement if placement == value), None)
