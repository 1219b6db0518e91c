"""Stuck: the roots of a sync that no time settles, as a preview of the same world judges them."""

from collections.abc import Collection

from engine.forecast.forecast import End
from engine.ids import ResourceId
from engine.observed import Observed
from resources.base import kinds
from resources.forecast.pods import is_refused
from resources.model.pod_facts import facts_of
from resources.preview.facts import FirstPass
from resources.preview.forecasting import forecast_of


def stuck_roots(last: FirstPass, written: Collection[ResourceId], *, assume_nodes: bool) -> frozenset[ResourceId]:
    """The written roots that end stuck from the last pass on, and have a pod that has failed or that the scheduler cannot place.

    With `assume_nodes` the latter does not count. Pods that have started and are not ready yet do not either: a model takes its time to
    load. Roots that were not written are left out: what waits in them was there before.
    """

    def has_stuck_pod(observed: Observed) -> bool:
        pods = (facts_of(live) for live in observed.lives() if live.id.kind == kinds.POD.name)
        return any(pod.failing or (is_refused(pod) and not assume_nodes) for pod in pods if not pod.terminating)

    roots = frozenset(each.root.id for each in last.world.roots if each.root.id in written and has_stuck_pod(each))
    forecast = forecast_of(last) if roots else None
    return frozenset(root for root in roots if forecast is None or forecast.end_of(root) is End.STUCK)
