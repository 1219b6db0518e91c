"""Reading: what the server makes of a body of a built-in kind before anybody looks at it.

A real server decodes into typed structs and writes them out again. So unknown fields vanish (and are told of), nulls vanish, optional
fields that are zero vanish, fields that are always written appear, quantities take their canonical form, and a value of the wrong
type is refused. The result shares nothing mutable with what was read.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from providers.sandbox.types import gotext, gotime, quantity, status
from providers.sandbox.types.shapes import Shape

_ZEROS: dict[str, Any] = {"string": "", "boolean": False, "integer": 0, "number": 0, "bytes": "", "quantity": "0", "int-or-string": 0}
_WRITTEN = ("!", "^")
_GO_TYPES = {"string": "string", "boolean": "bool", "number": "float64"}


class Unreadable(status.StatusError):
    """400: a body that cannot be such an object; `why` alone is what a patch that leads there is told."""

    def __init__(self, kind: str, version: str, why: str, *, sent: str = "") -> None:
        super().__init__(400, "BadRequest", f'{sent or kind} in version "{version}" cannot be handled as a {kind}: {why}')
        self.why = why


@dataclass(slots=True)
class Reader:
    """Reads one body and notes the unknown fields on its way, as `spec.containers[0].foo`; `api_version` is the version without group."""

    kind: str
    api_version: str
    unknown: list[str] = field(default_factory=list)

    def read(self, body: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
        """The body as the server would write it again. Raises the 400 of a wrong type."""
        result: dict[str, Any] = self._object(body, shape, "", shape.name)
        return result

    def _object(self, value: Any, shape: Shape, path: str, owner: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self._mismatch(value, path, owner, f"v1.{shape.name}" if shape.name else "map[string]string")
        if not shape.fields:
            return self._map(value, shape, path, owner)
        result: dict[str, Any] = {}
        for key, item in value.items():
            child = shape.fields.get(key)
            if child is None:
                self.unknown.append(f"{path}.{key}" if path else key)
            elif item is not None:
                made = self._value(item, child, f"{path}.{key}" if path else key, shape.name)
                if made is not None and (made or child.presence or not _is_zero(made, child)):
                    result[key] = made
        for key, child in shape.fields.items():
            if child.presence in _WRITTEN and key not in result:
                result[key] = self._zero(child) if child.presence == "!" else None
        return result

    def _map(self, value: Mapping[str, Any], shape: Shape, path: str, owner: str) -> dict[str, Any]:
        if shape.values is None:
            return dict(value)
        inner = shape.values
        if inner.type == "string":
            for item in value.values():
                if not isinstance(item, str) and item is not None:
                    raise self._mismatch(item, path, owner, "string")
            return {key: item or "" for key, item in value.items()}
        return {key: self._value(item, inner, f"{path}.{key}", owner) for key, item in value.items()}

    def _value(self, value: Any, shape: Shape, path: str, owner: str) -> Any:
        if value is None:
            # An item of a list or a map that is null is what Go has for nothing.
            return self._zero(shape)
        match shape.type:
            case "string" | "time":
                if not isinstance(value, str):
                    raise self._mismatch(value, path, owner, "string")
                return self._time(value, shape) if shape.type == "time" else value
            case "object":
                return self._object(value, shape, path, owner)
            case "array":
                if not isinstance(value, list):
                    raise self._mismatch(value, path, owner, f"[]{_go_type(shape.item)}")
                return [self._value(item, shape.item, f"{path}[{i}]", owner) for i, item in enumerate(value)]
            case "integer":
                if isinstance(value, bool) or not isinstance(value, int):
                    raise self._mismatch(value, path, owner, shape.format)
                return value
            case "boolean":
                if not isinstance(value, bool):
                    raise self._mismatch(value, path, owner, "bool")
                return value
            case "quantity":
                return self._quantity(value)
            case "bytes":
                return self._bytes(value, path, owner)
            case "number" | "int-or-string":
                if isinstance(value, bool | Mapping | list) or (shape.type == "number" and isinstance(value, str)):
                    raise self._mismatch(value, path, owner, _GO_TYPES.get(shape.type, "intstr.IntOrString"))
        return value

    def _time(self, value: str, shape: Shape) -> str | None:
        try:
            return gotime.canonical(value, gotime.MICROSECONDS if shape.format == "micro" else gotime.SECONDS)
        except ValueError as error:
            raise self._refusal(str(error)) from None

    def _quantity(self, value: Any) -> str:
        try:
            return quantity.canonical(value if isinstance(value, str) else str(value))
        except ValueError as error:
            raise self._refusal(str(error)) from None

    def _bytes(self, value: Any, path: str, owner: str) -> str:
        if not isinstance(value, str):
            raise self._mismatch(value, path, owner, "[]uint8")
        try:
            return base64.b64encode(base64.b64decode(value, validate=True)).decode()
        except binascii.Error:
            good = len(value) - len(value.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
            raise self._refusal(f"illegal base64 data at input byte {good if good < len(value) else len(value) - len(value) % 4}") from None

    def _zero(self, shape: Shape) -> Any:
        if shape.type == "object" and shape.fields:
            return self._object({}, shape, "", shape.name)
        return _ZEROS.get(shape.type)

    def _mismatch(self, value: Any, path: str, owner: str, wanted: str) -> Unreadable:
        where = ".".join(part.partition("[")[0] for part in path.split("."))
        return self._refusal(f"json: cannot unmarshal {gotext.word(value)} into Go struct field {owner}.{where} of type {wanted}")

    def _refusal(self, why: str) -> Unreadable:
        return Unreadable(self.kind, self.api_version, why)


def _is_zero(value: Any, shape: Shape) -> bool:
    """Whether Go's `omitempty` leaves the value out. A struct is never empty, a raw value is what it is."""
    return shape.type not in ("any", "int-or-string", "time") and not (shape.type == "object" and bool(shape.fields))


def _go_type(shape: Shape) -> str:
    return f"v1.{shape.name}" if shape.name else _GO_TYPES.get(shape.type, shape.format)
