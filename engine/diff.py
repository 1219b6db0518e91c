"""Diff: the changes that make a live object match the desired one. `covers` and `same` decide; `leaves` details changes for people."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from engine import ownership
from engine.operation import Cause, Change
from engine.ownership import Fields
from engine.quantity import NOTHING_OMITTED, Omitted, is_same_quantity, without_omitted
from engine.resource import Body, Path, Policy

MISSING: Any = object()
"""Stands for the value of a field that does not exist."""
NOT_IN_BODY = frozenset({"apiVersion", "kind", "status"})
"""Top-level keys that are never part of a patch of the main body."""
NOT_COMPARED = frozenset({"name", "namespace", "ownerReferences", "finalizers"})
"""Metadata that identifies the object, or that the planner compares on its own."""
LABELLED = frozenset({"labels", "annotations"})
"""Metadata whose keys are removed when we own them and they are no longer desired, whatever the policy."""
LIST_KEYS = ("name", "mountPath", "devicePath", "containerPort", "ip", "topologyKey", "conditionType", "resourceName", "type", "key")
"""The fields that tell the entries of a list apart: those by which Kubernetes merges lists, and others that are keys where they differ."""


class Difference(Struct):
    """The changed fields of an object, and the merge patch that they amount to."""

    collected: list[Change] = field(default_factory=list)

    def intend(self, paths: Iterable[Path]) -> None:
        """Let the changes of these fields count as intended, also where others have written the old values."""
        for path in paths:
            self.collected = [replace(change, cause=Cause.INTENT) if change.path == path else change for change in self.collected]

    def add(self, path: Path, old: Any, new: Any, cause: Cause) -> None:
        """Add a change; a new value of None removes the field."""
        self.collected.append(Change(path, None if old is MISSING else old, new, cause))

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes, sorted by path."""
        return tuple(sorted(self.collected, key=lambda change: change.path))

    @property
    def patch(self) -> dict[str, Any]:
        """The changes as a JSON merge patch."""
        patch: dict[str, Any] = {}
        for change in self.changes:
            parent = patch
            for key in change.path[:-1]:
                parent = parent.setdefault(key, {})
            parent[change.path[-1]] = change.new
        return patch


class Rules(Struct, frozen=True):
    """How one object is compared: its policy, and the causes of changes where the live object lacks what is desired."""

    policy: Policy
    absent: Cause
    """Of a field."""
    absent_label: Callable[[], Cause] | None = None
    """Of a label or an annotation, called where one is absent; None: as of a field."""


def compare(desired: Body, live: Body, rules: Rules) -> Difference:
    """The difference in the main body: desired fields that are missing or differ, and fields that we set and no longer want.

    Fields of other managers are left alone, except beneath an `exact` path. Owner references and finalizers are not compared here.
    """
    difference = Difference()
    owned_fields = ownership.owned(live)
    sealed = _is_sealed(desired, live, rules.policy.seal)
    comparison = _Comparison(rules, sealed, ownership.is_recorded(live), dict(rules.policy.defaults), difference)
    for key in (desired.keys() | {path[0] for path in rules.policy.owned}) - NOT_IN_BODY - {"metadata"}:
        comparison.at((key,), desired.get(key, MISSING), live.get(key, MISSING), owned_fields)
    owned_metadata = ownership.below(owned_fields, "metadata")
    for key in (desired["metadata"].keys() | LABELLED) - NOT_COMPARED:
        path = ("metadata", key)
        comparison.at(path, desired["metadata"].get(key, MISSING), live["metadata"].get(key, MISSING), owned_metadata)
    return difference


def _is_sealed(desired: Body, live: Body, seal: str) -> bool:
    """Whether the seal label of the live object agrees (`Policy.seal`)."""
    if not seal:
        return False
    desired_labels, live_labels = desired["metadata"].get("labels") or {}, live["metadata"].get("labels") or {}
    return bool(desired_labels.get(seal) == live_labels.get(seal))


