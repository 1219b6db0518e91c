"""PodRequirements: what a pod requires of a node, and whether a node provides it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from engine import conditions, quantity
from providers.sandbox.actors.body import Body, conditions_of, labels_of, status_of

Amounts = dict[str, int]
"""Resources by name in whole thousandths, so that they add up exactly."""

PODS: Final = "pods"
MAXIMUM: Final = Decimal(2) ** 63
"""The server caps quantities there."""
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"


class PodRequirements(Struct, frozen=True):
    """The part of a pod's spec that placement depends on. Pods of equal `shape` fit the same nodes."""

    requests: Mapping[str, int]
    selector: Mapping[str, str]
    terms: tuple[Body, ...]
    """Required node affinity: one of these must match; empty: every node does."""
    tolerations: tuple[Body, ...]
    shape: str
    node: str = ""
    """The node on which devices are allocated to the pod, the only one that will do; empty: any."""
    same_node_as: str = ""
    """The uid of a pod that shares devices with this one and is placed before it; empty: none."""


def requirements_of(pod: Body) -> PodRequirements:
    """What the pod requires. Raises `ValueError` for a malformed quantity."""
    spec = pod["spec"]
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    requests, selector = requests_of(spec), spec.get("nodeSelector") or {}
    terms, tolerations = tuple(affinity.get("nodeSelectorTerms") or ()), tuple(spec.get("tolerations") or ())
    return PodRequirements(requests, selector, terms, tolerations, json.dumps([requests, selector, terms, tolerations], sort_keys=True))


@lru_cache(maxsize=1024)
def thousandths(text: str) -> int:
    """The quantity in thousandths, rounded up as a scheduler does. Raises `ValueError` if it is malformed."""
    amount = quantity.amount(text)
    if amount is None:
        raise ValueError(f"{text[:80]!r} is not a quantity")
    return int((max(-MAXIMUM, min(MAXIMUM, amount)) * 1000).to_integral_value(rounding=ROUND_CEILING))


def requests_of(spec: Mapping[str, Any]) -> Amounts:
    """The effective requests of a pod: all containers together or the largest step of its initialisation, and one pod.

    Raises `ValueError` for a malformed quantity.
    """
    running: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        requests = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            running = _sum(running, requests)
            requests = {}
        peak = _maximum(peak, _sum(running, requests))
    for container in spec.get("containers") or ():
        running = _sum(running, _container_requests(container))
    overhead = {name: thousandths(str(amount)) for name, amount in (spec.get("overhead") or {}).items()}
    return _sum(_sum(_maximum(running, peak), overhead), {PODS: 1000})


def allocatable(node: Body) -> Amounts:
    """The allocatable resources of a node; malformed quantities are left out."""
    amounts: Amounts = {}
    for name, text in (status_of(node).get("allocatable") or {}).items():
        try:
            amounts[name] = thousandths(str(text))
        except ValueError:
            continue
    return amounts


def _container_requests(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: thousandths(str(amount)) for name, amount in requests.items()}


def _sum(left: Amounts, right: Amounts) -> Amounts:
    return {name: left.get(name, 0) + right.get(name, 0) for name in (*left, *right)}


def _maximum(left: Amounts, right: Amounts) -> Amounts:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in (*left, *right)}


def mismatch(requirements: PodRequirements, node: Body) -> str:
    """Why the pod cannot run on this node even if it is empty, in kube-scheduler's words; empty if it can."""
    spec = node.get("spec") or {}
    unschedulable = [{"key": UNSCHEDULABLE, "effect": "NoSchedule"}] if spec.get("unschedulable") else []
    if any(not _is_tolerated(taint, requirements.tolerations) for taint in (*unschedulable, *(spec.get("taints") or ()))):
        return "node(s) had untolerated taints"
    ready = conditions.find(conditions_of(node), "Ready")
    if ready is not None and ready.get("status") != "True":
        return "node(s) were not ready"
    labels = labels_of(node)
    if not requirements.selector.items() <= labels.items() or not _matches_affinity(requirements.terms, node, labels):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def _is_tolerated(taint: Body, tolerations: Iterable[Body]) -> bool:
    if taint.get("effect") == "PreferNoSchedule":
        return True
    return any(
        (not toleration.get("effect") or toleration["effect"] == taint.get("effect"))
        and (not toleration.get("key") or toleration["key"] == taint["key"])
        and (
            toleration.get("operator") == "Exists"
            or (bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", ""))
        )
        for toleration in tolerations
    )


def _matches_affinity(terms: Iterable[Body], node: Body, labels: Mapping[str, str]) -> bool:
    matches = [
        matches_expressions(term, labels)
        and all(_matches(rule, {"metadata.name": node["metadata"]["name"]}) for rule in term.get("matchFields") or ())
        for term in terms
        if term.get("matchExpressions") or term.get("matchFields")
    ]
    return any(matches) or not terms


def matches_expressions(selector: Body, labels: Mapping[str, str]) -> bool:
    """Whether labels match all `matchExpressions` of a selector."""
    return all(_matches(rule, labels) for rule in selector.get("matchExpressions") or ())


def _matches(rule: Body, values: Mapping[str, str]) -> bool:
    operator = _OPERATORS.get(rule["operator"])
    return operator is not None and operator(values.get(rule["key"]), rule.get("values") or ())


_OPERATORS: Final[Mapping[str, Callable[[str | None, Sequence[str]], bool]]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: _compares(value, values, 1),
    "Lt": lambda value, values: _compares(value, values, -1),
}


def _compares(value: str | None, values: Sequence[str], sign: int) -> bool:
    """Whether the value is a number greater (sign 1) or less (-1) than the first of the values."""
    numbers = [int(text) for text in (value, *values[:1]) if text is not None and text.isdecimal() and len(text) < 20]
    return len(numbers) == 2 and (numbers[0] - numbers[1]) * sign > 0
