"""PodCliqueSet: a workload of several roles."""

from typing import Final, Literal

from pydantic import ConfigDict, Field

from resources.schema.child_kinds import AutoScaling, PodCliqueSpec
from resources.schema.meta import ApiObject, ClaimTemplateSpec, Condition, LastError
from resources.schema.topology import TopologyConstraint
from resources.schema.wire import BY_NAME, Duration, Int32, Int64, Rule, Seq, Timestamp, Wire, required, rules, silent

TERMINATION_DELAY: Final = "4h0m0s"
"""The default of terminationDelay."""


class ResourceClaimTemplate(Wire):
    """A template of resource claims within the set."""

    name: str
    """The name, to which resourceSharing entries refer."""
    template_spec: ClaimTemplateSpec
    """The content of the claims that are created from it."""


class ResourceSharing(Wire):
    """A resource claim that pods share."""

    name: str
    """The name of a template in resourceClaimTemplates, or of a ResourceClaimTemplate."""
    namespace: str | None = None
    """The namespace of the ResourceClaimTemplate; by default the set's. Must be empty for a template in resourceClaimTemplates."""
    scope: Literal["AllReplicas", "PerReplica"]
    """One claim for all replicas, or one for each replica."""


class CliqueFilter(Wire):
    """Restricts sharing to the cliques named here."""

    child_clique_names: Seq[str] = ()
    """The names of cliques."""


class Filter(CliqueFilter):
    """Restricts sharing to the cliques named here and the cliques of the groups named here."""

    child_scaling_group_names: Seq[str] = ()
    """The names of scaling groups."""


class GroupResourceSharing(ResourceSharing):
    """A resource claim that pods of a scaling group share."""

    filter: CliqueFilter | None = None
    """Which cliques share it; by default all."""


class SetResourceSharing(ResourceSharing):
    """A resource claim that pods of the set share."""

    filter: Filter | None = None
    """Which cliques share it; by default all."""


StartupType = Literal["CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"]
UpdateType = Literal["RollingRecreate", "OnDelete"]
ON_DELETE: Final = "OnDelete"
"""The update strategy with which users replace pods themselves."""
GangPhase = Literal["Pending", "Starting", "Running", "Failed", "Succeeded"]


def _no_pack_domain(holder: str, present: str) -> Rule:
    """New workloads must not use the deprecated field; existing ones may keep it."""
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
    """How pods are updated when their template changes."""

    type: UpdateType = "RollingRecreate"
    """RollingRecreate replaces one replica after the other; OnDelete replaces a pod only after it was deleted."""


class RollingUpdate(Wire):
    """How the pods of one clique, or the replicas of one scaling group, are updated with RollingRecreate."""

    max_unavailable: Int32 | None = None
    """The largest number of pods, or of replicas of the group, that are unavailable at a time during an update; by default 1."""
    progress_deadline: Duration | None = None
    """The time without progress, such as 10m, after which the condition UpdateInProgress is Unknown; without it, it never is."""


class HeadlessServiceConfig(Wire):
    """The headless Service, which gives the pods their DNS names."""

    publish_not_ready_addresses: bool = required(True)
    """Whether pods have a DNS name before they are ready."""


class CliqueTemplateSpec(PodCliqueSpec):
    """The pod template and the number of pods of a clique in a set."""

    role_name: str = silent("")
    """The role of the pods in the workload; unique within the set."""
    replicas: Int32 = silent(1)
    """The number of pods in each replica of the set."""


class CliqueTemplate(Wire):
    """One clique of each replica."""

    name: str
    """The name of the clique within the set."""
    labels: dict[str, str] = {}
    """Labels of the clique and its pods."""
    annotations: dict[str, str] = {}
    """Annotations of the clique and its pods."""
    topology_constraint: TopologyConstraint | None = None
    """The topology constraint of its pods."""
    resource_sharing: Seq[ResourceSharing] = ()
    """Resource claims that its pods share."""
    rolling_update: RollingUpdate | None = None
    """How its pods are updated; only for cliques outside scaling groups."""
    spec: CliqueTemplateSpec
    """The pod template and the number of pods."""


class ScalingGroupConfig(Wire):
    """Cliques of each replica that are scaled together."""

    name: str
    """The name of the group within the set."""
    clique_names: Seq[str]
    """The names of the cliques in the group."""
    annotations: dict[str, str] = {}
    """Annotations of the group."""
    replicas: Int32 = 1
    """The initial number of replicas of the group."""
    min_available: Int32 = 1
    """The minimum of replicas: these are scheduled in one gang with the rest of the set's replica."""
    scale_config: AutoScaling | None = None
    """Autoscaling of the group."""
    resource_sharing: Seq[GroupResourceSharing] = ()
    """Resource claims that its pods share."""
    topology_constraint: TopologyConstraint | None = None
    """The topology constraint of the pods of one replica."""
    rolling_update: RollingUpdate | None = None
    """How its replicas are updated."""


