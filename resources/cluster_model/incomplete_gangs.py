"""Incomplete gangs: those that list fewer pods of a clique than its minimum, so that their scheduler places none that waits."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from engine.forecast.store import ForecastStore
from engine.ids import ResourceId
from engine.observed import Live
from engine.plan import Wait
from engine.reason import Reason
from resources.base import kinds, labels
from resources.base.fields import mapping
from resources.model.gang_scheduling import shortfalls


class IncompleteGangs:
    """The incomplete gangs of one forecast. A gang lists as many pods of a clique as the clique has by its own number."""

    def __init__(self, schedulers: Collection[str]) -> None:
        """`schedulers`: the names of those that place a PodGang only with the minimum of each of its pod groups."""
        self._schedulers = frozenset(schedulers)

    def lacking(self, store: ForecastStore, pod: Live) -> Mapping[str, tuple[int, int]]:
        """Pod group of a pod's gang -> the numbers of its pods and of its minimum, for those with fewer; empty if the pod may be placed."""
        if not self._schedulers or mapping(pod.body.get("spec")).get("schedulerName") not in self._schedulers:
            return {}
        gang = store.find(kinds.PODGANG.id(pod.id.namespace, pod.labels.get(labels.PODGANG, "")))
        return shortfalls(gang.body) if gang is not None else {}

    def shortages(self, store: ForecastStore, pods: Iterable[tuple[ResourceId, Live]]) -> Mapping[ResourceId, tuple[Wait, ...]]:
        """Root -> for each PodClique with fewer pods than its minimum, how many pods of its gang that stops. `pods`: each with its root."""
        lacking = ((root, pod, name, numbers) for root, pod in pods for name, numbers in self.lacking(store, pod).items())
        counts = Counter((root, kinds.PODCLIQUE.id(pod.id.namespace, name), numbers) for root, pod, name, numbers in lacking)
        waits: dict[ResourceId, list[Wait]] = {}
        for (root, id, (has, least)), count in counts.items():
            why = f"{count} pod{'s' if count > 1 else ''} of its gang cannot start: it has {has} of its minimum of {least}"
            waits.setdefault(root, []).append(Wait(id, why, blocked=True, reason=Reason.GANG_INCOMPLETE))
        return {root: tuple(listed) for root, listed in waits.items()}
