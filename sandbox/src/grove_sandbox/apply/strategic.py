"""Strategic merge patches: merge patches that merge some lists by key, and have directives."""

from collections.abc import Mapping
from typing import Any

import orjson

from grove_sandbox.types import go_format, status
from grove_sandbox.types.shapes import Shape

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def merged(body: Any, patch: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """The body after the patch. Raises 500, like the server, for an unknown directive and for an item without its merge key."""
    return _merge_map(body if isinstance(body, Mapping) else {}, patch, shape)


def _merge_map(original: Mapping[str, Any], patch: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive is not None and directive != "merge":
        raise status.StatusError(500, "", f"unknown patch type: {directive} in map: {go_format.plain(patch)}")
    result = dict(original)
    if patch.get(_RETAIN) is not None:
        retained = _listed(patch, _RETAIN)
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_key(result, key, value, shape.child(key), order=_listed(patch, _ORDER + key), deleted=_listed(patch, _DELETE + key))
    for key in patch:
        _bare_directive(result, key, patch, shape)
    return result


def _listed(patch: Mapping[str, Any], directive: str) -> list[Any]:
    """The list of a directive. Raises 400 where it is no list, or 500, like the server, if it is one of order."""
    value = patch.get(directive)
    if isinstance(value, list | None):
        return value or []
    if directive.startswith(_ORDER):
        raise status.StatusError(500, "", f"expected a []interface {{}}, but received a {go_format.go_type(value)}")
    raise status.bad_request(f"invalid patch format of {'retainKeys' if directive == _RETAIN else 'primitive list'}")


def _bare_directive(result: dict[str, Any], key: str, patch: Mapping[str, Any], shape: Shape) -> None:
    """Apply a directive for a list that the patch does not contain."""
    for prefix in (_ORDER, _DELETE):
        name = key.removeprefix(prefix)
        if name == key or name in patch or not isinstance(result.get(name), list):
            continue
        child, directed = shape.child(name), _listed(patch, key)
        if prefix == _DELETE:
            result[name] = [item for item in result[name] if item not in directed]
        else:
            result[name] = _ordered(result[name], result[name], directed, child)


def _merge_key(result: dict[str, Any], key: str, value: Any, shape: Shape, *, order: Any, deleted: Any) -> None:
    before = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(value, Mapping):
        result[key] = _merge_map(before if isinstance(before, Mapping) else {}, value, shape)
    elif isinstance(value, list) and shape.merge_key is not None:
        merged_list = _merge_list(before if isinstance(before, list) else [], value, shape)
        if deleted:
            merged_list = [item for item in merged_list if item not in deleted]
        named = [item for item in value if not (isinstance(item, Mapping) and _PATCH in item)]
        result[key] = _ordered(merged_list, before if isinstance(before, list) else [], order or named, shape)
    else:
        result[key] = value


def _merge_list(original: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    if not shape.merge_key:
        return [*original, *(item for item in patch if item not in original)]
    if any(isinstance(item, Mapping) and item.get(_PATCH) == "replace" for item in patch):
        return [item for item in patch if item.get(_PATCH) != "replace"]
    result = list(original)
    for item in patch:
        _merge_item(result, item, shape)
    return result


def _merge_item(items: list[Any], item: Any, shape: Shape) -> None:
    key = shape.merge_key or ""
    if not isinstance(item, Mapping) or key not in item:
        raise status.StatusError(500, "", f"map: {go_format.plain(item)} does not contain declared merge key: {key}")
    at = next((i for i, other in enumerate(items) if other.get(key) == item[key]), None)
    if item.get(_PATCH) == "delete":
        if at is not None:
            del items[at]
    elif at is None:
        items.append(_merge_map({}, {k: v for k, v in item.items() if k != _PATCH}, shape.item))
    else:
        items[at] = _merge_map(items[at], item, shape.item)


def _ordered(merged_list: list[Any], server: list[Any], order: Any, shape: Shape) -> list[Any]:
    """The items in the order of the patch; those it does not name stay behind the item that they followed."""

    def name(item: Any) -> bytes:
        return orjson.dumps(item.get(shape.merge_key) if shape.merge_key and isinstance(item, Mapping) else item)

    order_names = [name(item) for item in order]
    by_name = {name(item): item for item in merged_list}
    named = [by_name[each] for each in order_names if each in by_name]
    only_server = [item for item in merged_list if name(item) not in order_names]
    places = {name(item): at for at, item in enumerate(server)}
    result: list[Any] = []
    while named or only_server:
        take_server = bool(only_server) and (not named or _before(only_server[0], named[0], places, name))
        result.append((only_server if take_server else named).pop(0))
    return result


def _before(left: Any, right: Any, places: Mapping[Any, int], name: Any) -> bool:
    """Whether the server had the left item in front of the right one."""
    if name(left) not in places or name(right) not in places:
        return False
    return places[name(left)] < places[name(right)]
