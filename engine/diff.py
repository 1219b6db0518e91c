"""Diff: what must change for a live object to be as wanted. Equality decides; deepdiff only explains, for people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from engine import ownership
from engine.operation import Cause, Change, Operation
from engine.ownership import Fields
from engine.quantity import is_same_quantity
from engine.resource import NOW, Body, Path, Policy

MISSING: Any = object()

SERVED_APART = frozenset({"apiVersion", "kind", "status"})
"""Top-level keys that no patch of the main body speaks of."""

BOUND = frozenset({"name", "namespace", "ownerReferences", "finalizers"})
"""Metadata that is identity, or is compared on its own."""


@dataclass(slots=True)
class Difference:
    """The lines of a diff, and the merge patch that they amount to."""

    found: list[Change] = field(default_factory=list)

    def add(self, path: Path, old: Any, new: Any, cause: Cause) -> None:
        """One more line; a new value of None takes the field away."""
        self.found.append(Change(path, None if old is MISSING else old, new, cause))

    @property
    def changes(self) -> tuple[Change, ...]:
        """The lines by path, whatever order they were found in."""
        return tuple(sorted(self.found, key=lambda change: change.path))

    @property
    def patch(self) -> dict[str, Any]:
        """What makes the difference, as a JSON merge patch."""
        patch: dict[str, Any] = {}
        for change in self.changes:
            spot = patch
            for key in change.path[:-1]:
                spot = spot.setdefault(key, {})
            spot[change.path[-1]] = change.new
        return patch


@dataclass(frozen=True, slots=True)
class Rules:
    """What steers one comparison: the object's policy, and why a field that is nowhere yet would be missing."""

    policy: Policy
    absent: Cause


def compare(wanted: Body, live: Body, rules: Rules) -> Difference:
    """What differs in the main body: fields we set that the live object lacks or has otherwise, and fields we set once and dropped.

    Fields of others are never spoken of, except beneath an `exact` path. Owner references and finalizers are not compared here.
    """
    difference = Difference()
    fields = ownership.owned(live)
    sealed = _is_sealed(wanted, live, rules.policy.seal)
    look = _Comparison(rules, sealed, dict(rules.policy.defaults), difference)
    for key in (wanted.keys() | {path[0] for path in rules.policy.owned}) - SERVED_APART - {"metadata"}:
        look.at((key,), wanted.get(key, MISSING), live.get(key, MISSING), fields)
    held = ownership.below(fields, "metadata")
    for key in (wanted["metadata"].keys() | LABELLED) - BOUND:
        look.at(("metadata", key), wanted["metadata"].get(key, MISSING), live["metadata"].get(key, MISSING), held)
    return difference


def _is_sealed(wanted: Body, live: Body, seal: str) -> bool:
    if not seal:
        return False
    ours, theirs = wanted["metadata"].get("labels") or {}, live["metadata"].get("labels") or {}
    return bool(ours.get(seal) == theirs.get(seal))


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One comparison under way."""

    rules: Rules
    sealed: bool
    defaults: Mapping[Path, Any]
    out: Difference

    def at(self, path: Path, wanted: Any, live: Any, fields: Fields) -> None:
        """Compare what is at a path; `fields` is what we own around it."""
        if wanted is live or (_is_labelled(path) and wanted == live):
            return  # Labels and annotations are strings: Python's equality is theirs.
        policy = self.rules.policy
        if path in policy.seeded:
            return
        if wanted is MISSING:
            self._unspoken(path, live, fields)
        elif path in policy.exact:
            if not (covers(wanted, live) if self.sealed else same(wanted, live)):
                _replace_whole(path, wanted, live, self.out)
        elif live is MISSING:
            if not _is_empty(wanted):
                self.out.add(path, MISSING, wanted, self.rules.absent)
        elif isinstance(wanted, dict) and isinstance(live, dict):
            self._inside(path, wanted, live, ownership.below(fields, path[-1]))
        else:
            self._value(path, wanted, live, fields)

    def _inside(self, path: Path, wanted: Body, live: Body, fields: Fields) -> None:
        names = set(wanted)
        if self._may_take_from(path):
            names.update(ownership.keys(fields))
        if self.defaults:
            names.update(default[len(path)] for default in self.defaults if len(default) > len(path) and default[: len(path)] == path)
        for name in names:
            self.at((*path, name), wanted.get(name, MISSING), live.get(name, MISSING), fields)

    def _may_take_from(self, path: Path) -> bool:
        """Whether something at or beneath this path could be ours to take away."""
        policy = self.rules.policy
        if path in policy.partial:
            return False
        return _is_labelled(path) or any(path[: len(owned)] == owned or owned[: len(path)] == path for owned in policy.owned)

    def _unspoken(self, path: Path, live: Any, fields: Fields) -> None:
        """What we say nothing about: the server's default may be there, and what is not ours to take away."""
        if live is MISSING:
            return
        if path in self.defaults:
            if not covers(self.defaults[path], live):
                self.out.add(path, live, None, Cause.INTENT)
            return
        policy = self.rules.policy
        ours = ownership.owns(fields, path[-1]) and path not in policy.partial
        if ours and (_is_labelled(path) or any(path[: len(owned)] == owned for owned in policy.owned)):
            _take_away(path, live, ownership.below(fields, path[-1]), self.rules, self.out)

    def _value(self, path: Path, wanted: Any, live: Any, fields: Fields) -> None:
        """A list or a scalar. A list that the server counts as ours altogether must be equal, not only covered."""
        if same(wanted, live):
            return
        ours = ownership.owns(fields, path[-1])
        whole = ours and ownership.is_atomic(ownership.below(fields, path[-1])) and not self.rules.policy.quantities
        if whole or not covers(wanted, live, self.rules.policy.quantities):
            self.out.add(path, live, wanted, Cause.INTENT if ours else Cause.DRIFT)


