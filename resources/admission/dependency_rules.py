"""Dependency rules: `startsAfter` names existing cliques and is not circular; the names that pods get for waiting are taken."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from resources.admission.cel import REPEATED, for_each_clique
from resources.base.fields import CLIQUES, mappings
from resources.base.names import POD_INFO, TOKEN, WAITER
from resources.model.template import EXPLICIT
from resources.ports.fabric import PolicyRule
from resources.schema.issues import ErrorType, Issue, Located, Path, duplicates, shown, spelled
from resources.schema.pod_checks import fault
from resources.schema.podcliqueset import CliqueTemplate, SetTemplate
from resources.schema.unknown_fields import Suggestions

Dependencies = Mapping[str, Sequence[str]]
"""Clique -> the cliques that it starts after."""
EMPTY: Final = "clique dependency must not be empty"
ITSELF: Final = "clique dependency cannot refer to itself"
UNKNOWN: Final = "unknown clique names found, all clique dependencies must be defined as cliques"
UNUSED: Final = f"has no effect unless cliqueStartupType is {EXPLICIT}"
TAKEN: Final = "is the name of one that the engine adds to pods of this clique, because they start after others"
ADDED: Final = (("volumes", frozenset({POD_INFO, TOKEN})), ("containers", frozenset({WAITER})), ("initContainers", frozenset({WAITER})))
"""A list of a pod spec, and the names that pods that wait get there, or that must be unique together with those."""


def issues(template: SetTemplate) -> Iterator[Issue]:
    """The issues of `startsAfter`, if the start-up type is Explicit."""
    if template.clique_startup_type != EXPLICIT:
        return
    known, suggestions = _known(template), Suggestions()
    for number, clique in enumerate(template.cliques):
        yield from _of_clique(clique, known, (*CLIQUES, number, "spec", "startsAfter"), suggestions)
    dependencies = {clique.name: [name for name in clique.spec.starts_after if name in known] for clique in template.cliques}
    for circle in circles(dependencies):
        yield Issue(CLIQUES, ErrorType.INVALID, "clique must not have circular dependencies", ", ".join(circle))


def _of_clique(clique: CliqueTemplate, known: Collection[str], path: Path, suggestions: Suggestions) -> Iterator[Issue]:
    after = clique.spec.starts_after
    for index, name in enumerate(after):
        if not name:
            yield Issue((*path, index), ErrorType.REQUIRED, EMPTY)
        elif name == clique.name:
            yield Issue((*path, index), ErrorType.INVALID, ITSELF, name)
    yield from duplicates(((*path, index), name) for index, name in enumerate(after) if name)
    if unknown := _unknown(clique, known):
        yield Issue(path, ErrorType.INVALID, f"{UNKNOWN}{_those_there(unknown, clique, known, suggestions)}", ",".join(unknown))


def warnings(template: SetTemplate) -> Iterator[Located]:
    """A warning for each `startsAfter` that the start-up type does not use, with the names in it that no clique has: Grove admits it."""
    if template.clique_startup_type == EXPLICIT:
        return
    known, suggestions = _known(template), Suggestions()
    for number, clique in enumerate(template.cliques):
        path: Path = (*CLIQUES, number, "spec", "startsAfter")
        if unknown := _unknown(clique, known):
            names = f"no clique is called {shown(', '.join(unknown))}{_those_there(unknown, clique, known, suggestions)}"
            yield Located(f"{spelled(path)}: {names}; startsAfter {UNUSED}", path)
        elif clique.spec.starts_after:
            yield Located(f"{spelled(path)} {UNUSED}", path)


def _known(template: SetTemplate) -> Collection[str]:
    """The names of the cliques, sorted: a set may have very many."""
    return dict.fromkeys(sorted(clique.name for clique in template.cliques))


def _unknown(clique: CliqueTemplate, known: Collection[str]) -> list[str]:
    """The names that a clique starts after and that no clique has."""
    return [name for name in dict.fromkeys(clique.spec.starts_after) if name and name not in known]


def _those_there(unknown: Sequence[str], clique: CliqueTemplate, known: Collection[str], suggestions: Suggestions) -> str:
    """Which names there are instead."""
    return suggestions.instead(unknown, known, clique.name) if len(known) > 1 else f"; there is no clique besides {clique.name}"


def policy_rules() -> Iterator[PolicyRule]:
    """The same as CEL, without circles."""
    path, after = "spec.startsAfter", "c.spec.?startsAfter.orValue([])"
    bad = f"variables.explicit && {after}.exists(n, {{}})"
    yield for_each_clique(bad.format("n == ''"), f"{path}[]", EMPTY)
    yield for_each_clique(bad.format("n != '' && n == c.name"), f"{path}[]", ITSELF)
    yield for_each_clique(bad.format(f"n != '' && {after}.filter(m, m == n).size() > 1"), f"{path}[]", REPEATED)
    yield for_each_clique(bad.format("n != '' && !(n in variables.names)"), path, UNKNOWN)


def circles(dependencies: Dependencies) -> list[tuple[str, ...]]:
    """The circles of dependencies: each a tuple of names in the order of `dependencies`. Every name that occurs must be a key.

    Tarjan's algorithm for strongly connected components, without recursion, in linear time.
    """
    position = {name: number for number, name in enumerate(dependencies)}
    search = _Search(dependencies)
    components = [tuple(sorted(circle, key=position.__getitem__)) for name in dependencies for circle in search.circles_from(name)]
    return sorted(components, key=lambda circle: position[circle[0]])


class _Search:
    """Tarjan's depth-first search: `index` numbers names in the order of their visit, `low` is the smallest index known to be reachable."""

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.index: dict[str, int] = {}
        self.low: dict[str, int] = {}
        self.stack: list[str] = []
        self.on_stack: set[str] = set()

    def circles_from(self, start: str) -> Iterator[list[str]]:
        """The circles among the names that are reachable from `start` and have not been visited."""
        if start in self.index:
            return
        path = [(start, self._enter(start))]
        while path:
            name, others = path[-1]
            for other in others:
                if other not in self.index:
                    path.append((other, self._enter(other)))
                    break
                if other in self.on_stack:
                    self.low[name] = min(self.low[name], self.index[other])
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    self.low[parent] = min(self.low[parent], self.low[name])
                yield from self._leave(name)

    def _enter(self, name: str) -> Iterator[str]:
        """Put a name on the stack; returns an iterator over its dependencies."""
        self.index[name] = self.low[name] = len(self.index)
        self.stack.append(name)
        self.on_stack.add(name)
        return iter(self.dependencies[name])

    def _leave(self, name: str) -> Iterator[list[str]]:
        """Take a component off the stack if `name` is its first member, and yield it if it has several members."""
        if self.low[name] != self.index[name]:
            return
        bottom = len(self.stack) - 1
        while self.stack[bottom] != name:
            bottom -= 1
        circle = self.stack[bottom:]
        del self.stack[bottom:]
        self.on_stack.difference_update(circle)
        if len(circle) > 1:
            yield circle


def added_name_issues(template: SetTemplate) -> Iterator[Issue]:
    """An issue for each volume and container of a clique whose pods would have two of its name."""
    for number, clique in enumerate(template.cliques):
        if _waits(template, number):
            path = (*CLIQUES, number, "spec", "podSpec")
            for field, names in ADDED:
                for index, entry in enumerate(mappings(clique.spec.pod_spec.get(field))):
                    if entry.get("name") in names:
                        yield fault((*path, field, index, "name"), ErrorType.DUPLICATE, TAKEN, entry["name"])


def _waits(template: SetTemplate, number: int) -> bool:
    """Whether the pods of a clique start after those of others."""
    if template.clique_startup_type == "CliqueStartupTypeInOrder":
        return number > 0
    return template.clique_startup_type == "CliqueStartupTypeExplicit" and bool(template.cliques[number].spec.starts_after)
