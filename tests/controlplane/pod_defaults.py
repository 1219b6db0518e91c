"""Pod defaults: what a real API server puts into pods by itself, and which values it treats as absent. Recorded in dry-runs.

Every field of every object of the sample pods is left out and set to its zero value in turn. A default is recorded if the server gives
the same value wherever the field is left out; it depends on something else otherwise, and is not recorded.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from resources.schema.published import definitions
from tests.controlplane.cluster import Broken, ControlPlane
from tests.controlplane.pod_trials import Path, Spec, at, tried, typed_objects, with_value, without, zero_of
from tests.controlplane.sample_pods import SHAPES

IMAGES: Final = {"latest": ("model:latest", "model"), "other": ("model:1", "model@sha256:" + "0" * 64)}
"""Which tag an image has -> examples."""
ABSENT: Final = None
"""A field that the server leaves out."""


@dataclass(frozen=True, slots=True)
class Probed:
    """One field of one object: the pod without it, and with its zero value."""

    type: str
    field: str
    path: Path
    absent: Spec
    zero: Spec


@dataclass(slots=True)
class Behaviour:
    """What was observed of one field."""

    defaults: list[Any] = field(default_factory=list)
    """What the server has put there, for each object in which the field may be absent."""
    zero_is_absent: list[bool] = field(default_factory=list)
    """Whether the zero value gave the same pod as no value, for each object that allows both."""


def fields_set() -> set[tuple[str, str]]:
    """The fields that the sample pods set, by type. Others may be ones that the server ignores, because a feature is not enabled."""
    return {(type_, name) for spec in SHAPES.values() for _, type_, value in typed_objects(spec) for name in value}


def probed_fields() -> Iterator[Probed]:
    """Every field of every object of the sample pods, if it is set anywhere in them or a list: an empty one is tried without a sample."""
    known = fields_set()
    for spec in SHAPES.values():
        for path, type_, value in typed_objects(spec):
            for name, schema in definitions()[type_]["properties"].items():
                zero, there = zero_of(schema), (*path, name)
                if (type_, name) in known or schema.get("type") == "array":
                    yield Probed(type_, name, there, without(spec, there) if name in value else spec, with_value(spec, there, zero))


def behaviours(plane: ControlPlane) -> dict[str, dict[str, Behaviour]]:
    """Type -> field -> what was observed of it."""
    probes = list(probed_fields())
    answers = tried(plane, [spec for probe in probes for spec in (probe.absent, probe.zero)])
    found: dict[str, dict[str, Behaviour]] = defaultdict(lambda: defaultdict(Behaviour))
    for probe, absent, zero in zip(probes, answers[::2], answers[1::2], strict=True):
        seen = found[probe.type][probe.field]
        if absent.spec is not None:
            seen.defaults.append(at(absent.spec, probe.path))
            if zero.spec is not None:
                seen.zero_is_absent.append(zero.spec == absent.spec)
    return found


def static_default(seen: Behaviour) -> Any:
    """The value that the server always puts there; None if it puts nothing, or something that depends on other fields."""
    first = seen.defaults[0] if seen.defaults else ABSENT
    return first if all(value == first for value in seen.defaults) else ABSENT


def pull_policies(plane: ControlPlane) -> dict[str, str]:
    """Which tag an image has -> the policy that a container with such an image gets. Raises `Broken` if it depends on something else."""
    policies: dict[str, str] = {}
    for tag, images in IMAGES.items():
        answers = tried(plane, [{"containers": [{"name": "main", "image": image}]} for image in images])
        given = {answer.spec["containers"][0]["imagePullPolicy"] for answer in answers if answer.spec}
        if len(given) != 1:
            raise Broken(f"images with the tag {tag} get {sorted(given)}")
        policies[tag] = given.pop()
    return policies


def recorded(plane: ControlPlane, release: str) -> str:
    """The content of the file: JSON with one type in each line, sorted, so that the diff of a new release can be read."""
    found = behaviours(plane)
    defaults = {
        type_: {name: value for name in fields if (value := static_default(fields[name])) is not ABSENT} for type_, fields in found.items()
    }
    zeros = {type_: sorted(name for name in fields if is_absent_when_zero(fields[name])) for type_, fields in found.items()}
    parts = (
        f'"defaults":{{\n{by_type(defaults)}\n}}',
        f'"imagePullPolicy":{compact(pull_policies(plane))}',
        f'"release":{compact(release)}',
        f'"zero":{{\n{by_type(zeros)}\n}}',
    )
    return f"{{{','.join(parts)}}}\n"


def is_absent_when_zero(seen: Behaviour) -> bool:
    """Whether the zero value never made a difference."""
    return bool(seen.zero_is_absent) and all(seen.zero_is_absent)


def by_type(values: Mapping[str, Any]) -> str:
    """One line for each type that has something."""
    return ",\n".join(f"{compact(type_)}:{compact(values[type_])}" for type_ in sorted(values) if values[type_])


def compact(value: Any) -> str:
    """Sorted JSON without spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
