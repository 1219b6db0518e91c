"""Facts: what a preview knows of the cluster beyond what a pass observes. They are read once, and only where the plan needs them."""

from collections.abc import Mapping

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.observed import Live
from engine.plan import Wait
from resources.domains.capacity import NodeCapacity


class TrialResult(Struct, frozen=True, eq=False):
    """What the API server said about the operations of the next pass when it checked them without storing them."""

    refused: Mapping[ResourceId, tuple[Wait, ...]] = field(default_factory=dict)
    """Root -> the operations that it would refuse, each with its message."""
    notes: Mapping[ResourceId, tuple[str, ...]] = field(default_factory=dict)
    """Root -> what could not be tried, and why."""


NO_TRIAL = TrialResult()


class Facts(Struct, frozen=True, eq=False):
    """Everything that is told besides the plan and its forecast. What is not known is absent, and is not told."""

    quotas: tuple[Live, ...] = ()
    """The ResourceQuotas of the namespaces in which objects are to be created."""
    capacities: Mapping[str, NodeCapacity] = field(default_factory=dict)
    """Key of the kind of a fabric's domains -> the nodes that can be in one; only fabrics that sets request domains of."""
    rejected: Mapping[ResourceId, tuple[str, ...]] = field(default_factory=dict)
    """Root in a manifest that admission rejects -> its faults, each with file and line."""
    trial: TrialResult = NO_TRIAL
    base: Mapping[ResourceId, tuple[str, ...]] = field(default_factory=dict)
    """Root -> remarks about the manifests with which the change is compared."""
    notices: tuple[str, ...] = ()
    """What is missing in the cluster or could not be read, about no root in particular."""


NO_FACTS = Facts()