LABELLED = frozenset({"labels", "annotations"})


def _is_labelled(path: Path) -> bool:
    return path[0] == "metadata" and len(path) > 1 and path[1] in LABELLED


def _take_away(path: Path, live: Any, fields: Fields, rules: Rules, out: Difference) -> None:
    """Remove what is ours in a value that is wanted no more; what others have put there stays."""
    if path in rules.policy.seeded:
        return
    if not isinstance(live, dict) or ownership.is_atomic(fields):
        out.add(path, live, None, Cause.INTENT)
        return
    for name in ownership.keys(fields):
        if name in live:
            _take_away((*path, name), live[name], ownership.below(fields, name), rules, out)


def _replace_whole(path: Path, wanted: Any, live: Any, out: Difference) -> None:
    if isinstance(wanted, dict) and isinstance(live, dict):
        for name in wanted.keys() | live.keys():
            new, old = wanted.get(name, MISSING), live.get(name, MISSING)
            if not same(new, old):
                _replace_whole((*path, name), new, old, out)
    else:
        out.add(path, live, None if wanted is MISSING else wanted, Cause.INTENT)


def covers(wanted: Any, live: Any, quantities: frozenset[str] = frozenset()) -> bool:
    """Whether the live value has everything that we ask for; what it has beyond that (defaults, others' fields) is no difference."""
    if wanted is live:
        return True
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            return False
        for key, value in wanted.items():
            seen = live.get(key, MISSING)
            if seen is MISSING:
                if not _is_empty(value):
                    return False
            elif not covers(value, seen, quantities) and not (key in quantities and is_same_quantity(value, seen)):
                return False
        return True
    if isinstance(wanted, list | tuple):
        if not isinstance(live, list | tuple) or len(wanted) != len(live):
            return False
        return all(covers(ours, seen, quantities) for ours, seen in zip(wanted, live, strict=True))
    return same(wanted, live)


def same(one: Any, other: Any) -> bool:
    """Equality as JSON sees it: `1` is not `true`, and `1` is not `1.0`-by-accident of Python."""
    if one is other:
        return True
    if type(one) is str:
        return bool(one == other)
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return isinstance(other, list | tuple) and len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _is_empty(value: Any) -> bool:
    """An absent field and an empty one are the same to the API server."""
    return value is None or (isinstance(value, dict | list | tuple) and not value)


def compare_status(wanted: Body, live: Body) -> Difference:
    """What differs in a status, of which we speak for the fields we name; a wanted None means that the field must not be there."""
    difference = Difference()
    _compare_status(("status",), wanted, live, difference)
    return difference


def _compare_status(path: Path, wanted: Body, live: Body, out: Difference) -> None:
    for key, value in wanted.items():
        seen = live.get(key, MISSING)
        if value is None:
            if seen is not MISSING:
                out.add((*path, key), seen, None, Cause.DRIFT)
        elif isinstance(value, dict) and isinstance(seen, dict):
            _compare_status((*path, key), value, seen, out)
        elif seen is MISSING or not same(value, seen):
            out.add((*path, key), seen, value, Cause.DRIFT)


def touches(change: Change, paths: tuple[Path, ...]) -> bool:
    """Whether a change lies at or beneath one of the paths, or above it."""
    return any(change.path[: len(path)] == path or path[: len(change.path)] == change.path for path in paths)


def explain(operation: Operation) -> tuple[Change, ...]:
    """The changes of an operation down to their leaves, lists of named things by name: for people to read."""
    return tuple(leaf for change in operation.changes for leaf in _leaves(change))


def _leaves(change: Change) -> Iterator[Change]:
    if change.old is None or change.new is None or not isinstance(change.new, Mapping | list | tuple):
        yield change
        return
    from deepdiff import DeepDiff  # A tenth of a second to load, and most plans explain nothing.

    found = DeepDiff(_keyed(change.old), _keyed(change.new), view="tree", threshold_to_diff_deeper=0)
    leaves = [level for group in found.values() for level in group]
    for level in sorted(leaves, key=lambda level: [str(part) for part in level.path(output_format="list")]):
        path = tuple(_step(part) for part in level.path(output_format="list"))
        old, new = (None if _absent(side) else _unkeyed(side) for side in (level.t1, level.t2))
        yield replace(change, path=(*change.path, *path), old=old, new=new)


def _absent(side: Any) -> bool:
    return type(side).__name__ == "NotPresent" or side is None


def _step(part: Any) -> str:
    return f"[{part}]" if isinstance(part, int) else str(part)


def _keyed(value: Any) -> Any:
    """Lists of things with names become maps by name, so that one inserted container is one added line."""
    if isinstance(value, Mapping):
        return {key: _keyed(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        names = [below.get("name") if isinstance(below, Mapping) else None for below in value]
        if names and all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return {f"[{name}]": _keyed(below) for name, below in zip(names, value, strict=True)}
        return [_keyed(below) for below in value]
    return "(time of writing)" if value is NOW else value


def _unkeyed(value: Any) -> Any:
    if isinstance(value, Mapping):
        if value and all(isinstance(key, str) and key.startswith("[") for key in value):
            return [_unkeyed(below) for below in value.values()]
        return {key: _unkeyed(below) for key, below in value.items()}
    return [_unkeyed(below) for below in value] if isinstance(value, list) else value
