"""PodGang: pods that a scheduler places all together or not at all."""

from resources.schema.meta import ApiObject, Condition
from resources.schema.wire import Int32, Seq, Wire


class NamespacedName(Wire):
    """A reference to an object of a known kind."""

    namespace: str
    """The namespace."""
    name: str
    """The name."""


class PackConstraint(Wire):
    """The node label within one value of which the pods are placed."""

    required: str | None = None
    """A node label key: all pods are placed on nodes with the same value of it, or none is scheduled."""
    preferred: str | None = None
    """A node label key: all pods are placed on nodes with the same value of it, if possible."""


class GangTopologyConstraint(Wire):
    """A topology constraint."""

    pack_constraint: PackConstraint | None = None
    """The node label within one value of which the pods are placed."""


class PodGroup(Wire):
    """Pods of one clique within the gang."""

    name: str
    """The clique's name."""
    pod_references: Seq[NamespacedName]
    """The pods."""
    min_replicas: Int32
    """The minimum of pods of this group that must be scheduled for the gang to be scheduled."""
    topology_constraint: GangTopologyConstraint | None = None
    """The topology constraint of these pods."""


class TopologyGroup(Wire):
    """Pod groups with a common constraint."""

    name: str
    """The name of the constraint."""
    pod_group_names: Seq[str]
    """The pod groups."""
    topology_constraint: GangTopologyConstraint | None = None
    """The topology constraint of these pods."""


class PodGangSpec(Wire):
    """The pods and their constraints."""

    podgroups: Seq[PodGroup]
    """The pod groups, one for each clique."""
    topology_constraint: GangTopologyConstraint | None = None
    """The topology constraint of all pods."""
    topology_constraint_group_configs: Seq[TopologyGroup] = ()
    """Topology constraints of some pod groups together."""
    priority_class_name: str | None = None
    """The priority class of the gang."""
    reuse_reservation_ref: NamespacedName | None = None
    """A gang whose reservation this one may reuse."""


class PodGangStatus(Wire):
    """The observed state."""

    phase: str
    """The phase: Pending, Starting, Running or Succeeded."""
    conditions: Seq[Condition] = ()
    """The conditions of the gang."""
    placement_score: float | None = None
    """How well the gang was placed; 1 is the best."""


class PodGang(ApiObject):
    """PodGang is a set of pods that are scheduled together or not at all."""

    spec: PodGangSpec
    """The pods and their constraints."""
    status: PodGangStatus | None = None
    """The observed state."""
