"""Writes resources/base/omitted_fields.json: the fields of built-in kinds that a server leaves out where they are zero.

    python -m tests.contract.record_omitted_fields

It is derived without a cluster, from the recorded types: see `tests/contract/record_shapes.py`.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from engine.ids import Kind
from grove_sandbox.kinds.served import builtins
from grove_sandbox.types.shapes import Shape
from resources.base import kinds

FILE: Final = Path(__file__).parents[2] / "resources" / "base" / "omitted_fields.json"
WRITTEN: Final = (
    kinds.SERVICE,
    kinds.SERVICE_ACCOUNT,
    kinds.SECRET,
    kinds.ROLE,
    kinds.ROLE_BINDING,
    kinds.AUTOSCALER,
    kinds.RESOURCE_CLAIM,
    kinds.PVC,
    kinds.INGRESS,
    kinds.DEPLOYMENT,
    kinds.POD,
)
"""The built-in kinds of objects that sets and graphs have."""
SCALARS: Final = frozenset({"string", "boolean", "integer", "number", "bytes"})
ELSEWHERE: Final = frozenset({"PodSpec", "ObjectMeta"})
"""Types that are not compared by these rules: pod specs have their own, and metadata has nothing that could be zero."""

Row = dict[str, str | None]


def written(recorded: Iterable[Kind] = WRITTEN) -> str:
    """The content of the file: JSON with one type in each line, sorted. A null marks an omitted field."""
    types: dict[str, Row] = {}
    shapes = {served.kind: served.shape for served in builtins()}
    roots = {f"{kind.api_version} {kind.name}": kind.name for kind in recorded if _collect(shapes[kind], types)}
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(types[name], sort_keys=True, separators=(',', ':'))}" for name in sorted(types))
    return f'{{"kinds":{json.dumps(roots, sort_keys=True)},\n"types":{{\n{lines}\n}}}}\n'


def _collect(shape: Shape, types: dict[str, Row]) -> bool:
    """Add the omitted fields of a type, and those of the types below it. Returns whether there are any."""
    if shape.name in types:
        return True
    row: Row = {}
    for key, child in shape.fields.items():
        inner = child.item if child.type == "array" else child
        if child.presence == "" and child.type in SCALARS:
            row[key] = None
        elif inner.name and inner.fields and key != "status" and inner.name not in ELSEWHERE and _collect(inner, types):
            row[key] = inner.name
    if row:
        types[shape.name] = row
    return bool(row)


if __name__ == "__main__":
    FILE.write_text(written(), encoding="ascii")
