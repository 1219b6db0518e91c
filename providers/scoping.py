"""Scoping: what of a pile of objects a look is meant to bring."""

from collections.abc import Iterable, Mapping, Sequence

from engine.ids import Kind
from engine.observed import Live
from engine.runtime.provider import Scope


def is_of(one: Live, kinds: Sequence[Kind]) -> bool:
    """Whether the object is of one of the kinds."""
    return any((kind.group, kind.name) == (one.id.group, one.id.kind) for kind in kinds)


def children_among(lives: Iterable[Live], scope: Scope) -> tuple[Live, ...]:
    """Those that are of a kind of children, and carry our children's labels."""
    labels = _wanted(scope.selector)
    return tuple(one for one in lives if labels.items() <= one.labels.items() and is_of(one, scope.children))


def _wanted(selector: str) -> Mapping[str, str]:
    """The labels of a selector made of equalities."""
    return dict(part.split("=", 1) for part in selector.replace("==", "=").split(",") if "=" in part)
