"""Shareable: what an operation changes or creates, for documents that are passed on: no values of environment variables, no hashes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from engine.mask import LAST_APPLIED, MASKED, OTHER, masked
from engine.operation import Change, Creation, Operation
from engine.paths import spell
from engine.report.alike import blurred, spread
from engine.report.fields import json_default, json_text, shown_fields, sides
from engine.resource import Body
from engine.verb import Verb

ENVIRONMENT: Final = frozenset({"env", "envs"})
"""Fields that hold environment variables: credentials are often among them."""


def published_changes(operation: Operation, *, values: bool = False) -> tuple[Change, ...]:
    """The changed fields of an operation, with secrets and, unless `values`, those of environment variables masked.

    Hashes say nothing to a reader, and are left out.
    """
    changes = shown_fields(operation)
    return changes if values else tuple(map(_masked, changes))


class FieldLine(Struct, frozen=True):
    """A changed field of one operation, or of several that are alike."""

    path: str
    old: str
    new: str
    order: bool = False
    """Whether entries of a list have changed places."""
    is_new: bool = False
    is_removed: bool = False


def published_fields(operations: Sequence[Operation], *, values: bool = False) -> list[FieldLine]:
    """The changed fields of operations that are alike, each with the values of all of them: `{1,2} → {3,4}`.

    Of statuses those of the first one. Values are masked as by `published_changes`.
    """
    listed = [list(map(_line, published_changes(each, values=values))) for each in _with_other_changes(operations)]
    first = listed[0]
    if any(len(lines) != len(first) for lines in listed):
        return [line for lines in listed for line in lines]
    return [merged for lines in zip(*listed, strict=True) for merged in _merged(list(dict.fromkeys(lines)))]


def _with_other_changes(operations: Sequence[Operation]) -> Iterable[Operation]:
    """The first operation, and each that makes other changes than those before it."""
    if operations[0].verb is Verb.STATUS:
        return operations[:1]
    distinct: dict[str, Operation] = {}
    for operation in operations:
        distinct.setdefault(json_text([(change.path, change.old, change.new) for change in operation.changes]), operation)
    return distinct.values()


def _line(change: Change) -> FieldLine:
    return FieldLine(spell(change.path), *sides(change), change.order, change.old is None, change.new is None)


def _merged(lines: Sequence[FieldLine]) -> Sequence[FieldLine]:
    """The lines as one, if they differ in numbers only; else all of them."""
    texts = [(line.path, line.old, line.new) for line in lines]
    if len({tuple(map(blurred, each)) for each in texts}) > 1:
        return lines
    path, old, new = (spread(column) for column in zip(*texts, strict=True))
    return [replace(lines[0], path=path, old=old, new=new)]


def published_manifest(operation: Operation, *, values: bool = False) -> Body | None:
    """The manifest of a create or replace, without owner references and hashes, masked as the changes are; None for other verbs."""
    if not isinstance(operation, Creation):
        return None
    body = masked(operation.manifest)
    if operation.seal:
        labels = {key: value for key, value in body["metadata"]["labels"].items() if key != operation.seal}
        body = {**body, "metadata": {**body["metadata"], "labels": labels}}
    manifest: Body = body if values else _hidden(body, ())
    return manifest


def manifest_lines(manifest: Body) -> list[str]:
    """The manifest as indented JSON, line by line."""
    return orjson.dumps(manifest, default=json_default, option=orjson.OPT_INDENT_2).decode().splitlines()


def _masked(change: Change) -> Change:
    old, new = _hidden(change.old, change.path), _hidden(change.new, change.path)
    return replace(change, old=old, new=OTHER if new == MASKED == old else new)


def _hidden(value: Any, path: tuple[str, ...]) -> Any:
    """The value at a path, with the values of environment variables and kubectl's copy of the manifest masked."""
    if value and (path[-1:] == (LAST_APPLIED,) or (path[-1:] == ("value",) and not ENVIRONMENT.isdisjoint(path[-3:-1]))):
        return MASKED
    if isinstance(value, Mapping):
        return {key: _hidden(inner, (*path, str(key))) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(inner, (*path, "[]")) for inner in value]
    return value
