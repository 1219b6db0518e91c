"""OwnerGraph: the objects of all kinds and their owner references, as far as they have been listed and watched."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from grove_sandbox.actors.body import Body, finalizers_of, is_deleting, owners_of, uid_of
from grove_sandbox.product import Kind

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"

OwnerReference = Mapping[str, Any]


class Node(NamedTuple):
    """One object and its kind."""

    kind: Kind
    body: Body


class OwnerGraph:
    """Objects by uid, and the uids of their dependents. A uid that was deleted never comes back."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._deleted: set[str] = set()

    def get(self, uid: str) -> Node | None:
        """The object of that uid."""
        return self._nodes.get(uid)

    def was_deleted(self, uid: str) -> bool:
        """Whether the object was known and is gone, while others still refer to it as their owner."""
        return uid in self._deleted

    def dependents(self, uid: str) -> list[Node]:
        """The objects that have it as an owner."""
        return [self._nodes[dependent] for dependent in self._dependents.get(uid, ())]

    def put(self, node: Node) -> None:
        """Add or update an object."""
        uid = uid_of(node.body)
        known = self._nodes.get(uid)
        if known is not None and owners_of(known.body) == owners_of(node.body):
            self._nodes[uid] = node
            return
        self._remove_edges(uid)
        self._nodes[uid] = node
        for owner in owners_of(node.body):
            self._dependents.setdefault(owner["uid"], {})[uid] = None

    def remove(self, uid: str) -> None:
        """Remove an object that is gone."""
        self._remove_edges(uid)
        self._nodes.pop(uid, None)
        if uid in self._dependents:
            self._deleted.add(uid)

    def _remove_edges(self, uid: str) -> None:
        if uid not in self._nodes:
            return
        for reference in owners_of(self._nodes[uid].body):
            owner = reference["uid"]
            self._dependents.get(owner, {}).pop(uid, None)
            if not self._dependents.get(owner):
                self._dependents.pop(owner, None)
                self._deleted.discard(owner)


def waits_for_dependents(body: Body) -> bool:
    """Whether it is being deleted in the foreground: it stays until the dependents that block it are gone."""
    return is_deleting(body) and FOREGROUND in finalizers_of(body)


def orphans_dependents(body: Body) -> bool:
    """Whether it is being deleted and its dependents are to stay."""
    return is_deleting(body) and ORPHAN in finalizers_of(body)


def blocks(dependent: Body, owner: str) -> bool:
    """Whether the foreground deletion of the owner has to wait for this dependent."""
    return any(reference["uid"] == owner and reference.get("blockOwnerDeletion") for reference in owners_of(dependent))


def owners_without(body: Body, uids: Iterable[str]) -> list[OwnerReference]:
    """The owner references except those to these uids."""
    removed = set(uids)
    return [reference for reference in owners_of(body) if reference["uid"] not in removed]
