"""Go text: JSON values as Go prints them, in which the server quotes what it did not expect."""

from collections.abc import Mapping
from typing import Any

import orjson


def plain(value: Any) -> str:
    """As `%v` prints it: `map[a:1 b:[x y]]`."""
    match value:
        case Mapping():
            return f"map[{' '.join(f'{key}:{plain(value[key])}' for key in sorted(value))}]"
        case list() | tuple():
            return f"[{' '.join(map(plain, value))}]"
        case str():
            return value
    return _scalar(value)


def syntax(value: Any) -> str:
    """As `%#v` prints it: `map[string]interface {}{"a":1}`."""
    match value:
        case Mapping():
            inner = ", ".join(f"{syntax(key)}:{syntax(value[key])}" for key in sorted(value))
            return f"{type_of(value)}{{{inner}}}"
        case list() | tuple():
            return f"{type_of(value)}{{{', '.join(map(syntax, value))}}}"
        case str():
            return orjson.dumps(value).decode()
        case None:
            return f"{type_of(value)}(nil)"
    return _scalar(value)


def type_of(value: Any) -> str:
    """As `%T` prints it."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int():
            return "int64"
        case float():
            return "float64"
        case None:
            return "interface {}"
    return "map[string]interface {}" if isinstance(value, Mapping) else "[]interface {}"


_WORDS: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (str, "string"),
    (Mapping, "object"),
    (list, "array"),
    (int, "number"),
    (float, "number"),
)


def word(value: Any) -> str:
    """What a decoder calls the value in JSON."""
    return next((word for type_, word in _WORDS if isinstance(value, type_)), "null")


def _scalar(value: Any) -> str:
    return "<nil>" if value is None else orjson.dumps(value).decode()
