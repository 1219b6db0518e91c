"""The decoder of built-in kinds, which gives the same result as Go: decoding into typed structs and encoding them again.

Unknown fields, nulls and optional fields that are zero are dropped; fields that are always written are added; quantities take their
canonical form; a value of the wrong type is refused. The result shares nothing mutable with the input.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from grove_sandbox.types import go_format, go_time, quantity, status
from grove_sandbox.types.shapes import Shape

_ZEROS: dict[str, Any] = {"string": "", "boolean": False, "integer": 0, "number": 0, "bytes": "", "quantity": "0", "int-or-string": 0}
_WRITTEN = ("!", "^")
_GO_TYPES = {"string": "string", "boolean": "bool", "number": "float64"}


class Undecodable(status.StatusError):
    """400: a body that is no such object. The refusal of a patch with such a result quotes `why` alone."""

    def __init__(self, kind: str, version: str, why: str, *, sent: str = "") -> None:
        super().__init__(400, "BadRequest", f'{sent or kind} in version "{version}" cannot be handled as a {kind}: {why}')
        self.why = why


class Decoder(Struct):
    """Decodes one body. `unknown` collects the unknown fields, as `spec.containers[0].foo`; `api_version` has no group."""

    kind: str
    api_version: str
    unknown: list[str] = field(default_factory=list)

    def decode(self, body: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
        """The body as the server would encode it. Raises 400 for a value of the wrong type."""
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
                is_text = child.type == "string" and type(item) is str
                made = item if is_text else self._value(item, child, f"{path}.{key}" if path else key, shape.name)
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
            # A null item of a list or a map is the zero value in Go.
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
            return go_time.canonical(value, go_time.MICROSECONDS if shape.format == "micro" else go_time.SECONDS)
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

    def _mismatch(self, value: Any, path: str, owner: str, type_: str) -> Undecodable:
        where = ".".join(part.partition("[")[0] for part in path.split("."))
        return self._refusal(go_format.unmarshal_fault(value, f"{owner}.{where}", type_))

    def _refusal(self, why: str) -> Undecodable:
        return Undecodable(self.kind, self.api_version, why)


def _is_zero(value: Any, shape: Shape) -> bool:
    """Whether Go's `omitempty` drops an empty value of this shape: not of a struct, nor of a raw value."""
    return shape.type not in ("any", "int-or-string", "time") and not (shape.type == "object" and bool(shape.fields))


def _go_type(shape: Shape) -> str:
    return f"v1.{shape.name}" if shape.name else _GO_TYPES.get(shape.type, shape.format)
