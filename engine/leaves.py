"""Leaves: the smallest changes that a change consists of, for people to read. They decide nothing."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from engine.diff import by_key, keyed_entries, list_key, same
from engine.operation import Cause, Change, Operation
from engine.resource import NOW, Path

LABELLED_PATHS: Final = frozenset({("metadata", "labels"), ("metadata", "annotations")})


def explain(operation: Operation) -> tuple[Change, ...]:
    """The changes of an operation broken down to their leaves, for people to read; entries of named lists are matched by name."""
    return tuple(leaf for change in operation.changes for leaf in leaves(change))


def leaves(change: Change) -> Iterator[Change]:
    """The smallest changes that a change of a map or list consists of; an added or removed value is one change.

    That entries of a list have changed places is one change, of their order. Of labels and annotations each one is a change.
    """
    if change.path in LABELLED_PATHS:
        change = replace(change, old=change.old or {}, new=change.new or {})
    if change.old is None or change.new is None or not isinstance(change.new, Mapping | list | tuple):
        yield change
        return
    from deepdiff import DeepDiff  # Loading it takes a tenth of a second, and most changes are of one value.

    orders: list[Change] = []
    old_parts, new_parts = _differing((), change.old, change.new, orders)
    yield from (replace(order, path=(*change.path, *order.path), cause=change.cause) for order in orders)
    groups = DeepDiff(old_parts, new_parts, view="tree", threshold_to_diff_deeper=0, ignore_private_variables=False)
    levels = [level for group in groups.values() for level in group]
    for level in sorted(levels, key=lambda level: [str(part) for part in level.path(output_format="list")]):
        path = tuple(f"[{part}]" if isinstance(part, int) else str(part) for part in level.path(output_format="list"))
        old, new = (None if _is_absent(side) else _unkeyed(side) for side in (level.t1, level.t2))
        if old is not None or new is not None:
            yield replace(change, path=(*change.path, *path), old=old, new=new)


def _is_absent(side: Any) -> bool:
    """Whether one side of a deepdiff result does not exist."""
    return type(side).__name__ == "NotPresent" or side is None


def _differing(path: Path, old: Any, new: Any, orders: list[Change]) -> tuple[Any, Any]:
    """Both values without the fields and entries that are the same in both, in the form of `_keyed`.

    Which entries have changed places is added to `orders`: of lists whose entries have keys the keys, of others the entries.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return _differing_maps(path, old, new, orders)
    if not isinstance(old, list | tuple) or not isinstance(new, list | tuple):
        return _keyed(old), _keyed(new)
    if key := list_key(old, new):
        before, after = by_key(old, key), by_key(new, key)
        if [name for name in before if name in after] != [name for name in after if name in before]:
            orders.append(Change(path, list(before), list(after), Cause.INTENT, order=True))
        return _differing_maps(path, _bracketed(before), _bracketed(after), orders)
    if len(old) == len(new) and sorted(map(_sort_key, old)) == sorted(map(_sort_key, new)):
        if not same(old, new):
            orders.append(Change(path, list(old), list(new), Cause.INTENT, order=True))
        return [], []
    if len(old) == len(new) and all(isinstance(entry, Mapping) for entry in (*old, *new)):
        pairs = [_differing_maps((*path, f"[{at}]"), *pair, orders) for at, pair in enumerate(zip(old, new, strict=True))]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return _keyed(old), _keyed(new)


def _differing_maps(path: Path, old: Mapping[str, Any], new: Mapping[str, Any], orders: list[Change]) -> tuple[Any, Any]:
    """`_differing` of two maps."""
    pairs = {
        key: _differing((*path, key), value, new[key], orders) for key, value in old.items() if key in new and not same(value, new[key])
    }
    before = {key: pairs[key][0] if key in pairs else _keyed(value) for key, value in old.items() if key in pairs or key not in new}
    after = {key: pairs[key][1] if key in pairs else _keyed(value) for key, value in new.items() if key in pairs or key not in old}
    return before, after


def _bracketed(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {f"[{key}]": entry for key, entry in entries.items()}


def _sort_key(value: Any) -> str:
    """The same text for equal values."""
    if isinstance(value, Mapping):
        return repr(sorted((key, _sort_key(inner)) for key, inner in value.items()))
    return repr(list(map(_sort_key, value))) if isinstance(value, list | tuple) else repr(value)


def _keyed(value: Any) -> Any:
    """Lists whose entries have keys as maps by key, so that one inserted container is one added line."""
    if isinstance(value, Mapping):
        return {key: _keyed(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        if entries := keyed_entries(value):
            return _bracketed({key: _keyed(entry) for key, entry in entries.items()})
        return [_keyed(item) for item in value]
    return repr(value) if value is NOW else value


def _unkeyed(value: Any) -> Any:
    """The inverse of `_keyed`."""
    if isinstance(value, Mapping):
        if value and all(isinstance(key, str) and key.startswith("[") for key in value):
            return [_unkeyed(item) for item in value.values()]
        return {key: _unkeyed(child) for key, child in value.items()}
    return [_unkeyed(item) for item in value] if isinstance(value, list) else value
