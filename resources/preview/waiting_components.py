"""Waiting components: Deployments and LeaderWorkerSets with pods that wait for claims which do not exist, or for templates of them."""

from collections import Counter
from collections.abc import Iterator

from engine.ids import ResourceId
from engine.plan import Wait
from resources.base import kinds
from resources.cluster_model.references import cannot_start, claims_from_templates
from resources.model.pod_facts import claims_of, facts_of, unmade_claims
from resources.preview.facts import FirstPass
from resources.preview.stuck_roots import components_to_read


def waiting_components(first: FirstPass) -> Iterator[tuple[ResourceId, Wait]]:
    """Each with its root, and what its pods refer to that does not exist, as far as these were read; pods on a node need it no more."""
    known = first.world.references.objects
    for component in components_to_read(first):
        counts: Counter[tuple[ResourceId, ...]] = Counter()
        for pod in first.component_pods.get(component.live.id, ()):
            if facts_of(pod).node:
                continue
            namespace, made_from = pod.id.namespace, claims_from_templates(pod)
            templates = (kinds.RESOURCE_CLAIM_TEMPLATE.id(namespace, made_from[name]) for name in unmade_claims(pod))
            claims = (id for id in claims_of(namespace, pod.body.get("spec")) if id.kind == kinds.RESOURCE_CLAIM.name)
            counts[tuple(dict.fromkeys(id for id in (*templates, *claims) if id not in known))] += 1
        yield from ((component.root, cannot_start(component.live.id, count, lacks)) for lacks, count in counts.items() if lacks)
