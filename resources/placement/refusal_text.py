"""RefusalText: why pods cannot be placed, as a sentence that says what is required, what there is, and who has the rest."""

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import Final

from engine.report.printable import counted, some
from engine.resource import Body
from resources.base.fields import mapping, mappings
from resources.placement.cluster_room import RoomNode
from resources.placement.node_fit import HOST_PORT, NodeMismatch, capacity_for, mismatch, texts
from resources.placement.pod_demand import SLOT, PodDemand
from resources.placement.room import PlacedPods, Room, RoomRefusal

BINARY: Final = ("memory", "ephemeral-storage", "hugepages-")
"""How the names of resources begin that are counted in bytes."""
UNITS: Final = (("Gi", 1024**3), ("Mi", 1024**2), ("Ki", 1024))
NEAR: Final = 0.8
"""How alike two names of resources are of which one is a typing error of the other, from 0 to 1."""
SHOWN: Final = 3
"""The most namespaces, labels or taints that are named."""
FREE: Final = "free or add nodes, or ask for less"
LARGER: Final = "ask for less, or add larger nodes"
BESIDE: Final = "create those first, or correct what the pods require"
SUIT: Final = "label, untaint, uncordon or add nodes, or correct what the pods require"


def refusal_text(refusal: RoomRefusal, room: Room) -> str:
    """Why these pods cannot all be placed, and what to do."""
    text = _refusal_text(refusal, room)
    closed = _closed(refusal.demands[0], room) if refusal.nodes else ""
    if not closed:
        return text
    why, _, advice = text.rpartition("; ")
    return f"{why}; {closed}; untaint or uncordon nodes, or {advice}"


def _closed(demand: PodDemand, room: Room) -> str:
    """How many nodes have room for such a pod and are closed to it by taints or cordons; empty if none is."""
    fit = [placed.node for placed in room.nodes() if placed.copies(demand, placed.used)]
    reasons = {node.name: mismatch(demand.requirements, node.body, recovered=True) for node in fit}
    closed = [node for node in fit if reasons[node.name] in (NodeMismatch.TAINTED, NodeMismatch.CORDONED)]
    counts = Counter(reason for node in closed if (reason := reasons[node.name]) is not None)
    texts = ", ".join(_mismatch_text(reason, count, demand, closed) for reason, count in counts.items())
    return f"{len(closed)} more with room {'is' if len(closed) == 1 else 'are'} closed to them: {texts}" if closed else ""


