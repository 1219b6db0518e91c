"""Scoping: the lists that cover a scope, and which of the listed objects are roots, children and references."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from engine.ids import Kind
from engine.observed import NOTHING_UNLISTED, Live, Unlisted
from engine.runtime.provider import Observation, Scope


class Target(NamedTuple):
    """One list: a kind, in one namespace or (empty) in all, with a label selector or (empty) without."""

    kind: Kind
    namespace: str
    labels: str


def targets(scope: Scope) -> Iterator[Target]:
    """The lists that cover a scope. A kind that is a child and a reference is listed once, without a selector."""
    for kind in scope.children:
        if kind not in scope.references:
            yield from (Target(kind, namespace, scope.selector) for namespace in scope.namespaces or ("",))
    for kind in dict.fromkeys((*scope.references, *scope.roots)):
        yield from (Target(kind, namespace, "") for namespace in (scope.namespaces if kind.namespaced else ()) or ("",))


def observation(
    scope: Scope,
    listed: Iterable[tuple[Kind, Iterable[Live]]],
    incomplete: Mapping[str, Unlisted] = NOTHING_UNLISTED,
    unserved: Iterable[str] = (),
) -> Observation:
    """The observation that these lists make up. Of a shard: lists of namespaced kinds must have been limited to it (`in_scope`)."""
    roots: list[Live] = []
    children: list[Live] = []
    references: list[Live] = []
    for kind, objects in listed:
        lives = list(objects)
        if kind in scope.references:
            references += lives
        if scope.shard is not None and not kind.namespaced and not scope.shard.contains(""):
            continue
        if kind in scope.roots:
            roots += lives
        if kind in scope.children:
            children += lives if kind not in scope.references else children_among(lives, scope)
    return Observation(roots, children, dict(sorted(incomplete.items())), references, frozenset(unserved))


def in_scope(kind: Kind, lives: Sequence[Live], scope: Scope) -> Sequence[Live]:
    """The objects of a namespaced kind that are in the scope's shard; of any other kind, and without a shard, all of them."""
    if scope.shard is None or not kind.namespaced:
        return lives
    return [live for live in lives if scope.shard.contains(live.id.namespace)]


def is_of(live: Live, kinds: Sequence[Kind]) -> bool:
    """Whether the object is of one of the kinds."""
    return any((kind.group, kind.name) == (live.id.group, live.id.kind) for kind in kinds)


def children_among(lives: Iterable[Live], scope: Scope) -> tuple[Live, ...]:
    """The objects that are of a kind of children and carry our children's labels."""
    return tuple(live for live in lives if is_labelled(live, scope.selector) and is_of(live, scope.children))


def is_labelled(live: Live, selector: str) -> bool:
    """Whether the selector, `key=value` or `key in (value,…)`, selects the object; an empty one selects everything."""
    key, values = _requirement(selector)
    return not key or live.labels.get(key) in values


@lru_cache(maxsize=16)
def _requirement(selector: str) -> tuple[str, frozenset[str]]:
    """The key and the values of a selector."""
    key, separator, values = selector.partition(" in ")
    if not separator:
        key, _, values = selector.partition("=")
    return key, frozenset(value.strip() for value in values.strip("()").split(","))
