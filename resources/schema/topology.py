"""Topology: topology constraints, and ClusterTopologyBinding: the topology levels of a cluster."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from resources.schema.meta import ApiObject, Condition
from resources.schema.wire import Int64, Rule, Seq, Wire, check_rules, rules, silent

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
    """The topology domain into which pods are packed."""

    model_config = ConfigDict(json_schema_extra=rules(*PACK_RULES))

    required: Domain | None = None
    """All pods are placed in the same domain of this level, or none is scheduled."""
    preferred: Domain | None = None
    """All pods are placed in the same domain of this level, if possible."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check_rules(self, PACK_RULES)
        return self


class TopologyConstraint(Wire):
    """A topology constraint."""

    model_config = ConfigDict(json_schema_extra=rules(*CONSTRAINT_RULES))

    topology_name: str | None = None
    """The name of the ClusterTopologyBinding that defines the domains."""
    pack: Pack | None = None
    """The topology domain into which pods are packed."""
    pack_domain: Domain | None = None
    """Deprecated: use pack.required."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        check_rules(self, CONSTRAINT_RULES)
        return self


class TopologyLevel(Wire):
    """One level of the topology."""

    domain: Domain
    """The name of the level in workloads, such as zone, rack or host."""
    key: Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL_KEY)]
    """The node label whose values distinguish the domains of the level."""


class SchedulerTopology(Wire):
    """A scheduler's topology object, managed by others."""

    scheduler_name: str
    """The name of the scheduler."""
    topology_reference: str
    """The name of the scheduler's topology object."""


class ClusterTopologyBindingSpec(Wire):
    """The levels of a cluster's topology."""

    levels: Annotated[Seq[TopologyLevel], Field(min_length=1)]
    """The levels, from the broadest to the narrowest."""
    scheduler_topology_bindings: Seq[SchedulerTopology] = ()
    """Topology objects that are managed by others; for every other scheduler back end the operator manages one."""


class SchedulerTopologyStatus(Wire):
    """Whether a scheduler's topology object has the same levels."""

    scheduler_name: str
    """The name of the scheduler."""
    topology_reference: str
    """The name of the scheduler's topology object."""
    in_sync: bool
    """Whether its levels are those of the binding."""
    scheduler_backend_topology_observed_generation: Int64 = silent(0)
    """The generation of the topology object that was compared."""
    message: str = ""
    """Why it is not in sync."""


class ClusterTopologyBindingStatus(Wire):
    """The observed state of the binding."""

    observed_generation: Int64 = silent(0)
    """The metadata.generation that this status refers to."""
    conditions: Seq[Condition] = ()
    """The conditions of the binding."""
    scheduler_topology_statuses: Seq[SchedulerTopologyStatus] = ()
    """One entry for each scheduler."""


class ClusterTopologyBinding(ApiObject):
    """ClusterTopologyBinding gives names to the levels of a cluster's topology and binds them to node labels."""

    spec: ClusterTopologyBindingSpec
    """The levels of the topology."""
    status: ClusterTopologyBindingStatus | None = None
    """The observed state."""
