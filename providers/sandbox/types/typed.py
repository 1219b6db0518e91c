"""Typed values: what server-side apply does with two bodies of one shape: name their fields, compare, merge, and take fields out.

Absent is not null here: `ABSENT` stands for a side that has nothing at a place. Bodies are shared, never changed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from providers.sandbox.types import fields, gotext
from providers.sandbox.types.fields import Fields
from providers.sandbox.types.shapes import ABSENT, Shape


class SchemaFault(Exception):
    """A body that does not fit its shape; the text names the path."""


def _form(value: Any, shape: Shape) -> str:
    """`map`, `list` or `leaf`: how the value is walked."""
    if isinstance(value, Mapping):
        return "leaf" if shape.atomic and shape.type == "object" else "map"
    if isinstance(value, list):
        return "list" if shape.type == "array" and not shape.atomic else "leaf"
    return "leaf"


def _walked(left: Any, right: Any, shape: Shape) -> str:
    """How two sides are walked together; null and absent take the other side's form, and two empty sides are one leaf."""
    empties = [not value for value in (left, right) if isinstance(value, Mapping | list)]
    if not empties or all(empties):
        return "leaf"
    forms = {_form(value, shape) for value in (left, right) if isinstance(value, Mapping | list)}
    scalars = any(value is not ABSENT and value is not None and not isinstance(value, Mapping | list) for value in (left, right))
    return forms.pop() if len(forms) == 1 and not scalars else "leaf"


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
    """What a key is taken to be where it is left out: its default, or the zero of a field that is always written."""
    if shape.default is not ABSENT or shape.presence != "!":
        return shape.default
    return "" if shape.type == "string" else 0


def _steps(items: Any, shape: Shape) -> dict[str, Any]:
    """Items by their steps; of several that are the same, the first."""
    steps: dict[str, Any] = {}
    for item in items or ():
        steps.setdefault(item_step(item, shape), item)
    return steps


def check(value: Any, shape: Shape) -> None:
    """Refuse what an apply patch may not hold: undeclared fields, lists with two items of one key. Raises `SchemaFault` with all of it."""
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
        seen: set[str] = set()
        for i, item in enumerate(value):
            where = f"{path}[{i}]"
            if not shape.atomic:
                try:
                    where, seen = _checked_item(item, shape, path, i, seen)
                except SchemaFault as fault:
                    yield str(fault)
                    continue
            yield from _faults(item, shape.item, where)
    elif value is not None and (expected := _mismatch(value, shape)):
        yield f"{path}: expected {expected}"


def _checked_item(item: Any, shape: Shape, path: str, index: int, seen: set[str]) -> tuple[str, set[str]]:
    try:
        step = item_step(item, shape)
    except SchemaFault as fault:
        raise SchemaFault(f"{path}: element {index}: {fault}") from None
    where = f"{path}{fields.dotted((step,))}"
    if step in seen:
        raise SchemaFault(f"{path}: duplicate entries for key {fields.dotted((step,))}")
    return where, seen | {step}


def _mismatch(value: Any, shape: Shape) -> str:
    """What was expected and what there is, if they differ: each type tells it in another notation of Go's."""
    match shape.type:
        case "object":
            return "" if isinstance(value, Mapping) else f"map, got &{{{gotext.plain(value)}}}"
        case "array":
            return "" if isinstance(value, list) else f"list, got &{{{gotext.plain(value)}}}"
        case "boolean":
            return "" if isinstance(value, bool) else f"boolean, got &{{{gotext.plain(value)}}}"
        case "integer" | "number":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return "" if number else f"numeric (int or float), got {gotext.type_of(value)}"
        case "string" | "bytes":
            return "" if isinstance(value, str) else f"string, got &value.valueUnstructured{{Value:{gotext.syntax(value)}}}"
    return ""


def field_set(value: Any, shape: Shape) -> Fields:
    """The fields that a configuration names, as an applier owns them."""
    made = _named(value, shape)
    return made if isinstance(made, dict) else {}


def _named(value: Any, shape: Shape) -> Fields | None:
    """The set below one place; None: the place itself is the member."""
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


