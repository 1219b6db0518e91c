"""PodGang: what a scheduler must place as a whole or not at all."""

from resources.schema.meta import Condition, Root
from resources.schema.wire import Int32, Seq, Wire


class NamespacedName(Wire):
    """An object of a known kind."""

    namespace: str
    """Its namespace."""
    name: str
    """Its name."""


class PackConstraint(Wire):
    """Within which node label's value to stay."""

    required: str | None = None
    """A node label key: all pods land on nodes with one value of it, or none is scheduled."""
    preferred: str | None = None
    """A node label key: all pods land on nodes with one value of it, if that can be had."""


class GangTopologyConstraint(Wire):
    """How close together the pods must be scheduled."""

    pack_constraint: PackConstraint | None = None
    """Within which node label's value to stay."""


class PodGroup(Wire):
    """Pods of one clique within the gang."""

    name: str
    """The clique's name."""
    pod_references: Seq[NamespacedName]
    """The pods."""
    min_replicas: Int32
    """How many of them must be scheduled for the gang to be worth it."""
    topology_constraint: GangTopologyConstraint | None = None
    """How close together they must be."""


class TopologyGroup(Wire):
    """Pod groups with a constraint in common."""

    name: str
    """What it is called."""
    pod_group_names: Seq[str]
    """The pod groups."""
    topology_constraint: GangTopologyConstraint | None = None
    """How close together they must be."""


class PodGangSpec(Wire):
    """The pods, and what placing them takes."""

    podgroups: Seq[PodGroup]
    """The gang's parts, one per clique."""
    topology_constraint: GangTopologyConstraint | None = None
    """How close together all of them must be."""
    topology_constraint_group_configs: Seq[TopologyGroup] = ()
    """How close together some of them must be."""
    priority_class_name: str | None = None
    """The priority of the gang."""
    reuse_reservation_ref: NamespacedName | None = None
    """A gang whose place this one may take over."""


class PodGangStatus(Wire):
    """What became of it."""

    phase: str
    """How far it is: Pending, Starting or Running."""
    conditions: Seq[Condition] = ()
    """QueryResults about the gang as a whole."""
    placement_score: float | None = None
    """How well it was placed: 1 is as good as can be."""


class PodGang(Root):
    """PodGang is a set of pods that are scheduled together or not at all."""

    spec: PodGangSpec
    """The pods, and what placing them takes."""
    status: PodGangStatus | None = None
    """What became of it."""
