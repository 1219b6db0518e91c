"""Child kinds: the models of PodCliques, PodCliqueScalingGroups and PodGangs, which the engine makes of a set."""

from pydantic import Field

from resources.schema.meta import ApiObject, Condition, LastError
from resources.schema.pod_spec_form import PodSpec
from resources.schema.wire import ATOMIC, Int32, Int64, LabelSelector, Quantity, Seq, Timestamp, Wire, required, silent


class MetricTarget(Wire):
    """The target value of a metric."""

    type: str
    """The type of the target: Utilization, Value or AverageValue."""
    average_utilization: Int32 | None = None
    """The average over all pods, in percent of their requests."""
    average_value: Quantity | None = None
    """The average over all pods, as a quantity."""
    value: Quantity | None = None
    """The value of the metric, as a quantity."""


class MetricIdentifier(Wire):
    """The metric."""

    name: str
    """The name."""
    selector: LabelSelector | None = None
    """A label selector for the metric."""


class ObjectReference(Wire):
    """The object that a metric describes."""

    api_version: str | None = None
    """The group and version."""
    kind: str
    """The kind."""
    name: str
    """The name."""


class ResourceMetric(Wire):
    """CPU or memory of the pods, relative to their requests."""

    name: str
    """The resource: cpu or memory."""
    target: MetricTarget
    """The target value."""


class ContainerResourceMetric(Wire):
    """CPU or memory of one container in every pod."""

    name: str
    """The resource: cpu or memory."""
    container: str
    """The container's name."""
    target: MetricTarget
    """The target value."""


class PodsMetric(Wire):
    """A metric of each pod, averaged."""

    metric: MetricIdentifier
    """The metric."""
    target: MetricTarget
    """The target value."""


class ObjectMetric(Wire):
    """A metric of another object."""

    described_object: ObjectReference
    """The object."""
    metric: MetricIdentifier
    """The metric."""
    target: MetricTarget
    """The target value."""


class ExternalMetric(Wire):
    """A metric from outside the cluster."""

    metric: MetricIdentifier
    """The metric."""
    target: MetricTarget
    """The target value."""


class Metric(Wire):
    """One metric to scale by. The field named after the type has the details."""

    type: str
    """The type of the metric: Resource, ContainerResource, Pods, Object or External."""
    resource: ResourceMetric | None = None
    """CPU or memory of whole pods."""
    container_resource: ContainerResourceMetric | None = None
    """CPU or memory of one container."""
    pods: PodsMetric | None = None
    """A metric of the pods."""
    object: ObjectMetric | None = None
    """A metric of another object."""
    external: ExternalMetric | None = None
    """A metric from outside the cluster."""


class AutoScaling(Wire):
    """The limits and the metrics of an autoscaler."""

    min_replicas: Int32 | None = None
    """The minimum of replicas; by default the value of replicas."""
    max_replicas: Int32
    """The maximum of replicas."""
    metrics: Seq[Metric] = Field(default=(), json_schema_extra=ATOMIC)
    """The metrics to scale by; by default the autoscaler's own (CPU)."""


class PodCliqueSpec(Wire):
    """The pod template and the number of pods."""

    role_name: str
    """The role of the pods in the workload; unique within the set."""
    pod_spec: PodSpec
    """The specification of the pods: a core/v1 PodSpec, used unchanged."""
    replicas: Int32 = silent(1, required=True)
    """The number of pods."""
    min_available: Int32 | None = None
    """The minimum of pods: fewer are not scheduled, and falling below is a breach that leads to gang termination. By default all pods."""
    starts_after: Seq[str] = ()
    """The cliques whose pods must be ready before these pods start: clique names in a PodCliqueSet, PodClique names in a PodClique."""
    auto_scaling_config: AutoScaling | None = None
    """Autoscaling of the clique; only for cliques outside scaling groups."""


class PodsUpdating(Wire):
    """The ready pods that are being replaced."""

    current: str
    """The pod that is being replaced."""
    completed: Seq[str] = ()
    """The pods that were replaced."""


