"""PodClique: pods of one role, all alike."""

from resources.schema.autoscaling import AutoScaling
from resources.schema.meta import Condition, LastError, Root
from resources.schema.pod_spec import PodSpec
from resources.schema.wire import Int32, Int64, Seq, Timestamp, Wire, required, silent


class PodCliqueSpec(Wire):
    """What the pods are, and how many."""

    role_name: str
    """The role that these pods play in the workload; no two cliques of a set share one."""
    pod_spec: PodSpec
    """The pods' specification: a core/v1 PodSpec, passed on as it is."""
    replicas: Int32 = silent(1, required=True)
    """How many pods."""
    min_available: Int32 | None = None
    """How few pods still make the clique useful: fewer are not scheduled, and falling below counts as a breach. By default all."""
    starts_after: Seq[str] = ()
    """Cliques whose pods must be ready before these start: short names inside a set, full names in an object of its own."""
    auto_scaling_config: AutoScaling | None = None
    """Scales the clique by itself; only for cliques outside of scaling groups."""


class PodsUpdating(Wire):
    """Which ready pods are being replaced."""

    current: str
    """The pod that is being replaced."""
    completed: Seq[str] = ()
    """The pods that were replaced."""


class PodCliqueUpdate(Wire):
    """How far the latest change of the pods has come."""

    update_started_at: Timestamp | None = None
    """When it began."""
    update_ended_at: Timestamp | None = None
    """When it was through."""
    pod_clique_set_generation_hash: str
    """The set's hash that it leads to."""
    pod_template_hash: str
    """The pod template's hash that it leads to."""
    ready_pods_selected_to_update: PodsUpdating | None = None
    """Which ready pods are being replaced."""


class PodCliqueStatus(Wire):
    """What became of it."""

    observed_generation: Int64 | None = None
    """The metadata.generation that this status is about."""
    last_errors: Seq[LastError] = ()
    """What went wrong in the latest pass."""
    replicas: Int32 = silent(0)
    """How many pods there are."""
    ready_replicas: Int32 = required(0)
    """How many of them are ready."""
    updated_replicas: Int32 = required(0)
    """How many of them have the current template."""
    schedule_gated_replicas: Int32 = required(0)
    """How many of them are kept from the scheduler by a gate."""
    scheduled_replicas: Int32 = required(0)
    """How many of them have a node."""
    hpa_pod_selector: str | None = None
    """The label selector by which an autoscaler finds the pods."""
    conditions: Seq[Condition] = ()
    """QueryResults about the clique as a whole."""
    current_pod_clique_set_generation_hash: str | None = None
    """The hash of the set's templates that all pods have."""
    current_pod_template_hash: str | None = None
    """The hash of the pod template that all pods have."""
    update_progress: PodCliqueUpdate | None = None
    """How far the latest change has come."""


class PodClique(Root):
    """PodClique is a number of pods of one role, made from one template."""

    spec: PodCliqueSpec
    """What the pods are, and how many."""
    status: PodCliqueStatus | None = None
    """What became of it."""
