"""Published: what an operation changes or creates, for documents that are passed on: no values of environment variables, no hashes."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from engine.mask import LAST_APPLIED, MASKED, OTHER, masked
from engine.operation import Change, Operation
from engine.report.fields import changed_fields, json_default
from engine.resource import Body
from engine.verb import Verb

ENVIRONMENT: Final = frozenset({"env", "envs"})
"""Fields that hold environment variables: credentials are often among them."""


def published_changes(operation: Operation, *, values: bool = False) -> tuple[Change, ...]:
    """The changed fields of an operation, with secrets and, unless `values`, those of environment variables masked.

    Hashes say nothing to a reader, and are left out.
    """
    changes = (change for change in changed_fields(operation) if not _is_hash(change.path[-1:]))
    return tuple(changes if values else map(_masked, changes))


def published_manifest(operation: Operation, *, values: bool = False) -> Body | None:
    """The manifest of a create or replace, without owner references and hashes, masked as the changes are; None for other verbs."""
    if operation.verb not in (Verb.CREATE, Verb.REPLACE):
        return None
    body = masked(operation.body)
    manifest: Body = body if values else _hidden(body, ())
    return manifest


def manifest_lines(manifest: Body) -> list[str]:
    """The manifest as indented JSON, line by line."""
    return orjson.dumps(manifest, default=json_default, option=orjson.OPT_INDENT_2).decode().splitlines()


def _masked(change: Change) -> Change:
    old, new = _hidden(change.old, change.path), _hidden(change.new, change.path)
    return Change(change.path, old, OTHER if new == MASKED == old else new, change.cause)


def _hidden(value: Any, path: tuple[str, ...]) -> Any:
    """The value at a path without hashes, and with the values of environment variables and kubectl's copy of the manifest masked."""
    if value and (path[-1:] == (LAST_APPLIED,) or (path[-1:] == ("value",) and not ENVIRONMENT.isdisjoint(path[-3:-1]))):
        return MASKED
    if isinstance(value, Mapping):
        return {key: _hidden(inner, (*path, str(key))) for key, inner in value.items() if not _is_hash((str(key),))}
    if isinstance(value, list | tuple):
        return [_hidden(inner, (*path, "[]")) for inner in value]
    return value


def _is_hash(last: tuple[str, ...]) -> bool:
    return bool(last) and last[0].lower().endswith("hash")