class PodCliqueUpdate(Wire):
    """The progress of the latest update."""

    update_started_at: Timestamp | None = None
    """When the update began."""
    update_ended_at: Timestamp | None = None
    """When the update ended."""
    pod_clique_set_generation_hash: str
    """The generation hash of the set that the update leads to."""
    pod_template_hash: str
    """The hash of the pod template that the update leads to."""
    ready_pods_selected_to_update: PodsUpdating | None = None
    """The ready pods that are being replaced."""


class PodCliqueStatus(Wire):
    """The observed state."""

    observed_generation: Int64 | None = None
    """The metadata.generation that this status refers to."""
    last_errors: Seq[LastError] = ()
    """The errors of the latest reconciliation."""
    replicas: Int32 = silent(0)
    """The number of pods."""
    ready_replicas: Int32 = required(0)
    """The number of pods that are ready."""
    updated_replicas: Int32 = required(0)
    """The number of pods that have the current template."""
    schedule_gated_replicas: Int32 = required(0)
    """The number of pods with a scheduling gate."""
    scheduled_replicas: Int32 = required(0)
    """The number of pods that are scheduled."""
    hpa_pod_selector: str | None = None
    """The label selector of the pods, for autoscalers."""
    conditions: Seq[Condition] = ()
    """The conditions of the clique."""
    current_pod_clique_set_generation_hash: str | None = None
    """The generation hash of the set that all pods have."""
    current_pod_template_hash: str | None = None
    """The hash of the pod template that all pods have."""
    update_progress: PodCliqueUpdate | None = None
    """The progress of the latest update."""


class PodClique(ApiObject):
    """PodClique is a number of pods of one role, created from one template."""

    spec: PodCliqueSpec
    """The pod template and the number of pods."""
    status: PodCliqueStatus | None = None
    """The observed state."""


class ScalingGroupSpec(Wire):
    """The cliques and the number of replicas."""

    replicas: Int32 = required(1)
    """The number of replicas of the group; each has one PodClique for each name."""
    min_available: Int32 = 1
    """The minimum of replicas: these are scheduled in one gang with the rest of the set's replica."""
    clique_names: Seq[str]
    """The names of the cliques in the PodCliqueSet."""


class ReplicasUpdating(Wire):
    """The ready replicas that are being replaced."""

    current: Int32
    """The index of the replica that is being replaced."""
    completed: Seq[Int32] = ()
    """The indices of the replicas that were replaced."""


class ScalingGroupUpdate(Wire):
    """The progress of the latest update."""

    update_started_at: Timestamp
    """When the update began."""
    update_ended_at: Timestamp | None = None
    """When the update ended."""
    pod_clique_set_generation_hash: str
    """The generation hash of the set that the update leads to."""
    updated_pod_cliques_count: Int32 = silent(0)
    """The number of cliques that are updated."""
    total_pod_cliques_count: Int32 = silent(0)
    """The number of cliques."""
    ready_replica_indices_selected_to_update: ReplicasUpdating | None = None
    """The ready replicas that are being replaced."""


class ScalingGroupStatus(Wire):
    """The observed state."""

    observed_generation: Int64 | None = None
    """The metadata.generation that this status refers to."""
    last_errors: Seq[LastError] = ()
    """The errors of the latest reconciliation."""
    replicas: Int32 = silent(0)
    """The number of replicas."""
    scheduled_replicas: Int32 = required(0)
    """The number of replicas that have their minimum of scheduled pods."""
    available_replicas: Int32 = required(0)
    """The number of replicas that have their minimum of ready pods."""
    updated_replicas: Int32 = required(0)
    """The number of replicas that have the current templates."""
    selector: str | None = None
    """The label selector of the pods, for autoscalers."""
    conditions: Seq[Condition] = ()
    """The conditions of the group."""
    current_pod_clique_set_generation_hash: str | None = None
    """The generation hash of the set that all pods have."""
    update_progress: ScalingGroupUpdate | None = None
    """The progress of the latest update."""


class PodCliqueScalingGroup(ApiObject):
    """PodCliqueScalingGroup is a number of replicas, each made of the same cliques, scaled together."""

    spec: ScalingGroupSpec
    """The cliques and the number of replicas."""
    status: ScalingGroupStatus | None = None
    """The observed state."""


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
