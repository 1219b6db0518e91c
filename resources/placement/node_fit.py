"""NodeFit: what a pod requires of a node, and whether a node provides it, as kube-scheduler decides."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from engine import conditions, quantity
from engine.resource import Body
from resources.base.fields import mapping, mappings

Amounts = dict[str, int]
"""Resources by name in whole thousandths, so that they add up exactly."""

PODS: Final = "pods"
MAXIMUM: Final = Decimal(2) ** 63
"""The server caps quantities there."""
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
OF_CONDITIONS: Final = frozenset(
    f"node.kubernetes.io/{name}"
    for name in ("not-ready", "unreachable", "memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable")
) | {"node.cloudprovider.kubernetes.io/uninitialized"}
"""The keys of the taints that Kubernetes sets and removes with the condition of a node."""
NUMBER: Final = re.compile(r"-?[0-9]{1,19}")
HOST_PORT: Final = "host port "
"""Ports of the host are counted as resources of this name followed by protocol, port and address; of each a node has one."""
_OPERATORS: Final[Mapping[str, Callable[[str | None, Sequence[str]], bool]]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: _compares(value, values, 1),
    "Lt": lambda value, values: _compares(value, values, -1),
}


class PodRequirements(Struct, frozen=True):
    """The part of a pod's spec that placement depends on. Pods of equal `shape` fit the same nodes."""

    requests: Mapping[str, int]
    selector: Mapping[str, str]
    terms: tuple[Body, ...]
    """Required node affinity: one of these must match; empty: every node does."""
    tolerations: tuple[Body, ...]
    shape: str
    node_name: str = ""
    """The node that the spec names: the pod is not scheduled. Empty: none."""
    node: str = ""
    """The node on which devices are allocated to the pod, the only one that will do; empty: any."""
    same_node_as: str = ""
    """The uid of a pod that shares devices with this one and is placed before it; empty: none."""


def requirements_of(pod: Body) -> PodRequirements:
    """What the pod requires. Raises `ValueError` for a malformed quantity."""
    spec = mapping(pod.get("spec"))
    node_affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    affinity = mapping(node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    requests, selector = requests_of(spec), mapping(spec.get("nodeSelector"))
    terms, tolerations = tuple(mappings(affinity.get("nodeSelectorTerms"))), tuple(mappings(spec.get("tolerations")))
    node_name = str(spec.get("nodeName") or "")
    shape = json.dumps([requests, selector, terms, tolerations, node_name], sort_keys=True)
    return PodRequirements(requests, selector, terms, tolerations, shape, node_name)


@lru_cache(maxsize=1024)
def thousandths(text: str) -> int:
    """The quantity in thousandths, rounded up as a scheduler does. Raises `ValueError` if it is malformed."""
    amount = quantity.amount(text)
    if amount is None:
        raise ValueError(f"{text[:80]!r} is not a quantity")
    return int((max(-MAXIMUM, min(MAXIMUM, amount)) * 1000).to_integral_value(rounding=ROUND_CEILING))


def requests_of(spec: Mapping[str, Any]) -> Amounts:
    """The effective requests of a pod: all containers together or the largest step of its initialisation, its host ports, and one pod.

    Requests of the pod as a whole (`spec.resources`) count in place of those of its containers. Raises `ValueError` for a malformed
    quantity.
    """
    running: Amounts = {}
    peak: Amounts = {}
    for container in mappings(spec.get("initContainers")):
        requests = _requests_in(container.get("resources"))
        if container.get("restartPolicy") == "Always":
            running = _sum(running, requests)
            requests = {}
        peak = _maximum(peak, _sum(running, requests))
    for container in mappings(spec.get("containers")):
        running = _sum(running, _requests_in(container.get("resources")))
    own = mapping(spec.get("resources"))
    whole = {**_amounts(own.get("limits")), **_maximum(running, peak), **_amounts(own.get("requests"))}
    return _sum(_sum(whole, _amounts(spec.get("overhead"))), {PODS: 1000, **dict.fromkeys(_host_ports(spec), 1000)})


def allocatable(node: Body) -> Amounts:
    """The allocatable resources of a node; malformed quantities are left out."""
    amounts: Amounts = {}
    for name, text in mapping(mapping(node.get("status")).get("allocatable")).items():
        try:
            amounts[name] = thousandths(str(text))
        except ValueError:
            continue
    return amounts


def capacity_for(resource: str, capacity: Mapping[str, int]) -> int:
    """How much of a resource a node with these allocatable resources has. Every node has each host port once."""
    return capacity.get(resource, 1000 if resource.startswith(HOST_PORT) else 0)


def short_of(requests: Mapping[str, int], capacity: Mapping[str, int], used: Mapping[str, int]) -> list[str]:
    """The resources of which a node with this capacity, of which this much is used, has not enough."""
    return [
        resource for resource, amount in requests.items() if amount and amount > capacity_for(resource, capacity) - used.get(resource, 0)
    ]


def _requests_in(resources: Any) -> Amounts:
    """What `resources` requests. A request that is not given is the limit."""
    return _amounts({**mapping(mapping(resources).get("limits")), **mapping(mapping(resources).get("requests"))})


def _amounts(quantities: Any) -> Amounts:
    return {str(name): thousandths(str(quantity)) for name, quantity in mapping(quantities).items()}


def _host_ports(spec: Mapping[str, Any]) -> Iterator[str]:
    """The ports of the node that the containers use, each as the name of a resource. On the network of the host every port is one."""
    for container in mappings(spec.get("containers")):
        for port in mappings(container.get("ports")):
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") is True else None)
            if number:
                yield f"{HOST_PORT}{port.get('protocol') or 'TCP'}/{number} at {port.get('hostIP') or '0.0.0.0'}"


def _sum(left: Amounts, right: Amounts) -> Amounts:
    return {name: left.get(name, 0) + right.get(name, 0) for name in (*left, *right)}


def _maximum(left: Amounts, right: Amounts) -> Amounts:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in (*left, *right)}


