"""LiveStore: the typed objects of one list, filled by an informer and by the answers to our own writes."""

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from engine.ids import ResourceId
from engine.observed import Compressor, Live, Source, live, pack
from engine.operation import Delete, Operation, Release
from engine.resource import Body
from engine.runtime.provider import Client
from engine.world_update import LiveChange
from providers.listing import ListedLives, keeper, list_lives, typed
from providers.snapshot import Target

NEVER_BACK = ""
"""The revision of a deletion that an answer to us reported: that uid never comes back."""

KEPT_CHANGES = 250
"""How many changes are kept for those who ask what has changed since they looked: with more, everything is looked at anyway."""

UNPACKED = 256
"""How many objects are kept parsed: planning reads what has changed since the last pass, some hundreds while many pods start.

With more, the ones that changed first are compressed. A parsed object takes about 11 KB.
"""

REMEMBERED = 10_000
"""How many deleted uids are remembered, so that a late answer does not restore them."""


class Deleted(NamedTuple):
    """A deletion: since this revision the object of this uid does not exist, or no longer has our labels."""

    id: ResourceId
    uid: str
    revision: str


class LiveStore:
    """The objects of one list by id. A version replaces an older one only, whichever of watch, list and answer comes first."""

    def __init__(self, target: Target, on_change: Callable[[LiveChange], None]) -> None:
        self.target = target
        self.kind = target.kind
        """In the version that the server has: an older one if it does not serve ours."""
        self.namespace, self.labels = target.namespace, target.sent
        self.lives: dict[ResourceId, Live] = {}
        self.version = 0
        """The number of changes so far."""
        self._changes: deque[LiveChange] = deque(maxlen=KEPT_CHANGES)
        """The last changes; none from before a list."""
        self._on_change = on_change
        self._compressor = Compressor()
        self._unpacked: dict[ResourceId, Live] = {}
        """The stored objects whose bodies are parsed, those that changed last at the end."""
        self._deleted: OrderedDict[str, str] = OrderedDict()
        """Uid -> the revision of its deletion."""
        self._listed_at = ""
        """The revision of the last list; empty before the first one."""
        self._during_list: list[Live | Deleted] | None = None
        """The results of our own calls that arrived during a list that is under way; None: no list is."""

    def contains(self, id: ResourceId) -> bool:
        """Whether an object of that id would be in this list."""
        return (self.target.kind.group, self.target.kind.name) == (id.group, id.kind) and self.namespace in ("", id.namespace)

    async def list(self, client: Client) -> str:
        """Replace the contents by a list, and return its revision.

        The results of our own calls that arrived meanwhile are applied again: the list may be older.
        """
        listed: ListedLives | None = None
        self.begin_list()
        try:
            listed = await list_lives(client, self.target, self._compressor)
        finally:
            self.end_list(listed)
        return listed.revision

    def changes_since(self, version: int) -> Sequence[LiveChange] | None:
        """The changes since that version; None if they are not known, because there was a list since or there are too many."""
        count = self.version - version
        return None if count > len(self._changes) else [self._changes[index] for index in range(-count, 0)]

    def _note(self, old: Live | None, new: Live | None) -> None:
        self.version += 1
        change = LiveChange(old, new)
        self._changes.append(change)
        self._on_change(change)

    def _forget_changes(self) -> None:
        self.version += 1
        self._changes.clear()

    def begin_list(self) -> None:
        """Keep the results of our own calls from now on: a list that is under way may be older."""
        self._during_list = []

    def end_list(self, listed: ListedLives | None) -> None:
        """Replace the contents by what was listed; None: the list has failed, and nothing changes."""
        reported, self._during_list = self._during_list or [], None
        if listed is None:
            return
        self.compact()  # A world keeps the objects that the list has in the same version.
        self.kind, self.lives = listed.kind, {object.id: object for object in listed.lives}
        self._listed_at = listed.revision
        self._forget_changes()
        for uid in {object.uid for object in listed.lives}:
            self._deleted.pop(uid, None)
        for report in reported:
            self._take(report)

    def clear(self) -> None:
        """Remove everything. Where nothing is, nothing changes: kinds that are not served are tried again and again."""
        if self.lives:
            self.lives, self._unpacked = {}, {}
            self._forget_changes()

    def apply(self, event: str, body: dict[str, Any]) -> None:
        """Apply an event of the watch. That of a version which is stored, as the answer to a write of ours, changes nothing."""
        if event != "DELETED" and self._is_stored(body["metadata"]):
            return
        live = typed(self.kind, body)
        if event == "DELETED" or (self.target.finalizers and not self.target.contains(live)):
            self._delete(live.id, live.uid, live.revision)
        else:
            self._put(live)

    def _is_stored(self, metadata: Mapping[str, Any]) -> bool:
        """Whether this version of the object is what is stored and stays so, by its identity, uid and revision."""
        known = self.lives.get(self.kind.id(metadata.get("namespace", ""), metadata["name"]))
        if known is None or not known.revision or (self.target.finalizers and not self.target.contains(known)):
            return False
        return (known.uid, known.revision) == (metadata.get("uid"), metadata["resourceVersion"])

    def assume(self, operation: Operation, answer: Body | None) -> None:
        """Apply the answer to a write of ours, before the watch reports it."""
        if answer is not None:
            self._report(live(answer))
        elif isinstance(operation, Delete | Release):
            self._report(Deleted(operation.id, operation.expect.uid, NEVER_BACK))

    def correct(self, known: Live | None, current: Live | None) -> None:
        """Apply what a GET returned; `known` is what the store held when it was sent."""
        if current is not None and self.target.contains(current):
            self._report(current)
        elif known is not None:
            is_same = current is not None and current.uid == known.uid
            self._report(Deleted(known.id, known.uid, current.revision if current is not None and is_same else NEVER_BACK))

    def _report(self, report: Live | Deleted) -> None:
        """Apply the result of a call of ours; during a list, keep it to be applied again."""
        if self._during_list is not None:
            self._during_list.append(report)
        self._take(report)

    def _take(self, report: Live | Deleted) -> None:
        if isinstance(report, Deleted):
            self._delete(*report)
        else:
            self._put(report)

    def compact(self) -> None:
        """Compress all objects that are still parsed."""
        while self._unpacked:
            self._pack_first()

    def _pack_first(self) -> None:
        live = self._unpacked.pop(next(iter(self._unpacked)))
        pack(live, keeper(self._compressor)(live.labels, orjson.dumps(live.body)))

    def _put(self, new: Live) -> None:
        """Store the object, unless a newer version of it or its later deletion is known.

        A version from before the last list, of an object that the list did not have, is outdated: the object was gone by then, and no
        watch will report that.
        """
        old, deleted_at = self.lives.get(new.id), self._deleted.get(new.uid)
        if old is None and _is_later(self._listed_at, new.revision):
            return
        if deleted_at is not None and not _is_later(new.revision, deleted_at):
            return
        # Also compared if the uids differ: a watch that lags still reports the object that we have replaced.
        if old is not None and not is_newer(new, old):
            return
        self._deleted.pop(new.uid, None)
        self.lives[new.id] = new
        self._unpacked.pop(new.id, None)
        if not isinstance(new.source, Source):
            self._unpacked[new.id] = new
            if len(self._unpacked) > UNPACKED:
                self._pack_first()
        self._note(old, new)

    def _delete(self, id: ResourceId, uid: str, revision: str) -> None:
        """Remove the object, unless what is stored is newer: it may have lost our labels and got them back at a later revision."""
        old = self.lives.get(id)
        if old is not None and old.uid == uid and _is_later(old.revision, revision):
            return
        deleted_at = self._deleted.get(uid)
        if deleted_at is None or revision == NEVER_BACK or _is_later(revision, deleted_at):
            self._deleted[uid] = revision
        while len(self._deleted) > REMEMBERED:
            self._deleted.popitem(last=False)
        if old is not None and old.uid == uid:
            del self.lives[id]
            self._unpacked.pop(id, None)
            self._note(old, None)


def is_newer(live: Live, other: Live) -> bool:
    """Whether it has a later revision. Revisions that are not numbers cannot be compared: the one that comes last counts."""
    if live.revision.isdecimal() and other.revision.isdecimal():
        return _is_later(live.revision, other.revision)
    return live.revision != other.revision


def _is_later(revision: str, than: str) -> bool:
    return revision.isdecimal() and than.isdecimal() and int(revision) > int(than)
