"""Resource: the desired state of one object, one type for each stance."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from engine.ids import Owner, ResourceId
from engine.quantity import NOTHING_OMITTED, Omitted
from engine.reason import Reason

Body = Mapping[str, Any]
"""An object of the API as parsed JSON. Never changed in place."""

Path = tuple[str, ...]
"""The keys from the top of a body to one of its fields."""

REPLICAS: Final[Path] = ("spec", "replicas")
"""The number of replicas of what can be scaled."""


class Stance(StrEnum):
    """What should happen to an object."""

    WANT = "want"
    """Create it, or make it match."""
    HOLD = "hold"
    """Leave it as it is, whether it exists or not; `why` says what has to happen first."""
    DROP = "drop"
    """Delete it."""


class Policy(Struct, frozen=True):
    """How differences of one object are treated. Paths are tuples of keys, for example `("spec", "replicas")`."""

    seeded: tuple[Path, ...] = ()
    """Sent on create and never compared: the autoscaler of the object owns these fields."""
    immutable: tuple[Path, ...] = ()
    """The server rejects changes of these fields: a difference means replace."""
    exact: tuple[Path, ...] = ()
    """Compared as a whole: live fields that the manifest does not have are a difference."""
    seal: str = ""
    """A label that changes with the content of the exact paths. Where the live label agrees, the exact paths may have more fields
    than the manifest, because the server may have filled in defaults."""
    owned: tuple[Path, ...] = ()
    """Fields that we set here earlier and no longer want are removed. Elsewhere, except in labels and annotations, they stay."""
    defaults: tuple[tuple[Path, Any], ...] = ()
    """The server's default of a field that the manifest does not set: any other live value is a difference."""
    quantities: frozenset[str] = frozenset()
    """Keys whose values are quantities, which the server spells in its own way: `1000m` becomes `1`."""
    omitted: Omitted = NOTHING_OMITTED
    """The fields that the server leaves out where they are zero: a zero that is wanted, and no field, are the same."""
    partial: tuple[Path, ...] = ()
    """Beneath these paths nothing is removed, except what is withdrawn."""
    withdrawn: tuple[Path, ...] = ()
    """Fields beneath partial paths that are removed if we own them: a manifest had them and has them no longer."""
    create_only: bool = False
    """Created once, then never patched."""
    until_gone: bool = False
    """It still has its effect while it is being deleted, and is changed until then: the cluster keeps it as long as it is used, and nothing
    waits until it is gone."""
    lifelong: frozenset[str] = frozenset()
    """The labels that it has from its creation on, whatever is specified: one that is missing was removed by another writer."""
    shared: bool = False
    """Several roots use it: each adds and removes its own owner reference only, and the last one deletes the object."""
    unlabelled: bool = False
    """It has none of our labels: it is found among the references, by its owner alone."""
    nested: bool = False
    """It is a root that this root controls, or an object of such a root."""
    finalizers: tuple[str, ...] = ()
    """Our finalizers: set on create, released by us when the object is deleted."""
    release_last: bool = False
    """Whether our finalizers are released only after all others: the others being gone proves that their controllers have finished."""


PLAIN = Policy()
"""Compare what the manifest has, and patch what differs."""


class EventGroup(Struct, frozen=True):
    """A unit that is deleted as a whole, for example a replica: one Event is published about it instead of one for each object."""

    about: ResourceId
    uid: str
    reason: str
    """The end of the Event's reason, after `Successful` or `Failed`."""
    done: str
    """The message if everything was deleted."""
    failed: str
    """The message if something could not be deleted; the error follows."""


class _Common(Struct, frozen=True, eq=False):
    """What the desired state of every object has. Compared by identity, so that unchanged parts are recognised without a look at them."""

    stance: ClassVar[Stance]

    id: ResourceId
    why: str
    owners: tuple[Owner, ...] = ()
    after: frozenset[ResourceId] = frozenset()
    """The resources that are created first and, when deleting, deleted later."""
    policy: Policy = PLAIN
    reason: Reason | None = None
    """Why it is deleted, held back or, if it does not exist, created; None: the planner derives it from what is observed."""


class Want(_Common, frozen=True, eq=False, kw_only=True):
    """An object to create, or to make match."""

    stance: ClassVar[Stance] = Stance.WANT
    body: Body
    """The manifest without owner references and status."""
    status: Body | None = None
    """What is written to the status subresource; None: nothing is."""
    status_why: str = "its status is out of date"
    """What the status says, for people."""
    urgent: bool = False
    """Whether the status reports the beginning of something and must be written without delay, because its time is that of the write."""
    provisional: bool = False
    """Whether the status will soon change by itself, because the object is still coming up: where many are, it is written later."""
    own_reasons: tuple[tuple[Path, Reason], ...] = ()
    """Paths that change for a reason of their own. A patch has such a reason if nothing else changes in the desired state; any other
    patch has TEMPLATE_CHANGED. A label or an annotation with such a reason is never taken for drift."""


class Scaled(_Common, frozen=True, eq=False, kw_only=True):
    """An object of another controller of which only the number of replicas is wanted: set through its scale subresource, once it exists."""

    stance: ClassVar[Stance] = Stance.WANT
    replicas: int


class Hold(_Common, frozen=True, eq=False, kw_only=True):
    """An object to leave as it is, whether it exists or not; `why` says what has to happen first."""

    stance: ClassVar[Stance] = Stance.HOLD
    body: Body = field(default_factory=dict)
    """The manifest that it is to match afterwards; empty if that is not known yet."""
    blocked: bool = False
    """Whether a user or another controller has to act before it can be created or changed; otherwise a later pass does it."""


class Drop(_Common, frozen=True, eq=False, kw_only=True):
    """An object to delete."""

    stance: ClassVar[Stance] = Stance.DROP
    intended: bool = True
    """Whether a user asked for it (fewer replicas, a deleted parent); unintended deletes count against the budget."""
    event_group: EventGroup | None = None
    """The unit that the object is deleted with."""
    bind_revision: bool = False
    """Whether the delete is only valid for the observed revision; if the object has changed since, it is planned anew."""


Resource = Want | Scaled | Hold | Drop
"""The desired state of one object."""


def held(resource: Want | Hold, why: str, *, blocked: bool = False) -> Hold:
    """The object, left as it is for that reason. `blocked`: until a user or another controller acts."""
    return Hold(resource.id, why, resource.owners, resource.after, resource.policy, resource.reason, body=resource.body, blocked=blocked)


class Now:
    """The type of `NOW`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "(time of writing)"


NOW = Now()
"""Stands for the time of the write in a body, so that plans do not depend on time; it is replaced right before the call is sent."""
