"""Structural schemas: the shape that a CRD's schema describes, and the pruning and defaulting of custom objects by it."""

from collections.abc import Mapping
from typing import Any

from grove_sandbox.types.shapes import ABSENT, ANY, Shape, builtin

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
    """The shape of a schema. Lists are atomic unless the schema says otherwise."""
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
    shape.defaults = {key: field.default for key, field in shape.fields.items() if field.default is not ABSENT}
    if shape.embedded:
        shape.fields |= {"apiVersion": Shape("string"), "kind": Shape("string"), "metadata": builtin("ObjectMeta")}
    return shape


_PLAIN = frozenset({str, int, float, bool})
"""Scalars, which are skipped: most values are."""


def pruned(value: Any, shape: Shape, unknown: list[str], path: str = "") -> Any:
    """The value without the fields that its schema does not declare; their paths are added to `unknown`. Unchanged parts are shared."""
    if isinstance(value, Mapping):
        return _pruned_map(value, shape, unknown, path)
    if isinstance(value, list) and shape.items is not None:
        items = [pruned(item, shape.item, unknown, f"{path}[{i}]") for i, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _pruned_map(value: Mapping[str, Any], shape: Shape, unknown: list[str], path: str) -> Any:
    # Where the schema declares no object, every field is unknown.
    if shape.type == "any" or (shape.open and not shape.fields and shape.values is None):
        return value
    kept: dict[str, Any] = {}
    changed = False
    for key, item in value.items():
        child = shape.fields.get(key) or shape.values
        if child is None and not shape.open:
            unknown.append(f"{path}.{key}" if path else key)
            changed = True
            continue
        # Metadata is a built-in type and has been decoded before.
        if child is None or item.__class__ in _PLAIN or (key == "metadata" and not path):
            kept[key] = item
            continue
        made = pruned(item, child, unknown, f"{path}.{key}" if path else key)
        changed = changed or made is not item
        kept[key] = made
    return kept if changed else value


def defaulted(value: Any, shape: Shape, *, applied: bool = False) -> Any:
    """The value with the defaults of its schema. A null that is not allowed counts as absent; with `applied` it is kept, and validation
    refuses it."""
    if isinstance(value, Mapping):
        return _defaulted_map(value, shape, applied)
    if isinstance(value, list) and shape.items is not None:
        items = [defaulted(item, shape.item, applied=applied) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _defaulted_map(value: Mapping[str, Any], shape: Shape, applied: bool) -> Any:
    changed: dict[str, Any] = {}
    nulls: set[str] = set()
    for key, item in value.items():
        child = None if item.__class__ in _PLAIN else shape.fields.get(key) or shape.values
        if child is None or child is ANY:
            continue
        if item is None and not child.nullable:
            nulls.add(key)
        elif (made := defaulted(item, child, applied=applied)) is not item:
            changed[key] = made
    for key, default in shape.defaults.items():
        if key in nulls or key not in value:
            changed[key] = defaulted(default, shape.fields[key])
    if applied:
        nulls.clear()
    if not changed and not nulls:
        return value
    return {**{key: item for key, item in value.items() if key not in nulls}, **changed}
