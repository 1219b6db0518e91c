"""PodDemand: what a pod that is to be placed asks for. Pods that ask for the same share one value: they are counted, not listed."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from engine.canonical import digest
from engine.resource import Body
from resources.base.fields import mapping
from resources.placement.cluster_room import NO_DEFAULTS, Defaults
from resources.placement.node_fit import PodRequirements, requirements_of, texts
from resources.placement.pod_affinity import affinity_terms, anti_affinity_terms, selects, spread_constraints, topology_key

DEFAULT_SCHEDULER: Final = "default-scheduler"
SLOT: Final = "place in "
"""Places in domains of a fabric are counted as a resource of this name followed by that of the fabric; a node has one or none."""


class TogetherTerm(Struct, frozen=True):
    """A required affinity term that selects the pod itself: all pods with it are together, wherever the first of them is."""

    key: str
    """The label of nodes that has the same value for all of them."""
    group: str
    """Equal for pods that have the same term."""
    term: Body


class BesideTerm(Struct, frozen=True):
    """A required affinity term that does not select the pod itself: it is where pods are that the term selects."""

    key: str
    """The label of nodes that has the same value for it and for one of them."""
    term: Body


class ApartTerm(Struct, frozen=True):
    """A required anti-affinity term that selects the pod itself: no two pods with it are at the same value of a label."""

    key: str
    group: str


class PodDemand(Struct, frozen=True, eq=False):
    """What pods of one kind ask for. Values are compared by identity: `DemandBook` makes one for each kind."""

    requirements: PodRequirements
    sample: Body
    """One of the pods, for terms that select pods."""
    together: tuple[TogetherTerm, ...]
    beside: tuple[BesideTerm, ...]
    apart: tuple[ApartTerm, ...]
    needed_labels: tuple[str, ...]
    """Labels that a node must have, with whatever value: topology keys of affinity and of spread constraints that forbid."""
    priority: int | None
    """None: not known, as nothing that runs has its PriorityClass."""
    preempts: bool
    """Whether its PriorityClass may let it preempt others."""
    scheduler: str

    @property
    def requests(self) -> Mapping[str, int]:
        """Name of a resource -> thousandths of it."""
        return self.requirements.requests


class DemandBook:
    """The demands of pods, each kind once."""

    def __init__(self, priorities: Mapping[str, int], defaults: Defaults = NO_DEFAULTS) -> None:
        """`priorities`, `defaults`: see `ClusterRoom`."""
        self._priorities, self._defaults = priorities, defaults
        self._demands: dict[str, PodDemand] = {}

    def demand_of(self, pod: Body, slots: Mapping[str, int]) -> PodDemand | None:
        """What a pod asks for, and so many places in domains of fabrics; None if its quantities are malformed."""
        if (defaults := self._defaults.get(pod["metadata"].get("namespace", ""))) is not None:
            pod = {**pod, "spec": defaults.within(mapping(pod.get("spec")))}
        try:
            requirements = requirements_of(pod)
        except ValueError:
            return None
        spec, namespace = mapping(pod.get("spec")), pod["metadata"].get("namespace", "")
        scheduler = str(spec.get("schedulerName") or DEFAULT_SCHEDULER)
        priority = self._priority(spec)
        preempts = spec.get("preemptionPolicy") != "Never"
        near, apart, spread = affinity_terms(spec), anti_affinity_terms(spec), spread_constraints(spec)
        labels = mapping(pod["metadata"].get("labels")) if near or apart else {}
        own = [requirements.shape, slots, scheduler, priority, preempts, near, apart, spread]
        key = digest([*own, labels if near or apart else None, namespace if near or apart else None])
        if key not in self._demands:
            requests = {**requirements.requests, **{f"{SLOT}{fabric}": 1000 * count for fabric, count in slots.items()}}
            whole = PodRequirements(
                requests, requirements.selector, requirements.terms, requirements.tolerations, key, requirements.node_name
            )
            together = tuple(TogetherTerm(topology_key(term), _group(term, pod), term) for term in near if selects(term, pod, pod))
            beside = tuple(BesideTerm(topology_key(term), term) for term in near if not selects(term, pod, pod))
            exclusive = tuple(ApartTerm(topology_key(term), _group(term, pod)) for term in apart if _excludes_its_kind(term, pod))
            needed = tuple(dict.fromkeys(topology_key(each) for each in (*near, *spread)))
            self._demands[key] = PodDemand(whole, pod, together, beside, exclusive, needed, priority, preempts, scheduler)
        return self._demands[key]

    def _priority(self, spec: Mapping[str, Any]) -> int | None:
        """A pod without a PriorityClass counts as one of priority 0: whether there is a global default is not known."""
        priority, name = spec.get("priority"), spec.get("priorityClassName")
        if isinstance(priority, int):
            return priority
        return self._priorities.get(str(name)) if name else 0


def _group(term: Mapping[str, Any], pod: Body) -> str:
    """Equal for pods with the same term that select one another."""
    own = mapping(pod["metadata"].get("labels"))
    values = [[key, own.get(key)] for key in texts(term.get("matchLabelKeys"))]
    return digest([term, values, pod["metadata"].get("namespace", "")])


def _excludes_its_kind(term: Mapping[str, Any], pod: Body) -> bool:
    return not term.get("mismatchLabelKeys") and selects(term, pod, pod)
