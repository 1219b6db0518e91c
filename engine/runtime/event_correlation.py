"""Event correlation: which Events are written for what has happened, so that many similar ones become few, with a count.

The limits are those of client-go's event recorder, and wider ones for events that are counted apart. Nothing here reads a clock: times
are those of a monotonic clock, in seconds.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import product
from typing import Final, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from engine.event import Event, RootEvents
from engine.ids import ResourceId

COMBINED: Final = "(combined from similar events): "
"""The beginning of the message of an Event that stands for several messages or objects."""

MAX_SIMILAR: Final = 10
"""How many messages for one object and reason, and how many objects of one root for one reason, are reported one by one.

None of them are of Normal events of which one pass has more.
"""

NAMED: Final = 3
"""How many of its objects a combined Event names."""

WINDOW: Final = 600.0
"""Seconds without a similar event after which events are reported one by one again."""

BURST: Final = 25
"""How many Events about one object may be written at once, repetitions included."""

REFILL: Final = 300.0
"""Seconds after which one more may be written, up to `BURST`."""

SPACING: Final = 10.0
"""Seconds between two writes of one Event: what happens in between is added up. Of a combined Normal one: without anything to add."""

SUMMARY: Final = 300.0
"""Seconds after which a combined Normal Event is written although more is added to it all the time: else once nothing is for `SPACING`."""

MAX_REMEMBERED: Final = 4096
"""How many objects, reasons and Events are remembered in all namespaces. Beyond it one with more than an even share of it forgets what it
has used longest ago, so that none makes others forget theirs."""


class EventLimits(Struct, frozen=True):
    """How many Events are written; the fields are as the constants `MAX_SIMILAR`, `BURST` and `REFILL`."""

    similar: int
    burst: int
    refill: float


LIMITS: Final = EventLimits(MAX_SIMILAR, BURST, REFILL)
APART: Final = EventLimits(similar=100, burst=250, refill=30.0)
"""The limits of events that are counted apart (`Event.counted_apart`)."""

RESERVED: Final = {(True, True): 0, (True, False): 3, (False, True): 3, (False, False): 10}
"""(Warning, combined) -> how many of a burst must be left for others: Normal events cannot use up what warnings need, nor
single ones what combined ones need to report the number."""

Value = TypeVar("Value")


class _Remembered(Generic[Value]):
    """Values by namespace and key, `MAX_REMEMBERED` at most."""

    def __init__(self) -> None:
        self._namespaces: dict[str, OrderedDict[Hashable, Value]] = {}
        """None of them is empty."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def recent(
        self, namespace: str, key: Hashable, make: Callable[[], Value], on_forget: Callable[[Hashable], None] = lambda key: None
    ) -> Value:
        """The value of that key, now the most recent one of its namespace; a new one if there is none."""
        store = self._namespaces.setdefault(namespace, OrderedDict())
        if key not in store:
            store[key] = make()
            self._count += 1
        store.move_to_end(key)
        if self._count > MAX_REMEMBERED:
            on_forget(self._forget(namespace))
        return store[key]

    def _forget(self, namespace: str) -> Hashable:
        """Forget the oldest of a namespace with more than an even share, this one if it has; if none has, of the first one."""
        stores = self._namespaces
        if len(stores[namespace]) == 1 or len(stores[namespace]) * len(stores) <= MAX_REMEMBERED:
            namespace = max(stores, key=lambda name: len(stores[name]))
        key, _ = stores[namespace].popitem(last=False)
        self._count -= 1
        if not stores[namespace]:
            del stores[namespace]
        return key


class _Similar(Struct):
    """What has been reported one by one under one reason: digests of messages, or of objects."""

    latest: float
    reported: set[int] = field(default_factory=set)


class _Stream(Struct):
    """One Event, and what has happened since it was last written."""

    event: Event
    pending: int = 0
    names: list[str] = field(default_factory=list)
    """The first subjects of what is pending, one more than are named at most."""
    is_free: bool = False
    """Whether its next write has been counted against the burst already."""
    unreported: int = 0
    """How much of `pending` has not been counted as withheld."""
    since: float = 0.0
    """When the first of what is pending was added."""
    noted: float = 0.0
    """When something was last added."""
    written: float | None = None


