"""Annotations: rules for annotations of a set: immutable ones, and annotations in a place where they have no effect.

Bodies need not have the shape of a set.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.paths import get
from engine.resource import Body
from resources.base.fields import CLIQUES, GROUPS, annotations_of, mapping, mappings
from resources.schema.issues import Child, ErrorType, Issue, Path

ON_CLIQUES: Final = "it is read from spec.template.cliques[].annotations"


AFTER_SET_CREATION: Final = "after PodCliqueSet creation"
AFTER_CREATION: Final = "after creation"
"""From when on an annotation is immutable, in the words of the message: of annotations of sets, and as current Grove writes it."""


def immutable(key: str, old: Body, new: Body, *, after: str = AFTER_SET_CREATION) -> Iterator[Issue]:
    """An issue if an update adds, removes or changes this annotation of the set."""
    yield from _change_issues(("metadata", "annotations", Child(key)), key, annotations_of(old), annotations_of(new), after)


def immutable_on_cliques(key: str, old: Body, new: Body, *, after: str = AFTER_SET_CREATION) -> Iterator[Issue]:
    """An issue for each clique on which an update adds, removes or changes this annotation. Cliques are matched by name."""
    yield from _immutable_on_entries(key, CLIQUES, old, new, after)


def immutable_on_groups(key: str, old: Body, new: Body, *, after: str = AFTER_SET_CREATION) -> Iterator[Issue]:
    """An issue for each scaling group on which an update adds, removes or changes this annotation. Groups are matched by name."""
    yield from _immutable_on_entries(key, GROUPS, old, new, after)


def misplaced(key: str, body: Body) -> Iterator[str]:
    """A warning for each place, on the set or on a scaling group, of an annotation that is read from cliques only."""
    if key in annotations_of(body):
        yield f"metadata.annotations[{key}] has no effect: {ON_CLIQUES}"
    for number, group in enumerate(mappings(get(body, GROUPS, ()))):
        if key in mapping(group.get("annotations")):
            yield f"spec.template.podCliqueScalingGroups[{number}].annotations[{key}] has no effect: {ON_CLIQUES}"


def _immutable_on_entries(key: str, field: tuple[str, ...], old: Body, new: Body, after: str) -> Iterator[Issue]:
    old_by_name = {str(entry.get("name")): entry for entry in mappings(get(old, field, ()))}
    for number, entry in enumerate(mappings(get(new, field, ()))):
        previous = old_by_name.get(str(entry.get("name")))
        if previous is not None:
            path: Path = (*field, number, "annotations", key)
            yield from _change_issues(path, key, mapping(previous.get("annotations")), mapping(entry.get("annotations")), after)


def _change_issues(path: Path, key: str, old: Mapping[str, Any], new: Mapping[str, Any], after: str) -> Iterator[Issue]:
    match key in old, key in new:
        case False, True:
            yield Issue(path, ErrorType.FORBIDDEN, f"annotation {key} cannot be added {after}")
        case True, False:
            yield Issue(path, ErrorType.FORBIDDEN, f"annotation {key} cannot be removed {after}")
        case True, True if old[key] != new[key]:
            message = f'annotation {key} is immutable and cannot be changed from "{old[key]}" to "{new[key]}"'
            yield Issue(path, ErrorType.INVALID, message, new[key])
