"""Dependency rules: cliques that say themselves which others they start after, and must not wait for one another."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from resources.model.template import EXPLICIT
from resources.schema.issues import Fault, Issue, Path, duplicates
from resources.schema.podcliqueset import CliqueTemplate, Template

CLIQUES: Final[Path] = ("spec", "template", "cliques")

Arrows = Mapping[str, Sequence[str]]


def issues(template: Template) -> Iterator[Issue]:
    """What is wrong with the order in which the cliques are to start, where it is theirs to say."""
    if template.clique_startup_type != EXPLICIT:
        return
    known = frozenset(clique.name for clique in template.cliques)
    for number, clique in enumerate(template.cliques):
        yield from _of_clique(clique, known, (*CLIQUES, number, "spec", "startsAfter"))
    arrows = {clique.name: [name for name in clique.spec.starts_after if name in known] for clique in template.cliques}
    for circle in circles(arrows):
        yield Issue(CLIQUES, Fault.INVALID, "clique must not have circular dependencies", ", ".join(circle))


def _of_clique(clique: CliqueTemplate, known: frozenset[str], path: Path) -> Iterator[Issue]:
    after = clique.spec.starts_after
    for place, name in enumerate(after):
        if not name:
            yield Issue((*path, place), Fault.REQUIRED, "clique dependency must not be empty")
        elif name == clique.name:
            yield Issue((*path, place), Fault.INVALID, "clique dependency cannot refer to itself", name)
    yield from duplicates(((*path, place), name) for place, name in enumerate(after) if name)
    if unknown := [name for name in dict.fromkeys(after) if name and name not in known]:
        message = "unknown clique names found, all clique dependencies must be defined as cliques"
        yield Issue(path, Fault.INVALID, message, ",".join(unknown))


def circles(arrows: Arrows) -> list[tuple[str, ...]]:
    """Names of which each leads to all others of its circle, in the order in which they are listed. All that arrows lead to is listed.

    Tarjan's algorithm, without recursion: as many steps as there are names and arrows.
    """
    place = {name: number for number, name in enumerate(arrows)}
    search = _Search(arrows)
    found = [tuple(sorted(circle, key=place.__getitem__)) for name in arrows for circle in search.circles_from(name)]
    return sorted(found, key=lambda circle: place[circle[0]])


class _Search:
    """A walk along the arrows. `low` is the oldest name on the trail that a name is known to lead back to."""

    def __init__(self, arrows: Arrows) -> None:
        self.arrows = arrows
        self.age: dict[str, int] = {}
        self.low: dict[str, int] = {}
        self.trail: list[str] = []
        self.on_trail: set[str] = set()

    def circles_from(self, start: str) -> Iterator[list[str]]:
        """The circles among the names that the arrows lead to from there and that nobody has walked to yet."""
        if start in self.age:
            return
        ahead = [(start, self._enter(start))]
        while ahead:
            name, others = ahead[-1]
            for other in others:
                if other not in self.age:
                    ahead.append((other, self._enter(other)))
                    break
                if other in self.on_trail:
                    self.low[name] = min(self.low[name], self.age[other])
            else:
                ahead.pop()
                if ahead:
                    before = ahead[-1][0]
                    self.low[before] = min(self.low[before], self.low[name])
                yield from self._leave(name)

    def _enter(self, name: str) -> Iterator[str]:
        self.age[name] = self.low[name] = len(self.age)
        self.trail.append(name)
        self.on_trail.add(name)
        return iter(self.arrows[name])

    def _leave(self, name: str) -> Iterator[list[str]]:
        """Who leads back to nobody older takes all younger ones off the trail: they lead to one another."""
        if self.low[name] != self.age[name]:
            return
        at = len(self.trail) - 1
        while self.trail[at] != name:
            at -= 1
        circle = self.trail[at:]
        del self.trail[at:]
        self.on_trail.difference_update(circle)
        if len(circle) > 1:
            yield circle
