"""Amounts: resources by name, in whole thousandths, so that they add up exactly."""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Any, Final

from providers.sandbox.actors.body import Body, status_of
from providers.sandbox.types import quantity

Amounts = dict[str, int]

PODS: Final = "pods"
MOST: Final = Decimal(2) ** 63
"""The server caps quantities there; so no number of a stranger's can be too long to count with."""


@lru_cache(maxsize=1024)
def thousandths(text: str) -> int:
    """The quantity in thousandths, rounded up as a scheduler does. Raises `ValueError` for what is none."""
    amount = max(-MOST, min(MOST, quantity.value(text)))
    return int((amount * 1000).to_integral_value(rounding=ROUND_CEILING))


def requested(spec: Mapping[str, Any]) -> Amounts:
    """What must be free for a pod: its containers together, or the greediest moment of its initialisation, and one place.

    Raises `ValueError` for a quantity that is none.
    """
    beside: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _of_container(container)
        if container.get("restartPolicy") == "Always":
            beside = _sum(beside, own)
            own = {}
        peak = _most(peak, _sum(beside, own))
    for container in spec.get("containers") or ():
        beside = _sum(beside, _of_container(container))
    overhead = {name: thousandths(str(amount)) for name, amount in (spec.get("overhead") or {}).items()}
    return _sum(_sum(_most(beside, peak), overhead), {PODS: 1000})


def offered(node: Body) -> Amounts:
    """What a node has for pods; nothing of what it states in words that are no quantity."""
    amounts: Amounts = {}
    for name, text in (status_of(node).get("allocatable") or {}).items():
        try:
            amounts[name] = thousandths(str(text))
        except ValueError:
            continue
    return amounts


def _of_container(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: thousandths(str(amount)) for name, amount in asked.items()}


def _sum(left: Amounts, right: Amounts) -> Amounts:
    return {name: left.get(name, 0) + right.get(name, 0) for name in (*left, *right)}


def _most(left: Amounts, right: Amounts) -> Amounts:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in (*left, *right)}
