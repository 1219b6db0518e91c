"""Unknown fields: the fields of an object that a model does not define, each with the nearest field that it does define."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final, TypeVar, get_args, get_origin

from msgspec import Struct

from engine.report.printable import clipped
from resources.base.fields import mapping
from resources.schema.issues import Issue, Path, spelled
from resources.schema.published import EXTENDED, definitions
from resources.schema.wire import Wire

SIMILARITY: Final = 0.8
"""How alike two names must be for a suggestion, from 0 to 1: a typing error is, another word is not."""
SHORT_SIMILARITY: Final = 0.7
"""The same for names of at most `SHORT_NAME` characters, of which one typing error is a larger part."""
SHORT_NAME: Final = 8
LONGEST_NAME: Final = 64
"""Longer names are never a typing error of a field, and comparing them takes long."""
MAX_SHOWN = 100
"""The largest number of characters of a name in a message."""
DOCUMENT = "api/v1"
"""The group and version whose OpenAPI document has the types of pods."""
MOST: Final = 10
"""The largest number of names that are listed; of the others the number is given."""
ROOTS: Final = ("PodSpec", "ResourceClaimSpec")
"""The published types whose fields manifests have."""
EXTRA: Final = "ExtraPodSpec"
"""That of a service of a graph."""
OF_EVERY_OBJECT: Final = frozenset({"metadata", "spec", "status"})
"""Fields that are on several levels."""
NEVER_SET: Final = frozenset({("readinessProbe", "terminationGracePeriodSeconds")})
"""Fields below another one that their type has and the API server refuses: it is the type of other fields, too."""
MOST_LEVELS: Final = 3
"""The largest number of fields on other levels that a message names."""
MOST_SUGGESTED: Final = 20
"""The largest number of names of one manifest for which the most similar one is looked for, where there may be very many."""
MOST_COMPARED: Final = 100
"""The largest number of known names with which a name is compared."""


T = TypeVar("T")


class UnknownField(Struct, frozen=True):
    """A field that is not defined, and the path of the nearest field at that place, or None."""

    path: Path
    nearest: Path | None = None

    def __str__(self) -> str:
        """One line, e.g. `network.autoMnnvlEnabled is unknown and ignored; did you mean network.autoMNNVLEnabled?`."""
        suggestion = f"; did you mean {spelled(self.nearest)}?" if self.nearest else ""
        return f"{spelled(self.path)} is unknown and ignored{suggestion}"


def unknown_fields(value: Any, model: type[Wire], path: Path = ()) -> Iterator[UnknownField]:
    """The fields of an object that its model does not define, at any depth. A value of a wrong type has none."""
    if not isinstance(value, Mapping):
        return
    models = models_below(model)
    for key, below in value.items():
        if key not in models:
            yield UnknownField((*path, key), nearest(key, models, path))
        elif (inner := models[key]) is not None:
            yield from unknown_fields(below, inner, (*path, key))
            for index, entry in enumerate(below if isinstance(below, list | tuple) else ()):
                yield from unknown_fields(entry, inner, (*path, key, index))


def unknown_paths(value: Any, model: type[Wire], path: Path = ()) -> Iterator[Path]:
    """The paths of the fields of an object that its model does not define, at any depth; a null counts as absent.

    Fields come after those of the parts that the model defines, as in the errors of the model.
    """
    if not isinstance(value, Mapping):
        return
    models = models_below(model)
    for key, inner in models.items():
        below = value.get(key)
        if inner is not None:
            for place, entry in _objects(below, is_map=key in maps_below(model)):
                yield from unknown_paths(entry, inner, (*path, key, *place))
    yield from ((*path, key) for key, entry in value.items() if key not in models and entry is not None)


def _objects(value: Any, *, is_map: bool) -> Iterator[tuple[Path, Any]]:
    """The objects of a field, with their paths below it: itself, or the entries of a list or a map."""
    if is_map:
        yield from (((key,), entry) for key, entry in mapping(value).items())
    elif isinstance(value, list | tuple):
        yield from (((index,), entry) for index, entry in enumerate(value))
    else:
        yield (), value


def nearest_field(path: Path, model: type[Wire]) -> str:
    """The field that is nearest to that of a path below a model: of the same name on another level, or the most similar name.

    Empty if none is, or no model has that path.
    """
    holders: list[type[Wire] | None] = [model]
    is_name = False
    for key in path[:-1]:
        holder = holders[-1]
        if is_name or isinstance(key, int) or holder is None:
            holders.append(holder)
            is_name = False
        else:
            holders.append(models_below(holder).get(key))
            is_name = key in maps_below(holder)
    if holders[-1] is None:
        return ""
    return on_another_level(path, holders, models_below, parts_of) or nearest_name(str(path[-1]), models_below(holders[-1])) or ""


def on_another_level(
    path: Path,
    holders: Sequence[T | None],
    fields: Callable[[T], Mapping[str, T | None]],
    parts: Callable[[T], Mapping[str, T]],
) -> str:
    """The known fields with the name of an unknown one: those in the objects beside it, from there on, or else that on the nearest level
    above it, with its path.

    `holders`: the type of each part of the path; `fields`: those of a type; `parts`: those that are objects. Empty if there are none.
    """
    key = str(path[-1])
    if key in OF_EVERY_OBJECT:
        return ""
    beside = parts(holder).items() if (holder := holders[-1]) is not None else ()
    settable = (name for name, inner in beside if name != "status" and key in fields(inner) and (name, key) not in NEVER_SET)
    if below := [spelled((name, key)) for name in settable]:
        return " or ".join(below[:MOST_LEVELS])
    levels = ((depth, holder) for depth, holder in enumerate(holders[:-1]) if holder is not None and isinstance(path[depth], str))
    higher = [spelled((*path[:depth], key)) for depth, holder in levels if key in fields(holder)]
    return higher[-1] if higher else ""


@cache
def models_below(model: type[Wire]) -> Mapping[str, type[Wire] | None]:
    """Each field of a model by its key, with the model of its value or of the entries of its list; None if it has none."""
    return {field.alias or name: model_in(field.annotation) for name, field in model.model_fields.items()}


@cache
def maps_below(model: type[Wire]) -> frozenset[str]:
    """The fields of a model, by their keys, that are maps of objects with a model."""
    return frozenset(
        field.alias or name
        for name, field in model.model_fields.items()
        if get_origin(field.annotation) is dict and model_in(field.annotation)
    )


def model_in(annotation: Any) -> type[Wire] | None:
    """The model in a type such as `Network`, `tuple[Profile, ...]` or `Annotated[tuple[Profile, ...], …]`."""
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        return annotation
    return next((model for model in map(model_in, get_args(annotation)) if model), None)


@cache
def parts_of(model: type[Wire]) -> Mapping[str, type[Wire]]:
    """Each field of a model that is an object with a model, by its key, with that model."""
    return {
        field.alias or name: inner
        for name, field in model.model_fields.items()
        if (inner := model_in(field.annotation)) and not {list, tuple, dict} & origins(field.annotation)
    }


def origins(annotation: Any) -> set[Any]:
    """The generic types in a type, at any depth."""
    return {get_origin(annotation), *(origin for inner in get_args(annotation) for origin in origins(inner))}


def nearest(key: str, names: Iterable[str], path: Path) -> Path | None:
    """The path of the name that is most like the key, whatever its case; None if none is similar."""
    name = nearest_name(key, names)
    return (*path, name) if name else None


def nearest_name(key: str, names: Iterable[str]) -> str | None:
    """The name that is most like the key, whatever its case; None if none is similar."""
    if len(key) > LONGEST_NAME:
        return None
    from difflib import get_close_matches  # Few files have unknown fields.

    by_lower_case = {name.lower(): name for name in names}
    cutoff = SHORT_SIMILARITY if len(key) <= SHORT_NAME else SIMILARITY
    matches = get_close_matches(key.lower(), by_lower_case, n=1, cutoff=cutoff)
    return by_lower_case[matches[0]] if matches else None


class ServedFields(Struct, frozen=True):
    """The fields of the types of pod specs that a cluster serves: one that it does not serve is unknown, whatever its name is."""

    types: Mapping[str, frozenset[str]]
    """Type -> its fields."""

    def has(self, finding: Issue) -> bool:
        """Whether the cluster knows an unknown field."""
        return str(finding.path[-1]) in self.types.get(finding.within, ())


def served_fields(document: Mapping[str, Any]) -> ServedFields | None:
    """The fields in an OpenAPI document (v3); None if it does not have the types of pods. The document is not trusted."""
    schemas = mapping(mapping(document.get("components")).get("schemas"))
    recorded = definitions()
    types: dict[str, frozenset[str]] = {}
    for name, schema in schemas.items():
        short = str(name).rpartition(".")[2]
        if short in recorded and (fields := mapping(mapping(schema).get("properties"))):
            types[short] = frozenset(map(str, fields)) | types.get(short, frozenset())
    return ServedFields(types) if "PodSpec" in types and "Container" in types else None


def suggestion(finding: Issue, served: ServedFields | None = None) -> str:
    """The known field that is nearest to an unknown one: of the same name on another level, or the most similar name; empty if none is."""
    holder = EXTRA if finding.path[-2:-1] == ("extraPodSpec",) else finding.within
    known = definitions().get(holder, {}).get("properties", {})
    names = {*known, *(served.types.get(finding.within, ()) if served else ())}
    return _on_another_level(finding) or nearest_name(str(finding.path[-1]), sorted(names)) or ""


def _on_another_level(finding: Issue) -> str:
    """The paths of the known fields of a pod spec, or of another published type, that have the name of an unknown one."""
    for start, above in enumerate(("", *finding.path[:-1])):
        for root in [EXTRA] if above == "extraPodSpec" else ROOTS:
            holders: list[str | None] = [root]
            for key in finding.path[start:-1]:
                holder = holders[-1]
                holders.append(types_below(holder).get(key) if isinstance(key, str) and holder else holder)
            if (holder := holders[-1]) and EXTENDED.get(holder, (holder,))[0] == finding.within:
                return on_another_level(finding.path, [*[None] * start, *holders], types_below, type_parts)
    return ""


@cache
def types_below(name: str) -> Mapping[str, str | None]:
    """Each field of a published type, with the type of its value or of the entries of its list; None if it has none."""
    fields = definitions().get(name, {}).get("properties", {})
    return {key: {**field, **field.get("items", {})}.get("$ref") for key, field in fields.items()}


@cache
def type_parts(name: str) -> Mapping[str, str]:
    """Each field of a published type that is an object, with its type."""
    return {key: field["$ref"] for key, field in definitions()[name].get("properties", {}).items() if "$ref" in field}


def with_suggestion(finding: Issue, name: str) -> Issue:
    """The unknown field, with the question whether the nearest one is meant."""
    return Issue(finding.path, finding.type, f"did you mean {clipped(name, MAX_SHOWN)}?", within=finding.within) if name else finding


def instead(written: Iterable[str], known: Iterable[str]) -> str:
    """The end of a message about names that do not exist, e.g. `; did you mean worker? There are worker, leader`."""
    return _instead(list(islice(written, MOST)), dict.fromkeys(known))


def _instead(written: Sequence[str], known: Collection[str], besides: str | None = None) -> str:
    """The same, for few names of which none is known; of the known ones, which differ, only the first are read."""
    count = len(known) - (besides in known)
    names = list(islice((name for name in known if name != besides), MOST_COMPARED if written else MOST))
    if not names:
        return "; there are none"
    near = _nearest(written, names)
    listed = list(dict.fromkeys([*near, *names]))[:MOST]
    more = f" and {count - MOST} more" if count > MOST else ""
    begin = f"{_question(near)} There" if near else "; there"
    return f"{begin} {'is' if count == 1 else 'are'} {', '.join(listed)}{more}"


class Suggestions:
    """The ends of messages about names that do not exist, of which the first ones ask for what was meant.

    Comparing a name with others takes long, and a manifest may have very many names: a review of it must not take long.
    """

    def __init__(self, most: int = MOST_SUGGESTED) -> None:
        """`most`: how many names are compared with others."""
        self._left = most

    def instead(self, written: Iterable[str], known: Collection[str], besides: str | None = None) -> str:
        """The same as `instead`, as long as names may be compared. The `known` names differ; `besides`: the one that is not meant."""
        compared = list(islice(written, min(self._left, MOST)))
        self._left -= len(compared)
        return _instead(compared, known, besides)


def question(written: Iterable[str], known: Iterable[str]) -> str:
    """The end of a message that lists the names itself, e.g. `; did you mean worker?`; empty if none is near."""
    near = _nearest(written, list(known))
    return _question(near) if near else ""


def _nearest(written: Iterable[str], names: list[str]) -> list[str]:
    """The name that is nearest to each of the written ones, as far as one is near."""
    near = (nearest_name(each, names[:MOST_COMPARED]) for each in islice(written, MOST))
    return list(dict.fromkeys(name for name in near if name))


def _question(near: list[str]) -> str:
    return f"; did you mean {' and '.join(near)}?"
