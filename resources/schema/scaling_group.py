"""PodCliqueScalingGroup: cliques that are scaled together."""

from resources.schema.meta import ApiObject, Condition, LastError
from resources.schema.wire import Int32, Int64, Seq, Timestamp, Wire, required, silent


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
