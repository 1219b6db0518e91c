"""Release rules: the annotation of a set that says when its fabric domains are released although the set exists."""

from collections.abc import Iterator
from typing import Final

from engine.resource import Body
from resources.admission.annotations import misplaced
from resources.base import labels
from resources.base.fields import annotations_of
from resources.ports.fabric import Place
from resources.schema.issues import Child, ErrorType, Issue, Path

PATH: Final[Path] = ("metadata", "annotations", Child(labels.RELEASE_DOMAINS))


def issues(new: Body, old: Body | None = None) -> Iterator[Issue]:
    """An issue if the annotation has another value than the one that there is (N33); a stored one does not prevent updates."""
    value = annotations_of(new).get(labels.RELEASE_DOMAINS, labels.ON_COMPLETION)
    if value != labels.ON_COMPLETION and value != annotations_of(old or {}).get(labels.RELEASE_DOMAINS):
        yield Issue(PATH, ErrorType.INVALID, f'must be "{labels.ON_COMPLETION}"', value)


def warnings(body: Body) -> Iterator[str]:
    """The annotation in a place or a spelling in which it has no effect (N35)."""
    yield from misplaced(labels.RELEASE_DOMAINS, body, (Place.SET,))
