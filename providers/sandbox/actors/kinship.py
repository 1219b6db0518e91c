"""Kinship: who owns whom, over all kinds, as far as the watches have told."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from engine.ids import Kind
from providers.sandbox.actors.body import Body, is_deleting, uid_of

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"

Reference = Mapping[str, Any]


class Thing(NamedTuple):
    """One object of whatever kind."""

    kind: Kind
    body: Body


class Kinship:
    """Things by uid, and the uids of what they own. A uid that was here and went away never comes back."""

    def __init__(self) -> None:
        self._things: dict[str, Thing] = {}
        self._children: dict[str, dict[str, None]] = {}
        self._gone: set[str] = set()

    def get(self, uid: str) -> Thing | None:
        """The thing of that uid."""
        return self._things.get(uid)

    def is_gone(self, uid: str) -> bool:
        """Whether it was there and is not any more, while others still name it as their owner."""
        return uid in self._gone

    def children(self, uid: str) -> list[Thing]:
        """The things that name it as an owner."""
        return [self._things[child] for child in self._children.get(uid, ())]

    def put(self, thing: Thing) -> None:
        """The thing is there, like this."""
        uid = uid_of(thing.body)
        known = self._things.get(uid)
        if known is not None and references(known.body) == references(thing.body):
            self._things[uid] = thing
            return
        self._disown(uid)
        self._things[uid] = thing
        for reference in references(thing.body):
            self._children.setdefault(reference["uid"], {})[uid] = None

    def drop(self, uid: str) -> None:
        """The thing is gone."""
        self._disown(uid)
        self._things.pop(uid, None)
        if uid in self._children:
            self._gone.add(uid)

    def _disown(self, uid: str) -> None:
        if uid not in self._things:
            return
        for reference in references(self._things[uid].body):
            owner = reference["uid"]
            self._children.get(owner, {}).pop(uid, None)
            if not self._children.get(owner):
                self._children.pop(owner, None)
                self._gone.discard(owner)


def references(body: Body | None) -> tuple[Reference, ...]:
    """The owner references of an object."""
    return tuple(body["metadata"].get("ownerReferences") or ()) if body else ()


def waits_for_children(body: Body) -> bool:
    """Whether it is being deleted in the foreground: only once what it owns, and what blocks it, is gone."""
    return is_deleting(body) and FOREGROUND in finalizers(body)


def leaves_orphans(body: Body) -> bool:
    """Whether it is being deleted, and what it owns is to live on."""
    return is_deleting(body) and ORPHAN in finalizers(body)


def finalizers(body: Body) -> tuple[str, ...]:
    """The finalizers of an object."""
    return tuple(body["metadata"].get("finalizers") or ())


def blocks(child: Body, owner: str) -> bool:
    """Whether the owner's deletion in the foreground has to wait for this child."""
    return any(one["uid"] == owner and one.get("blockOwnerDeletion") for one in references(child))


def without(body: Body, owners: Iterable[str]) -> list[Reference]:
    """The owner references that are left without these owners."""
    dropped = set(owners)
    return [one for one in references(body) if one["uid"] not in dropped]
