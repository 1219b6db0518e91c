"""JSON patch: the operations of RFC 6902 that turn one document into another, and touch nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Step = dict[str, Any]
"""One operation of a patch."""


def json_patch(old: Any, new: Any, path: str = "") -> list[Step]:
    """What to do to the old document to have the new one; nothing where they are the same."""
    return list(_steps(old, new, path))


def _steps(old: Any, new: Any, path: str) -> Iterator[Step]:
    if old is new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _of_maps(old, new, path)
    elif _is_list(old) and _is_list(new):
        yield from _of_lists(old, new, path)
    elif not same(old, new):
        yield {"op": "replace", "path": path, "value": new}


def _of_maps(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[Step]:
    for key in old:
        if key not in new:
            yield {"op": "remove", "path": _below(path, key)}
    for key, value in new.items():
        if key in old:
            yield from _steps(old[key], value, _below(path, key))
        else:
            yield {"op": "add", "path": _below(path, key), "value": value}


def _of_lists(old: Sequence[Any], new: Sequence[Any], path: str) -> Iterator[Step]:
    """What both begin and end with stays; of what lies between, entries are paired by place, and the rest comes or goes."""
    shorter = min(len(old), len(new))
    begin = next((at for at in range(shorter) if not same(old[at], new[at])), shorter)
    end = next((at for at in range(shorter - begin) if not same(old[-1 - at], new[-1 - at])), shorter - begin)
    for at in range(begin, shorter - end):
        yield from _steps(old[at], new[at], _below(path, at))
    for at in range(len(old) - end - 1, shorter - end - 1, -1):
        # From behind: what is taken away moves up all that comes after it.
        yield {"op": "remove", "path": _below(path, at)}
    for at in range(shorter - end, len(new) - end):
        yield {"op": "add", "path": _below(path, at), "value": new[at]}


def same(one: Any, other: Any) -> bool:
    """Whether two documents are the same JSON: to Python alone `true` is 1, and 1 is 1.0."""
    if one is other:
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if _is_list(one) and _is_list(other):
        return len(one) == len(other) and all(map(same, one, other))
    return (type(one) is type(other) or isinstance(one, str)) and bool(one == other)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _below(path: str, key: str | int) -> str:
    """The pointer to what lies in that place."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