class _Comparison(Struct, eq=False):
    """A comparison in progress; it adds changes to `difference`. `owned` arguments are the fields that we own around a path."""

    rules: Rules
    sealed: bool
    recorded: bool
    """Whether the server has recorded who has set the fields of the live object."""
    defaults: Mapping[Path, Any]
    difference: Difference

    def at(self, path: Path, desired: Any, live: Any, owned: Fields) -> None:
        """Compare the values at a path."""
        if desired is live or (is_labelled(path) and desired == live):
            return  # Labels and annotations are strings, for which Python's equality is right.
        policy = self.rules.policy
        if path in policy.seeded:
            return
        if desired is MISSING and isinstance(live, dict) and path in {withdrawn[:-1] for withdrawn in policy.withdrawn}:
            self._compare_maps(path, {}, live, ownership.below(owned, path[-1]))
        elif desired is MISSING:
            self._compare_undesired(path, live, owned)
        elif path in policy.exact:
            if not (covers(desired, live) if self.sealed else same(desired, live)):
                self._replace_whole(path, desired, live, owned)
        elif live is MISSING:
            if not _is_empty(desired) and not policy.omitted.at(path[:-1]).is_absent(path[-1], desired):
                self.difference.add(path, MISSING, desired, self._absent(path))
        elif isinstance(desired, dict) and isinstance(live, dict):
            self._compare_maps(path, desired, live, ownership.below(owned, path[-1]))
        else:
            self._compare_values(path, desired, live, owned)

    def _compare_maps(self, path: Path, desired: Body, live: Body, owned: Fields) -> None:
        """Compare the desired keys, those that we own, and those with a server default."""
        names = {*desired, *(withdrawn[-1] for withdrawn in self.rules.policy.withdrawn if withdrawn[:-1] == path)}
        if self._may_remove_from(path):
            names.update(ownership.keys(owned))
        if self.defaults:
            names.update(default[len(path)] for default in self.defaults if len(default) > len(path) and default[: len(path)] == path)
        for name in names:
            self.at((*path, name), desired.get(name, MISSING), live.get(name, MISSING), owned)

    def _may_remove_from(self, path: Path) -> bool:
        """Whether fields at or beneath this path may be removed because we own them."""
        policy = self.rules.policy
        if path in policy.partial:
            return False
        return is_labelled(path) or any(path[: len(owned)] == owned or owned[: len(path)] == path for owned in policy.owned)

    def _compare_undesired(self, path: Path, live: Any, owned: Fields) -> None:
        """Compare a field that is not desired: it must have the server's default if there is one, and is removed if we own it."""
        if live is MISSING:
            return
        if path in self.defaults:
            if not covers(self.defaults[path], live):
                self.difference.add(path, live, None, Cause.INTENT)
            return
        policy = self.rules.policy
        is_ours = ownership.owns(owned, path[-1]) and path not in policy.partial
        if is_ours and (is_labelled(path) or any(path[: len(prefix)] == prefix for prefix in policy.owned)):
            _remove_owned(path, live, ownership.below(owned, path[-1]), self.rules, self.difference)

    def _compare_values(self, path: Path, desired: Any, live: Any, owned: Fields) -> None:
        """Compare lists or scalars. A list that the server tracks as ours as a whole must be equal, not only covered."""
        policy = self.rules.policy
        omitted = policy.omitted.at(path)
        if same(desired, live) or (omitted is not NOTHING_OMITTED and same(without_omitted(desired, omitted), live)):
            return
        is_ours = ownership.owns(owned, path[-1])
        is_whole = is_ours and ownership.is_atomic(ownership.below(owned, path[-1])) and not policy.quantities
        if is_whole or not covers(desired, live, policy.quantities, omitted):
            self.difference.add(path, live, desired, self._changed(path, owned))

    def _replace_whole(self, path: Path, desired: Any, live: Any, owned: Fields) -> None:
        """Add the changes that make the live value equal to the desired one, fields of other managers included."""
        if isinstance(desired, dict) and isinstance(live, dict):
            below = ownership.below(owned, path[-1])
            for name in desired.keys() | live.keys():
                new, old = desired.get(name, MISSING), live.get(name, MISSING)
                if not same(new, old):
                    self._replace_whole((*path, name), new, old, below)
        else:
            is_drift = self.sealed or not self.rules.policy.seal
            cause = self._changed(path, owned) if is_drift and self.rules.absent is Cause.DRIFT else Cause.INTENT
            self.difference.add(path, live, None if desired is MISSING else desired, cause)

    def _absent(self, path: Path) -> Cause:
        """Why the live object lacks a desired value."""
        if is_labelled(path) and path[-1] in self.rules.policy.lifelong:
            return Cause.DRIFT
        return self.rules.absent_label() if self.rules.absent_label is not None and is_labelled(path) else self.rules.absent

    def _changed(self, path: Path, owned: Fields) -> Cause:
        """Why a live value differs: the desired one has changed if we have set the live one, else another writer has changed it."""
        return Cause.INTENT if not self.recorded or ownership.owns(owned, path[-1]) else Cause.DRIFT


