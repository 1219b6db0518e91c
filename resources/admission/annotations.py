"""Annotations: reads annotations of a set whose shape is not validated yet, and rejects changes of immutable annotations."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.paths import get
from engine.resource import Body
from resources.schema.issues import Child, ErrorType, Issue, Path

CLIQUES: Final = ("spec", "template", "cliques")
GROUPS: Final = ("spec", "template", "podCliqueScalingGroups")
ON_CLIQUES: Final = "it is read from spec.template.cliques[].annotations"


def annotations_of(body: Body) -> Mapping[str, Any]:
    """The annotations of a set; empty if they are not a map."""
    return mapping(get(body, ("metadata", "annotations"), {}))


def cliques_of(body: Body) -> list[Body]:
    """The cliques of a set's template. An entry that is not a map becomes an empty one, so that indices are kept."""
    return mappings(get(body, CLIQUES, ()))


def immutable(key: str, old: Body, new: Body) -> Iterator[Issue]:
    """An issue if an update adds, removes or changes this annotation of the set."""
    yield from _unchanged(("metadata", "annotations", Child(key)), key, annotations_of(old), annotations_of(new))


def immutable_on_cliques(key: str, old: Body, new: Body) -> Iterator[Issue]:
    """An issue for each clique on which an update adds, removes or changes this annotation. Cliques are matched by name."""
    old_by_name = {str(clique.get("name")): clique for clique in cliques_of(old)}
    for number, clique in enumerate(cliques_of(new)):
        previous = old_by_name.get(str(clique.get("name")))
        if previous is not None:
            path = (*CLIQUES, number, "annotations", key)
            yield from _unchanged(path, key, mapping(previous.get("annotations")), mapping(clique.get("annotations")))


def misplaced(key: str, body: Body) -> Iterator[str]:
    """A warning if an annotation that is read from cliques is on the set or on a scaling group."""
    if key in annotations_of(body):
        yield f"metadata.annotations[{key}] has no effect: {ON_CLIQUES}"
    for number, group in enumerate(mappings(get(body, GROUPS, ()))):
        if key in mapping(group.get("annotations")):
            yield f"spec.template.podCliqueScalingGroups[{number}].annotations[{key}] has no effect: {ON_CLIQUES}"


def _unchanged(path: Path, key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Issue]:
    match key in old, key in new:
        case False, True:
            yield Issue(path, ErrorType.FORBIDDEN, f"annotation {key} cannot be added after PodCliqueSet creation")
        case True, False:
            yield Issue(path, ErrorType.FORBIDDEN, f"annotation {key} cannot be removed after PodCliqueSet creation")
        case True, True if old[key] != new[key]:
            message = f'annotation {key} is immutable and cannot be changed from "{old[key]}" to "{new[key]}"'
            yield Issue(path, ErrorType.INVALID, message, new[key])


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a map, else an empty map."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Body]:
    """The entries of a list; an entry that is not a map becomes an empty one. Empty if the value is no list."""
    return [mapping(entry) for entry in value] if isinstance(value, list | tuple) else []