class _Allowance(Struct):
    """How many Events about one object may be written at a time."""

    left: float
    at: float


class Correlator:
    """Combines the events of one process, pass by pass."""

    def __init__(self) -> None:
        self._similar = _Remembered[_Similar]()
        self._streams = _Remembered[_Stream]()
        self._allowances = _Remembered[_Allowance]()
        self._pending: dict[Hashable, _Stream] = {}
        self.withheld = 0
        """How many events of the last pass are not in any Event, because too many about their object have been written lately."""

    def combine(self, groups: Iterable[RootEvents], at: float, *, flush: bool = False) -> list[Event]:
        """The Events to write now, each with the count to add, warnings first.

        Equal events become one. The events beyond `EventLimits.similar` that an object has with one reason become one combined Event; so
        do, on the root, those that the objects of a root have with one reason. Of Normal events all do where these are that many, or
        `of_whole`. What may not be written yet is added to a later write.
        `flush`: do not wait for `SPACING`, because nothing more is about to happen.
        """
        self.withheld = 0
        occurrences = _summarized([(group, event) for group in groups for event in group.events])
        due: list[Event] = []
        for is_warning, is_apart in product((True, False), repeat=2):
            for group, event in occurrences:
                if event.warning is is_warning and event.counted_apart is is_apart:
                    self._note(self._placed(group, event, at), at)
            due += self._due(is_warning, is_apart, at, flush=flush)
        return due

    def _placed(self, group: RootEvents, event: Event, at: float) -> Event:
        """The event, or one on the root if enough other objects of the root have had such an event."""
        if not group.uid or event.about == group.root or event.combined:
            return event
        objects = self._reported(group.root.namespace, ("objects", group.root, group.uid, event.warning, event.reason), at)
        if _is_reported(objects, hash((event.about, event.uid)), _limits(event).similar):
            return event
        return _combined(event, group.root, group.uid)

    def _note(self, event: Event, at: float) -> None:
        """Add the event to the Event that stands for it."""
        if not event.combined:
            messages = self._reported(event.about.namespace, ("messages", event.about, event.uid, event.warning, event.reason), at)
            digest = hash(event.message)
            is_known = digest in messages.reported
            if not is_known and (len(messages.reported) >= _limits(event).similar or not self._take(event, at)):
                event = _combined(event, event.about, event.uid)
            elif not is_known:
                messages.reported.add(digest)
                self._add(event, at).is_free = True
                return
        self._add(event, at)

    def _add(self, event: Event, at: float) -> _Stream:
        key = (event.about, event.uid, event.warning, event.reason, event.combined or event.message)
        stream = self._streams.recent(event.about.namespace, key, lambda: _Stream(event), self._forget)
        stream.event, stream.noted, stream.since = event, at, stream.since if stream.pending else at
        stream.pending += event.count
        stream.unreported += event.count
        if event.subject and len(stream.names) <= NAMED and event.subject not in stream.names:
            stream.names.append(event.subject)
        self._pending[key] = stream
        return stream

    def _forget(self, key: Hashable) -> None:
        """Called for an Event that is remembered no longer: what it still had to report is not written."""
        stream = self._pending.pop(key, None)
        self.withheld += stream.unreported if stream is not None else 0

    def _due(self, is_warning: bool, is_apart: bool, at: float, *, flush: bool) -> list[Event]:
        """The Events of this type to write now, of those that are counted apart or of the others."""
        due = []
        for key, stream in list(self._pending.items()):
            is_meant = stream.event.warning is is_warning and stream.event.counted_apart is is_apart
            if not is_meant or not (flush or stream.is_free or _is_spaced(stream, at)):
                continue
            if at - stream.noted > WINDOW:  # It would be published as if it had happened now.
                stream.pending, stream.names, stream.unreported = 0, [], 0
                del self._pending[key]
                continue
            if not stream.is_free and not self._take(stream.event, at):
                self.withheld += stream.unreported
                stream.unreported = 0
                continue
            due.append(_written(stream))
            stream.pending, stream.names, stream.unreported, stream.is_free, stream.written = 0, [], 0, False, at
            del self._pending[key]
        return due

    def _take(self, event: Event, at: float) -> bool:
        """Count one write against the burst of the event's object, unless too few are left."""
        limits = _limits(event)
        key = (event.about, event.uid, event.counted_apart)
        allowance = self._allowances.recent(event.about.namespace, key, lambda: _Allowance(limits.burst, at))
        allowance.left, allowance.at = min(limits.burst, allowance.left + (at - allowance.at) / limits.refill), at
        if allowance.left < RESERVED[event.warning, event.combined] + 1:
            return False
        allowance.left -= 1
        return True

    def _reported(self, namespace: str, key: Hashable, at: float) -> _Similar:
        """What has been reported one by one under this key; nothing if there was no such event for `WINDOW` seconds."""
        similar = self._similar.recent(namespace, key, lambda: _Similar(at))
        if at - similar.latest > WINDOW:
            similar.reported = set()
        similar.latest = at
        return similar


