"""Set pods: the pods of one set, with the objects that they may wait for."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from engine.ids import Kind, ResourceId
from engine.observed import Live, Observed
from engine.resource import Body
from resources.base import kinds, labels
from resources.base.fields import mapping, mappings
from resources.model.gang_scheduling import shortfalls
from resources.model.pod_facts import PodFacts, facts_of
from resources.reports.summary import lives_of


class SetPods(Struct, frozen=True, eq=False):
    """The pods of a set, and the objects that they may wait for."""

    observed: Observed
    facts: tuple[PodFacts, ...]
    """Sorted by name."""
    by_name: Mapping[str, PodFacts]
    by_clique: Mapping[str, tuple[PodFacts, ...]]
    """Name of the PodClique -> its pods."""
    unlisted: frozenset[str] = frozenset()
    """The kinds that could not be listed."""
    of_whole_gangs: frozenset[str] = frozenset()
    """The schedulers that place a gang only with the minimum of each pod group, also if the gang lists fewer."""

    @classmethod
    def of(cls, observed: Observed, unlisted: Iterable[str] = (), of_whole_gangs: Iterable[str] = ()) -> "SetPods":
        """The pods of a set."""
        facts = tuple(facts_of(live) for live in lives_of(observed, kinds.POD.name))
        by_clique: dict[str, list[PodFacts]] = {}
        for pod in facts:
            by_clique.setdefault(pod.live.labels.get(labels.PODCLIQUE, ""), []).append(pod)
        frozen = {name: tuple(listed) for name, listed in by_clique.items()}
        by_name = {pod.name: pod for pod in facts}
        return cls(observed, facts, by_name, frozen, frozenset(unlisted), frozenset(of_whole_gangs))

    def reference(self, kind: Kind, name: str) -> Live | None:
        """An object of that kind in the set's namespace that the set owns or refers to; None if it does not exist."""
        id = kind.id(self.observed.root.id.namespace, name)
        return self.observed.references.objects.get(id) or self.observed.find(id)

    def body(self, id: ResourceId) -> Body | None:
        """The body of an object of the set; None if it does not exist."""
        live = self.observed.find(id)
        return live.body if live is not None else None

    def incomplete(self, gang: Live | None) -> Mapping[str, tuple[int, int]]:
        """Pod group of a PodGang -> the numbers of its pods and of those that it needs, for those with fewer than that."""
        needed = self.needed(gang)
        return _below({name: len(self.by_clique.get(name, ())) for name in needed}, needed)

    def needed(self, gang: Live | None) -> Mapping[str, int]:
        """Pod group of a PodGang -> the pods without which its scheduler places none: its minimum, or those that it lists if they are fewer

        and the scheduler goes by that (a user has scaled its clique below the minimum).
        """
        least = minimums(gang)
        if gang is None or gang.labels.get(labels.SCHEDULER_NAME) in self.of_whole_gangs:
            return least
        return {**least, **{name: listed for name, (listed, _) in shortfalls(gang.body).items()}}

    def lacking(self, gang: Live | None) -> Mapping[str, tuple[int, int]]:
        """Pod group of a PodGang -> the numbers of its scheduled pods and of its minimum, for those with fewer than that."""
        return _below({name: sum(pod.scheduled for pod in self.by_clique.get(name, ())) for name in minimums(gang)}, minimums(gang))


def minimums(gang: Live | None) -> Mapping[str, int]:
    """Pod group of a PodGang -> its minimum."""
    groups = mappings(mapping(gang.body.get("spec")).get("podgroups")) if gang is not None else ()
    return {str(group.get("name")): least for group in groups if isinstance(least := group.get("minReplicas"), int)}


def _below(counts: Mapping[str, int], minimums: Mapping[str, int]) -> Mapping[str, tuple[int, int]]:
    return {name: (counts[name], least) for name, least in minimums.items() if counts[name] < least}
