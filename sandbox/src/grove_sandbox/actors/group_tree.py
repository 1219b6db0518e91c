"""GroupTree: kube-scheduler's PodGroups, each alone or in a tree below a CompositePodGroup, with the pods that refer to them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from grove_sandbox.actors.body import Body, Key, is_finished
from grove_sandbox.actors.gang import PodStates, SchedulingUnit
from grove_sandbox.actors.store import InformerStore
from grove_sandbox.product import get, kinds


class GroupTree(Struct, frozen=True):
    """A PodGroup, or a CompositePodGroup with what is below it."""

    unit: SchedulingUnit
    minimum: int
    """How many of its pods, or of the groups below it, must be placed together."""
    key: str
    """The label of nodes that must have the same value for all of its pods; empty: none."""
    children: tuple["GroupTree", ...] = ()
    pods: int = 0
    """How many pods refer to it, without those that are gated."""
    placed: tuple[Body, ...] = ()
    waiting: tuple[Body, ...] = ()
    """Its pods with and without a node, the latter without those that may not be placed now."""

    @property
    def is_composite(self) -> bool:
        """Whether it is a CompositePodGroup."""
        return self.unit.kind == kinds.COMPOSITE_POD_GROUP

    @property
    def is_complete(self) -> bool:
        """Whether as many pods, or groups that are complete, exist as it needs."""
        return (sum(child.is_complete for child in self.children) if self.is_composite else self.pods) >= self.minimum

    def leaves(self) -> Iterator["GroupTree"]:
        """The PodGroups in it."""
        if not self.is_composite:
            yield self
        for child in self.children:
            yield from child.leaves()


class GroupTrees:
    """The trees of all groups."""

    def __init__(
        self, states: PodStates, members: Callable[[SchedulingUnit], list[Body]], on_change: Callable[[SchedulingUnit], None]
    ) -> None:
        """`members` are the pods of a PodGroup; `on_change` is called with each PodGroup in a tree that has changed."""
        self._states, self._members, self._on_change = states, members, on_change
        self._below: dict[Key, dict[SchedulingUnit, None]] = {}
        """The groups by the CompositePodGroup that they name as their parent."""
        self.stores: Mapping[Any, InformerStore] = {
            kind: InformerStore(kind, self._listener(kind)) for kind in (kinds.POD_GROUP, kinds.COMPOSITE_POD_GROUP)
        }

    def tree(self, unit: SchedulingUnit) -> GroupTree | None:
        """The whole tree that a group is in; None as long as it or something above it does not exist."""
        root, seen = unit, {unit}
        while (parent := self._parent(root)) is not None:
            if parent in seen:
                return None
            root = parent
            seen.add(root)
        return self._read(root) if self._get(root) is not None else None

    def _get(self, unit: SchedulingUnit) -> Body | None:
        return self.stores[unit.kind].get(unit.namespace, unit.name)

    def _parent(self, unit: SchedulingUnit) -> SchedulingUnit | None:
        return _parent_of(self._get(unit))

    def _read(self, unit: SchedulingUnit) -> GroupTree:
        spec = (self._get(unit) or {})["spec"]
        levels = get(spec, ("schedulingConstraints", "topology")) or ()
        key = str(levels[0]["key"]) if levels else ""
        if unit.kind == kinds.COMPOSITE_POD_GROUP:
            children = tuple(map(self._read, self._below.get((unit.namespace, unit.name), ())))
            return GroupTree(unit, get(spec, ("schedulingPolicy", "gang", "minGroupCount")) or 1, key, children)
        pods = [pod for pod in self._members(unit) if not is_finished(pod)]
        placed, waiting = tuple(filter(self._states.is_placed, pods)), tuple(filter(self._states.is_schedulable, pods))
        minimum = get(spec, ("schedulingPolicy", "gang", "minCount")) or 1
        return GroupTree(unit, minimum, key, (), sum(not pod["spec"].get("schedulingGates") for pod in pods), placed, waiting)

    def _listener(self, kind: Any) -> Callable[[Key, Body | None, Body | None], None]:
        def on_group(key: Key, old: Body | None, new: Body | None) -> None:
            unit = SchedulingUnit(kind, *key)
            before, after = _parent_of(old), _parent_of(new)
            if before is not None and before != after:
                self._below[before.namespace, before.name].pop(unit, None)
            if after is not None:
                self._below.setdefault((after.namespace, after.name), {})[unit] = None
            # Conditions that we wrote are no reason to try again.
            if new is not None and (old is None or old["spec"] != new["spec"]):
                tree = self.tree(unit)
                for leaf in tree.leaves() if tree is not None else ():
                    self._on_change(leaf.unit)

        return on_group


def _parent_of(group: Body | None) -> SchedulingUnit | None:
    name = group["spec"].get("parentCompositePodGroupName") if group is not None else None
    return SchedulingUnit(kinds.COMPOSITE_POD_GROUP, group["metadata"]["namespace"], name) if group is not None and name else None
