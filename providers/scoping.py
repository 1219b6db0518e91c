"""Scoping: which lists a look is made of, and what of that which they bring is a root, a child or a neighbour."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.ids import Kind
from engine.observed import Live
from engine.runtime.provider import Observation, Scope


class Target(NamedTuple):
    """One list: a kind, in one namespace or (empty) in all, by labels or all of it."""

    kind: Kind
    namespace: str
    labels: str


def targets(scope: Scope) -> Iterator[Target]:
    """The lists that a look at that scope is made of: each kind once, whatever it is there for."""
    for kind in scope.children:
        if kind not in scope.references:
            yield from (Target(kind, namespace, scope.selector) for namespace in scope.namespaces or ("",))
    for kind in dict.fromkeys((*scope.references, *scope.roots)):
        yield from (Target(kind, namespace, "") for namespace in (scope.namespaces if kind.namespaced else ()) or ("",))


def sighting(
    scope: Scope, found: Iterable[tuple[Kind, Iterable[Live]]], incomplete: Mapping[str, str] | None = None, unserved: Iterable[str] = ()
) -> Observation:
    """What these lists bring to a look at that scope."""
    roots: list[Live] = []
    children: list[Live] = []
    references: list[Live] = []
    for kind, lives in found:
        listed = list(lives)
        if kind in scope.roots:
            roots += listed
        if kind in scope.references:
            references += listed
        if kind in scope.children:
            children += listed if kind not in scope.references else children_among(listed, scope)
    return Observation(roots, children, dict(sorted((incomplete or {}).items())), references, frozenset(unserved))


def is_of(one: Live, kinds: Sequence[Kind]) -> bool:
    """Whether the object is of one of the kinds."""
    return any((kind.group, kind.name) == (one.id.group, one.id.kind) for kind in kinds)


def children_among(lives: Iterable[Live], scope: Scope) -> tuple[Live, ...]:
    """Those that are of a kind of children, and carry our children's labels."""
    return tuple(one for one in lives if is_labelled(one, scope.selector) and is_of(one, scope.children))


def is_labelled(one: Live, selector: str) -> bool:
    """Whether the selector, which is made of equalities, selects the object."""
    return _wanted(selector).items() <= one.labels.items()


def _wanted(selector: str) -> Mapping[str, str]:
    """The labels of a selector made of equalities."""
    return dict(part.split("=", 1) for part in selector.replace("==", "=").split(",") if "=" in part)
