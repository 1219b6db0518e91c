"""Canonical form of a pod spec: equal for all spellings of the same pods.

`4` and `"4"`, `1024Mi` and `1Gi`, a port with `protocol: TCP` and one without, `resources: {}` and nothing are the same to Kubernetes. A
program that decodes and encodes a set, as the webhook of Grove's operator does, changes such spellings. That must not look like an edit.
"""

from collections.abc import Mapping
from decimal import DecimalException
from typing import Any, Final

from engine.canonical import digest
from engine.quantity import amount

UNORDERED: Final = frozenset({"volumes", "imagePullSecrets", "tolerations", "volumeMounts", "ports"})
"""Lists of a pod spec whose order has no meaning."""

AMOUNTS: Final = frozenset({"limits", "requests", "overhead"})
"""Maps whose values are quantities."""

AMOUNT: Final = frozenset({"sizeLimit", "divisor"})
"""Fields whose value is a quantity."""

LITERAL: Final = frozenset({"nodeSelector", "matchLabels", "labels", "annotations", "volumeAttributes", "options"})
"""Maps whose keys are the user's: they are not changed."""

EMPTY_MATTERS: Final = frozenset({"labelSelector", "namespaceSelector", "selector"})
"""Fields in which an empty value is not the same as none: an empty selector selects everything."""

DEFAULTS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "readOnly"), False),
    **dict.fromkeys(("hostPort", "initialDelaySeconds"), 0),
    "divisor": "0",
    "value": "",
}
"""Field -> the value that is the same as none, whatever field the pod spec has it in."""

PORT_PROTOCOL: Final = "TCP"


def canonical_form(value: Any) -> Any:
    """A copy of a pod spec, or of a part of it, in canonical form. Values of a wrong shape are kept."""
    return _form(value, "")


def _form(value: Any, field: str) -> Any:
    """The canonical form of the value of a field; the entries of a list have the name of their list."""
    if isinstance(value, Mapping):
        if field in LITERAL:
            return dict(value)
        if field in AMOUNTS:
            return {name: _amount(quantity) for name, quantity in value.items()}
        entries = ((key, _form(inner, key)) for key, inner in value.items())
        return {key: inner for key, inner in entries if not _is_absent(key, inner, field)}
    if isinstance(value, list | tuple):
        items = [_form(item, field) for item in value]
        return sorted(items, key=digest) if field in UNORDERED else items
    return _amount(value) if field in AMOUNT else value


def _is_absent(field: str, value: Any, parent: str) -> bool:
    """Whether the value means the same as none. `parent` is the field that contains it."""
    if value is None or (isinstance(value, dict | list) and not value):
        return value is None or field not in EMPTY_MATTERS
    if parent == "ports" and field == "protocol":
        return bool(value == PORT_PROTOCOL)
    default = DEFAULTS.get(field)
    return type(default) is type(value) and default == value


def _amount(value: Any) -> Any:
    """A quantity as the plain number that it stands for, as text; any other value unchanged."""
    number = amount(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    try:
        return value if number is None else str(number.normalize()) if number else "0"
    except DecimalException:  # An exponent beyond any amount.
        return value
