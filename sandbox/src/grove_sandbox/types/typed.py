"""Typed values: the operations of server-side apply on bodies of one shape: field sets, comparison, merge, removal of fields.

Absent differs from null: `ABSENT` is the value of a side that does not have a field. Bodies are shared and never changed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
from msgspec import Struct

from grove_sandbox.types import fields, go_format
from grove_sandbox.types.fields import Fields
from grove_sandbox.types.shapes import ABSENT, Shape

_SCALARS = frozenset({str, int, float, bool, type(None)})
_COLLECTIONS = (dict, list, Mapping)
"""What a body is built from. A plain dict comes first: it is recognised without a look at the abstract class."""


class SchemaFault(Exception):
    """A body that does not fit its shape; the text names the path."""


def _form(value: Any, shape: Shape) -> str:
    """`map`, `list` or `leaf`: how the value is traversed."""
    if isinstance(value, (dict, Mapping)):
        return "leaf" if shape.atomic and shape.type == "object" else "map"
    if isinstance(value, list):
        return "list" if shape.type == "array" and not shape.atomic else "leaf"
    return "leaf"


def _common_form(left: Any, right: Any, shape: Shape) -> str:
    """How two sides are traversed together. Null and absent take the form of the other side; two empty sides are a leaf."""
    is_left, is_right = _is_collection(left), _is_collection(right)
    if not (is_left and left) and not (is_right and right):
        return "leaf"
    if is_left and is_right:
        form = _form(left, shape)
        return form if form == _form(right, shape) else "leaf"
    collection, other = (left, right) if is_left else (right, left)
    return _form(collection, shape) if other is ABSENT or other is None else "leaf"


def _is_collection(value: Any) -> bool:
    """Whether it is an object or a list. Scalars are recognised by their type, without a look at the abstract class."""
    return type(value) not in _SCALARS and value is not ABSENT and isinstance(value, _COLLECTIONS)


def item_step(item: Any, shape: Shape) -> str:
    """The step that names a list item: by its keys (defaults filled in), or by its value. Raises `SchemaFault`."""
    if not shape.keys:
        return f"v:{orjson.dumps(item).decode()}"
    if not isinstance(item, Mapping):
        raise SchemaFault("associative list with keys may not have non-map elements")
    named = {}
    for key in sorted(shape.keys):
        value = item.get(key, _key_default(shape.item.child(key)))
        if value is not ABSENT and value is not None:
            named[key] = value
    if not named:
        omitted = f'omits key field "{shape.keys[0]}" (and doesn\'t have default value)'
        raise SchemaFault(f"associative list with keys has an element that {omitted}")
    return f"k:{orjson.dumps(named).decode()}"


def _key_default(shape: Shape) -> Any:
    """The value of a key that is left out: its default, or the zero value of a field that is always written."""
    if shape.default is not ABSENT or shape.presence != "!":
        return shape.default
    return "" if shape.type == "string" else 0


def _steps(items: Any, shape: Shape) -> dict[str, Any]:
    """The items by their steps; of duplicates the first."""
    steps: dict[str, Any] = {}
    for item in items or ():
        steps.setdefault(item_step(item, shape), item)
    return steps


def check(value: Any, shape: Shape) -> None:
    """Raises `SchemaFault` with all faults of an apply patch: undeclared fields, wrong types, lists with two items of one key."""
    if faults := list(_faults(value, shape, "")):
        raise SchemaFault(faults[0] if len(faults) == 1 else "\n  ".join(("errors:", *faults)))


def _faults(value: Any, shape: Shape, path: str) -> Iterator[str]:
    if isinstance(value, Mapping) and shape.type in ("object", "any"):
        for key, item in value.items():
            if shape.fields and key not in shape.fields and shape.values is None and not shape.open:
                yield f"{path}.{key}: field not declared in schema"
            else:
                yield from _faults(item, shape.child(key), f"{path}.{key}")
    elif isinstance(value, list) and shape.type == "array":
        steps: set[str] = set()
        for i, item in enumerate(value):
            where = f"{path}[{i}]"
            if not shape.atomic:
                try:
                    where, steps = _checked_item(item, shape, path, i, steps)
                except SchemaFault as fault:
                    yield str(fault)
                    continue
            yield from _faults(item, shape.item, where)
    elif value is not None and (expected := _mismatch(value, shape)):
        yield f"{path}: expected {expected}"


def _checked_item(item: Any, shape: Shape, path: str, index: int, steps: set[str]) -> tuple[str, set[str]]:
    try:
        step = item_step(item, shape)
    except SchemaFault as fault:
        raise SchemaFault(f"{path}: element {index}: {fault}") from None
    where = f"{path}{fields.dotted((step,))}"
    if step in steps:
        raise SchemaFault(f"{path}: duplicate entries for key {fields.dotted((step,))}")
    return where, steps | {step}


def _mismatch(value: Any, shape: Shape) -> str:
    """The expected type and the value, if they do not fit. The server prints each type in another notation of Go."""
    match shape.type:
        case "object":
            return "" if isinstance(value, Mapping) else f"map, got &{{{go_format.plain(value)}}}"
        case "array":
            return "" if isinstance(value, list) else f"list, got &{{{go_format.plain(value)}}}"
        case "boolean":
            return "" if isinstance(value, bool) else f"boolean, got &{{{go_format.plain(value)}}}"
        case "integer" | "number":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return "" if number else f"numeric (int or float), got {go_format.go_type(value)}"
        case "string" | "bytes":
            return "" if isinstance(value, str) else f"string, got &value.valueUnstructured{{Value:{go_format.go_syntax(value)}}}"
    return ""


def field_set(value: Any, shape: Shape) -> Fields:
    """The fields of a configuration, which its applier owns."""
    made = _named(value, shape)
    return made if isinstance(made, dict) else {}


def _named(value: Any, shape: Shape) -> Fields | None:
    """The set below a value; None: the value itself is the member."""
    match _form(value, shape):
        case "map":
            result: Fields = {}
            for key, item in value.items():
                below = _named(item, shape.child(key))
                itself = key not in shape.fields or item is None or item == {}
                if (made := fields.node(itself or below is None, below or {})) is not None:
                    result[f"f:{key}"] = made
            return result
        case "list":
            return {step: fields.node(True, _named(item, shape.item) or {}) for step, item in _steps(value, shape).items()}
    return None


class Comparison(Struct):
    """The fields that differ between two bodies."""

    added: Fields
    removed: Fields
    modified: Fields

    def filtered(self, ignored: Fields) -> "Comparison":
        """The same without the ignored subtrees."""
        return Comparison(*(fields.without(part, ignored) for part in (self.added, self.removed, self.modified)))


def compare(old: Any, new: Any, shape: Shape) -> Comparison:
    """The fields that were added, removed or modified."""
    result = Comparison({}, {}, {})
    for key in _either(old, new):
        _compare_at(f"f:{key}", old.get(key, ABSENT), new.get(key, ABSENT), shape.child(key), result)
    return result


def _either(left: Any, right: Any) -> Iterable[str]:
    return dict.fromkeys((*(left or ()), *(right or ())))


def _compare_at(step: str, old: Any, new: Any, shape: Shape, into: Comparison) -> None:
    if old is new or _is_collection(old) and _are_equal(old, new):
        return
    form = _common_form(old, new, shape)
    if form == "leaf":
        if old is ABSENT:
            into.added[step] = {}
        elif new is ABSENT:
            into.removed[step] = {}
        elif not _same(old, new):
            into.modified[step] = {}
        return
    below = Comparison({}, {}, {})
    if form == "map":
        left, right = _mapping(old), _mapping(new)
        for key in _either(left, right):
            _compare_at(f"f:{key}", left.get(key, ABSENT), right.get(key, ABSENT), shape.child(key), below)
    else:
        left, right = _steps(_items(old), shape), _steps(_items(new), shape)
        for item in _either(left, right):
            _compare_at(item, left.get(item, ABSENT), right.get(item, ABSENT), shape.item, below)
    for itself, inner, target in (
        (old is ABSENT, below.added, into.added),
        (new is ABSENT, below.removed, into.removed),
        (False, below.modified, into.modified),
    ):
        if (made := fields.node(itself, inner)) is not None:
            target[step] = made


def _are_equal(left: Any, right: Any) -> bool:
    """Whether two bodies have the same JSON, which tells `true` from `1`; false also if their fields are in another order."""
    return bool(left == right) and orjson.dumps(left, default=dict) == orjson.dumps(right, default=dict)


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, (dict, Mapping)) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def merge(live: Any, config: Any, shape: Shape) -> Any:
    """The live body with the configuration merged into it."""
    if config is ABSENT:
        return live
    if live is ABSENT and not isinstance(config, Mapping | list):
        return config
    match _common_form(live, config, shape):
        case "map":
            left, right = _mapping(live), _mapping(config)
            return {key: merge(left.get(key, ABSENT), right.get(key, ABSENT), shape.child(key)) for key in _either(left, right)}
        case "list":
            return _merge_list(_items(live), _items(config), shape)
    return config


def _merge_list(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    """The items of both sides: shared ones in the order of the configuration, the others of the live side at their places between them."""
    left, right = _steps(live, shape), _steps(config, shape)
    shared = [step for step in right if step in left]
    live_steps, config_steps = list(left), list(right)
    merged: dict[str, Any] = {}
    i = j = 0
    while i < len(live_steps) or j < len(config_steps):
        if i < len(live_steps) and live_steps[i] in merged:
            i += 1
        elif i < len(live_steps) and live_steps[i] not in right:
            merged[live_steps[i]] = left[live_steps[i]]
            i += 1
        elif i < len(live_steps) and j < len(config_steps) and live_steps[i] != config_steps[j] and shared and shared[0] != live_steps[i]:
            i += 1
        elif j < len(config_steps):
            step = config_steps[j]
            merged[step] = merge(left.get(step, ABSENT), right[step], shape.item)
            shared = shared[1:] if shared and shared[0] == step else shared
            j += 1
        else:
            i += 1
    return list(merged.values())


def remove(value: Any, removed: Fields, shape: Shape) -> Any:
    """The body without the members of a set. What becomes empty by that is null, as in the server."""
    if not removed or not value:
        return value
    match _form(value, shape):
        case "map":
            kept = {}
            for key, item in value.items():
                below = removed.get(f"f:{key}")
                if below is None:
                    kept[key] = item
                elif not fields.is_member(below):
                    kept[key] = remove(item, below, shape.child(key))
            return kept or None
        case "list":
            items = []
            for item in value:
                below = removed.get(item_step(item, shape))
                if below is None:
                    items.append(item)
                elif not fields.is_member(below):
                    items.append(remove(item, below, shape.item))
            return items or None
    return value