def _refusal_text(refusal: RoomRefusal, room: Room) -> str:
    demand, count = refusal.demands[0], len(refusal.nodes)
    if not refusal.nodes:
        return f"{_nowhere(demand, [placed.node for placed in room.nodes()])}; {SUIT}"
    if refusal.together:
        pods, it = (f"all {refusal.wanted} pods", "any of them") if refusal.wanted > 1 else ("1 pod", "it")
        most = f"more than {refusal.fit}" if refusal.fit else it
        return f"{pods} must be at one value of node label {refusal.label}, and none has room for {most}; {FREE}"
    if refusal.beside is not None:
        others = f"the pods that the required affinity names ({_selector(refusal.beside.term)})"
        return f"{counted(refusal.wanted, 'pod')} must be beside {others}, and none of them is on a node; {BESIDE}"
    if refusal.label:
        values = f"{_suiting(count)} {counted(refusal.fit, 'value')} of it"
        return f"no two of {refusal.wanted} pods may be at one value of node label {refusal.label}, and {values}; {FREE}"
    if refusal.resource.startswith(SLOT):
        free = _free(refusal.fit // 1000, _placed(refusal.nodes, room))
        return f"together with others they need {_nodes(refusal.wanted // 1000)}: {free}{_law(refusal.resource)}; {FREE}"
    if refusal.resource:
        wanted, fit = (amount_text(refusal.resource, amount) for amount in (refusal.wanted, refusal.fit))
        free = f"{_suiting(count)} {fit} free"
        takers = _takers(refusal.resource, _placed(refusal.nodes, room), room)
        return f"together with others they request {wanted} {refusal.resource}, and {free}{takers}; {FREE}"
    return _copies(refusal, room, demand)


def _copies(refusal: RoomRefusal, room: Room, demand: PodDemand) -> str:
    """Why so many pods do not fit on the nodes that suit them."""
    nodes = _placed(refusal.nodes, room)
    largest = max(placed.copies(demand, {}) for placed in nodes)
    if not largest:
        return f"{_too_large(demand, nodes)}; {LARGER}"
    scarce = _scarce(demand, nodes)
    takers = _takers(scarce, nodes, room)
    if largest == 1:
        need = f"{refusal.wanted} pods need {_nodes(refusal.wanted)}, one for each" if refusal.wanted > 1 else "1 pod needs a node"
        return f"{need}: {_free(refusal.fit, nodes)}{takers}{_law(scarce)}; {FREE}"
    return f"{_suiting(len(nodes))} room for {refusal.fit} of {refusal.wanted} pods{takers}; {FREE}"


def _free(count: int, nodes: Sequence[PlacedPods]) -> str:
    return f"{count} of {len(nodes)} {'is' if 1 in (count, len(nodes)) else 'are'} free"


def _suiting(count: int) -> str:
    return f"{_nodes(count)} that suit have" if count != 1 else "1 node that suits has"


def _law(resource: str) -> str:
    """Why a node has room for one pod, if that is no matter of its size."""
    return f", and a node takes one pod in a {resource.removeprefix(SLOT)}" if resource.startswith(SLOT) else ""


def _too_large(demand: PodDemand, nodes: Sequence[PlacedPods]) -> str:
    """The resources of which a pod requests more than the largest node has."""
    lacking = []
    for resource, amount in demand.requests.items():
        most = max(placed.capacity.get(resource, 0) for placed in nodes)
        if amount > most and not resource.startswith(HOST_PORT):
            requested, has = amount_text(resource, amount), amount_text(resource, most)
            largest = f"the largest of {len(nodes)} nodes that suit" if len(nodes) > 1 else "the only node that suits"
            lacking.append(f"{requested} {resource} requested, {f'{largest} has {has}' if most else _unknown(resource, nodes)}")
    listed = ", ".join(f"{amount_text(resource, amount)} {resource}" for resource, amount in demand.requests.items() if amount)
    return "; ".join(lacking) or f"no node that suits has {listed} together"


def _unknown(resource: str, nodes: Sequence[PlacedPods]) -> str:
    """That no node has any of a resource, with the name of one that is nearly spelt so."""
    near = get_close_matches(resource, {name for placed in nodes for name in placed.capacity}, n=1, cutoff=NEAR)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"no node that suits has any{hint}"


def _scarce(demand: PodDemand, nodes: Sequence[PlacedPods]) -> str:
    """The resource that leaves room for the fewest pods."""
    room = {
        resource: sum(max(0, capacity_for(resource, placed.capacity) - placed.used[resource]) // amount for placed in nodes)
        for resource, amount in demand.requests.items()
        if amount > 0
    }
    return min(room, key=lambda resource: room[resource])


def _takers(resource: str, nodes: Sequence[PlacedPods], room: Room) -> str:
    """The namespaces of the pods that use a resource of these nodes, those with the most first; empty if none does."""
    names = {placed.node.name for placed in nodes}
    used: Counter[str] = Counter()
    for placed in nodes:
        for each in placed.others:
            used[each.namespace] += each.requests.get(resource, 0)
    for node, namespace, requests in room.held():
        used[namespace] += requests.get(resource, 0) if node in names else 0
    takers = [namespace for namespace, amount in used.most_common() if amount]
    return f" (pods of namespace {some(takers, SHOWN)} have the rest)" if takers else ""


def _nowhere(demand: PodDemand, nodes: Sequence[RoomNode]) -> str:
    """Why no node suits a pod, however much room it has."""
    requirements = demand.requirements
    if not nodes:
        return "the cluster has no nodes"
    if requirements.node_name:
        return f"node {requirements.node_name} does not exist"
    unlabelled = [key for key in demand.needed_labels if not any(key in node.labels for node in nodes)]
    missing = [f"{key}={value}" for key, value in requirements.selector.items() if not any(node.labels.get(key) == value for node in nodes)]
    if labels := [*missing, *unlabelled]:
        return f"no node has the label {some(labels, SHOWN)}"
    reasons = Counter(mismatch(requirements, node.body, recovered=True) for node in nodes)
    texts = [_mismatch_text(reason, count, demand, nodes) for reason, count in reasons.items() if reason is not None]
    if lacking := reasons[None]:
        texts.append(f"{lacking} without the labels {some(demand.needed_labels, SHOWN)}")
    return f"{f'none of {len(nodes)} nodes suits' if len(nodes) > 1 else 'the only node does not suit'}: {', '.join(texts)}"


def _mismatch_text(reason: NodeMismatch, count: int, demand: PodDemand, nodes: Iterable[RoomNode]) -> str:
    requirements = demand.requirements
    match reason:
        case NodeMismatch.NOT_SELECTED:
            selector = some((f"{key}={value}" for key, value in requirements.selector.items()), SHOWN)
            wanted = " and ".join(filter(None, (selector, "what the required node affinity asks for" if requirements.terms else "")))
            return f"{count} without {wanted}"
        case NodeMismatch.CORDONED:
            return f"{count} cordoned"
        case NodeMismatch.TAINTED:
            taints = (
                f"{taint.get('key')}={taint.get('value', '')}:{taint.get('effect')}"
                for node in nodes
                if mismatch(requirements, node.body, recovered=True) is reason
                for taint in node.body["spec"]["taints"]
            )
            return f"{count} with taints that are not tolerated ({some(taints, SHOWN)})"
    return f"{count} {reason.value}"


def _selector(term: Body) -> str:
    """What a term says of the labels of pods, as people write it."""
    selector = mapping(term.get("labelSelector"))
    pairs = [f"{key}={value}" for key, value in mapping(selector.get("matchLabels")).items()]
    for rule in mappings(selector.get("matchExpressions")):
        pairs.append(" ".join((str(rule.get("key")), str(rule.get("operator")), *texts(rule.get("values")))))
    return some(pairs, SHOWN) or "no selector"


def _placed(nodes: Iterable[RoomNode], room: Room) -> list[PlacedPods]:
    names = {node.name for node in nodes}
    return [placed for placed in room.nodes() if placed.node.name in names]


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count != 1 else ''}"


def amount_text(resource: str, thousandths: int) -> str:
    """An amount as people write it: `8`, `1500m`, `64Gi`."""
    if resource.startswith(BINARY):
        for unit, size in UNITS:
            if thousandths and thousandths % (1000 * size) == 0:
                return f"{thousandths // 1000 // size}{unit}"
        unit, size = next((each for each in UNITS if thousandths >= 100 * each[1]), ("", 1))
        return f"{(Decimal(thousandths) / 1000 / size).quantize(Decimal('0.1') if unit else Decimal(1)):f}{unit}"
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"
