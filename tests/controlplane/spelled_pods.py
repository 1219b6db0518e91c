"""Spelled pods: pairs of pod specs that differ in the spelling of one field, and may mean the same to a server or not.

Every field of every object of the sample pods is null in turn, every amount is written in many ways, and every map and list gets a null.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from resources.schema.published import definitions
from tests.controlplane.pod_trials import Path, Spec, typed_objects, with_value, without
from tests.controlplane.sample_pods import SHAPES

AMOUNTS: Final = (
    "0",
    "0.0005",
    "0.5m",
    "1m",
    "500u",
    "1u",
    "0.1n",
    "1n",
    0.5,
    "500m",
    1,
    "1.0",
    "1000m",
    "1.0001",
    "1001m",
    "1Ki",
    "1024",
    " 1",
)
"""Ways to write amounts, of which some are the same, and some only where they are rounded."""
ACCOUNTS: Final[tuple[Spec, ...]] = (
    {},
    {"serviceAccount": "a"},
    {"serviceAccountName": "a"},
    {"serviceAccount": "b", "serviceAccountName": "a"},
)
"""Ways to name a ServiceAccount."""


def pairs() -> Iterator[tuple[str, Spec, Spec]]:
    """What is spelled, and two pod specs."""
    for spec in SHAPES.values():
        for path, type_, value in typed_objects(spec):
            for name, schema in definitions()[type_]["properties"].items():
                there = (*path, name)
                bare = without(spec, there) if name in value else spec
                yield f"{type_}.{name} null", with_value(spec, there, None), bare
                if name in value:
                    for how, left, right in _of_field(spec, there, schema, value[name]):
                        yield f"{type_}.{name} {how}", left, right
    plain = SHAPES["plain"]
    bare = {key: value for key, value in plain.items() if key != "serviceAccountName"}
    yield from (("account", {**bare, **left}, {**bare, **right}) for left in ACCOUNTS for right in ACCOUNTS)


def _of_field(spec: Spec, path: Path, schema: Mapping[str, Any], value: Any) -> Iterator[tuple[str, Spec, Spec]]:
    """Spellings of the value of a field."""
    if schema.get("$ref") == "Quantity":
        yield from _amounts(spec, path)
    if schema.get("type") == "array" and schema["items"].get("type") == "string" and value:
        yield "null in a list", with_value(spec, (*path, 0), None), with_value(spec, (*path, 0), "")
    if "additionalProperties" in schema:
        key = next(iter(value), "a")
        is_amount = schema["additionalProperties"].get("$ref") == "Quantity"
        yield "null in a map", with_value(spec, (*path, key), None), with_value(spec, (*path, key), "0" if is_amount else "")
        yield "null for a key", with_value(spec, (*path, key), None), without(spec, (*path, key))
        if is_amount:
            yield from _amounts(spec, (*path, key))


def _amounts(spec: Spec, path: Path) -> Iterator[tuple[str, Spec, Spec]]:
    """Each amount beside some that it may equal."""
    for left in AMOUNTS:
        for right in ("1", "1m", "1n", "500m", "1001m", "1Ki"):
            yield f"{left} and {right}", with_value(spec, path, left), with_value(spec, path, right)