def is_labelled(path: Path) -> bool:
    """Whether the path is that of a label or an annotation."""
    return path[0] == "metadata" and len(path) > 1 and path[1] in LABELLED


def _remove_owned(path: Path, live: Any, owned: Fields, rules: Rules, difference: Difference) -> None:
    """Remove what we own in a value that is no longer desired; fields of other managers stay.

    A map that is ours with all its fields is removed as a whole: without its fields it would remain, empty, and need another patch.
    """
    if path in rules.policy.seeded:
        return
    if not isinstance(live, dict) or ownership.is_atomic(owned) or _is_removed_as_a_whole(path, live, owned, rules.policy):
        difference.add(path, live, None, Cause.INTENT)
        return
    for name in ownership.keys(owned):
        if name in live:
            _remove_owned((*path, name), live[name], ownership.below(owned, name), rules, difference)


def _is_removed_as_a_whole(path: Path, live: Body, owned: Fields, policy: Policy) -> bool:
    """Whether a map is ours with all its fields. Labels and annotations are listed one by one; the server removes their empty map."""
    keeps_a_field = any(seeded[: len(path)] == path for seeded in policy.seeded)
    return not is_labelled(path) and not keeps_a_field and ownership.owns_all(owned, live)


def covers(desired: Any, live: Any, quantities: frozenset[str] = frozenset(), omitted: Omitted = NOTHING_OMITTED) -> bool:
    """Whether the live value has everything that is desired; more fields (defaults, fields of others) are no difference."""
    if desired is live:
        return True
    if type(desired) is str:
        return bool(desired == live)
    if isinstance(desired, dict):
        if not isinstance(live, dict):
            return False
        for key, value in desired.items():
            live_value = live.get(key, MISSING)
            if live_value is MISSING:
                if not _is_empty(value) and not omitted.is_absent(key, value):
                    return False
            elif not covers(value, live_value, quantities, omitted.below.get(key, NOTHING_OMITTED)) and not (
                key in quantities and is_same_quantity(value, live_value)
            ):
                return False
        return True
    if isinstance(desired, list | tuple):
        if not isinstance(live, list | tuple) or len(desired) != len(live):
            return False
        return all(covers(item, live_item, quantities, omitted) for item, live_item in zip(desired, live, strict=True))
    return same(desired, live)


def same(left: Any, right: Any) -> bool:
    """Equality of JSON values: unlike in Python, `1` does not equal `True`."""
    if left is right:
        return True
    if type(left) is str:
        return bool(left == right)
    if isinstance(left, dict):
        if not isinstance(right, dict) or left.keys() != right.keys():
            return False
        return all(map(same, left.values(), map(right.__getitem__, left)))
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def _is_empty(value: Any) -> bool:
    """Whether the API server treats the value like an absent field."""
    return value is None or (isinstance(value, dict | list | tuple) and not value)


def compare_status(desired: Body, live: Body) -> Difference:
    """The difference in a status, of the desired fields only; a desired None means that the field must not exist."""
    difference = Difference()
    _compare_status(("status",), desired, live, difference)
    return difference


def _compare_status(path: Path, desired: Body, live: Body, difference: Difference) -> None:
    for key, value in desired.items():
        live_value = live.get(key, MISSING)
        if value is None:
            if live_value is not MISSING:
                difference.add((*path, key), live_value, None, Cause.STATUS)
        elif isinstance(value, dict) and isinstance(live_value, dict):
            _compare_status((*path, key), value, live_value, difference)
        elif live_value is MISSING or not same(value, live_value):
            difference.add((*path, key), live_value, value, Cause.STATUS)


def touches(change: Change, paths: tuple[Path, ...]) -> bool:
    """Whether the path of the change is one of the paths, or beneath or above one."""
    return any(change.path[: len(path)] == path or path[: len(change.path)] == change.path for path in paths)


def keyed_entries(entries: Sequence[Any]) -> dict[str, Any]:
    """Key -> entry of a list of maps whose entries have a key, in the order of the list; empty for other lists."""
    return by_key(entries, key) if (key := list_key(entries)) else {}


def list_key(*lists: Sequence[Any]) -> str | None:
    """The first of `LIST_KEYS` by which all entries of each list can be told apart; None without one."""
    return next((key for key in LIST_KEYS if all(len(by_key(entries, key)) == len(entries) for entries in lists)), None)


def by_key(entries: Sequence[Any], key: str) -> dict[str, Any]:
    """Key -> entry of those entries that have one."""
    return {str(entry[key]): entry for entry in entries if isinstance(entry, Mapping) and isinstance(entry.get(key), str | int)}
