"""Removal rules: the annotations of a set that keep commands from removing it, where they have no effect."""

from collections.abc import Iterator

from engine.resource import Body
from resources.admission.annotations import misplaced
from resources.base import labels
from resources.ports.fabric import Place


def warnings(body: Body) -> Iterator[str]:
    """The annotations in a place or a spelling in which they protect nothing."""
    for key in (labels.PROTECT, labels.PRUNE):
        yield from misplaced(key, body, (Place.SET,))
