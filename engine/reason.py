"""Reason: why an operation is planned, or what blocks an object, as one word that policies and scripts can rely on; verdicts."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

from msgspec import Struct


class Reason(StrEnum):
    """One word in CamelCase. Reasons are part of the JSON document: they are added, and never renamed or given another meaning."""

    UNSPECIFIED = "Unspecified"
    """No operation of a plan has it."""

    MANIFEST_CHANGED = "ManifestChanged"
    """What a user specified is new or has changed: the root, and everything of a root that is carried out for the first time."""
    TEMPLATE_CHANGED = "TemplateChanged"
    """The root has changed, and so does what is derived from its template: objects are patched, pods and cliques replaced."""
    SCALED_OUT = "ScaledOut"
    """More replicas are specified."""
    SCALED_IN = "ScaledIn"
    """Fewer replicas are specified."""
    CLIQUE_CREATED = "CliqueCreated"
    """The clique of the pod has been created, and has not had all its pods before."""
    POD_ENDED = "PodEnded"
    """A pod has ended, failed or been evicted: it is removed, and another one takes its place."""
    PODS_CHANGED = "PodsChanged"
    """The object lists pods, and these have changed."""
    GANG_SCHEDULED = "GangScheduled"
    """The gang that has to be scheduled first is scheduled: pods lose their scheduling gate."""
    GANG_TERMINATED = "GangTerminated"
    """A gang was below minAvailable for longer than its termination delay, and is created again as a whole."""
    DOMAIN_REPLACED = "DomainReplaced"
    """A fabric domain is being deleted although it is needed: its pods leave it, and it is created again."""
    DOMAIN_RELEASED = "DomainReleased"
    """All pods of a fabric domain have completed."""
    MISSING = "Missing"
    """It existed and was deleted."""
    DRIFTED = "Drifted"
    """Another writer changed fields that are ours."""
    USER_DELETED = "UserDeleted"
    """A user deleted the clique or scaling group that it belongs to, which is created again."""
    ORPHANED = "Orphaned"
    """No set owns it, or the set that owns it does not specify it."""
    SET_DELETED = "SetDeleted"
    """Its set or graph is being deleted."""
    PRUNED = "Pruned"
    """It has no manifest any more."""
    ADOPTED = "Adopted"
    """It was created from the current template, and its hash is of another operator or another version of the engine: it gets ours."""
    TAKEN_OVER = "TakenOver"
    """Another release of Grove divides the set into other PodGangs, and the engine takes the set over."""
    STATUS_CHANGED = "StatusChanged"
    """The status that we write is out of date."""

    NAME_CONFLICT = "NameConflict"
    """An object that is not ours has the name."""
    NOT_LISTED = "NotListed"
    """Objects that matter could not be listed completely."""
    NOT_SERVED = "NotServed"
    """The cluster does not serve its kind."""
    OWNER_MISSING = "OwnerMissing"
    """Its owner does not exist yet."""
    TERMINATING = "Terminating"
    """It is being deleted, and created again afterwards."""
    MIN_AVAILABLE = "MinAvailable"
    """It is to be replaced, and minAvailable allows no deletion now."""
    NAMESPACE_MISSING = "NamespaceMissing"
    """Its namespace does not exist."""
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    """Its namespace is being deleted."""
    TEMPLATE_REFUSED = "TemplateRefused"
    """The API server refuses pods of the new template, so that the update is held back."""
    IN_USE = "InUse"
    """It is being deleted, and kept until the pods that use it are gone."""
    REFERENCE_MISSING = "ReferenceMissing"
    """Pods refer to an object that does not exist, so that they never start."""
    GANG_INCOMPLETE = "GangIncomplete"
    """A clique was scaled below minAvailable, so that the scheduler starts no new pod of its gang."""
    KEPT = "Kept"
    """It is being deleted, and finalizers keep it that are not ours."""
    NOT_SHARED = "NotShared"
    """It would be made from an object of another namespace, which is not shared with this one."""


BLOCKERS: Final = frozenset(
    {
        Reason.NAME_CONFLICT,
        Reason.NOT_LISTED,
        Reason.NOT_SERVED,
        Reason.OWNER_MISSING,
        Reason.TERMINATING,
        Reason.MIN_AVAILABLE,
        Reason.NAMESPACE_MISSING,
        Reason.NAMESPACE_TERMINATING,
        Reason.TEMPLATE_REFUSED,
        Reason.IN_USE,
        Reason.REFERENCE_MISSING,
        Reason.GANG_INCOMPLETE,
        Reason.KEPT,
        Reason.NOT_SHARED,
    }
)
"""Reasons why an object has to wait; all others are reasons of operations."""


REMEDIES: Final[Mapping[Reason, str]] = {
    Reason.NAME_CONFLICT: "delete or rename it",
    Reason.NOT_SERVED: "install its CustomResourceDefinition; engine preflight names what is missing",
    Reason.NOT_LISTED: "grant the right to list them, or wait until the API server can",
    Reason.NAMESPACE_MISSING: "kubectl create namespace {name}",
    Reason.NAMESPACE_TERMINATING: "wait until it is gone, and create it again",
    Reason.REFERENCE_MISSING: "create it, or correct its name in the pod template",
    Reason.GANG_INCOMPLETE: "scale {name} to its minAvailable or more",
    Reason.TEMPLATE_REFUSED: "correct the template, or what refuses it; the server is asked again by itself",
}
"""What a user or an administrator has to do about a reason; `{name}` stands for the name of the object that is waited for."""


APPLY_FIRST: Final = "apply it with kubectl first: the engine does not"
"""What to do about a missing object that stands in the files of a command."""


class Because(NamedTuple):
    """Why something is done: the reason, and the sentence that people read."""

    reason: Reason
    text: str


T = TypeVar("T")


class Verdict(Struct, Generic[T], frozen=True):
    """An answer that is valid as long as the facts are the same and, if `until` is not None, until that time."""

    value: T
    why: str = ""
    until: datetime | None = None


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    """The earliest of the moments that are not None; None if there is none."""
    return min((moment for moment in moments if moment is not None), default=None)
