"""The Go form of a pod spec: what the operator's admission makes of a user's spelling, because it decodes a set and encodes it again.

Quantities become text in canonical form, and fields that Go cannot leave out are added. Its CRDs fill in the protocol of ports.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from engine.quantity import amount

Body = dict[str, Any]
BINARY = ("Ki", "Mi", "Gi", "Ti")


def pod_spec(spec: Mapping[str, Any]) -> Body:
    """The pod spec as the operator stores it."""
    result = {key: value for key, value in spec.items() if value is not None}
    for field in ("containers", "initContainers"):
        if result.get(field):
            result[field] = [_container(container) for container in result[field]]
    return result


def _container(container: Mapping[str, Any]) -> Body:
    resources = dict(container.get("resources") or {})
    for field in ("limits", "requests"):
        if field in resources:
            resources[field] = {name: quantity(value) for name, value in resources[field].items()}
    filled = {**container, "resources": resources}
    _each(filled, "ports", lambda port: {"protocol": "TCP", **port})
    _each(filled, "env", _variable)
    return filled


def _variable(variable: Mapping[str, Any]) -> Body:
    source = dict(variable.get("valueFrom") or {})
    if "resourceFieldRef" in source:
        return {**variable, "valueFrom": {**source, "resourceFieldRef": {"divisor": "0", **source["resourceFieldRef"]}}}
    return {key: value for key, value in variable.items() if key == "name" or value}


def _each(holder: Body, field: str, change: Callable[[Mapping[str, Any]], Body]) -> None:
    if holder.get(field):
        holder[field] = [change(entry) for entry in holder[field]]


def quantity(value: Any) -> str:
    """A quantity as Go writes it: 4 as `4`, `1024Mi` as `1Gi`, `0.5` as `500m`."""
    text = str(value)
    number = amount(text) or Decimal(0)
    if text.endswith("i"):
        suffix = ""
        for larger in BINARY:
            if number % 1024:
                break
            number, suffix = number / 1024, larger
        return f"{int(number)}{suffix}"
    return str(int(number)) if number == int(number) else f"{int(number * 1000)}m"