class SetTemplate(Wire):
    """The template of each replica."""

    cliques: Seq[CliqueTemplate] = Field(json_schema_extra=BY_NAME)
    """The cliques. Their order is the start order if cliqueStartupType is CliqueStartupTypeInOrder."""
    clique_startup_type: StartupType = "CliqueStartupTypeAnyOrder"
    """Whether cliques start in any order, in the order of the list, or after the cliques in startsAfter."""
    priority_class_name: str = ""
    """The priority class of the gangs and pods."""
    headless_service_config: HeadlessServiceConfig | None = None
    """The headless Service, which gives the pods their DNS names."""
    topology_constraint: TopologyConstraint | None = None
    """The topology constraint of the pods of one replica."""
    termination_delay: Duration | None = None
    """How long a gang may be below minAvailable before it is terminated, such as 30s or 4h (the default)."""
    resource_claim_templates: Seq[ResourceClaimTemplate] = ()
    """Templates of resource claims, to which resourceSharing entries refer."""
    resource_sharing: Seq[SetResourceSharing] = ()
    """Resource claims that pods of the set share."""
    pod_clique_scaling_groups: Seq[ScalingGroupConfig] = ()
    """Groups of cliques that are scaled together."""


class PodCliqueSetSpec(Wire):
    """The template and the number of replicas."""

    replicas: Int32 = 0
    """The number of replicas of the whole workload."""
    update_strategy: UpdateStrategy | None = None
    """How pods are updated when their template changes; by default RollingRecreate."""
    template: SetTemplate
    """The template of each replica."""


class ReplicaUpdate(Wire):
    """A replica that is being updated."""

    replica_index: Int32
    """The index of the replica."""
    update_started_at: Timestamp | None = None
    """When the update began."""
    update_ended_at: Timestamp | None = None
    """When the update ended."""


class PodCliqueSetUpdate(Wire):
    """The progress of the latest update."""

    update_started_at: Timestamp | None = None
    """When the update began."""
    update_ended_at: Timestamp | None = None
    """When the update ended."""
    updated_pod_cliques_count: Int32 = 0
    """The number of cliques outside scaling groups that are updated."""
    total_pod_cliques_count: Int32 = 0
    """The number of cliques outside scaling groups."""
    updated_pod_clique_scaling_groups_count: Int32 = 0
    """The number of scaling groups that are updated."""
    total_pod_clique_scaling_groups_count: Int32 = 0
    """The number of scaling groups."""
    currently_updating: Seq[ReplicaUpdate] = ()
    """The replicas that are being updated; at most one."""


class GangStatus(Wire):
    """The state of one gang."""

    name: str
    """The name of the PodGang."""
    phase: GangPhase
    """The phase of the gang."""
    conditions: Seq[Condition] = ()
    """The conditions of the gang."""


class PodCliqueSetStatus(Wire):
    """The observed state."""

    observed_generation: Int64 | None = None
    """The metadata.generation that this status refers to."""
    conditions: Seq[Condition] = ()
    """The conditions of the set."""
    last_errors: Seq[LastError] = ()
    """The errors of the latest reconciliation."""
    replicas: Int32 = silent(0)
    """The number of replicas."""
    updated_replicas: Int32 = required(0)
    """The number of replicas that have the current templates."""
    available_replicas: Int32 = required(0)
    """The number of replicas whose cliques and groups all have their minimum of ready pods."""
    hpa_pod_selector: str | None = None
    """The label selector of the pods, for autoscalers."""
    pod_gang_statuses: Seq[GangStatus] = ()
    """The state of the gangs."""
    current_generation_hash: str | None = None
    """The generation hash: the hash of all pod templates."""
    update_progress: PodCliqueSetUpdate | None = None
    """The progress of the latest update."""


class PodCliqueSet(ApiObject):
    """PodCliqueSet is a workload of several roles: cliques of pods, scheduled as gangs, scaled alone or in groups."""

    model_config = ConfigDict(json_schema_extra=rules(*CREATE_RULES))

    spec: PodCliqueSetSpec
    """The template and the number of replicas."""
    status: PodCliqueSetStatus | None = None
    """The observed state."""
