"""Topology: which pods must lie close together, and what "close" means on the nodes of a cluster."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from resources.schema.meta import Condition, Root
from resources.schema.wire import Int64, Rule, Seq, Wire, checked, rules, silent

Domain = Annotated[str, Field(min_length=1, max_length=63, pattern="^[a-z][a-z0-9-]*$")]
LABEL_KEY = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"

PACK_RULES = (
    Rule(
        cel="has(self.required) || has(self.preferred)",
        message="pack must specify at least one of required or preferred",
        reason="FieldValueRequired",
        field="",
        holds=lambda pack: pack.required is not None or pack.preferred is not None,
    ),
)
CONSTRAINT_RULES = (
    Rule(
        cel="has(self.pack) || has(self.packDomain)",
        message="topologyConstraint must specify pack or deprecated packDomain",
        reason="FieldValueRequired",
        field=".pack",
        holds=lambda constraint: constraint.pack is not None or constraint.pack_domain is not None,
    ),
    Rule(
        cel="!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
        message="must not set both pack.required and deprecated packDomain",
        reason="FieldValueInvalid",
        field=".pack.required",
        holds=lambda constraint: constraint.pack_domain is None or constraint.pack is None or constraint.pack.required is None,
    ),
)


class Pack(Wire):
    """Into which domain to pack."""

    model_config = ConfigDict(json_schema_extra=rules(*PACK_RULES))

    required: Domain | None = None
    """All pods lie in one such domain, or none is scheduled."""
    preferred: Domain | None = None
    """All pods lie in one such domain if that can be had."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        checked(self, PACK_RULES)
        return self


class TopologyConstraint(Wire):
    """How close together the pods must be scheduled."""

    model_config = ConfigDict(json_schema_extra=rules(*CONSTRAINT_RULES))

    topology_name: str | None = None
    """The ClusterTopologyBinding whose domains are meant."""
    pack: Pack | None = None
    """Into which domain to pack."""
    pack_domain: Domain | None = None
    """Deprecated: use pack.required."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        checked(self, CONSTRAINT_RULES)
        return self


class Level(Wire):
    """One level of the topology."""

    domain: Domain
    """What workloads call it, such as zone, rack or host."""
    key: Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL_KEY)]
    """The node label whose value tells the domains apart."""


class SchedulerTopology(Wire):
    """A scheduler's own object for the same topology."""

    scheduler_name: str
    """The scheduler."""
    topology_reference: str
    """The name of its object."""


class ClusterTopologyBindingSpec(Wire):
    """The levels of a cluster's topology."""

    levels: Annotated[Seq[Level], Field(min_length=1)]
    """From the broadest to the narrowest."""
    scheduler_topology_bindings: Seq[SchedulerTopology] = ()
    """Objects that are managed by somebody else; for schedulers not named here we keep one."""


class SchedulerTopologyStatus(Wire):
    """Whether a scheduler's own object says the same."""

    scheduler_name: str
    """The scheduler."""
    topology_reference: str
    """The name of its object."""
    in_sync: bool
    """Whether its levels are ours."""
    scheduler_backend_topology_observed_generation: Int64 = silent(0)
    """The generation of that object which was compared."""
    message: str = ""
    """Why it is not in sync."""


class ClusterTopologyBindingStatus(Wire):
    """What was seen of the binding."""

    observed_generation: Int64 = silent(0)
    """The metadata.generation that this status is about."""
    conditions: Seq[Condition] = ()
    """QueryResults about the binding as a whole."""
    scheduler_topology_statuses: Seq[SchedulerTopologyStatus] = ()
    """One entry per scheduler."""


class ClusterTopologyBinding(Root):
    """ClusterTopologyBinding gives names to the levels of a cluster's topology and binds them to node labels."""

    spec: ClusterTopologyBindingSpec
    """The levels."""
    status: ClusterTopologyBindingStatus | None = None
    """What was seen."""
