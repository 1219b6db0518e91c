"""PodCliqueScalingGroup: cliques that are scaled together."""

from resources.schema.meta import Condition, LastError, Root
from resources.schema.wire import Int32, Int64, Seq, Timestamp, Wire, required, silent


class ScalingGroupSpec(Wire):
    """Which cliques, and how often."""

    replicas: Int32 = required(1)
    """How many replicas of the group; each holds one clique of every name."""
    min_available: Int32 = 1
    """How few replicas still make the group useful: so many are scheduled as one gang with the rest of the set's replica."""
    clique_names: Seq[str]
    """The members, by their short names in the set."""


class ReplicasUpdating(Wire):
    """Which ready replicas are being replaced."""

    current: Int32
    """The index of the replica that is being replaced."""
    completed: Seq[Int32] = ()
    """The indices of the replicas that were replaced."""


class ScalingGroupUpdate(Wire):
    """How far the latest change of the pods has come."""

    update_started_at: Timestamp
    """When it began."""
    update_ended_at: Timestamp | None = None
    """When it was through."""
    pod_clique_set_generation_hash: str
    """The set's hash that it leads to."""
    updated_pod_cliques_count: Int32 = silent(0)
    """How many cliques are through."""
    total_pod_cliques_count: Int32 = silent(0)
    """How many cliques there are."""
    ready_replica_indices_selected_to_update: ReplicasUpdating | None = None
    """Which ready replicas are being replaced."""


class ScalingGroupStatus(Wire):
    """What became of it."""

    observed_generation: Int64 | None = None
    """The metadata.generation that this status is about."""
    last_errors: Seq[LastError] = ()
    """What went wrong in the latest pass."""
    replicas: Int32 = silent(0)
    """How many replicas there are."""
    scheduled_replicas: Int32 = required(0)
    """How many of them have enough pods with a node."""
    available_replicas: Int32 = required(0)
    """How many of them have enough ready pods."""
    updated_replicas: Int32 = required(0)
    """How many of them have the current templates."""
    selector: str | None = None
    """The label selector by which an autoscaler finds the pods."""
    conditions: Seq[Condition] = ()
    """QueryResults about the group as a whole."""
    current_pod_clique_set_generation_hash: str | None = None
    """The hash of the set's templates that all pods have."""
    update_progress: ScalingGroupUpdate | None = None
    """How far the latest change has come."""


class PodCliqueScalingGroup(Root):
    """PodCliqueScalingGroup is a number of replicas, each made of the same cliques, scaled together."""

    spec: ScalingGroupSpec
    """Which cliques, and how often."""
    status: ScalingGroupStatus | None = None
    """What became of it."""
