"""PodSlots: how many places in domains of fabrics a pod takes, where a node has one place."""

from collections.abc import Collection, Iterable, Mapping

from engine.forecast.store import ForecastStore
from engine.observed import Live
from resources.base import kinds
from resources.base.fields import mapping
from resources.forecast.pods import claims_from_templates
from resources.ports.fabric import Fabric, NodeExclusiveFabric


class PodSlots:
    """Counts the places that the templates of a pod's claims ask for."""

    def __init__(self, fabrics: Iterable[Fabric], known: Collection[str]) -> None:
        """`known`: the kinds of domains of which it is known which nodes have a place."""
        self._fabrics = [(fabric.kind.name, fabric) for fabric in fabrics if isinstance(fabric, NodeExclusiveFabric)]
        self._fabrics = [(kind, fabric) for kind, fabric in self._fabrics if kind in known]

    def of(self, store: ForecastStore, pod: Live) -> Mapping[str, int]:
        """Kind of domains -> the places that a pod takes; kinds of which it takes none are absent."""
        if not self._fabrics:
            return {}
        templates = [store.find(kinds.RESOURCE_CLAIM_TEMPLATE.id(pod.id.namespace, name)) for name in claims_from_templates(pod).values()]
        specs = [mapping(mapping(template.body.get("spec")).get("spec")) for template in templates if template is not None]
        counts = {kind: sum(fabric.slots_of(spec) for spec in specs) for kind, fabric in self._fabrics}
        return {kind: count for kind, count in counts.items() if count}