class NodeMismatch(StrEnum):
    """Why a node is none for a pod, however empty it is, in kube-scheduler's words."""

    OTHER_NODE = "node(s) didn't match the requested node name"
    CORDONED = "node(s) were unschedulable"
    TAINTED = "node(s) had untolerated taints"
    NOT_READY = "node(s) were not ready"
    NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"


def mismatch(requirements: PodRequirements, node: Body, *, recovered: bool = False) -> NodeMismatch | None:
    """Why the pod cannot run on this node even if it is empty; None if it can.

    `recovered`: as if the node was ready and without the taints that come and go with its condition.
    """
    name, labels = node["metadata"]["name"], mapping(node["metadata"].get("labels"))
    if requirements.node_name:
        return NodeMismatch.OTHER_NODE if requirements.node_name != name else None
    spec = mapping(node.get("spec"))
    if spec.get("unschedulable") and not _is_tolerated({"key": UNSCHEDULABLE, "effect": "NoSchedule"}, requirements.tolerations):
        return NodeMismatch.CORDONED
    for taint in mappings(spec.get("taints")):
        is_passing = recovered and taint.get("key") in OF_CONDITIONS
        if not is_passing and not _is_tolerated(taint, requirements.tolerations):
            return NodeMismatch.CORDONED if taint.get("key") == UNSCHEDULABLE else NodeMismatch.TAINTED
    ready = conditions.find(mappings(mapping(node.get("status")).get("conditions")), "Ready")
    if not recovered and ready is not None and ready.get("status") != "True":
        return NodeMismatch.NOT_READY
    return None if is_selected(requirements, name, labels) else NodeMismatch.NOT_SELECTED


def is_selected(requirements: PodRequirements, name: str, labels: Mapping[str, str]) -> bool:
    """Whether the node selector and the required node affinity of a pod match a node of this name with these labels."""
    return requirements.selector.items() <= labels.items() and _matches_affinity(requirements.terms, name, labels)


def _is_tolerated(taint: Body, tolerations: Iterable[Body]) -> bool:
    if taint.get("effect") == "PreferNoSchedule":
        return True
    return any(
        (not toleration.get("effect") or toleration["effect"] == taint.get("effect"))
        and (not toleration.get("key") or toleration["key"] == taint.get("key"))
        and _has_value(toleration, str(taint.get("value", "")))
        for toleration in tolerations
    )


def _has_value(toleration: Body, value: str) -> bool:
    """Whether a toleration is for taints of this value."""
    match toleration.get("operator"):
        case "Exists":
            return True
        case "Gt":
            return _compares(value, [str(toleration.get("value", ""))], 1)
        case "Lt":
            return _compares(value, [str(toleration.get("value", ""))], -1)
    return bool(toleration.get("key")) and toleration.get("value", "") == value


def _matches_affinity(terms: Iterable[Body], name: str, labels: Mapping[str, str]) -> bool:
    matches = [
        matches_expressions(term, labels) and all(_matches(rule, {"metadata.name": name}) for rule in mappings(term.get("matchFields")))
        for term in terms
        if term.get("matchExpressions") or term.get("matchFields")
    ]
    return any(matches) or not terms


def matches_expressions(selector: Body, labels: Mapping[str, str]) -> bool:
    """Whether labels match all `matchExpressions` of a selector."""
    return all(_matches(rule, labels) for rule in mappings(selector.get("matchExpressions")))


def texts(values: Any) -> Sequence[str]:
    """The texts in a list; none if the value is no list."""
    return [value for value in values if isinstance(value, str)] if isinstance(values, list | tuple) else []


def _matches(rule: Body, values: Mapping[str, str]) -> bool:
    operator = _OPERATORS.get(str(rule.get("operator")))
    return operator is not None and operator(values.get(str(rule.get("key"))), texts(rule.get("values")))


def _compares(value: str | None, values: Sequence[str], sign: int) -> bool:
    """Whether the value is a number greater (sign 1) or less (-1) than the first of the values."""
    numbers = [int(text) for text in (value, *values[:1]) if text is not None and NUMBER.fullmatch(text)]
    return len(numbers) == 2 and (numbers[0] - numbers[1]) * sign > 0
