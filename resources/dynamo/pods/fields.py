"""Fields: parts of a pod spec that are read with their types checked, so that a wrong shape is reported with its path."""

from collections.abc import Mapping
from typing import Any

from engine.resource import Body
from resources.dynamo.backends.faults import PodFault

Path = tuple[str | int, ...]


def map_at(body: Body, path: Path, *fields: str) -> Body:
    """The map at the fields of a body that stands at `path`; empty if there is none. Raises `PodFault` for anything else."""
    value: Any = body
    for depth, field in enumerate(fields, start=1):
        value = value.get(field)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise PodFault((*path, *fields[:depth]), "must be a map")
    result: Body = value
    return result


def maps_at(body: Body, path: Path, field: str) -> list[Body]:
    """The list of maps in a field; empty if there is none. Raises `PodFault` for anything else."""
    value = _list_at(body, path, field)
    for index, entry in enumerate(value):
        if not isinstance(entry, Mapping):
            raise PodFault((*path, field, index), "must be a map")
    return value


def words_at(body: Body, path: Path, field: str) -> list[str]:
    """The list of texts in a field; empty if there is none. Raises `PodFault` for anything else."""
    value = _list_at(body, path, field)
    for index, word in enumerate(value):
        if not isinstance(word, str):
            raise PodFault((*path, field, index), "must be a text")
        if "\0" in word:
            raise PodFault((*path, field, index), "must not contain a null character")
    return value


def _list_at(body: Body, path: Path, field: str) -> list[Any]:
    value = body.get(field)
    if not isinstance(value, list | tuple | None):
        raise PodFault((*path, field), "must be a list")
    return list(value or ())
