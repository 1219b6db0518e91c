"""ClusterRoom: the nodes of a cluster, and what pods use of them, in as few values as judging new pods needs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.resource import Body
from resources.base.fields import mapping, mappings

LOWEST: Final = -(2**31)
"""No pod has a lower priority."""
CRITICAL: Final[Mapping[str, int]] = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The PriorityClasses that every cluster has. Those of users are below 1,000,000,000."""


CONTAINERS: Final = ("containers", "initContainers")


class LimitDefaults(Struct, frozen=True, eq=False):
    """What the API server writes into the containers of new pods of one namespace that do not say it."""

    limits: Mapping[str, Any] = field(default_factory=dict)
    requests: Mapping[str, Any] = field(default_factory=dict)

    def within(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The spec of a pod with them. A request that is not given is the limit that is: they come after that."""
        return {**spec, **{name: [self._container(each) for each in mappings(spec.get(name))] for name in CONTAINERS if name in spec}}

    def _container(self, container: Mapping[str, Any]) -> Mapping[str, Any]:
        resources = mapping(container.get("resources"))
        limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
        completed = {"limits": {**self.limits, **limits}, "requests": {**self.requests, **limits, **requests}}
        return {**container, "resources": {**resources, **completed}}


Defaults = Mapping[str, LimitDefaults]
"""Namespace -> what containers get there; namespaces where they get nothing are absent."""
NO_DEFAULTS: Final[Defaults] = MappingProxyType({})


class RoomNode(Struct, frozen=True, eq=False):
    """A node."""

    name: str
    labels: Mapping[str, str]
    body: Body
    """The object with only its name, its labels, whether it is cordoned, its taints, and its condition Ready."""
    allocatable: Mapping[str, int]
    """Name of a resource -> thousandths of it."""


class NodeUsage(Struct, frozen=True, eq=False):
    """What the pods of one namespace with one priority use of a node."""

    namespace: str
    priority: int
    requests: Mapping[str, int]


def usage_of(pod: Body, requests: Mapping[str, int]) -> NodeUsage:
    """What one pod uses of its node."""
    return NodeUsage(str(pod["metadata"].get("namespace", "")), priority_of(mapping(pod.get("spec"))), requests)


def priority_of(spec: Mapping[str, Any]) -> int:
    """The priority of a pod that exists; the lowest if it has a PriorityClass, and the server did not write down which priority that is."""
    priority = spec.get("priority")
    if isinstance(priority, int):
        return priority
    return LOWEST if spec.get("priorityClassName") else 0


class LabelledPods(Struct, frozen=True):
    """Pods on one node that affinity may select."""

    node: str
    namespace: str
    labels: tuple[tuple[str, str], ...]
    """Their labels with keys that were asked for."""


class LeavingPod(Struct, frozen=True, eq=False):
    """A pod that leaves its node in a forecast: at once, or when another one, which takes its place, is ready."""

    uid: str
    node: str
    body: Body
    """Its metadata, and the fields of its spec that say which priority it has."""
    requests: Mapping[str, int]


class ClusterRoom(Struct, frozen=True, eq=False):
    """The nodes, and the pods that are not those of the forecast."""

    nodes: tuple[RoomNode, ...]
    usage: Mapping[str, tuple[NodeUsage, ...]] = field(default_factory=dict)
    """Name of a node -> what pods use of it."""
    labelled: frozenset[LabelledPods] = frozenset()
    leaving: Mapping[ResourceId, tuple[LeavingPod, ...]] = field(default_factory=dict)
    """Component -> its pods that go one after another, as new ones become ready. They are not in `usage`."""
    vacated: tuple[LeavingPod, ...] = ()
    """The pods that leave their nodes at once. They are not in `usage` either."""
    priorities: Mapping[str, int] = field(default_factory=lambda: CRITICAL)
    """Name of a PriorityClass -> its value, of those that a pod has."""
    defaults: Defaults = NO_DEFAULTS
    """What LimitRanges write into new pods."""
    slots: Mapping[str, "FabricSlots"] = field(default_factory=dict)
    """Name of a fabric of which a node takes one pod -> its nodes. Fabrics whose nodes are not known are absent."""


class FabricSlots(Struct, frozen=True, eq=False):
    """The nodes that can run a pod of a fabric's domains, one each."""

    nodes: frozenset[str]
    taken: Mapping[str, str]
    """Name of a node -> the uid of the domain whose pod it runs."""
