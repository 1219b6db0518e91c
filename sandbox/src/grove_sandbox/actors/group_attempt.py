"""GroupAttempt: how kube-scheduler places the pods of a tree of groups, and its words where they do not fit."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from grove_sandbox.actors.body import Body, uid_of
from grove_sandbox.actors.gang import SchedulingUnit
from grove_sandbox.actors.group_tree import GroupTree
from grove_sandbox.actors.placement import NOWHERE, Requirements, Selector
from grove_sandbox.actors.pool import Pool, Shortage

UNSCHEDULABLE: Final = "pod group is unschedulable"
NO_DOMAIN: Final = "no feasible placements found"
NO_PREEMPTION: Final = ", pod group preemption: No preemption victims found for incoming preemptor"
"""Nothing is preempted here. The real scheduler repeats this for each group that has its status from another one."""


class GroupResult(Struct):
    """What has come of one group."""

    origin: SchedulingUnit
    """The group that `why` was found for: this one, or one above it."""
    why: str = ""
    """Why it cannot be placed; empty: it can."""
    suffix: str = ""
    nodes: dict[str, str] = field(default_factory=dict)
    """The nodes of its pods, by uid."""
    shortages: dict[str, str] = field(default_factory=dict)
    """Why other pods of it have none, by uid."""
    fitting: set[str] = field(default_factory=set)
    """The pods that had room, if it cannot be placed."""

    @property
    def message(self) -> str:
        """What the condition of the group says."""
        return self.why + self.suffix

    def message_of(self, uid: str) -> str:
        """What the condition of a pod without a node says."""
        own = f"{UNSCHEDULABLE}, {self.message}" if uid in self.fitting else self.why
        return self.shortages.get(uid, own)


Results = dict[SchedulingUnit, GroupResult]


class GroupAttempt:
    """One attempt. What it reserves of the pool stays reserved for the groups that can be placed."""

    def __init__(self, pool: Pool, requirements: Requirements) -> None:
        self._pool, self._requirements = pool, requirements

    def place(self, root: GroupTree) -> Results:
        """The result of each group in the tree. A group whose parent cannot be placed cannot either."""
        results = self._place(root, NOWHERE)
        if not results[root.unit].why and not any(result.nodes for result in results.values()):
            results[root.unit].why = UNSCHEDULABLE
        _complete(root, results, results[root.unit])
        if results[root.unit].why:
            origins = Counter(result.origin for result in results.values())
            for result in results.values():
                result.suffix = NO_PREEMPTION * origins[result.origin]
        return results

    def _place(self, group: GroupTree, within: Selector) -> Results:
        """The results in that domain of the group where most of its pods have room, or in the first if none suffices."""
        choices = self._choices(group, within)
        failed: list[Results] = []
        suitable: list[tuple[int, Selector]] = []
        for choice in choices:
            results = self._place_in(group, choice)
            if results[group.unit].why:
                failed.append(results)
            elif len(choices) == 1:
                return results
            else:
                suitable.append((sum(len(result.nodes) for result in results.values()), choice))
                self._release(results)
        if suitable:
            return self._place_in(group, max(suitable, key=lambda each: each[0])[1])
        if not failed:
            return {group.unit: GroupResult(group.unit, NO_DOMAIN)}
        own = failed[0][group.unit]
        own.why = f"{UNSCHEDULABLE}, 0/{len(choices)} placements are available, first placement status: {own.why}"
        return failed[0]

    def _choices(self, group: GroupTree, within: Selector) -> Sequence[Selector]:
        """The labels of the nodes to try: with each value of its key, or with that of the nodes on which pods of it are."""
        if not group.key:
            return [within]
        nodes = [self._pool.node_of(uid_of(pod)) for leaf in group.leaves() for pod in leaf.placed]
        in_use = {self._pool.labels_of(node).get(group.key) for node in nodes}
        return [{**within, group.key: value} for value in self._pool.values_of(group.key, within) if not in_use or value in in_use]

    def _place_in(self, group: GroupTree, within: Selector) -> Results:
        """The results on nodes with these labels. Nothing stays reserved for a group that does not fit there."""
        results = self._place_children(group, within) if group.is_composite else self._place_pods(group, within)
        if results[group.unit].why:
            self._release(results)
        return results

    def _place_children(self, group: GroupTree, within: Selector) -> Results:
        own, fit, left = GroupResult(group.unit), 0, len(group.children)
        results = {group.unit: own}
        own.why = _shortfall(group, fit, left)
        for child in group.children:
            if own.why:
                break
            results |= self._place(child, within)
            fit, left = fit + (not results[child.unit].why), left - 1
            own.why = _shortfall(group, fit, left)
        return results

    def _place_pods(self, group: GroupTree, within: Selector) -> Results:
        own, fit, left = GroupResult(group.unit), len(group.placed), len(group.waiting)
        if _shortfall(group, fit, left):
            own.why = UNSCHEDULABLE
        for pod in () if own.why else group.waiting:
            node = self._reserve(pod, within)
            if isinstance(node, Shortage):
                own.shortages[uid_of(pod)] = str(node)
            else:
                own.nodes[uid_of(pod)] = node
            fit, left = fit + isinstance(node, str), left - 1
            own.why = _shortfall(group, fit, left)
            if own.why:
                break
        return {group.unit: own}

    def _reserve(self, pod: Body, within: Selector) -> str | Shortage:
        uid = uid_of(pod)
        nodes = self._pool.place([(uid, self._requirements.of_pods[uid])], self._requirements.affinities, within)
        return nodes if isinstance(nodes, Shortage) else nodes[uid]

    def _release(self, results: Results) -> None:
        for result in results.values():
            for uid in result.nodes:
                self._pool.release(uid)
            result.fitting |= result.nodes.keys()
            result.nodes.clear()


def _shortfall(group: GroupTree, scheduled: int, remaining: int) -> str:
    """Why the minimum of a group is out of reach; empty if it is not."""
    if scheduled + remaining >= group.minimum:
        return ""
    return f"minCount ({group.minimum}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"


def _complete(group: GroupTree, results: Results, parent: GroupResult) -> None:
    """What was not tried, or fits although its parent does not, has the result of its parent."""
    own = results.get(group.unit)
    if own is None or (parent.why and not own.why):
        own = results[group.unit] = GroupResult(parent.origin, parent.why)
    for child in group.children:
        _complete(child, results, own)
