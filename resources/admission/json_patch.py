"""JSON patch: the operations of RFC 6902 that turn one document into another."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PatchOperation = dict[str, Any]
"""One operation of a patch."""


def json_patch(old: Any, new: Any, path: str = "") -> list[PatchOperation]:
    """The operations that turn `old` into `new`; empty if they are equal. `path` is the JSON pointer of both."""
    return list(_operations(old, new, path))


def _operations(old: Any, new: Any, path: str) -> Iterator[PatchOperation]:
    if old is new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _map_operations(old, new, path)
    elif _is_list(old) and _is_list(new):
        yield from _list_operations(old, new, path)
    elif not same(old, new):
        yield {"op": "replace", "path": path, "value": new}


def _map_operations(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[PatchOperation]:
    for key in old:
        if key not in new:
            yield {"op": "remove", "path": _pointer(path, key)}
    for key, value in new.items():
        if key in old:
            yield from _operations(old[key], value, _pointer(path, key))
        else:
            yield {"op": "add", "path": _pointer(path, key), "value": value}


def _list_operations(old: Sequence[Any], new: Sequence[Any], path: str) -> Iterator[PatchOperation]:
    """The common prefix and suffix are kept; entries between them are paired by index, the rest is added or removed."""
    shorter = min(len(old), len(new))
    begin = next((index for index in range(shorter) if not same(old[index], new[index])), shorter)
    end = next((index for index in range(shorter - begin) if not same(old[-1 - index], new[-1 - index])), shorter - begin)
    for index in range(begin, shorter - end):
        yield from _operations(old[index], new[index], _pointer(path, index))
    for index in range(len(old) - end - 1, shorter - end - 1, -1):
        # From the end, because a removal shifts the indices of all later entries.
        yield {"op": "remove", "path": _pointer(path, index)}
    for index in range(shorter - end, len(new) - end):
        yield {"op": "add", "path": _pointer(path, index), "value": new[index]}


def same(left: Any, right: Any) -> bool:
    """Whether two documents are the same JSON. Unlike in Python, `true` is not 1; unlike for `engine.diff.same`, 1 is not 1.0."""
    if left is right:
        return True
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if _is_list(left) and _is_list(right):
        return len(left) == len(right) and all(map(same, left, right))
    return (type(left) is type(right) or isinstance(left, str)) and bool(left == right)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _pointer(path: str, key: str | int) -> str:
    """The JSON pointer of an entry."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
