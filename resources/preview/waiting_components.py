"""Waiting components: Deployments and LeaderWorkerSets with pods that wait for claims, templates or classes that do not exist."""

from collections import Counter
from collections.abc import Iterator

from engine.forecast.store import ForecastStore
from engine.ids import ResourceId
from engine.observed import World
from engine.plan import Wait
from resources.cluster_model.component_pods import claims_of_component
from resources.cluster_model.pods import has_time_to_end, is_component
from resources.cluster_model.references import PodReferences, cannot_start
from resources.model.pod_facts import facts_of
from resources.preview.facts import FirstPass
from resources.preview.stuck_roots import components_to_read


def waiting_components(first: FirstPass) -> Iterator[tuple[ResourceId, Wait]]:
    """Each with its root, and what its pods refer to that does not exist, as far as these were read; pods on a node need it no more."""
    store = ForecastStore(first.world.references.objects.values(), first.now, has_time_to_end)
    references = PodReferences(first.configuration.fabrics, first.listed, first.device_classes)
    for component in components_to_read(first):
        pods = (pod for pod in first.component_pods.get(component.live.id, ()) if not facts_of(pod).node)
        counts = Counter(references.lacks(store, pod) for pod in pods)
        beside = first.intent.beside
        yield from ((component.root, cannot_start(component.live.id, n, lacks, beside=beside)) for lacks, n in counts.items() if lacks)


def unlisted_notices(first: FirstPass, last: World) -> Iterator[str]:
    """The kinds that could not be listed and that pods of components in the world `last` refer to, with the reasons."""
    components = (live for observed in last.roots for live in observed.lives() if is_component(live.id))
    named = {id.kind for component in components for id in claims_of_component(component)}
    for kind in sorted(named & (first.world.unlisted.keys() - first.world.incomplete.keys())):
        yield f"it is not known which objects exist that pods refer to: {kind} could not be listed: {first.world.unlisted[kind].text}"