def _limits(event: Event) -> EventLimits:
    return APART if event.counted_apart else LIMITS


def _is_reported(similar: _Similar, digest: int, limit: int) -> bool:
    """Whether this one is reported by itself: it has been before, or there is still room for it among `limit`."""
    if digest not in similar.reported and len(similar.reported) < limit:
        similar.reported.add(digest)
    return digest in similar.reported


def _combined(event: Event, about: ResourceId, uid: str) -> Event:
    """The combined event, on this object, to which the event belongs."""
    return replace(event, about=about, uid=uid, combined=True)


def _summarized(occurrences: Sequence[tuple[RootEvents, Event]]) -> list[tuple[RootEvents, Event]]:
    """The events, those combined from the first one on that are many or of a whole: on their object if it is the same, else on the root.

    Warnings are not, because each may say what failed; nor are events that are counted apart.
    """
    similar: defaultdict[tuple[ResourceId, str], set[tuple[ResourceId, str, str]]] = defaultdict(set)
    for group, event in occurrences:
        if group.uid and not event.warning and not event.counted_apart:
            similar[group.root, event.reason].add((event.about, event.uid, event.message))
    many = {key: {each[:2] for each in events} for key, events in similar.items() if len(events) > MAX_SIMILAR}

    def placed(group: RootEvents, event: Event) -> Event:
        key = (group.root, event.reason)
        if key not in similar or event.warning or event.counted_apart or not (event.of_whole or key in many):
            return event
        abouts = many.get(key, ())
        about, uid = (event.about, event.uid) if len(abouts) == 1 and not event.of_whole else (group.root, group.uid)
        return _combined(event, about, uid)

    return [(group, placed(group, event)) for group, event in occurrences]


def _is_spaced(stream: _Stream, at: float) -> bool:
    """Whether it is time to write the Event, unless something has to be reported at once."""
    if stream.event.combined and not stream.event.warning and not stream.event.counted_apart:
        return at - stream.noted >= SPACING or at - stream.since >= SUMMARY
    return stream.written is None or at - stream.written >= SPACING


def _written(stream: _Stream) -> Event:
    """The Event as it is written now: a combined one with the names of the first objects, or else its last message."""
    event, names = stream.event, stream.names
    if not event.combined:
        return replace(event, count=stream.pending)
    listed = ", ".join(names[:NAMED]) + (" and others" if len(names) > NAMED else "")
    before, after = event.message[: event.subject_at], event.message[event.subject_at + len(event.subject) :]
    message = f"{before}{listed}{after}" if event.subject and names else event.message
    is_single = event.of_whole and stream.pending == 1 and stream.written is None
    return replace(event, count=stream.pending, message=message if is_single else COMBINED + message)
