"""Patches: JSON patch and merge patch on immutable bodies; what a patch does not touch is shared with the original."""

from collections.abc import Callable, Mapping
from typing import Any

from providers.sandbox.types import gotext, status


def merged(body: Any, patch: Any) -> Any:
    """The body after a merge patch (RFC 7396): null removes, objects merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(body) if isinstance(body, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class PatchFault(Exception):
    """An operation of a JSON patch that cannot be carried out; the text is the server's."""


def patched(body: Any, operations: Any) -> Any:
    """The body after a JSON patch (RFC 6902). Raises `PatchFault` where an operation does not apply, 400 where it is none."""
    if not isinstance(operations, list):
        raise undecoded(operations, "[]handlers.jsonPatchOp")
    for operation in operations:
        if operation is not None and not isinstance(operation, Mapping):
            raise undecoded(operation, "handlers.jsonPatchOp")
    for operation in operations:
        name = (operation or {}).get("op", "unknown")
        if not isinstance(name, str) or name not in _OPERATIONS:
            raise PatchFault(f"Unexpected kind: {name}")
        if not isinstance(operation.get("path"), str):
            raise PatchFault("missing path")
        body = _OPERATIONS[name](body, operation)
        if not isinstance(body, Mapping | list):
            raise PatchFault(f"{name} operation hit impossible case")
    return body


def undecoded(value: Any, wanted: str, prefix: str = "error decoding patch: ") -> status.StatusError:
    """400: a patch that is not even the sort of JSON that a patch is."""
    return status.bad_request(f"{prefix}json: cannot unmarshal {gotext.word(value)} into Go value of type {wanted}")


def _tokens(pointer: Any) -> list[str]:
    if not isinstance(pointer, str):
        raise PatchFault("missing path")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _changed(node: Any, tokens: list[str], change: Callable[[Any, str], Any], verb: str, pointer: str) -> Any:
    """A copy of the path to a place, with the container that holds the place changed."""
    if not tokens:
        raise PatchFault(f"{verb} operation does not apply: doc is missing path: {_quoted(pointer)}: missing value")
    if len(tokens) == 1:
        return change(node, tokens[0])
    below = _child(node, tokens[0], verb, pointer)
    if not isinstance(below, Mapping | list):
        raise PatchFault(f"{verb} operation does not apply: doc is missing path: {_quoted(pointer)}: missing value")
    changed = _changed(below, tokens[1:], change, verb, pointer)
    if isinstance(node, list):
        at = _index(tokens[0], len(node)) or 0
        return [*node[:at], changed, *node[at + 1 :]]
    return {**node, tokens[0]: changed}


def _quoted(pointer: str) -> str:
    return f'"{pointer}"'


def _child(node: Any, token: str, verb: str, pointer: str) -> Any:
    if isinstance(node, list):
        at = _index(token, len(node))
        return node[at] if at is not None and at < len(node) else None
    return node.get(token)


def _index(token: str, length: int) -> int | None:
    try:
        at = int(token)
    except ValueError:
        return None
    if at < 0:
        at += length
    return at if at >= 0 else None


def _add(body: Any, operation: Mapping[str, Any]) -> Any:
    value, pointer = operation.get("value"), operation.get("path", "")

    def change(node: Any, token: str) -> Any:
        if not isinstance(node, list):
            return {**node, token: value}
        at = len(node) if token == "-" else _index(token, len(node))
        if at is None or at > len(node):
            raise PatchFault(f"add operation does not apply: doc is missing path: {_quoted(pointer)}: missing value")
        return [*node[:at], value, *node[at:]]

    return _changed(body, _tokens(pointer), change, "add", pointer) if pointer else value


def _remove(body: Any, operation: Mapping[str, Any]) -> Any:
    pointer = operation.get("path", "")

    def change(node: Any, token: str) -> Any:
        if isinstance(node, list):
            at = _index(token, len(node))
            if at is None or at >= len(node):
                raise PatchFault(f"remove operation does not apply: doc is missing path: {_quoted(pointer)}: missing value")
            return [*node[:at], *node[at + 1 :]]
        if token not in node:
            raise PatchFault(f"remove operation does not apply: doc is missing path: {_quoted(pointer)}: missing value")
        return {key: value for key, value in node.items() if key != token}

    return _changed(body, _tokens(pointer), change, "remove", pointer)


def _replace(body: Any, operation: Mapping[str, Any]) -> Any:
    value, pointer = operation.get("value"), operation.get("path", "")

    def change(node: Any, token: str) -> Any:
        if isinstance(node, list):
            at = _index(token, len(node))
            if at is None or at >= len(node):
                raise PatchFault(f"replace operation does not apply: doc is missing key: {pointer}: missing value")
            return [*node[:at], value, *node[at + 1 :]]
        return {**node, token: value}

    return _changed(body, _tokens(pointer), change, "replace", pointer) if pointer else value


def _found(body: Any, pointer: str, verb: str) -> Any:
    for token in _tokens(pointer):
        if not isinstance(body, Mapping | list):
            raise PatchFault(f"{verb} operation does not apply: doc is missing path: {_quoted(pointer)}: missing value")
        body = _child(body, token, verb, pointer)
    return body


def _test(body: Any, operation: Mapping[str, Any]) -> Any:
    pointer = operation.get("path", "")
    if _found(body, pointer, "test") != operation.get("value"):
        raise PatchFault(f"testing value {pointer} failed: test failed")
    return body


def _copy(body: Any, operation: Mapping[str, Any]) -> Any:
    return _add(body, {"path": operation.get("path", ""), "value": _found(body, operation.get("from", ""), "copy")})


def _move(body: Any, operation: Mapping[str, Any]) -> Any:
    value = _found(body, operation.get("from", ""), "move")
    return _add(_remove(body, {"path": operation.get("from", "")}), {"path": operation.get("path", ""), "value": value})


_OPERATIONS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
    "copy": _copy,
    "move": _move,
}
