"""PodClique: pods of one role, created from one template."""

from resources.schema.autoscaling import AutoScaling
from resources.schema.meta import ApiObject, Condition, LastError
from resources.schema.pod_spec_form import PodSpec
from resources.schema.wire import Int32, Int64, Seq, Timestamp, Wire, required, silent


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
