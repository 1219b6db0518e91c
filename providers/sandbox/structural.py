"""Structural schemas: what a CRD's schema makes of a custom object — a shape, pruned of unknown fields, with its defaults."""

from collections.abc import Mapping
from typing import Any

from providers.sandbox.shapes import ABSENT, ANY, Shape, builtin

Schema = Mapping[str, Any]
_TYPES = {"object", "array", "string", "boolean", "integer", "number"}


def root_shape(schema: Schema) -> Shape:
    """The shape of a whole custom object."""
    shape = shape_of(schema)
    shape.type = "object"
    shape.fields = {
        **shape.fields,
        "apiVersion": Shape("string"),
        "kind": Shape("string"),
        "metadata": builtin("ObjectMeta"),
    }
    return shape


def shape_of(schema: Schema) -> Shape:
    """The shape that a schema describes. Lists are atomic unless the schema says otherwise."""
    kind = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        kind = "int-or-string"
    list_type = schema.get("x-kubernetes-list-type", "atomic")
    more = schema.get("additionalProperties")
    shape = Shape(
        kind if kind in _TYPES or kind == "int-or-string" else "any",
        format=schema.get("format", ""),
        fields={key: shape_of(sub) for key, sub in (schema.get("properties") or {}).items()},
        values=shape_of(more) if isinstance(more, Mapping) else ANY if more else None,
        items=shape_of(schema["items"]) if isinstance(schema.get("items"), Mapping) else None,
        atomic=list_type == "atomic" if kind == "array" else schema.get("x-kubernetes-map-type") == "atomic",
        is_set=list_type == "set",
        keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        default=schema.get("default", ABSENT),
        open=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        nullable=bool(schema.get("nullable")),
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
    )
    if shape.embedded:
        shape.fields |= {"apiVersion": Shape("string"), "kind": Shape("string"), "metadata": builtin("ObjectMeta")}
    return shape


def pruned(value: Any, shape: Shape, unknown: list[str], path: str = "") -> Any:
    """The value without fields that its schema does not know; their paths are added to `unknown`. Shares what it keeps whole."""
    if isinstance(value, Mapping):
        return _pruned_map(value, shape, unknown, path)
    if isinstance(value, list) and shape.items is not None:
        items = [pruned(item, shape.item, unknown, f"{path}[{i}]") for i, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _pruned_map(value: Mapping[str, Any], shape: Shape, unknown: list[str], path: str) -> Any:
    # An object in place of something else is not known either, field by field.
    if shape.type == "any" or (shape.open and not shape.fields and shape.values is None):
        return value
    kept: dict[str, Any] = {}
    changed = False
    for key, item in value.items():
        where = f"{path}.{key}" if path else key
        child = shape.fields.get(key) or shape.values
        if child is None and not shape.open:
            unknown.append(where)
            changed = True
            continue
        # A path below metadata is the reader's concern: that is a built-in type.
        made = item if child is None or key == "metadata" and not path else pruned(item, child, unknown, where)
        changed = changed or made is not item
        kept[key] = made
    return kept if changed else value


def defaulted(value: Any, shape: Shape) -> Any:
    """The value with every default that its schema states; nulls that may not be are taken as absent."""
    if isinstance(value, Mapping):
        return _defaulted_map(value, shape)
    if isinstance(value, list) and shape.items is not None:
        items = [defaulted(item, shape.item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _defaulted_map(value: Mapping[str, Any], shape: Shape) -> Any:
    changed: dict[str, Any] = {}
    nulls: set[str] = set()
    for key, child in shape.fields.items():
        item = value.get(key, ABSENT)
        if item is None and not child.nullable:
            item, nulls = ABSENT, nulls | {key}
        if item is ABSENT and child.default is ABSENT:
            continue
        made = defaulted(child.default if item is ABSENT else item, child)
        if made is not value.get(key, ABSENT):
            changed[key] = made
    if shape.values is not None:
        for key, item in value.items():
            if key in shape.fields:
                continue
            if item is None and shape.values is not ANY and not shape.values.nullable:
                nulls.add(key)
            elif (made := defaulted(item, shape.values)) is not item:
                changed[key] = made
    if not changed and not nulls:
        return value
    return {**{key: item for key, item in value.items() if key not in nulls}, **changed}
