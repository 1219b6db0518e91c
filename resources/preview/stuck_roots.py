"""Stuck roots: those that more time does not settle, as the scheduler, a controller or their pods say when the time of a sync is over."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from engine.forecast.forecast import End
from engine.health import PATIENCE
from engine.ids import ResourceId
from engine.observed import Live, Observed
from resources.base import kinds
from resources.cluster_model.component_pods import selector_of
from resources.cluster_model.pods import PodSelector, is_component, is_halted, is_refused, is_rolled_out
from resources.model.pod_facts import PodFacts, facts_of, unmade_claims
from resources.preview.facts import FirstPass
from resources.preview.forecasting import forecast_of


class UnreadyComponent(Struct, frozen=True, eq=False):
    """A Deployment or LeaderWorkerSet some of whose pods are not ready, or not those of its template."""

    root: ResourceId
    live: Live
    selector: PodSelector
    """Its pods."""


def unready_components(last: FirstPass, written: Collection[ResourceId]) -> Iterator[UnreadyComponent]:
    """Those of the written roots. No root owns their pods: these are read only where it matters whether one waits for a node."""
    for observed in last.world.roots:
        for live in observed.lives() if observed.root.id in written else ():
            if is_component(live.id) and not is_rolled_out(live) and (selector := selector_of(live)) is not None:
                yield UnreadyComponent(observed.root.id, live, selector)


def components_to_read(first: FirstPass) -> Iterator[UnreadyComponent]:
    """Those of all roots, unless it is a record: what their controllers report does not tell which pods fail or wait for claims."""
    graphs = (observed.root.id for observed in first.world.roots if observed.root.id.kind == kinds.DYNAMO_GRAPH.name)
    return unready_components(first, () if first.is_record else set(graphs))


def stuck_roots(
    last: FirstPass, written: Collection[ResourceId], *, assume_nodes: bool, component_pods: Mapping[ResourceId, Iterable[Live]]
) -> frozenset[ResourceId]:
    """The written roots with a pod that the scheduler cannot place (not with `assume_nodes`), whose claims are not made for long, or
    that has failed or cannot start and ends stuck. And those of the plan with a pod that refers to what does not exist, as far as it is
    known.

    Also those with a component whose controller reports that the API server refuses pods. `component_pods`: root -> pods of its
    components that have the newest template: others go once these are ready. Pods that have started and are not ready yet are
    none of them: a model takes its time to load. Roots that were not written are left out: what waits in them was there before; but
    for those that are written again after so long a pause that previews of them end as stuck.
    """
    roots = [each for each in last.world.roots if each.root.id in written]
    pods = {each.root.id: _serving((*_pods_of(each), *component_pods.get(each.root.id, ()))) for each in roots}
    unplaced = {root for root, facts in pods.items() if not assume_nodes and any(map(is_refused, facts))}
    since = last.now - PATIENCE
    unplaced |= {root for root, facts in pods.items() if any(pod.live.created_at <= since and _awaits_claims(pod) for pod in facts)}
    halted = {each.root.id for each in roots if any(is_component(live.id) and is_halted(live) for live in each.lives())}
    failing = {root for root, facts in pods.items() if any(pod.hindered for pod in facts)} - unplaced - halted
    planned = {plan.root for plan in last.planned.plans}
    own = {each.root.id: _serving(_pods_of(each)) for each in last.world.roots if each.root.id in planned}
    waiting = {root for root, facts in own.items() if any(is_refused(pod) or _awaits_claims(pod) for pod in facts)} - unplaced - halted
    forecast = forecast_of(last) if failing or waiting else None
    if forecast is None:
        return frozenset(unplaced | halted | failing)
    short = waiting & forecast.shortages.keys()
    paused = {root for root in waiting - pods.keys() if not assume_nodes and forecast.longest_pause(root) > PATIENCE}
    failing = {root for root in failing if forecast.end_of(root) is End.STUCK}
    return frozenset(unplaced | halted | failing | short | paused)


def _awaits_claims(pod: PodFacts) -> bool:
    """Whether a pod has no node, and claims of it are not made from their templates."""
    return not pod.node and bool(unmade_claims(pod.live))


def _pods_of(observed: Observed) -> Iterator[Live]:
    return (live for live in observed.lives() if live.id.kind == kinds.POD.name)


def _serving(pods: Iterable[Live]) -> list[PodFacts]:
    """Those that are not being deleted."""
    return [pod for pod in map(facts_of, pods) if not pod.terminating]
