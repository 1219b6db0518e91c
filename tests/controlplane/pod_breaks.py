"""Pod breaks: the sample pods with one field at a time removed, misspelt, emptied, repeated, or set to something that may not fit."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from resources.schema.published import definitions, properties, union
from tests.controlplane.pod_trials import Path, Spec, typed_objects, with_value, without, zero_of
from tests.controlplane.sample_pods import SHAPES

INSTANCES: Final = 2
"""How many objects of a type each breakage of a field is tried in, beside one of each shape."""
TEXTS: Final = ("Not_Valid!", "-a", "Upper", "a/b", "..", "/abs", "a.b", "x" * 64, "1", "a..b", "a=b", " a", "\u00e9")
NUMBERS: Final = (-1, 1, 65536, 2**31 - 1)
QUANTITIES: Final = ("-1", "0.5", "1500m", "many", "1Ki", 3)
PORTS: Final = (0, 65536, "", "UPPER", "sixteen-letters-x", "a--b", "12")
MAPS: Final = ({"-bad-": "x"}, {"a/b/c": "x"}, {"a": "not valid!"}, {"x.example.com/y": "1"})
WRONG: Final[Mapping[str, Any]] = {"string": 5, "integer": "five", "boolean": "yes", "array": {"a": 1}, "object": ["a"], "number": "x"}
SCALARS: Final = ("string", "integer", "boolean", "number")


@dataclass(frozen=True, slots=True)
class Break:
    """One field of one object of a sample pod, and what was done to it."""

    shape: str
    type: str
    field: str
    act: str
    spec: Spec

    @property
    def name(self) -> str:
        """What was done to which field, wherever it is."""
        return f"{self.type}.{self.field} {self.act}"

    def __str__(self) -> str:
        return f"{self.shape}: {self.name}"


def breaks() -> Iterator[Break]:
    """Every breakage of every field of the sample pods, each in at most `INSTANCES` objects of a shape."""
    samples = sample_values()
    for shape, spec in SHAPES.items():
        seen: Counter[tuple[str, str, str]] = Counter()
        for path, type_, value in typed_objects(spec):
            for field, act, broken in object_breaks(spec, path, type_, value, samples):
                seen[type_, field, act] += 1
                if seen[type_, field, act] <= INSTANCES:
                    yield Break(shape, type_, field, act, broken)


def verdicts(refused: Iterable[bool]) -> str:
    """Whether each breakage is refused, in the order of `breaks`, as JSON: shape -> type -> `-` for each that is refused, else `+`."""
    lines: dict[str, dict[str, str]] = defaultdict(lambda: defaultdict(str))
    for each, is_refused in zip(breaks(), refused, strict=True):
        lines[each.shape][each.type] += "-" if is_refused else "+"
    return json.dumps(lines, indent=1, sort_keys=True) + "\n"


def sample_values() -> Mapping[tuple[str, str], list[Any]]:
    """Type and field -> different values that sample pods have there."""
    values: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for spec in SHAPES.values():
        for _, type_, value in typed_objects(spec):
            for field, entry in value.items():
                if entry not in values[type_, field]:
                    values[type_, field].append(entry)
    return values


def object_breaks(
    spec: Spec, path: Path, type_: str, value: Mapping[str, Any], samples: Mapping[tuple[str, str], list[Any]]
) -> Iterator[tuple[str, str, Spec]]:
    """Field, what is done to it, and the broken pod, for all fields of one object."""
    for field, schema in properties(definitions()[type_]).items():
        there = (*path, field)
        if field in value:
            yield field, "removed", without(spec, there)
            yield field, "misspelt", with_value(without(spec, there), (*path, misspelt(field)), value[field])
            yield field, "null", with_value(spec, there, None)
        elif field != "ephemeralContainers":
            for number, sample in enumerate(samples.get((type_, field), ())[:2]):
                yield field, f"added {number}", with_value(spec, there, sample)
        if field in value or schema_type(schema) in SCALARS or union(resolved(schema)):
            for act, new in values_for(schema, value.get(field)):
                yield field, act, with_value(spec, there, new)


def misspelt(name: str) -> str:
    """The name with two letters swapped, or with one more."""
    return f"{name[0]}{name[2]}{name[1]}{name[3:]}" if len(name) > 2 and name[1] != name[2] else f"{name}s"


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema that it is or refers to."""
    return definitions()[schema["$ref"]] if "$ref" in schema else schema


def schema_type(schema: Mapping[str, Any]) -> str:
    """The JSON type of a field; empty for a union."""
    return str(resolved(schema).get("type", ""))


def values_for(schema: Mapping[str, Any], current: Any) -> Iterator[tuple[str, Any]]:
    """What a field of this schema is set to, with a name for it."""
    plain = resolved(schema)
    yield "zero", zero_of(schema)
    if types := union(plain):
        yield from ((f"= {value!r}", value) for value in (PORTS if "integer" in types else QUANTITIES))
        yield "of the wrong type", ["a"]
        return
    yield "of the wrong type", WRONG[plain["type"]]
    match plain["type"]:
        case "string":
            yield from ((f"= {text[:12]!r}", text) for text in (*plain.get("enum", ()), *TEXTS))
        case "integer":
            yield from ((f"= {number}", number) for number in NUMBERS)
        case "boolean":
            yield "= True", True
        case "array" if isinstance(current, list) and current:
            yield "repeated", [*current, current[0]]
            inner = resolved(plain["items"])
            if inner.get("type") == "string":
                yield from ((f"[] = {text[:12]!r}", [text, *current[1:]]) for text in (*inner.get("enum", ()), "", *TEXTS))
            elif inner.get("type") == "integer":
                yield from ((f"[] = {number}", [number, *current[1:]]) for number in NUMBERS)
        case "object" if "additionalProperties" in plain and isinstance(current, Mapping):
            amounts = union(resolved(plain["additionalProperties"]))
            if amounts:
                for amount in QUANTITIES:
                    yield f"{{}} = {amount!r}", {**current, next(iter(current), "cpu"): amount}
            for number, more in enumerate(MAPS):
                yield f"with {number}", {**current, **({key: 1 for key in more} if amounts else more)}