@dataclass(slots=True)
class Comparison:
    """What became of fields between two bodies."""

    added: Fields
    removed: Fields
    modified: Fields

    def filtered(self, ignored: Fields) -> "Comparison":
        """The same without the ignored subtrees."""
        return Comparison(*(fields.without(part, ignored) for part in (self.added, self.removed, self.modified)))


def compare(old: Any, new: Any, shape: Shape) -> Comparison:
    """Every field added, removed or modified."""
    result = Comparison({}, {}, {})
    for key in _either(old, new):
        _compare_at(f"f:{key}", old.get(key, ABSENT), new.get(key, ABSENT), shape.child(key), result)
    return result


def _either(left: Any, right: Any) -> Iterable[str]:
    return dict.fromkeys((*(left or ()), *(right or ())))


def _compare_at(step: str, old: Any, new: Any, shape: Shape, into: Comparison) -> None:
    if old is new:
        return
    below = Comparison({}, {}, {})
    walked = _walked(old, new, shape)
    if walked == "map":
        left, right = _mapping(old), _mapping(new)
        for key in _either(left, right):
            _compare_at(f"f:{key}", left.get(key, ABSENT), right.get(key, ABSENT), shape.child(key), below)
    elif walked == "list":
        left, right = _steps(_items(old), shape), _steps(_items(new), shape)
        for item in _either(left, right):
            _compare_at(item, left.get(item, ABSENT), right.get(item, ABSENT), shape.item, below)
    changed = walked == "leaf" and old is not ABSENT and new is not ABSENT and not _same(old, new)
    for itself, inner, target in (
        (old is ABSENT, below.added, into.added),
        (new is ABSENT, below.removed, into.removed),
        (changed, below.modified, into.modified),
    ):
        if (made := fields.node(itself, inner)) is not None:
            target[step] = made


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def merge(live: Any, config: Any, shape: Shape) -> Any:
    """The live body with everything that the configuration says."""
    if config is ABSENT:
        return live
    if live is ABSENT and not isinstance(config, Mapping | list):
        return config
    match _walked(live, config, shape):
        case "map":
            left, right = _mapping(live), _mapping(config)
            return {key: merge(left.get(key, ABSENT), right.get(key, ABSENT), shape.child(key)) for key in _either(left, right)}
        case "list":
            return _merge_list(_items(live), _items(config), shape)
    return config


def _merge_list(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    """Items of both sides; shared ones in the configuration's order, the live side's own ones where they stood between them."""
    left, right = _steps(live, shape), _steps(config, shape)
    shared = [step for step in right if step in left]
    ours, theirs = list(left), list(right)
    merged: dict[str, Any] = {}
    i = j = 0
    while i < len(ours) or j < len(theirs):
        if i < len(ours) and ours[i] in merged:
            i += 1
        elif i < len(ours) and ours[i] not in right:
            merged[ours[i]] = left[ours[i]]
            i += 1
        elif i < len(ours) and j < len(theirs) and ours[i] != theirs[j] and shared and shared[0] != ours[i]:
            i += 1
        elif j < len(theirs):
            step = theirs[j]
            merged[step] = merge(left.get(step, ABSENT), right[step], shape.item)
            shared = shared[1:] if shared and shared[0] == step else shared
            j += 1
        else:
            i += 1
    return list(merged.values())


def remove(value: Any, gone: Fields, shape: Shape) -> Any:
    """The body without the members of a set; what becomes empty by that is null, as the server has it."""
    if not gone or not value:
        return value
    match _form(value, shape):
        case "map":
            kept = {}
            for key, item in value.items():
                below = gone.get(f"f:{key}")
                if below is None:
                    kept[key] = item
                elif not fields.is_member(below):
                    kept[key] = remove(item, below, shape.child(key))
            return kept or None
        case "list":
            items = []
            for item in value:
                below = gone.get(item_step(item, shape))
                if below is None:
                    items.append(item)
                elif not fields.is_member(below):
                    items.append(remove(item, below, shape.item))
            return items or None
    return value
