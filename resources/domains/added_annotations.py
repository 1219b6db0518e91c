"""Added annotations: annotations for domains that somebody has added to PodCliques, where they have no effect."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from engine.ids import ResourceId
from engine.observed import Live, Observed
from resources.base import kinds, labels
from resources.base.fields import annotations_of, cliques_of, mapping
from resources.base.texts import some
from resources.ports.configuration import Configuration
from resources.ports.fabric import Annotation

MAX_NAMES: Final = 3
"""The largest number of PodCliques that a note names."""


class AddedAnnotation(Struct, frozen=True):
    """An annotation of a fabric that PodCliques of a set have and the set's template has not."""

    annotation: Annotation
    podcliques: tuple[ResourceId, ...]

    @property
    def note(self) -> str:
        """The fact in one sentence, and from where the annotation is read."""
        listed = some((podclique.name for podclique in self.podcliques), MAX_NAMES)
        subject = f"PodClique{'s' if len(self.podcliques) > 1 else ''} {listed}"
        reading = f"it is read from {' or '.join(self.annotation.places)} of the PodCliqueSet"
        return f"{subject}: annotation {self.annotation.key} has no effect there: {reading}"


def added_annotations(observed: Observed, configuration: Configuration) -> Iterator[AddedAnnotation]:
    """The added annotations of a root; none for one that is not a PodCliqueSet.

    A PodClique gets the annotations of its clique in the template. Which domains its pods join follows from the template alone (N20, N35).
    """
    known = {annotation.key: annotation for fabric in configuration.fabrics for annotation in fabric.annotations}
    if not known or observed.root.id.kind != kinds.PODCLIQUESET.name:
        return
    body = observed.proposal or observed.root.body
    specified = {str(clique.get("name")): mapping(clique.get("annotations")) for clique in cliques_of(body)}
    additions: dict[str, list[ResourceId]] = {}
    for live in (live for part in observed.slices.values() for live in part.of(kinds.PODCLIQUE.name)):
        of_template = specified.get(_clique_of(live, observed.root.id.name), {})
        for key in known.keys() & annotations_of(live.body).keys() - of_template.keys():
            additions.setdefault(key, []).append(live.id)
    yield from (AddedAnnotation(known[key], tuple(sorted(ids))) for key, ids in sorted(additions.items()))


def _clique_of(live: Live, root: str) -> str:
    """The name of the clique in the template of the set `root` that a PodClique was created for."""
    group = live.labels.get(labels.SCALING_GROUP)
    owner, key = (group, labels.GROUP_REPLICA_INDEX) if group else (root, labels.REPLICA_INDEX)
    return live.id.name.removeprefix(f"{owner}-{live.labels.get(key, '')}-")
