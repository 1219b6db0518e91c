"""Meaning: what happens to one root, in words: a headline, a line for each change, told once for all objects; what is to be done."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from engine.diff import keyed_entries, same
from engine.forecast.forecast import End, Forecast
from engine.ids import ResourceId
from engine.operation import Cause, Change, Create, Delete, Operation, Release, WriteStatus, parent_of
from engine.plan import Wait
from engine.reason import Reason
from engine.report.alike import blurred, grouped, spread
from engine.report.fields import field_text, is_hash, json_text, rank, shown_fields
from engine.report.model import RootReport, Step
from engine.report.printable import clipped, counted
from engine.resource import REPLICAS
from engine.verb import Verb

CREATE, DELETE = "create", "delete"
SCALES: Final = ("scale out", "scale in")
WORDS: Final[Mapping[Reason, str]] = {
    Reason.SCALED_OUT: "scale out",
    Reason.SCALED_IN: "scale in",
    Reason.MANIFEST_CHANGED: "update",
    Reason.TEMPLATE_CHANGED: "update",
    Reason.SET_DELETED: DELETE,
    Reason.PRUNED: "prune",
    Reason.MISSING: "repair",
    Reason.DRIFTED: "repair",
    Reason.ORPHANED: "repair",
    Reason.USER_DELETED: "repair",
    Reason.POD_ENDED: "repair",
    Reason.GANG_TERMINATED: "repair",
    Reason.DOMAIN_REPLACED: "repair",
    Reason.ADOPTED: "take over",
}
"""Reason -> what it is a sign of. Operations with other reasons continue what has begun."""
ORDER: Final = ("prune", DELETE, CREATE, *SCALES, "update", "repair", "take over")
EMPHASIS: Final[Mapping[End, str]] = {End.STUCK: "STUCK", End.REPEATS: "REPEATS"}
"""Ends that the headline names."""
CHANGING: Final = frozenset({Verb.PATCH, Verb.SCALE, Verb.REPLACE})
"""The verbs of operations that are described by the fields that they change."""
NAMES: Final = 3
"""The most names that are shown of the objects of one kind."""
KINDS: Final = 5
"""The most kinds that are named of objects that are created or wait."""
OUTER: Final = frozenset({"spec", "metadata"})
"""Keys at the top that a reader can do without."""
WIDTH: Final = 160
"""The most characters of a list of objects, and of a reason."""
TELLING: Final = frozenset({Reason.GANG_TERMINATED, Reason.DOMAIN_REPLACED, Reason.ORPHANED, Reason.POD_ENDED, Reason.USER_DELETED})
"""Reasons whose sentence says more than the word."""


def headline(root: RootReport, forecast: Forecast | None) -> str:
    """What happens to the root until everything is settled or, without a forecast, in the next pass; and what is wrong."""
    signs = tuple(_signs(root, forecast))
    words = change_of(root, forecast) or ("" if (root.blocked or root.later) and signs else "no changes")
    return ", ".join(filter(None, (words, *signs)))


def change_of(root: RootReport, forecast: Forecast | None) -> str:
    """What happens to the root, in words; empty if nothing but statuses is written."""
    operations = [step.operation for step in root.steps]
    if forecast is not None:  # No other writer changes anything in it: whatever a later pass finds different, it made itself.
        operations += [operation for operation in forecast.operations_of(root.root) if operation.reason is not Reason.DRIFTED]
    return _words(root, [operation for operation in operations if not isinstance(operation, WriteStatus)])


def _words(root: RootReport, operations: list[Operation]) -> str:
    if not operations:
        return ""
    signs = {sign for operation in operations for sign in _signs_of(root, operation)}
    for alone in ("prune", DELETE, CREATE):
        if alone in signs:
            return alone
    replicas = _replicas(root, operations)
    words = [f"{word} {replicas}" if word in SCALES and replicas else word for word in ORDER if word in signs]
    return " and ".join(words) or "continue"


def _signs_of(root: RootReport, operation: Operation) -> Iterator[str]:
    """What one operation is a sign of. A new root, and one that is carried out for the first time, is created."""
    is_root = operation.id == root.root
    if isinstance(operation, Create) and operation.reason is Reason.MANIFEST_CHANGED:
        yield CREATE
    elif is_root and isinstance(operation, Delete | Release) and operation.reason is not Reason.PRUNED:
        yield DELETE
    elif is_root and (scaled := _scaled(operation)):
        yield SCALES[scaled[0] > scaled[1]]
        if any(change.path != REPLICAS and not is_hash(operation, change.path) for change in operation.changes):
            yield "update"
    elif word := WORDS.get(operation.reason):
        yield word


def _scaled(operation: Operation) -> tuple[int, int] | None:
    """The old and new number of replicas that a patch sets; None if it sets none."""
    for change in operation.changes:
        if change.path == REPLICAS and isinstance(change.old, int) and isinstance(change.new, int):
            return change.old, change.new
    return None


def _replicas(root: RootReport, operations: Iterable[Operation]) -> str:
    """`3 to 1` if the plan changes the replicas of the root, else empty."""
    scaled = next((scaled for operation in operations if operation.id == root.root and (scaled := _scaled(operation))), None)
    return f"{scaled[0]} to {scaled[1]}" if scaled else ""


def _signs(root: RootReport, forecast: Forecast | None) -> Iterator[str]:
    """What is wrong."""
    if root.objections:
        yield "DENIED"
    if root.error or root.problems:
        yield "INVALID" if root.problems else "FAILED"
    emphasis = EMPHASIS.get(forecast.end_of(root.root)) if forecast is not None else None
    if emphasis and forecast is not None:
        may_be_new = root.blocked or root.problems or root.error or forecast.has_operations(root.root) or forecast.is_blocked(root.root)
        yield f"still {emphasis}" if emphasis == "STUCK" and not may_be_new else emphasis
    elif root.blocked:
        yield "BLOCKED"


class Meaning(Struct, frozen=True):
    """One line: what is done, to which objects, and why."""

    verb: Verb
    text: str
    reason: str
    places: str = ""
    """The objects that a changed field is in."""


def meanings(steps: Iterable[Step], following: Sequence[Operation] = ()) -> list[Meaning]:
    """The meanings of a plan, the most severe first; `following` are all operations that are forecast."""
    listed = [step for step in steps if not isinstance(step.operation, WriteStatus)]
    changing = [step for step in listed if step.operation.verb in CHANGING]
    others = [step.operation for step in listed if step.operation.verb not in CHANGING]
    return [*_of_others(others), *_of_changes(changing, following)]


def _of_others(operations: Iterable[Operation]) -> Iterator[Meaning]:
    """Creates by reason; deletes and releases by kind and reason, with names."""
    groups: dict[tuple[object, ...], list[Operation]] = {}
    for operation in operations:
        kind = "" if isinstance(operation, Create) else operation.id.kind
        groups.setdefault((operation.verb, kind, operation.reason, operation.intended), []).append(operation)
    for group in groups.values():
        first = group[0]
        yield Meaning(first.verb, f"{first.verb} {listed([operation.id for operation in group])}", _reason(group))


def listed(ids: Sequence[ResourceId]) -> str:
    """`Pod/x`, `3 Pods: x-{0..2}`, or `12 objects: 6 Pods, 4 PodCliques, Service/x`: bounded, safe for a terminal."""
    kinds = Counter(id.kind for id in ids)
    if len(kinds) == 1:
        return _of_one_kind(ids)
    if len(ids) <= NAMES:
        return clipped(", ".join(f"{id.kind}/{id.name}" for id in ids), WIDTH)
    texts = [counted(count, kind) for kind, count in kinds.most_common(KINDS)]
    rest = len(ids) - sum(count for _, count in kinds.most_common(KINDS))
    return clipped(f"{len(ids)} objects: {', '.join(texts)}{f' and {rest} others' if rest else ''}", WIDTH)


def _of_one_kind(ids: Sequence[ResourceId]) -> str:
    patterns: dict[str, list[str]] = {}
    for id in ids:
        patterns.setdefault(blurred(id.name), []).append(id.name)
    names, kind = [spread(group) for group in patterns.values()], ids[0].kind
    if len(ids) == 1:
        return clipped(f"{kind}/{names[0]}", WIDTH)
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return clipped(f"{counted(len(ids), kind)}: {', '.join(names[:NAMES])}{more}", WIDTH)


def _reason(operations: Sequence[Operation]) -> str:
    """The reason of operations that share one; with the sentence where that says more, and is the same for all."""
    first = operations[0]
    word = f"{first.reason}{'' if first.intended else ', unintended'}"
    is_telling_alone = len(operations) == 1 and first.reason in (Reason.SET_DELETED, Reason.PRUNED)
    if not (first.reason in TELLING or is_telling_alone) or len({blurred(operation.why) for operation in operations}) > 1:
        return word
    return f"{word}: {clipped(spread(operation.why for operation in operations), WIDTH)}"


class _FieldChange(Struct):
    """A change of one field, in all the objects that get it."""

    change: Change
    verb: Verb
    reason: Reason
    tail: tuple[str, ...]
    """What the paths of all places have in common at their end."""
    place: int
    """Among all changes: the highest rank of those that its operation shows up to this one."""
    objects: dict[str, list[str]] = field(default_factory=dict)
    """Kind -> the names of the objects."""

    @property
    def text(self) -> str:
        """`podSpec.containers[main].image: "a:1" → "a:2"`."""
        return field_text(self.change, self.tail[1:] if self.tail[0] in OUTER and len(self.tail) > 1 else self.tail)


def _of_changes(steps: Sequence[Step], following: Sequence[Operation]) -> Iterator[Meaning]:
    """One meaning for each changed field, whichever objects repeat it, and one for the objects of which no field is shown.

    What is replaced comes first, then fields by their place.

    Values that differ in numbers only share a line, in which all of them are: `cpu: {1,2} → {3,4}`.
    """
    fields: dict[tuple[object, ...], _FieldChange] = {}
    unseen: dict[tuple[Verb, Reason, bool], list[Operation]] = {}
    for group in with_equal_changes(steps):
        first = group[0]
        shown = shown_fields(first)
        if not shown:
            unseen.setdefault((first.verb, first.reason, first.intended), []).extend(group)
        place = 0
        for change in shown:
            place = max(place, rank(change.path))
            key = (first.verb, change.cause, change.order, change.path[-2:], json_text(change.old), json_text(change.new))
            known = fields.setdefault(key, _FieldChange(change, first.verb, first.reason, change.path, place))
            known.tail = _common_end(known.tail, change.path)
            known.objects.setdefault(first.id.kind, []).extend(operation.id.name for operation in group)
    successors = _Successors(following)
    ordered = sorted(fields.values(), key=lambda each: (each.verb is not Verb.REPLACE, each.place))
    for alike in grouped(ordered, lambda each: (each.verb, each.change.cause, blurred(each.text))):
        text = alike[0].text if len(alike) == 1 else clipped(spread(each.text for each in alike), WIDTH)
        yield Meaning(alike[0].verb, f"{alike[0].verb} {text}", _word(alike[0].change, alike[0].reason), _places(alike, successors))
    for (verb, *_), operations in unseen.items():
        yield Meaning(verb, f"{verb} {listed([operation.id for operation in operations])}", _reason(operations))


def with_equal_changes(steps: Sequence[Step]) -> Iterable[list[Operation]]:
    """The operations in groups that make the same changes of objects of one kind, for the same reason."""
    groups: dict[tuple[object, ...], list[Operation]] = {}
    for operation in (step.operation for step in steps):
        changes = tuple((change.path, json_text(change.old), json_text(change.new), change.cause) for change in operation.changes)
        key = (operation.verb, operation.id.group, operation.id.kind, operation.reason, operation.intended, operation.seal, changes)
        groups.setdefault(key, []).append(operation)
    return groups.values()


def _common_end(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """The keys that two paths have in common at their end."""
    length = next((at for at, pair in enumerate(zip(reversed(first), reversed(second), strict=False)) if pair[0] != pair[1]), None)
    return first[len(first) - length :] if length is not None else min(first, second, key=len)


def _places(alike: Sequence[_FieldChange], successors: "_Successors") -> str:
    """`in PodCliqueSet/x, 3 PodCliques, 9 new Pods`."""
    objects: dict[str, dict[str, None]] = {}
    for each in alike:
        for kind, names in each.objects.items():
            objects.setdefault(kind, {}).update(dict.fromkeys(names))
    texts = [f"{kind}/{next(iter(names))}" if len(names) == 1 else counted(len(names), kind) for kind, names in objects.items()]
    new = successors.with_value(alike[0].change) if len(alike) == 1 else ()
    return clipped(f"in {', '.join((*texts, *new))}", WIDTH)


def _word(change: Change, reason: Reason) -> str:
    return str(Reason.DRIFTED if change.cause is Cause.DRIFT else reason)


class _Successors:
    """The objects that a forecast creates because of a new template, and which of them have a changed value."""

    def __init__(self, following: Sequence[Operation]) -> None:
        self._by_parent: dict[tuple[str, str], list[Create]] = {}
        for operation in following:
            parent = parent_of(operation)
            if isinstance(operation, Create) and operation.reason is Reason.TEMPLATE_CHANGED and parent is not None:
                self._by_parent.setdefault((operation.id.kind, parent[1]), []).append(operation)

    def with_value(self, change: Change) -> Iterator[str]:
        """`9 new Pods` for the kind of which the most objects have the value."""
        if change.order or change.new is None or isinstance(change.new, Mapping | list | tuple):
            return
        counts = Counter[str]()
        for (kind, _), operations in self._by_parent.items():
            if _has(operations[0].manifest, change.path[-2:], change.new):
                counts[kind] += len(operations)
        yield from (counted(count, f"new {kind}") for kind, count in counts.most_common(1))


def _has(value: Any, tail: tuple[str, ...], wanted: Any) -> bool:
    """Whether a value has `wanted` at the end of some path that ends with `tail`; entries of named lists are found by name."""
    if isinstance(value, Mapping):
        return same(_at(value, tail), wanted) or any(_has(child, tail, wanted) for child in value.values())
    if isinstance(value, list | tuple):
        named = {f"[{key}]": entry for key, entry in keyed_entries(value).items()}
        return same(_at(named, tail), wanted) or any(_has(child, tail, wanted) for child in value)
    return False


def _at(value: Any, tail: tuple[str, ...]) -> Any:
    for key in tail:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


SAID: Final = frozenset({Reason.KEPT, Reason.IN_USE})
"""The reasons whose texts say what to do."""
NEW: Final = "correct what is named above, or let an administrator do it, and run the command again"
NAMED: Final = "correct what it names, or let an administrator do it"


def explained_by(id: ResourceId) -> str:
    """The command that names everything that keeps a root, or an orphan, from being settled."""
    command = shlex.join(("engine", "why", f"{id.kind.lower()}/{id.name}", *(("-n", id.namespace) if id.namespace else ())))
    return f"{command} names each cause, and what has to be done about it"


def is_new(forecast: Forecast, root: ResourceId) -> bool:
    """Whether the forecast creates the root."""
    return any(isinstance(operation, Create) and operation.id == root for operation in forecast.operations_of(root))


def needed(wait: Wait) -> str:
    """What a user has to do about one object; empty if its text says it, or if there is nothing to do."""
    return wait.remedy or (NAMED if wait.blocked and wait.reason not in SAID else "")


def advice(wait: Wait, forecast: Forecast, root: ResourceId) -> str:
    """What to do about something that is left of a root; empty if its text says it."""
    if wait.reason in SAID:
        return ""
    return wait.remedy or (NEW if is_new(forecast, root) else explained_by(root))


def general_advice(waits: Iterable[Wait], forecast: Forecast, root: ResourceId) -> str:
    """What to do about what is left of a root, as far as the lines about it do not say it; empty if all do."""
    return next((text for wait in waits if not wait.remedy and (text := advice(wait, forecast, root))), "")
