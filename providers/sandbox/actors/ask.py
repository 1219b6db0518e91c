"""Ask: what a pod needs of a node, and whether a node offers it."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine import conditions
from providers.sandbox.actors.amounts import requested
from providers.sandbox.actors.body import Body, conditions_of, labels_of

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class Ask:
    """The part of a pod's spec that placement depends on. Pods of equal `shape` fit the same nodes."""

    requests: Mapping[str, int]
    selector: Mapping[str, str]
    terms: tuple[Body, ...]
    """Required node affinity: one of these must hold; none: anything does."""
    tolerations: tuple[Body, ...]
    shape: str
    node: str = ""
    """The only node that will do, because devices of it are the pod's already; empty: any."""
    beside: str = ""
    """The uid of a pod that is placed before this one, on the same node, because they share devices; empty: none."""


def ask_of(pod: Body) -> Ask:
    """What the pod needs. Raises `ValueError` for a quantity that is none."""
    spec = pod["spec"]
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    requests, selector = requested(spec), spec.get("nodeSelector") or {}
    terms, tolerations = tuple(required.get("nodeSelectorTerms") or ()), tuple(spec.get("tolerations") or ())
    return Ask(requests, selector, terms, tolerations, json.dumps([requests, selector, terms, tolerations], sort_keys=True))


def refusal(ask: Ask, node: Body) -> str:
    """Why the node is not for this pod, however empty it is; or nothing. The words are kube-scheduler's."""
    spec = node.get("spec") or {}
    unschedulable = [{"key": UNSCHEDULABLE, "effect": "NoSchedule"}] if spec.get("unschedulable") else []
    if any(not _tolerated(taint, ask.tolerations) for taint in (*unschedulable, *(spec.get("taints") or ()))):
        return "node(s) had untolerated taints"
    ready = conditions.find(conditions_of(node), "Ready")
    if ready is not None and ready.get("status") != "True":
        return "node(s) were not ready"
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in ask.selector.items()) or not _affine(ask.terms, node, labels):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def _tolerated(taint: Body, tolerations: Iterable[Body]) -> bool:
    if taint.get("effect") == "PreferNoSchedule":
        return True
    return any(
        (not one.get("effect") or one["effect"] == taint.get("effect"))
        and (not one.get("key") or one["key"] == taint["key"])
        and (one.get("operator") == "Exists" or (bool(one.get("key")) and one.get("value", "") == taint.get("value", "")))
        for one in tolerations
    )


def _affine(terms: Iterable[Body], node: Body, labels: Mapping[str, str]) -> bool:
    held = [
        all(_holds(rule, labels) for rule in term.get("matchExpressions") or ())
        and all(_holds(rule, {"metadata.name": node["metadata"]["name"]}) for rule in term.get("matchFields") or ())
        for term in terms
        if term.get("matchExpressions") or term.get("matchFields")
    ]
    return any(held) or not terms


def _holds(rule: Body, values: Mapping[str, str]) -> bool:
    value, wanted = values.get(rule["key"]), rule.get("values") or ()
    operator = _OPERATORS.get(rule["operator"])
    return operator is not None and operator(value, wanted)


_OPERATORS: Final[Mapping[str, Callable[[str | None, Sequence[str]], bool]]] = {
    "In": lambda value, wanted: value in wanted,
    "NotIn": lambda value, wanted: value not in wanted,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, wanted: _beyond(value, wanted, 1),
    "Lt": lambda value, wanted: _beyond(value, wanted, -1),
}


def _beyond(value: str | None, wanted: Sequence[str], sign: int) -> bool:
    """Whether the label is a number above (1) or below (-1) the one that is wanted."""
    numbers = [int(text) for text in (value, *wanted[:1]) if text is not None and text.isdecimal() and len(text) < 20]
    return len(numbers) == 2 and (numbers[0] - numbers[1]) * sign > 0
