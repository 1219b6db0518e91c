"""Field sets: sets of field paths, such as those that a manager owns, in the form of `fieldsV1`.

A set is a trie of dicts and is never changed. A step is `f:name` (a field), `k:{…}` (a list item by its keys) or `v:…` (a member
of a set). Below the root, an empty dict is a member of the set and a filled one is a member only if it holds `.`; an empty root is
the empty set.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from grove_sandbox.types.shapes import Shape

Fields = dict[str, Any]
Path = tuple[str, ...]
_SELF = "."


def read(value: Any) -> Fields:
    """A set that a client has sent, without steps of an unknown type. Raises `ValueError` for anything that is no set."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError("a set of fields is an object")
    return {step: read(below) for step, below in value.items() if step == _SELF or _is_known(step)}


def _is_known(step: str) -> bool:
    if step[1:2] != ":":
        raise ValueError(f"{step!r} is no step")
    type_ = _TYPES.get(step[0])
    if type_ is not None and not isinstance(orjson.loads(step[2:]), type_):
        raise ValueError(f"{step!r} is no step of its type")
    return type_ is not None or step[0] == "f"


_TYPES: Mapping[str, type] = {"k": Mapping, "v": object, "i": int}


def node(member: bool, children: Fields) -> Fields | None:
    """A node of the trie, or None if it is no member and has no children."""
    if not children:
        return {} if member else None
    return {_SELF: {}, **children} if member else children


def is_member(fields: Fields) -> bool:
    """Whether the node itself belongs to the set, not only nodes below it."""
    return not fields or _SELF in fields


def _children(fields: Fields) -> Fields:
    return {step: below for step, below in fields.items() if step != _SELF}


def union(left: Fields, right: Fields) -> Fields:
    """The members of either set."""
    if not left or not right:
        return left or right
    result = {step: _joined(left[step], right[step]) if step in left else below for step, below in right.items() if step != _SELF}
    return {**left, **result}


def _joined(left: Fields, right: Fields) -> Fields:
    if not left or not right:
        other = left or right
        return other if is_member(other) else {_SELF: {}, **other}
    both = union(_children(left), _children(right))
    return {_SELF: {}, **both} if _SELF in left or _SELF in right else both


def difference(left: Fields, right: Fields) -> Fields:
    """The members of the left set that are no members of the right one."""
    if not left or not right:
        return left
    result: Fields = {}
    for step, below in left.items():
        other = right.get(step)
        if step == _SELF or other is None:
            result[step] = below
            continue
        rest = node(is_member(below) and not is_member(other), difference(_children(below), _children(other)))
        if rest is not None:
            result[step] = rest
    return result


def without(left: Fields, right: Fields) -> Fields:
    """The members of the left set that are neither members of the right one nor below one."""
    result: Fields = {}
    for step, below in left.items():
        other = right.get(step)
        if step == _SELF or other is None:
            result[step] = below
        elif not is_member(other):
            rest = node(is_member(below), without(_children(below), _children(other)))
            if rest is not None:
                result[step] = rest
    return result


def intersection(left: Fields, right: Fields) -> Fields:
    """The members of both sets."""
    result: Fields = {}
    for step, below in left.items():
        other = right.get(step)
        if step == _SELF or other is None:
            continue
        both = node(is_member(below) and is_member(other), intersection(_children(below), _children(other)))
        if both is not None:
            result[step] = both
    return result


def with_named(fields: Fields, shape: Shape) -> Fields:
    """The set, in which every declared field above a member is a member too."""
    result: Fields = {}
    for step, below in fields.items():
        if step == _SELF:
            result[step] = below
            continue
        inner = with_named(_children(below), shape.child(step[2:]) if step.startswith("f:") else shape.item)
        declared = step.startswith("f:") and step[2:] in shape.fields
        made = node(declared or is_member(below), inner)
        if made is not None:
            result[step] = made
    return result


def paths(fields: Fields, prefix: Path = ()) -> Iterator[Path]:
    """The paths of all members; at each level its own members before those below."""
    steps = sorted(_children(fields).items())
    yield from ((*prefix, step) for step, below in steps if is_member(below))
    for step, below in steps:
        yield from paths(_children(below), (*prefix, step))


def of_paths(*members: str) -> Fields:
    """The set of these paths: `of_paths("status", "metadata.labels")`."""
    result: Fields = {}
    for member in members:
        single: Fields = {}
        for name in reversed(member.split(".")):
            single = {f"f:{name}": single}
        result = union(result, single)
    return result


def dotted(path: Path) -> str:
    """A path as conflict messages print it: `.spec.containers[name="c"].image`."""
    text = ""
    for step in path:
        if step.startswith("f:"):
            text += f".{step[2:]}"
        elif step.startswith("k:"):
            text += f"[{step[3:-1].replace(chr(34) + ':', '=').replace(',' + chr(34), ',').removeprefix(chr(34))}]"
        else:
            text += f"[={step[2:]}]"
    return text
