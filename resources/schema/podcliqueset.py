"""PodCliqueSet: a workload of many roles, as its author writes it."""

from typing import Final, Literal

from pydantic import ConfigDict, Field

from resources.schema.autoscaling import AutoScaling
from resources.schema.meta import Condition, LastError, Root
from resources.schema.podclique import PodCliqueSpec
from resources.schema.sharing import GroupResourceSharing, ResourceClaimTemplate, ResourceSharing, SetResourceSharing
from resources.schema.topology import TopologyConstraint
from resources.schema.wire import BY_NAME, Duration, Int32, Int64, Rule, Seq, Timestamp, Wire, required, rules, silent

TERMINATION_DELAY: Final = "4h0m0s"
"""How long a breach is borne when nothing is said."""

StartupType = Literal["CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"]
UpdateType = Literal["RollingRecreate", "OnDelete"]
GangPhase = Literal["Pending", "Starting", "Running", "Failed", "Succeeded"]


def _no_pack_domain(holder: str, present: str) -> Rule:
    """New workloads must not use the deprecated field; those that do already may be changed."""
    return Rule(
        cel=f"oldSelf.hasValue() || !({present})",
        message="packDomain is deprecated and cannot be used on new workloads; use pack.required",
        reason="FieldValueForbidden",
        field=f".spec.template.{holder}",
        holds=lambda _: True,
        on_create_only=True,
    )


def _any_pack_domain(holder: str) -> str:
    return (
        f"has(self.spec.template.{holder}) && "
        f"self.spec.template.{holder}.exists(part, has(part.topologyConstraint) && has(part.topologyConstraint.packDomain))"
    )


CREATE_RULES: Final = (
    _no_pack_domain(
        "topologyConstraint.packDomain",
        "has(self.spec.template.topologyConstraint) && has(self.spec.template.topologyConstraint.packDomain)",
    ),
    _no_pack_domain("cliques", _any_pack_domain("cliques")),
    _no_pack_domain("podCliqueScalingGroups", _any_pack_domain("podCliqueScalingGroups")),
)


class UpdateStrategy(Wire):
    """How changed templates reach the pods."""

    type: UpdateType = "RollingRecreate"
    """RollingRecreate replaces one replica after the other; OnDelete leaves that to whoever deletes pods."""


class HeadlessServiceConfig(Wire):
    """The service that gives the pods their DNS names."""

    publish_not_ready_addresses: bool = required(True)
    """Whether pods have a DNS name before they are ready."""


class CliqueTemplateSpec(PodCliqueSpec):
    """What the pods of a clique are, and how many, where its author may leave out what a clique of its own must have."""

    role_name: str = silent("")
    """The role that these pods play in the workload; no two cliques of a set share one, and none at all is a role too."""
    replicas: Int32 = silent(1)
    """How many pods in each replica of the set."""


class CliqueTemplate(Wire):
    """One clique of every replica."""

    name: str
    """What it is called within the set."""
    labels: dict[str, str] = {}
    """Labels for the clique and its pods."""
    annotations: dict[str, str] = {}
    """Annotations for the clique and its pods."""
    topology_constraint: TopologyConstraint | None = None
    """How close together its pods must be scheduled."""
    resource_sharing: Seq[ResourceSharing] = ()
    """Claims that its pods share."""
    spec: CliqueTemplateSpec
    """What its pods are, and how many."""


class ScalingGroupConfig(Wire):
    """Cliques of every replica that are scaled together."""

    name: str
    """What the group is called within the set."""
    clique_names: Seq[str]
    """The members."""
    annotations: dict[str, str] = {}
    """Annotations for the group."""
    replicas: Int32 = 1
    """How many replicas of the group to begin with."""
    min_available: Int32 = 1
    """How few replicas still make the group useful: so many are scheduled as one gang with the rest of the set's replica."""
    scale_config: AutoScaling | None = None
    """Scales the group by itself."""
    resource_sharing: Seq[GroupResourceSharing] = ()
    """Claims that its pods share."""
    topology_constraint: TopologyConstraint | None = None
    """How close together the pods of one replica must be scheduled."""


