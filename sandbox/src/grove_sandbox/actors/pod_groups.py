"""PodGroups: the pods of the gangs that Volcano's and KAI's PodGroups describe."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from grove_sandbox.actors.body import Body, labels_of
from grove_sandbox.actors.gang import GangPods, PodBlock, PodStates, block_of

SUBGROUP: Final = "kai.scheduler/subgroup-name"
"""The label of a pod with its sub-group."""


def minimum_of(spec: Body) -> int:
    """How many pods a group or a sub-group with this spec has at least; 1, if it does not say."""
    return int(spec.get("minMember", 1))


def volcano_pods(group: Body, pods: Sequence[Body], states: PodStates) -> GangPods:
    """The pods of one of Volcano's PodGroups: at least `minMember` of those that refer to it, and as many of each sub-group as it says."""
    spec = group.get("spec") or {}
    minimum = minimum_of(spec)
    block, lacking = block_of(pods, minimum, states)
    missing = [f"{minimum - lacking} of {minimum} pods exist"] if lacking else list(_small_subgroups(spec, pods, states))
    return GangPods(block, "; ".join(missing))


def _small_subgroups(spec: Body, pods: Sequence[Body], states: PodStates) -> Iterator[str]:
    """What the sub-groups of one of Volcano's PodGroups lack that are smaller than their size."""
    for policy in spec.get("subGroupPolicy") or ():
        selector, size = (policy.get("labelSelector") or {}).get("matchLabels") or {}, int(policy.get("subGroupSize") or 1)
        members = [pod for pod in pods if selector.items() <= labels_of(pod).items()]
        if lacking := block_of(members, size, states)[1]:
            yield f"sub-group {policy.get('name')} has {size - lacking} of {size} pods"


def kai_pods(group: Body, pods: Sequence[Body], states: PodStates, topologies: Mapping[str, Body]) -> GangPods:
    """The pods of one of KAI's PodGroups: at least the minimum of each sub-group, in the domains that it requires."""
    reader = _KaiReader(pods, states, topologies)
    return reader.read(group)


class _KaiReader:
    """Reads the tree of sub-groups, and collects what it lacks."""

    def __init__(self, pods: Sequence[Body], states: PodStates, topologies: Mapping[str, Body]) -> None:
        self._pods, self._states, self._topologies = pods, states, topologies
        self._missing: list[str] = []
        self._refusals: list[str] = []

    def read(self, group: Body) -> GangPods:
        spec = group.get("spec") or {}
        subgroups, domain = tuple(spec.get("subGroups") or ()), self._domain(spec)
        if subgroups:
            self._refuse_malformed(subgroups)
            root = PodBlock(domain=domain, blocks=self._blocks(subgroups, None))
        else:
            minimum = minimum_of(spec)
            root, lacking = block_of(self._pods, minimum, self._states, domain)
            if lacking:
                self._missing.append(f"{minimum - lacking} of {minimum} pods exist")
        return GangPods(root, "; ".join(self._missing), "; ".join(self._refusals))

    def _refuse_malformed(self, subgroups: Sequence[Body]) -> None:
        """Refuse names that occur twice, and sub-groups that no chain of parents connects with the group."""
        names = [subgroup["name"] for subgroup in subgroups]
        self._refusals += [f"subgroup <{name}> already exists" for name in sorted(set(names)) if names.count(name) > 1]
        parents = {subgroup["name"]: subgroup.get("parent") for subgroup in subgroups}
        for name, parent in parents.items():
            above = {name}
            while parent in parents and parent not in above:
                above.add(parent)
                parent = parents[parent]
            if parent is not None:
                self._refusals.append(f"parent subgroup <{parent}> of <{name}> not found")

    def _blocks(self, subgroups: Sequence[Body], parent: str | None) -> tuple[PodBlock, ...]:
        """The blocks of the sub-groups below a parent. No chain from the root down is a circle."""
        return tuple(self._block(subgroup, subgroups) for subgroup in subgroups if subgroup.get("parent") == parent)

    def _block(self, subgroup: Body, subgroups: Sequence[Body]) -> PodBlock:
        name, domain = subgroup["name"], self._domain(subgroup)
        blocks = self._blocks(subgroups, name)
        if blocks:
            return PodBlock(domain=domain, blocks=blocks)
        members = [pod for pod in self._pods if labels_of(pod).get(SUBGROUP) == name]
        minimum = minimum_of(subgroup)
        block, lacking = block_of(members, minimum, self._states, domain)
        if lacking:
            self._missing.append(f"sub-group {name} has {minimum - lacking} of {minimum} pods")
        return block

    def _domain(self, spec: Body) -> str:
        """The label of nodes that the constraint requires to be the same; it must be a level of its Topology."""
        constraint = spec.get("topologyConstraint") or {}
        name, level = constraint.get("topology") or "", constraint.get("requiredTopologyLevel") or ""
        if not name:
            return ""  # As in KAI: a constraint without a topology is none.
        topology = self._topologies.get(name)
        if topology is None:
            self._refusals.append(f"Requested topology {name} does not exist")
            return ""
        levels = [entry["nodeLabel"] for entry in topology["spec"]["levels"]]
        if level and level not in levels:
            self._refusals.append(f"topology {name} has no level {level}")
            return ""
        return str(level)
