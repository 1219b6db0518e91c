"""The hash of version v2, as it was released: what a fleet of the version before has in its labels and statuses."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from engine.canonical import digest
from engine.quantity import amount
from resources.blueprints import graph_meaning, graph_records
from resources.model import template

UNORDERED = ("volumes", "imagePullSecrets", "tolerations", "volumeMounts", "ports")
AMOUNTS = ("limits", "requests", "overhead")
LITERAL = ("nodeSelector", "matchLabels", "labels", "annotations", "volumeAttributes", "options")
SELECTORS = ("labelSelector", "namespaceSelector", "selector")
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "readOnly"), False),
    **dict.fromkeys(("hostPort", "initialDelaySeconds"), 0),
    "divisor": "0",
    "value": "",
}


def form(value: Any, field: str = "") -> Any:
    """The canonical form of version v2."""
    if isinstance(value, Mapping):
        if field in LITERAL:
            return dict(value)
        if field in AMOUNTS:
            return {name: _amount(quantity) for name, quantity in value.items()}
        entries = ((key, form(inner, key)) for key, inner in value.items())
        return {key: inner for key, inner in entries if not _is_absent(key, inner, field)}
    if isinstance(value, list | tuple):
        items = [form(item, field) for item in value]
        return sorted(items, key=digest) if field in UNORDERED else items
    return _amount(value) if field in ("sizeLimit", "divisor") else value


def _is_absent(field: str, value: Any, parent: str) -> bool:
    if value is None or (isinstance(value, dict | list) and not value):
        return value is None or field not in SELECTORS
    if parent == "ports" and field == "protocol":
        return bool(value == "TCP")
    default = DEFAULTS.get(field)
    return type(default) is type(value) and default == value


def _amount(value: Any) -> Any:
    number = amount(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    return value if number is None else str(number.normalize()) if number else "0"


def hashed_content(entry: Mapping[str, Any], priority: str, *, is_former: bool = False) -> Any:
    """What version v2 computed the hash of a clique from."""
    spec = form({**entry["spec"]["podSpec"], "priorityClassName": priority})
    return {"labels": entry.get("labels") or {}, "annotations": entry.get("annotations") or {}, "spec": spec}


@contextmanager
def previous_version() -> Iterator[None]:
    """The engine writes the hashes of version v2, and graphs without records, while the block runs."""
    with (
        mock.patch.multiple(template, HASH_VERSION="v2", hashed_content=hashed_content),
        mock.patch.object(graph_records, "is_new", lambda graph: False),
        mock.patch.object(graph_meaning, "is_new", lambda graph: False),
    ):
        yield