class Template(Wire):
    """What every replica is made of."""

    cliques: Seq[CliqueTemplate] = Field(json_schema_extra=BY_NAME)
    """The roles, in starting order where there is one."""
    clique_startup_type: StartupType = "CliqueStartupTypeAnyOrder"
    """Whether cliques start in any order, in the order of the list, or after those that startsAfter names."""
    priority_class_name: str = ""
    """The priority of the workload's gangs and pods."""
    headless_service_config: HeadlessServiceConfig | None = None
    """The service that gives the pods their DNS names."""
    topology_constraint: TopologyConstraint | None = None
    """How close together the pods of one replica must be scheduled."""
    termination_delay: Duration | None = None
    """How long fewer pods than minAvailable are borne before the gang is recycled, such as 30s or 4h (the default)."""
    resource_claim_templates: Seq[ResourceClaimTemplate] = ()
    """Claim templates that resourceSharing entries may name."""
    resource_sharing: Seq[SetResourceSharing] = ()
    """Claims that pods of the set share."""
    pod_clique_scaling_groups: Seq[ScalingGroupConfig] = ()
    """Cliques that are scaled together."""


class PodCliqueSetSpec(Wire):
    """The workload, and how often."""

    replicas: Int32 = 0
    """How many replicas of the whole workload."""
    update_strategy: UpdateStrategy | None = None
    """How changed templates reach the pods; by default RollingRecreate."""
    template: Template
    """What every replica is made of."""


class ReplicaUpdate(Wire):
    """A replica that is being changed."""

    replica_index: Int32
    """Which one."""
    update_started_at: Timestamp | None = None
    """When it began."""
    update_ended_at: Timestamp | None = None
    """When it was through."""


class PodCliqueSetUpdate(Wire):
    """How far the latest change of the templates has come."""

    update_started_at: Timestamp | None = None
    """When it began."""
    update_ended_at: Timestamp | None = None
    """When it was through."""
    updated_pod_cliques_count: Int32 = 0
    """How many cliques outside of groups are through."""
    total_pod_cliques_count: Int32 = 0
    """How many cliques outside of groups there are."""
    updated_pod_clique_scaling_groups_count: Int32 = 0
    """How many scaling groups are through."""
    total_pod_clique_scaling_groups_count: Int32 = 0
    """How many scaling groups there are."""
    currently_updating: Seq[ReplicaUpdate] = ()
    """The replicas that are being changed; at most one."""


class GangStatus(Wire):
    """What became of one gang."""

    name: str
    """The PodGang's name."""
    phase: GangPhase
    """How far it is."""
    conditions: Seq[Condition] = ()
    """QueryResults about the gang as a whole."""


class PodCliqueSetStatus(Wire):
    """What became of it."""

    observed_generation: Int64 | None = None
    """The metadata.generation that this status is about."""
    conditions: Seq[Condition] = ()
    """QueryResults about the set as a whole."""
    last_errors: Seq[LastError] = ()
    """What went wrong in the latest pass."""
    replicas: Int32 = silent(0)
    """How many replicas there are."""
    updated_replicas: Int32 = required(0)
    """How many of them have the current templates."""
    available_replicas: Int32 = required(0)
    """How many of them have enough ready pods everywhere."""
    hpa_pod_selector: str | None = None
    """The label selector by which an autoscaler finds the pods."""
    pod_gang_statuses: Seq[GangStatus] = ()
    """What became of the gangs."""
    current_generation_hash: str | None = None
    """The hash of all pod templates."""
    update_progress: PodCliqueSetUpdate | None = None
    """How far the latest change has come."""


class PodCliqueSet(Root):
    """PodCliqueSet is a workload of several roles: cliques of pods, scheduled as gangs, scaled alone or in groups."""

    model_config = ConfigDict(json_schema_extra=rules(*CREATE_RULES))

    spec: PodCliqueSetSpec
    """The workload, and how often."""
    status: PodCliqueSetStatus | None = None
    """What became of it."""
