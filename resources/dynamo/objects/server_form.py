"""Server form: a pod template as an API server returns it. Servers and webhooks add defaults, spell quantities in their own way and leave
out values that are zero."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.quantity import is_same_quantity

_DEFAULTS: Mapping[str, Any] = {
    "apiVersion": "v1",
    "creationTimestamp": None,
    "defaultMode": 420,
    "divisor": "0",
    "dnsPolicy": "ClusterFirst",
    "failureThreshold": 3,
    "periodSeconds": 10,
    "protocol": "TCP",
    "resources": {},
    "restartPolicy": "Always",
    "scheme": "HTTP",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "successThreshold": 1,
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "timeoutSeconds": 1,
}
"""Field -> the value that a server fills in, wherever in a pod template the field occurs."""

_AMOUNTS = frozenset({"limits", "requests"})
"""Maps whose values are quantities."""
_QUANTITIES = frozenset({"divisor", "sizeLimit", "storage"})
"""Fields that are quantities."""
_FREE_FORM = _AMOUNTS | {"labels", "annotations", "nodeSelector", "matchLabels"}
"""Maps whose keys users choose: a server adds none."""


def server_form(desired: Any, live: Any, *, sent: bool) -> Any:
    """The desired value in the spelling of the live one, wherever both mean the same.

    A quantity gets the live spelling. A zero value (`""`, 0, false) that the live map does not have is left out if `sent` is true,
    that is if exactly this value was written before: then it was the server that left it out. Otherwise defaults of the server are
    added, so that a change of the template does not show them as removed.
    """
    return _value("", "", desired, live, sent)


def _value(parent: str, key: str, desired: Any, live: Any, sent: bool) -> Any:
    """The form of a value; `key` is that of its field or of its list, `parent` the one above."""
    if desired == live:
        return desired
    if isinstance(desired, dict) and isinstance(live, dict):
        return _map(key, desired, live, sent)
    if isinstance(desired, list | tuple) and isinstance(live, list | tuple):
        return [_value(parent, key, item, match, sent) for item, match in zip(desired, _matches(desired, live), strict=True)]
    is_quantity = key in _QUANTITIES or parent in _AMOUNTS
    return live if is_quantity and is_same_quantity(desired, live) else desired


def _map(key: str, desired: dict[str, Any], live: dict[str, Any], sent: bool) -> dict[str, Any]:
    is_free_form = key in _FREE_FORM
    form = {
        field: _value(key, field, value, live[field], sent) if field in live else value
        for field, value in desired.items()
        if field in live or not sent or is_free_form or not _is_zero(value)
    }
    if not sent and not is_free_form:
        form.update({field: value for field, value in live.items() if field not in desired and _is_default(field, value, desired, live)})
    return form


def _matches(desired: Sequence[Any], live: Sequence[Any]) -> list[Any]:
    """The live entry of each desired one: of the same name if all entries have names, else of the same position; None if there is none."""
    names = [_name(entry) for entry in live]
    if names and None not in names:
        by_name = dict(zip(names, live, strict=True))
        return [by_name.get(_name(entry)) for entry in desired]
    return [live[index] if index < len(live) else None for index in range(len(desired))]


def _name(entry: Any) -> str | None:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else None


def _is_zero(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, int) and value == 0)


def _is_default(key: str, value: Any, desired: dict[str, Any], live: dict[str, Any]) -> bool:
    """Whether a field that only the live map has holds a server's default."""
    if key == "imagePullPolicy":  # It depends on the image's tag.
        return bool(desired.get("image") == live.get("image"))
    if key == "serviceAccount":  # The old name of the field, which the server keeps equal to the new one.
        return bool(desired.get("serviceAccountName") == value)
    return key in _DEFAULTS and bool(value == _DEFAULTS[key])
