"""Omitted fields of built-in kinds: which fields their servers leave out where they are zero, from `omitted_fields.json`.

`python -m tests.contract.record_omitted_fields` writes the file from the recorded types of all built-in kinds. Pod specs are not in it:
`resources/schema/pod_defaults.json` has what is recorded of them.
"""

from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from typing import Any

import orjson

from engine.ids import Kind
from engine.quantity import NOTHING_OMITTED, Omitted


@cache
def omitted_fields(kind: Kind) -> Omitted:
    """The fields of a built-in kind that its server leaves out; nothing for other kinds."""
    recorded = _recorded()
    root = recorded["kinds"].get(f"{kind.api_version} {kind.name}")
    return _of_type(root) if root else NOTHING_OMITTED


@cache
def _recorded() -> Mapping[str, Any]:
    content: Mapping[str, Any] = orjson.loads(get_data(__package__, "omitted_fields.json") or b"")
    return content


@cache
def _of_type(name: str) -> Omitted:
    """The omitted fields of a type: in the file, they have the value null, and other fields the name of their type."""
    row: Mapping[str, str | None] = _recorded()["types"][name]
    below = {field: _of_type(type_) for field, type_ in row.items() if type_ is not None}
    return Omitted(frozenset(field for field, type_ in row.items() if type_ is None), below)
