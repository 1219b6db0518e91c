"""Facts: what a preview knows of the cluster beyond what a pass observes. They are read once, and only where the plan needs them."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from engine.answer import TrialOutcome
from engine.forecast.cluster_model import Assumption
from engine.forecast.simulation import MAX_WORK
from engine.guard import Limits
from engine.ids import ResourceId
from engine.intent import NOTHING, Intent
from engine.observed import Live, World
from engine.plan import Wait
from engine.resource import Body
from engine.tick import Plans
from resources.base import kinds
from resources.cluster_model.references import NOTHING_ABSENT, Words
from resources.domains.capacity import NodeCapacity
from resources.model.membership import effective_body
from resources.placement.cluster_room import NO_DEFAULTS, ClusterRoom, Defaults
from resources.ports.configuration import Configuration


class TrialResult(Struct, frozen=True, eq=False):
    """What the API server said about the operations of the next pass when it checked them without storing them."""

    refused: Mapping[ResourceId, tuple[Wait, ...]] = field(default_factory=dict)
    """Root -> the objects that it would refuse, each with its message."""
    notes: Mapping[ResourceId, tuple[str, ...]] = field(default_factory=dict)
    """Root -> what could not be tried, and why."""
    is_forbidden: bool = False
    """Whether pods could not be tried because the right to create them is missing."""
    tried: tuple[tuple[ResourceId, Body, TrialOutcome], ...] = ()
    """Each root with a pod of one of its new components, and what was answered about that."""


NO_TRIAL: Final = TrialResult()


class RoomFacts(Struct, frozen=True, eq=False):
    """The nodes with what runs on them, or why they are not known."""

    cluster: ClusterRoom | None = None
    """None: not known, or not asked for. Which nodes have a place in a domain is said by `Facts.capacities`."""
    capacity: Assumption = Assumption.CAPACITY
    """What is assumed of new pods if the nodes are not known."""
    unchecked: str = ""
    """Why the nodes are not known, as a clause; empty if nothing needs them, or if there is no cluster."""


NO_ROOM: Final = RoomFacts()
NEW_NODES: Final = RoomFacts(capacity=Assumption.NEW_NODES)
"""Whatever room there is, nodes are added for pods that need them."""


class Facts(Struct, frozen=True, eq=False):
    """Everything that is shown besides the plan and its forecast. What is not known is absent, and is not shown."""

    quotas: tuple[Live, ...] = ()
    """The ResourceQuotas of the namespaces in which objects are to be created."""
    defaults: Defaults | None = NO_DEFAULTS
    """What the LimitRanges of these namespaces write into new pods; None: they could not be listed."""
    capacities: Mapping[str, NodeCapacity] = field(default_factory=dict)
    """Key of the kind of a fabric's domains -> the nodes that can be in one; only fabrics that sets request domains of."""
    room: RoomFacts = NO_ROOM
    """The nodes, where the forecast creates pods or lets some wait for room."""
    rejected: Mapping[ResourceId, tuple[str, ...]] = field(default_factory=dict)
    """Root in a manifest that admission rejects -> its faults, each with file and line."""
    trial: TrialResult = NO_TRIAL
    components: TrialResult = NO_TRIAL
    """The same about new Deployments and LeaderWorkerSets of graphs, and about their pods."""
    component_pods: Mapping[ResourceId, tuple[Live, ...]] | None = None
    """Component that has missed its deadline -> its pods; absent: they could not be read. None: they were not looked at."""
    assumes_nodes: bool = False
    """Whether nodes are added for these pods."""
    unused_adapters: Mapping[ResourceId, tuple[str, ...]] = field(default_factory=dict)
    """Graph that has scaling adapters -> those that name it and have no effect, also those that users made."""
    base: Mapping[ResourceId, tuple[str, ...]] = field(default_factory=dict)
    """Root -> remarks about the manifests with which the change is compared."""
    notices: tuple[str, ...] = ()
    """What is missing in the cluster or could not be read, about no root in particular."""


NO_FACTS: Final = Facts()


class FirstPass(Struct, frozen=True, eq=False, dict=True):
    """The observed world, the plans for it, and what they and their forecast are made with."""

    now: datetime
    world: World
    planned: Plans
    configuration: Configuration
    intent: Intent = NOTHING
    limits: Limits = Limits()
    passes: int | None = None
    """How many passes a forecast simulates at most; None: as many as `work` and `MAX_PASSES` allow."""
    work: float = MAX_WORK
    """How much work a forecast may be, if its passes are not counted."""
    is_record: bool = False
    """Whether it is of a record of a cluster, or of none: an object that is not in it may exist."""
    component_pods: Mapping[ResourceId, tuple[Live, ...]] = field(default_factory=dict)
    """Component that is not ready -> its pods of the newest template; absent: they were not read."""
    device_classes: frozenset[str] | None = None
    """The names of the DeviceClasses that exist; None: they are not known, or no claim asks for one."""
    absent: Mapping[ResourceId, Words] = NOTHING_ABSENT
    """The PersistentVolumeClaims that pods of sets name and that no new pod can use, as far as they could be listed, each with why."""
    forbidden: frozenset[str] = frozenset()
    """The resources that the user may not list, although this pass would have them."""
    assumes_secrets: bool = False
    """Whether Secrets could not be listed, and are taken to be as they should be."""

    @cached_property
    def listed(self) -> frozenset[str]:
        """The kinds of objects that pods refer to and that are all known: without fabrics no claims are listed, and a list may fail."""
        if self.is_record:
            return frozenset()
        claims = {kinds.RESOURCE_CLAIM.name} if self.configuration.fabrics else set[str]()
        return frozenset({kinds.RESOURCE_CLAIM_TEMPLATE.name, *claims} - self.world.incomplete.keys() - self.world.unlisted.keys())

    @cached_property
    def sets(self) -> list[tuple[ResourceId, Body]]:
        """The sets that are not being deleted, each as it is proposed or stored."""
        return [
            (observed.root.id, effective_body(observed, self.configuration))
            for observed in self.world.roots
            if observed.root.id.kind == kinds.PODCLIQUESET.name and observed.root.deleting_since is None
        ]
