"""What the comparison of one resource with its object depends on besides the two, and which objects of a part were found in sync."""

from array import array
from collections.abc import Mapping
from typing import Any, Final

import orjson
from msgspec import Struct

from engine import ownership
from engine.conditions import completed_generation
from engine.ids import ResourceId
from engine.observed import EMPTY, Live, Slice
from engine.operation import BoundOwner, Cause, Unknown
from engine.reason import Reason
from engine.resource import Resource, Want

GROWTH = (Reason.SCALED_OUT, Reason.CLIQUE_CREATED)
"""Reasons to create what a root has not had before."""
UNKNOWN: Final = 0
"""The digest of what differs, or cannot be told by one."""


class PartContext(Struct, frozen=True):
    """Everything that the comparisons of one part depend on besides its resources."""

    root: Live
    slice: Slice
    foreign: Mapping[ResourceId, Live]
    mislabelled: frozenset[ResourceId]
    incomplete: frozenset[str]
    unserved: frozenset[str]
    reads: Mapping[str, frozenset[str]]
    absent: Cause
    """Why an object or a field that does not exist is missing."""
    labelled_at: str
    """When labels or annotations of the root have changed last, as RFC 3339 text; empty if that is not known."""
    elsewhere: Mapping[ResourceId, Live]
    """The live objects of the part that are among the references or belong to nested roots, and the root that proposes this one."""

    def find(self, id: ResourceId) -> Live | None:
        """The root, an object of the slice, or one that is elsewhere."""
        return self.root if id == self.root.id else self.slice.objects.get(id) or self.elsewhere.get(id)

    def reason_to_create(self, resource: Want) -> Reason:
        """Why an object of this part does not exist: the desired state has changed, or it was deleted.

        The blueprint may know better, except for a root that is carried out for the first time.
        """
        if not self.root.uid or completed_generation(self.root.body) is None:
            return Reason.MANIFEST_CHANGED if resource.reason in (None, *GROWTH) else resource.reason
        if resource.reason is not None:
            return resource.reason
        return Reason.TEMPLATE_CHANGED if self.absent is Cause.INTENT else Reason.MISSING

    def absent_field(self, live: Live) -> Cause:
        """Why a field of an object is missing."""
        return Cause.DRIFT if live.id in self.mislabelled else self.absent

    def absent_label(self, live: Live) -> Cause:
        """Why a label or an annotation of an object is missing.

        A change of the root's own labels and annotations leaves its generation as it is: what follows from them is missing because of
        that if they have changed since we wrote the object.
        """
        is_newer = live.id not in self.mislabelled and self.labelled_at > ownership.written_at(live.body)
        return Cause.INTENT if is_newer else self.absent_field(live)

    def unlisted(self, id: ResourceId) -> str | None:
        """A kind that could not be listed completely and without which objects of this one's kind cannot be judged."""
        if not self.incomplete:
            return None
        keys = id.keys()
        return min(self.incomplete & keys.union(*(self.reads.get(key, frozenset()) for key in keys)), default=None)

    def is_unserved(self, id: ResourceId) -> bool:
        """Whether the cluster does not serve the object's kind."""
        return not self.unserved.isdisjoint(id.keys())

    def bound_owners(self, resource: Resource) -> tuple[BoundOwner, ...]:
        """The owners of a resource with their uids, or with placeholders for owners that this plan creates."""
        return tuple(BoundOwner(owner, self._uid(owner.id)) for owner in resource.owners)

    def _uid(self, id: ResourceId) -> str | Unknown:
        """The uid of an owner, which is the root or in the same part; a placeholder if this plan creates it."""
        live = self.find(id)
        return live.uid if live is not None and live.uid else Unknown(id)


class InSync(Struct, frozen=True, eq=False):
    """Which objects of a slice were found in sync, and with what. It takes eight bytes for an object."""

    slice: Slice = EMPTY
    digests: bytes = b""
    """Of each object of the slice, in its order, the digest of what it is in sync with, or `UNKNOWN`."""

    def known(self) -> Mapping[ResourceId, tuple[Live, int]]:
        """Id -> the object, and the digest of what it is in sync with."""
        digests = array("q", self.digests)
        return {id: (live, digest) for (id, live), digest in zip(self.slice.objects.items(), digests, strict=True) if digest != UNKNOWN}


NOTHING_IN_SYNC: Final = InSync()


def in_sync(slice: Slice, digests: Mapping[ResourceId, int]) -> InSync:
    """What is remembered of a slice, given the digests of its objects that are in sync."""
    return InSync(slice, array("q", (digests.get(id, UNKNOWN) for id in slice.objects)).tobytes()) if digests else NOTHING_IN_SYNC


def digest_of(resource: Resource, live: Live | None, context: PartContext) -> int:
    """A digest of what an object of the slice is compared with; `UNKNOWN` if it has to be compared.

    What else the context says only tells why something differs.
    """
    if type(resource) is not Want or context.incomplete or live is None or context.slice.objects.get(resource.id) is not live:
        return UNKNOWN
    owners = tuple(uid for owner in context.bound_owners(resource) if isinstance(uid := owner.uid, str))
    try:
        return hash((orjson.dumps((resource.body, resource.status), default=_plain), owners, resource.policy))
    except TypeError:
        return UNKNOWN  # A status with the time of writing.


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)
