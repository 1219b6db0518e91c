"""Stuck: the roots of a sync that no time settles, as a preview of the same world judges them."""

from collections.abc import Collection

from engine.forecast.forecast import End
from engine.ids import ResourceId
from engine.observed import Observed
from resources.base import kinds
from resources.forecast.pods import is_refused
from resources.model.pod_facts import PodFacts, facts_of
from resources.preview.facts import FirstPass
from resources.preview.forecasting import forecast_of


def stuck_roots(last: FirstPass, written: Collection[ResourceId], *, assume_nodes: bool) -> frozenset[ResourceId]:
    """The written roots with a pod that the scheduler cannot place (not with `assume_nodes`), or that has failed and ends stuck.

    Pods that have started and are not ready yet are none of them: a model takes its time to load. Roots that were not written are left out:
    what waits in them was there before.
    """
    pods = {each.root.id: _pods_of(each) for each in last.world.roots if each.root.id in written}
    unplaced = {root for root, facts in pods.items() if not assume_nodes and any(map(is_refused, facts))}
    failing = {root for root, facts in pods.items() if any(pod.failing for pod in facts)} - unplaced
    forecast = forecast_of(last) if failing else None
    return frozenset(unplaced | {root for root in failing if forecast is None or forecast.end_of(root) is End.STUCK})


def _pods_of(observed: Observed) -> list[PodFacts]:
    """The pods of a root that are not being deleted."""
    pods = (facts_of(live) for live in observed.lives() if live.id.kind == kinds.POD.name)
    return [pod for pod in pods if not pod.terminating]
