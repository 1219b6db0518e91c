"""Placement: reserves nodes for all pods of a gang or for none, each block within one domain of its node label."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from grove_sandbox.actors.body import Body, uid_of
from grove_sandbox.actors.gang import PodBlock
from grove_sandbox.actors.pool import Pool, Shortage
from grove_sandbox.product import PodAffinity, PodRequirements

Selector = Mapping[str, str]
"""Labels that the nodes must have."""


class Requirements(Struct, frozen=True):
    """What the pods require, by their uids."""

    of_pods: Mapping[str, PodRequirements]
    """What each of them requires of a node, devices included."""
    affinities: Mapping[str, PodAffinity] = field(default_factory=dict)
    """The affinity of those that have one."""


NOWHERE: Selector = {}


def place(pool: Pool, pods: Sequence[Body], requirements: Requirements, selector: Selector = NOWHERE) -> dict[str, str] | Shortage:
    """Reserve a node with these labels for each of the pods, or for none. Returns the nodes by uid, or what is short."""
    return pool.place([(uid_of(pod), _within(selector, requirements.of_pods[uid_of(pod)])) for pod in pods], requirements.affinities)


def place_gang(pool: Pool, root: PodBlock, requirements: Requirements) -> dict[str, str] | Shortage:
    """As `place_block`; tried first within one value of the node label by which the pods with an affinity want to be together."""
    keys = {key for affinity in requirements.affinities.values() for key in affinity.topology_keys}
    if len(keys) == 1 and not root.domain:
        nodes = place_block(pool, replace(root, domain=next(iter(keys))), requirements)
        if not isinstance(nodes, Shortage):
            return nodes
    return place_block(pool, root, requirements)


def place_block(pool: Pool, block: PodBlock, requirements: Requirements, selector: Selector = NOWHERE) -> dict[str, str] | Shortage:
    """Reserve nodes for all required pods of the block and of the blocks in it, or for none. Tries the domains in order of their names."""
    closest: Shortage | None = None
    for choice in _choices(pool, block, selector):
        nodes = _place_within(pool, block, requirements, choice)
        if not isinstance(nodes, Shortage):
            return nodes
        if closest is None or nodes.placed > closest.placed:
            closest = nodes
    return closest or Shortage(0, 0, {})


def selector_of(pool: Pool, root: PodBlock, uid: str) -> Selector:
    """The labels that a node must have for an extra pod of the gang: those of the domains in which the others are."""
    for path in _paths(root):
        if any(uid_of(pod) == uid for pod in path[-1].extra):
            return {block.domain: value for block in path if block.domain for value in _domains_in_use(pool, block)[:1]}
    return NOWHERE


def _place_within(pool: Pool, block: PodBlock, requirements: Requirements, selector: Selector) -> dict[str, str] | Shortage:
    nodes = place(pool, block.required, requirements, selector)
    if isinstance(nodes, Shortage):
        return nodes
    for inner in block.blocks:
        placed = place_block(pool, inner, requirements, selector)
        if isinstance(placed, Shortage):
            for uid in nodes:
                pool.release(uid)
            return replace(placed, placed=placed.placed + len(nodes))
        nodes |= placed
    return nodes


def _choices(pool: Pool, block: PodBlock, selector: Selector) -> Iterable[Selector]:
    """The selectors to try: one for each domain, or the one in which pods of the block are already."""
    if not block.domain or block.domain in selector:
        return (selector,)
    values = _domains_in_use(pool, block)[:1] or pool.values_of(block.domain)
    return tuple({**selector, block.domain: value} for value in values)


def _domains_in_use(pool: Pool, block: PodBlock) -> Sequence[str]:
    """The values of the block's label on the nodes of its pods."""
    nodes = [pool.node_of(uid_of(pod)) for part in block for pod in (*part.placed, *part.required)]
    return sorted({value for node in nodes if (value := pool.labels_of(node).get(block.domain))})


def _paths(block: PodBlock) -> Iterator[tuple[PodBlock, ...]]:
    """Each block with those that it is in, the outermost first."""
    yield (block,)
    for inner in block.blocks:
        for path in _paths(inner):
            yield (block, *path)


def _within(selector: Selector, requirements: PodRequirements) -> PodRequirements:
    if not selector:
        return requirements
    if any(requirements.selector.get(label, value) != value for label, value in selector.items()):
        # No node has both values of a label.
        return replace(requirements, terms=({"matchFields": [{"key": "metadata.name", "operator": "In", "values": []}]},), shape="")
    merged = {**requirements.selector, **selector}
    return replace(requirements, selector=merged, shape=f"{requirements.shape} in {sorted(selector.items())}")
