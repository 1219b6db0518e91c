"""Kube: the default scheduler of Kubernetes. Where the cluster serves PodGroups, it schedules gangs by them; otherwise single pods."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from engine.ids import Kind
from engine.observed import Live
from engine.report.printable import some
from providers.schedulers.pod_groups import KubePodGroups
from resources.base import kinds
from resources.ports.checks import Check, CheckResult, Installation, Query, Severity, unknown
from resources.ports.configuration import GangMode
from resources.ports.scheduler import Scheduler

KUBE: Final = "default-scheduler"
OTHERS: Final = "install KAI, install Volcano (and name it in scheduler.profiles and schedulerName), or accept that"
INSTEAD: Final = (
    f"enable gangs in Kubernetes 1.37 (feature gate GenericWorkload, and scheduling.k8s.io/v1beta1 of the API server), {OTHERS}"
)
INSTEAD_OF_OFF: Final = f"set gangScheduling of its profile to Auto (Kubernetes 1.37), {OTHERS}"
SUBJECT: Final = f"PodGroups of {KUBE}"
DELETED: Final = f"deleted PodGroups of {KUBE}"
ANSWERS: Final = f"start kube-scheduler with --feature-gates=GenericWorkload=true, {OTHERS}"
NO_ANSWER: Final = (
    "kube-scheduler has placed or refused the pods of {groups} and said nothing of the group for a minute: its feature gate "
    "GenericWorkload is off, and it places pods one by one"
)
RELEASED: Final = "start kube-controller-manager with --feature-gates=GenericWorkload=true"
NOT_RELEASED: Final = (
    "kube-controller-manager has not released {groups}, deleted and without pods: its feature gate GenericWorkload is probably off, and "
    "namespaces with PodGroups stay Terminating"
)
SHOWN: Final = 2
"""How many PodGroups are named."""
NOT_SERVED: Final = f"the cluster does not serve {kinds.POD_GROUP.name} of {kinds.POD_GROUP.api_version}"
TREE: Final = frozenset({kinds.WORKLOAD.key, kinds.COMPOSITE_POD_GROUP.key})
"""The kinds that hierarchies need besides PodGroups."""


class KubeScheduler(Scheduler):
    """The back end `default-scheduler`."""

    name = KUBE

    def __init__(self, gangs: KubePodGroups | None = None, mode: GangMode = GangMode.OFF, instead_of_gangs: str = INSTEAD_OF_OFF) -> None:
        """`gangs`: its objects for gangs. None: it places each pod by itself, and `instead_of_gangs` says what users can do about it."""
        self.gangs = gangs
        self.reads_node_labels = gangs is not None
        self.mode = mode
        self.instead_of_gangs = "" if gangs is not None else instead_of_gangs

    def where(self, unserved: Collection[str]) -> Scheduler:
        """Without gangs where PodGroups are not served, unless they are required; without hierarchies where these are not served."""
        if self.gangs is None:
            return self
        if kinds.POD_GROUP.key in unserved and self.mode is GangMode.AUTO:
            return WITHOUT_POD_GROUPS
        return FLAT[self.mode] if not TREE.isdisjoint(unserved) else self

    def required_kinds(self) -> Mapping[Kind, str]:
        """PodGroups, if gangs are required."""
        return {kinds.POD_GROUP: f"gangScheduling of {KUBE} is Require, and {NOT_SERVED}"} if self.mode is GangMode.REQUIRE else {}

    def installation_queries(self) -> tuple[Query, ...]:
        """PodGroups and the pods of gangs, if gangs are not off: they show whether the scheduler has its feature gate."""
        if self.gangs is None:
            return ()
        from providers.schedulers.unanswered_groups import GROUPS, MEMBERS  # Only the preflight asks for them.

        return GROUPS, MEMBERS

    def without_gangs(self, installation: Installation) -> Check | None:
        """A warning about PodGroups that get no answer; None if there are none. No API tells the feature gates of the scheduler."""
        if self.gangs is None or installation.now is None:
            return None
        from providers.schedulers.unanswered_groups import unanswered_groups  # Only the preflight asks for it.

        silent = unanswered_groups(installation.results, self.name, installation.now)
        if not silent:
            return None
        return Check(self._level(Severity.WARNING), "gangs", CheckResult.BAD, NO_ANSWER.format(groups=_names(silent)), ANSWERS)

    def _level(self, otherwise: Severity) -> Severity:
        """The severity of a check on which the scheduling of gangs depends."""
        return Severity.HARD if self.mode is GangMode.REQUIRE else otherwise

    def checks(self, installation: Installation) -> Iterator[Check]:
        """Whether PodGroups are served, and released when they are deleted, if gangs are not off."""
        if self.gangs is None:
            return
        yield from _unreleased(installation)
        level = self._level(Severity.INFO)
        if why := installation.apis.why_unknown(kinds.POD_GROUP):
            yield unknown(level, SUBJECT, why)
        elif installation.apis.serves(kinds.POD_GROUP):
            has_trees = all(installation.apis.serves(kind) for kind in (kinds.WORKLOAD, kinds.COMPOSITE_POD_GROUP))
            trees = "CompositePodGroups too" if has_trees else "no CompositePodGroups: a gang has one level of topology at most"
            yield Check(level, SUBJECT, CheckResult.GOOD, f"PodGroups are served, {trees}")
        else:
            older = {version for name in ("podgroups", "workloads") for version in installation.apis.versions(kinds.POD_GROUP.group, name)}
            spoken = f"; {', '.join(sorted(older))} is served, which is not spoken: v1beta1 of Kubernetes 1.37 is needed" if older else ""
            outcome = CheckResult.BAD if self.mode is GangMode.REQUIRE else CheckResult.GOOD
            yield Check(level, SUBJECT, outcome, f"{NOT_SERVED}{spoken}", INSTEAD)


def _unreleased(installation: Installation) -> Iterator[Check]:
    """A warning about deleted PodGroups that are not released, if there are any."""
    if installation.now is None:
        return
    from providers.schedulers.unanswered_groups import unreleased_groups  # Only the preflight asks for it.

    if kept := unreleased_groups(installation.results, installation.now):
        yield Check(Severity.WARNING, DELETED, CheckResult.BAD, NOT_RELEASED.format(groups=_names(kept)), RELEASED)


def _names(groups: Iterable[Live]) -> str:
    return some((f"PodGroup {group.id.namespace}/{group.id.name}" for group in groups), SHOWN)


FLAT: Final = {mode: KubeScheduler(KubePodGroups(trees=False), mode) for mode in (GangMode.AUTO, GangMode.REQUIRE)}
"""The back ends for clusters without hierarchies."""
WITHOUT_POD_GROUPS: Final = KubeScheduler(instead_of_gangs=INSTEAD)
BY_MODE: Final = {
    GangMode.AUTO: KubeScheduler(KubePodGroups(trees=True), GangMode.AUTO),
    GangMode.REQUIRE: KubeScheduler(KubePodGroups(trees=True), GangMode.REQUIRE),
    GangMode.OFF: KubeScheduler(),
}


def kube_scheduler(mode: GangMode) -> KubeScheduler:
    """The back end in that mode; always the same object."""
    return BY_MODE[mode]
