"""Group schedulers: which scheduler places the pods of a LeaderWorkerSet together, and the kind of PodGroup by which it does.

Volcano does where the cluster serves its PodGroups, else kube-scheduler where the cluster serves those of Kubernetes. A service whose pods
name kube-scheduler gets it where possible. The scheduler that the LeaderWorkerSets of a service were created for stays.
"""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from engine.ids import Kind
from engine.observed import Live, Slice
from engine.paths import get
from resources.base import kinds
from resources.base.fields import annotations_of
from resources.base.labels import GANG_FORM
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.objects.pod_template import COMPONENT
from resources.ports.scheduler import Scheduler, has_built_in_gangs

VOLCANO: Final = "volcano"
FORM: Final = "flat"
"""The value of the annotation `GANG_FORM` of LeaderWorkerSets whose pods kube-scheduler places together."""
GROUP_FIELD: Final = "schedulingGroup"
"""The field of a pod spec that names its PodGroup for kube-scheduler."""
TEMPLATES: Final = ("leaderTemplate", "workerTemplate")
GROUP_PATHS: Final = tuple(("spec", "leaderWorkerTemplate", template, "spec", GROUP_FIELD) for template in TEMPLATES)
"""The places in a LeaderWorkerSet that name the PodGroup of its pods."""
LOSES_GROUPS: Final = (
    f"the LeaderWorkerSets of {{service}} would lose {GROUP_FIELD} in their pod templates (those of version 0.9 and newer keep it): "
    "kube-scheduler would place their pods one by one; update LeaderWorkerSet first"
)
NOT_KEPT: Final = (
    "the LeaderWorkerSets of {service} do not keep {field} in their pod templates (those of version 0.9 and newer do): kube-scheduler "
    "places their pods one by one"
)


class GroupScheduler(Struct, frozen=True):
    """A scheduler that places the pods of a LeaderWorkerSet together."""

    name: str
    """The `schedulerName` of its pods."""
    kind: Kind
    """The kind of its PodGroups."""

    @property
    def is_native(self) -> bool:
        """Whether it is kube-scheduler, by the PodGroups of Kubernetes."""
        return self.kind == kinds.POD_GROUP


BY_VOLCANO: Final = GroupScheduler(VOLCANO, kinds.VOLCANO_POD_GROUP)
NATIVE: Final = GroupScheduler("default-scheduler", kinds.POD_GROUP)
GroupSchedulers = Mapping[str, GroupScheduler]
"""Service on several nodes -> the scheduler of its groups."""


def group_schedulers(
    graph: InferenceGraph, lives: Slice, schedulers: Mapping[str, Scheduler], unserved: Collection[str]
) -> GroupSchedulers:
    """The group scheduler of each service on several nodes.

    `lives`: the objects of the graph. `schedulers`: the enabled back ends. `unserved`: the kinds that the cluster does not serve.
    """
    is_served = has_built_in_gangs(schedulers) and kinds.POD_GROUP.key not in unserved
    has_volcano = kinds.VOLCANO_POD_GROUP.key not in unserved
    created = {live.labels.get(COMPONENT, ""): by_kube_scheduler(live) for live in lives.of(kinds.LEADER_WORKER_SET.name)}

    def of(service: GraphService) -> GroupScheduler:
        is_asked = not has_volcano or (graph.is_recorded and service.scheduler == NATIVE.name)
        return NATIVE if created.get(service.name, is_served and is_asked) else BY_VOLCANO

    return {service.name: of(service) for service in graph.services if service.is_multinode}


def by_kube_scheduler(live: Live) -> bool:
    """Whether an existing LeaderWorkerSet was created for PodGroups of Kubernetes."""
    return annotations_of(live.body).get(GANG_FORM) == FORM


def keeps_no_group(live: Live) -> bool:
    """Whether the API server has dropped the PodGroup from the templates of such a LeaderWorkerSet, as older releases do."""
    templates = [get(live.body, ("spec", "leaderWorkerTemplate", name, "spec"), {}) for name in TEMPLATES]
    named = [template for template in templates if template.get("schedulerName") == NATIVE.name]
    return by_kube_scheduler(live) and bool(named) and not any(GROUP_FIELD in template for template in named)


def notes_on_groups(graph: InferenceGraph, lives: Slice) -> tuple[str, ...]:
    """One note for each service whose LeaderWorkerSets have lost their PodGroups."""
    names = {live.labels.get(COMPONENT, "") for live in lives.of(kinds.LEADER_WORKER_SET.name) if keeps_no_group(live)}
    return tuple(NOT_KEPT.format(service=service.name, field=GROUP_FIELD) for service in graph.services if service.name in names)
