"""Annotations: finding them in a set whose shape nobody has looked at, and holding an update to what was said when it was made."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.paths import get
from engine.resource import Body
from resources.schema.issues import Child, Fault, Issue, Path

CLIQUES: Final = ("spec", "template", "cliques")
GROUPS: Final = ("spec", "template", "podCliqueScalingGroups")
ON_CLIQUES: Final = "it is read from spec.template.cliques[].annotations"


def annotations_of(body: Body) -> Mapping[str, Any]:
    """The annotations of a set."""
    return mapping(get(body, ("metadata", "annotations"), {}))


def cliques_of(body: Body) -> list[Body]:
    """The cliques of a set's template; what is no clique counts as an empty one, so that places stay what they are."""
    return mappings(get(body, CLIQUES, ()))


def unchangeable(key: str, old: Body, new: Body) -> Iterator[Issue]:
    """What an update does to an annotation of the set that is said once."""
    yield from _unchanged(("metadata", "annotations", Child(key)), key, annotations_of(old), annotations_of(new))


def unchangeable_on_cliques(key: str, old: Body, new: Body) -> Iterator[Issue]:
    """What an update does to an annotation of cliques that is said once. Cliques are told apart by name: their order may change."""
    before = {str(clique.get("name")): clique for clique in cliques_of(old)}
    for number, clique in enumerate(cliques_of(new)):
        was = before.get(str(clique.get("name")))
        if was is not None:
            said = mapping(was.get("annotations")), mapping(clique.get("annotations"))
            yield from _unchanged((*CLIQUES, number, "annotations", key), key, *said)


def misplaced(key: str, body: Body) -> Iterator[str]:
    """Warnings about an annotation that belongs on cliques and stands on the set, or on a scaling group."""
    if key in annotations_of(body):
        yield f"metadata.annotations[{key}] has no effect: {ON_CLIQUES}"
    for number, group in enumerate(mappings(get(body, GROUPS, ()))):
        if key in mapping(group.get("annotations")):
            yield f"spec.template.podCliqueScalingGroups[{number}].annotations[{key}] has no effect: {ON_CLIQUES}"


def _unchanged(path: Path, key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Issue]:
    match key in old, key in new:
        case False, True:
            yield Issue(path, Fault.FORBIDDEN, f"annotation {key} cannot be added after PodCliqueSet creation")
        case True, False:
            yield Issue(path, Fault.FORBIDDEN, f"annotation {key} cannot be removed after PodCliqueSet creation")
        case True, True if old[key] != new[key]:
            told = f'annotation {key} is immutable and cannot be changed from "{old[key]}" to "{new[key]}"'
            yield Issue(path, Fault.INVALID, told, new[key])


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is a map, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Body]:
    """The entries of a list of maps, each in its place."""
    return [mapping(entry) for entry in value] if isinstance(value, list | tuple) else []
