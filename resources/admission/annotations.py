"""Annotations: rules for annotations of a set: immutable ones, and keys that have no effect because of their place or spelling."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from engine.paths import get
from engine.resource import Body
from resources.admission.cel import for_each_clique, for_each_group, on_update, rule, text
from resources.base.fields import CLIQUES, GROUPS, TEMPLATE, cliques_of, mapping, mappings
from resources.ports.fabric import Place, PolicyRule, SpecifiedClique, SpecifiedGroup, SpecifiedSet, WrittenKeys
from resources.schema.issues import Child, ErrorType, Issue, Located, Path, spelled

PUNCTUATION: Final = str.maketrans("", "", "-_.")
"""Removes the characters that do not count when misspelled keys are recognised."""


AFTER_SET_CREATION: Final = "after PodCliqueSet creation"
AFTER_CREATION: Final = "after creation"
"""From when on an annotation is immutable, in the words of the message: of annotations of sets, and as current Grove writes it."""


ADDED: Final = "annotation {key} cannot be added {after}"
REMOVED: Final = "annotation {key} cannot be removed {after}"
CHANGED: Final = 'annotation {key} is immutable and cannot be changed from "{old}" to "{new}"'


def immutable(key: str, old: SpecifiedSet, new: SpecifiedSet, *, after: str = AFTER_SET_CREATION) -> Iterator[Issue]:
    """An issue if an update adds, removes or changes this annotation of the set."""
    yield from _change_issues(("metadata", "annotations", Child(key)), key, old.annotations, new.annotations, after)


def immutable_on_cliques(key: str, old: SpecifiedSet, new: SpecifiedSet, *, after: str = AFTER_SET_CREATION) -> Iterator[Issue]:
    """An issue for each clique on which an update adds, removes or changes this annotation. Cliques are matched by name."""
    yield from _immutable_on_entries(key, CLIQUES, old.cliques, new.cliques, after)


def immutable_on_groups(key: str, old: SpecifiedSet, new: SpecifiedSet, *, after: str = AFTER_SET_CREATION) -> Iterator[Issue]:
    """An issue for each scaling group on which an update adds, removes or changes this annotation. Groups are matched by name."""
    yield from _immutable_on_entries(key, GROUPS, old.groups, new.groups, after)


def misplaced(key: str, written: Iterable[WrittenKeys], places: Sequence[Place] = (Place.CLIQUE,), hint: str = "") -> Iterator[Located]:
    """A warning for each of the keys of a set that is probably meant to be this annotation and has no effect (N35).

    That is the key in another place than `places`, as a label instead of an annotation, or spelled with other upper and lower case letters,
    or with other `-`, `_` and `.`. `hint` is added to the warnings about other places.
    """
    letters = _letters(key)
    for part in written:
        for candidate in part.keys:
            if _letters(candidate) != letters or (candidate == key and part.place in places):
                continue
            faults = (
                "" if candidate == key else f"the annotation is {key}",
                "it is an annotation, not a label" if part.path[-1] == "labels" else "",
                "" if part.place in places else f"it is read from {' or '.join(places)}",
                "" if part.near in places else hint,
            )
            path = (*part.path, candidate)
            yield Located(f"{spelled(path)} has no effect: {'; '.join(filter(None, faults))}", path)


def written_keys(body: Body) -> tuple[WrittenKeys, ...]:
    """The keys in every map of annotations or labels that a set has, and in those that users add to parts of it by mistake.

    They are read from an object of any shape: models have no fields for what users add by mistake. Maps without keys are left out.
    """
    return tuple(_written_keys(body))


def _written_keys(body: Body) -> Iterator[WrittenKeys]:
    for path, part, near in _parts(body):
        for metadata in ((), ("metadata",)):
            for field in ("annotations", "labels"):
                if keys := tuple(mapping(get(part, (*metadata, field)))):
                    # The annotations of the set are in its metadata, those of the parts of its template are not.
                    is_place = field == "annotations" and bool(metadata) == (near is Place.SET)
                    yield WrittenKeys((*path, *metadata, field), near if is_place else None, near, keys)


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


def _immutable_on_entries(
    key: str,
    field: tuple[str, ...],
    old: Iterable[SpecifiedClique | SpecifiedGroup],
    new: Iterable[SpecifiedClique | SpecifiedGroup],
    after: str,
) -> Iterator[Issue]:
    before = {entry.name: entry.annotations for entry in old}
    for number, entry in enumerate(new):
        if entry.name in before:
            yield from _change_issues((*field, number, "annotations", key), key, before[entry.name], entry.annotations, after)


def _change_issues(path: Path, key: str, old: Mapping[str, str], new: Mapping[str, str], after: str) -> Iterator[Issue]:
    match key in old, key in new:
        case False, True:
            yield Issue(path, ErrorType.FORBIDDEN, ADDED.format(key=key, after=after))
        case True, False:
            yield Issue(path, ErrorType.FORBIDDEN, REMOVED.format(key=key, after=after))
        case True, True if old[key] != new[key]:
            message = CHANGED.format(key=key, old=old[key], new=new[key])
            yield Issue(path, ErrorType.INVALID, message, new[key])


def immutable_rules(key: str, *, after: str = AFTER_SET_CREATION) -> Iterator[PolicyRule]:
    """`immutable` as CEL."""
    for bad, reason in _changes(f"variables.oldAnnotations[?{text(key)}]", f"variables.annotations[?{text(key)}]", key, after):
        yield on_update(rule(bad, f"metadata.annotations.{key}", reason))


def immutable_rules_for_cliques(key: str, *, after: str = AFTER_SET_CREATION) -> Iterator[PolicyRule]:
    """`immutable_on_cliques` as CEL."""
    for bad, reason in _changes(f"o.?annotations[?{text(key)}]", f"c.?annotations[?{text(key)}]", key, after):
        yield on_update(for_each_clique(f"variables.oldCliques.exists(o, o.name == c.name && {bad})", _field(key), reason))


def immutable_rules_for_groups(key: str, *, after: str = AFTER_SET_CREATION) -> Iterator[PolicyRule]:
    """`immutable_on_groups` as CEL."""
    for bad, reason in _changes(f"o.?annotations[?{text(key)}]", f"g.?annotations[?{text(key)}]", key, after):
        yield on_update(for_each_group(f"variables.oldGroups.exists(o, o.name == g.name && {bad})", _field(key), reason))


def _changes(old: str, new: str, key: str, after: str) -> Iterator[tuple[str, str]]:
    """What must not happen to an annotation, as CEL about two optional values, and the reason."""
    yield f"!{old}.hasValue() && {new}.hasValue()", ADDED.format(key=key, after=after)
    yield f"{old}.hasValue() && !{new}.hasValue()", REMOVED.format(key=key, after=after)
    yield f"{old}.hasValue() && {new}.hasValue() && {old} != {new}", CHANGED.format(key=key, old="…", new="…")


def _field(key: str) -> str:
    return spelled(("annotations", key))
