"""Go formatting: JSON values as Go prints them, for error messages that quote what the server did not expect."""

from collections.abc import Mapping
from typing import Any

import orjson

# Booleans come first: in Python they are numbers. The words of `%T`, and those of Go's JSON decoder.
_TYPES: tuple[tuple[type, str, str], ...] = (
    (bool, "bool", "bool"),
    (str, "string", "string"),
    (int, "int64", "number"),
    (float, "float64", "number"),
    (type(None), "interface {}", "null"),
    (Mapping, "map[string]interface {}", "object"),
    (list, "[]interface {}", "array"),
    (tuple, "[]interface {}", "array"),
)


def go_type(value: Any) -> str:
    """The Go type of a value, as `%T` prints it."""
    return next(name for type_, name, _ in _TYPES if isinstance(value, type_))


def json_type(value: Any) -> str:
    """The JSON type of a value, as Go's decoder names it."""
    return next(name for type_, _, name in _TYPES if isinstance(value, type_))


def unmarshal_fault(value: Any, field: str, type_: str) -> str:
    """The message of Go's decoder for a value of the wrong type in a field, such as `ObjectMeta.metadata.name`."""
    return f"json: cannot unmarshal {json_type(value)} into Go struct field {field} of type {type_}"


def plain(value: Any) -> str:
    """A value as `%v` prints it: `map[a:1 b:[x y]]`."""
    match value:
        case Mapping():
            return f"map[{' '.join(f'{key}:{plain(value[key])}' for key in sorted(value))}]"
        case list() | tuple():
            return f"[{' '.join(map(plain, value))}]"
        case str():
            return value
    return _scalar(value)


def go_syntax(value: Any) -> str:
    """A value as `%#v` prints it: `map[string]interface {}{"a":1}`."""
    match value:
        case Mapping():
            return f"{go_type(value)}{{{', '.join(f'{go_syntax(key)}:{go_syntax(value[key])}' for key in sorted(value))}}}"
        case list() | tuple():
            return f"{go_type(value)}{{{', '.join(map(go_syntax, value))}}}"
        case None:
            return f"{go_type(value)}(nil)"
    return _scalar(value)


def _scalar(value: Any) -> str:
    return "<nil>" if value is None else orjson.dumps(value).decode()
