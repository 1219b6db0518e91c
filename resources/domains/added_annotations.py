"""Added annotations: annotations for domains that a user has added to PodCliques or PodCliqueScalingGroups, where they have no effect.

They neither let pods join a domain nor take a single replica out of one.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.paths import get
from engine.plan import Alarm
from engine.report.printable import some
from resources.base import kinds, labels
from resources.base.fields import GROUPS, annotations_of, cliques_of, mapping, mappings
from resources.model.domain import specified_in
from resources.model.view import View
from resources.ports.configuration import Configuration
from resources.ports.fabric import Annotation, Fabric

MAX_NAMES: Final = 3
"""The largest number of objects that a note names."""
CHILDREN: Final = (kinds.PODCLIQUE.name, kinds.SCALING_GROUP.name)


class AddedAnnotation(Struct, frozen=True):
    """An annotation of a fabric that objects of a set have and the set's template has not."""

    annotation: Annotation
    objects: tuple[ResourceId, ...]
    """PodCliques, or PodCliqueScalingGroups."""

    @property
    def note(self) -> str:
        """The fact in one sentence, and from where the annotation is read."""
        listed = some((each.name for each in self.objects), MAX_NAMES)
        subject = f"{self.objects[0].kind}{'s' if len(self.objects) > 1 else ''} {listed}"
        reading = f"it is read from {' or '.join(self.annotation.places)} of the PodCliqueSet"
        hint = f"; {self.annotation.hint}" if self.annotation.hint else ""
        return f"{subject}: annotation {self.annotation.key} has no effect there: {reading}{hint}"


def added_annotations(observed: Observed, configuration: Configuration) -> Iterator[AddedAnnotation]:
    """The added annotations of a root; none for one that is not a PodCliqueSet.

    A PodClique gets the annotations of its clique in the template, a PodCliqueScalingGroup those of its entry, and those of the set that
    are for it. Which domains pods join follows from the set alone (N20, N35).
    """
    known = _known(configuration)
    if not known or observed.root.id.kind != kinds.PODCLIQUESET.name:
        return
    specified = _specified(observed, configuration)
    additions: dict[tuple[str, str], list[ResourceId]] = {}
    for live in (live for part in observed.slices.values() for kind in CHILDREN for live in part.of(kind)):
        of_template = specified.get((live.id.kind, _name_in_template(live, observed.root.id.name)), ())
        for key in _added(live, known, of_template):
            additions.setdefault((live.id.kind, key), []).append(live.id)
    yield from (AddedAnnotation(known[key][1], tuple(sorted(ids))) for (_, key), ids in sorted(additions.items(), reverse=True))


def alarms(view: View) -> Iterator[Alarm]:
    """An Event for each added annotation of the objects of a replica: about the object that has it. They change the state of nothing."""
    known = _known(view.configuration)
    objects = (
        *((clique.live, clique.clique.annotations) for clique in view.cliques),
        *((group.live, group.group.annotations) for group in view.groups),
    )
    for live, of_template in objects:
        if live is None or not known:
            continue
        for key in _added(live, known, of_template):
            fabric, annotation = known[key]
            note = AddedAnnotation(annotation, (live.id,)).note
            yield Alarm(f"{fabric.kind.name}AnnotationIgnored", note, about=live.id, remark=True)


def _known(configuration: Configuration) -> Mapping[str, tuple[Fabric, Annotation]]:
    """The keys of the annotations that fabrics read."""
    return {annotation.key: (fabric, annotation) for fabric in configuration.fabrics for annotation in fabric.annotations}


def _added(live: Live, known: Mapping[str, object], of_template: Iterable[str]) -> list[str]:
    """The keys among the known ones that an object has and its template has not, sorted."""
    return sorted((known.keys() & annotations_of(live.body).keys()).difference(of_template))


def _specified(observed: Observed, configuration: Configuration) -> Mapping[tuple[str, str], frozenset[str]]:
    """Kind and name in the template -> the keys of the annotations that the set has for such objects."""
    body = observed.proposal or observed.root.body
    of_set = specified_in(body).annotations
    inherited = frozenset(key for fabric in configuration.fabrics for key in fabric.group_annotations(of_set))
    cliques = {(kinds.PODCLIQUE.name, str(each.get("name"))): _keys(each) for each in cliques_of(body)}
    groups = {(kinds.SCALING_GROUP.name, str(each.get("name"))): _keys(each) | inherited for each in mappings(get(body, GROUPS, ()))}
    return cliques | groups


def _keys(entry: Mapping[str, object]) -> frozenset[str]:
    return frozenset(map(str, mapping(entry.get("annotations"))))


def _name_in_template(live: Live, root: str) -> str:
    """The name in the template of the set `root` that a PodClique or PodCliqueScalingGroup was created for."""
    group = live.labels.get(labels.SCALING_GROUP) if live.id.kind == kinds.PODCLIQUE.name else None
    owner, key = (group, labels.GROUP_REPLICA_INDEX) if group else (root, labels.REPLICA_INDEX)
    return live.id.name.removeprefix(f"{owner}-{live.labels.get(key, '')}-")
