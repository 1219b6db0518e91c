"""Annotations: rules for annotations of a set: immutable ones, and keys that have no effect because of their place or spelling.

Bodies need not have the shape of a set.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.paths import get
from engine.resource import Body
from resources.base.fields import CLIQUES, GROUPS, TEMPLATE, annotations_of, cliques_of, mapping, mappings
from resources.ports.fabric import Place
from resources.schema.issues import Child, ErrorType, Issue, Located, Path, spelled

PUNCTUATION: Final = str.maketrans("", "", "-_.")
"""Removes the characters that do not count when misspelled keys are recognised."""


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


def misplaced(key: str, body: Body, places: Sequence[Place] = (Place.CLIQUE,), hint: str = "") -> Iterator[Located]:
    """A warning for each key of a set that is probably meant to be this annotation and has no effect (N35).

    That is the key in another place than `places`, as a label instead of an annotation, or spelled with other upper and lower case letters,
    or with other `-`, `_` and `.`. `hint` is added to the warnings about other places.
    """
    letters = _letters(key)
    for keys in _all_keys(body):
        for written in keys.written:
            if _letters(written) != letters or (written == key and keys.place in places):
                continue
            faults = (
                "" if written == key else f"the annotation is {key}",
                "it is an annotation, not a label" if keys.path[-1] == "labels" else "",
                "" if keys.place in places else f"it is read from {' or '.join(places)}",
                "" if keys.near in places else hint,
            )
            path = (*keys.path, written)
            yield Located(f"{spelled(path)} has no effect: {'; '.join(filter(None, faults))}", path)


class _Keys(NamedTuple):
    """The keys of one map of annotations or labels."""

    path: Path
    place: Place | None
    """The place that the map is; None if it is one of labels, or if annotations there have no effect whatever their key."""
    near: Place | None
    """The place of the annotations of the same part of the set; None if it has none."""
    written: tuple[str, ...]


def written_keys(body: Body) -> Iterator[Path]:
    """The path of every annotation and label that a set has, and of those that users add to parts of it by mistake."""
    return ((*keys.path, written) for keys in _all_keys(body) for written in keys.written)


def _all_keys(body: Body) -> Iterator[_Keys]:
    """Every map of annotations or labels that a set has, and those that users add to parts of it by mistake."""
    for path, part, near in _parts(body):
        for metadata in ((), ("metadata",)):
            for field in ("annotations", "labels"):
                # The annotations of the set are in its metadata, those of the parts of its template are not.
                is_place = field == "annotations" and bool(metadata) == (near is Place.SET)
                written = tuple(mapping(get(part, (*metadata, field))))
                yield _Keys((*path, *metadata, field), near if is_place else None, near, written)


def _parts(body: Body) -> Iterator[tuple[Path, Body, Place | None]]:
    """The parts of a set that have annotations, or that users may believe to have some: path, part, and the place of its annotations."""
    yield (), body, Place.SET
    yield ("spec",), mapping(body.get("spec")), None
    yield TEMPLATE, mapping(get(body, TEMPLATE)), None
    for number, group in enumerate(mappings(get(body, GROUPS, ()))):
        yield (*GROUPS, number), group, Place.GROUP
    for number, clique in enumerate(cliques_of(body)):
        yield (*CLIQUES, number), clique, Place.CLIQUE
        yield (*CLIQUES, number, "spec"), mapping(clique.get("spec")), None
        yield (*CLIQUES, number, "spec", "podSpec"), mapping(get(clique, ("spec", "podSpec"))), None


def _letters(key: str) -> str:
    """What remains of a key when upper case, `-`, `_` and `.` do not count."""
    return key.translate(PUNCTUATION).casefold()


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
