"""JSON patches (RFC 6902) on immutable bodies: what a patch does not touch is shared with the original.

Not a library: like the server's own Go library, `replace` makes a field that is missing, and a missing value equals null.
"""

from collections.abc import Callable, Mapping
from typing import Any

from grove_sandbox.types import go_format, status

Edit = Callable[[Any, str], Any]
"""From the container of a place and the last token of its path to the changed container."""


class PatchFault(Exception):
    """An operation of a JSON patch that cannot be carried out."""


def patched(body: Any, operations: Any) -> Any:
    """The body after a JSON patch. Raises `PatchFault` if an operation fails, and 400 for anything that is no list of operations."""
    if not isinstance(operations, list):
        raise undecoded(operations, "[]handlers.jsonPatchOp")
    for operation in operations:
        if operation is not None and not isinstance(operation, Mapping):
            raise undecoded(operation, "handlers.jsonPatchOp")
    for operation in operations:
        body = _after(body, operation or {})
        if not isinstance(body, Mapping | list):
            raise PatchFault("the patch leaves neither an object nor a list")
    return body


def undecoded(value: Any, type_: str, prefix: str = "error decoding patch: ") -> status.StatusError:
    """400: a patch of the wrong JSON type."""
    return status.bad_request(f"{prefix}json: cannot unmarshal {go_format.json_type(value)} into Go value of type {type_}")


def _after(body: Any, operation: Mapping[str, Any]) -> Any:
    """The body after one operation."""
    tokens, value = _tokens(operation.get("path")), operation.get("value")
    match operation.get("op"):
        case "add":
            return _edited(body, tokens, _inserting(value)) if tokens else value
        case "remove":
            return _edited(body, tokens, _removed)
        case "replace":
            return _edited(body, tokens, _replacing(value)) if tokens else value
        case "test" if _value(body, tokens) == value:
            return body
        case "copy":
            copied = _value(body, _tokens(operation.get("from")))
            return _edited(body, tokens, _inserting(copied)) if tokens else copied
        case "move":
            source = _tokens(operation.get("from"))
            moved = _value(body, source)
            rest = _edited(body, source, _removed)
            return _edited(rest, tokens, _inserting(moved)) if tokens else moved
    raise PatchFault(f"the operation {operation} cannot be carried out")


def _tokens(pointer: Any) -> list[str]:
    if not isinstance(pointer, str):
        raise PatchFault("an operation without a path")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _edited(node: Any, tokens: list[str], edit: Edit) -> Any:
    """The node with the container at the path edited; only the containers on the way are copied."""
    if not tokens or not isinstance(node, Mapping | list):
        raise PatchFault("the path leads nowhere")
    token, rest = tokens[0], tokens[1:]
    return _replacing(_edited(_child(node, token), rest, edit))(node, token) if rest else edit(node, token)


def _inserting(value: Any) -> Edit:
    def edit(node: Any, token: str) -> Any:
        if isinstance(node, Mapping):
            return {**node, token: value}
        at = len(node) if token == "-" else _index(token, len(node) + 1)
        return [*node[:at], value, *node[at:]]

    return edit


def _replacing(value: Any) -> Edit:
    def edit(node: Any, token: str) -> Any:
        if isinstance(node, Mapping):
            return {**node, token: value}
        at = _index(token, len(node))
        return [*node[:at], value, *node[at + 1 :]]

    return edit


def _removed(node: Any, token: str) -> Any:
    if isinstance(node, list):
        at = _index(token, len(node))
        return [*node[:at], *node[at + 1 :]]
    if token not in node:
        raise PatchFault(f"there is no {token!r} to remove")
    return {key: value for key, value in node.items() if key != token}


def _value(node: Any, tokens: list[str]) -> Any:
    """The value at a path; None where its last step finds nothing."""
    for token in tokens:
        node = _child(node, token)
    return node


def _child(node: Any, token: str) -> Any:
    if isinstance(node, Mapping):
        return node.get(token)
    if not isinstance(node, list):
        raise PatchFault("the path leads nowhere")
    try:
        return node[_index(token, len(node))]
    except PatchFault:
        return None


def _index(token: str, length: int) -> int:
    """The index that a token names in a list of that length; a negative one counts from the end."""
    try:
        at = int(token)
    except ValueError:
        raise PatchFault(f"{token!r} is no index") from None
    if not -length <= at < length:
        raise PatchFault(f"the index {at} is out of range")
    return at % length
