"""Metric rules: judges the metrics of autoscalers as an API server does when it creates a HorizontalPodAutoscaler.

The definitions of our kinds allow any word as a type, so an API server stores the set and refuses the autoscaler.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from resources.schema.issues import Issue, Path
from resources.schema.pod_amounts import amount_of
from resources.schema.pod_checks import Fields, Rule, forbidden, invalid, is_map, missing, part, unsupported, whole

SOURCES: Final[Mapping[str, str]] = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
"""Type of a metric -> the field that describes it."""
TARGETS: Final = ("Utilization", "Value", "AverageValue")


def metric_issues(metric: Any, path: Path) -> Iterator[Issue]:
    """Why an API server would refuse an autoscaler with this metric. Values of wrong types have other faults."""
    if not is_map(metric):
        return
    present = [field for field in SOURCES.values() if metric.get(field) is not None]
    yield from _source(metric.get("type"), present, path)
    for field in present:
        if is_map(source := metric[field]) and is_map(target := source.get("target")):
            yield from _target(target, (*path, field, "target"))
            yield from _named(source, (*path, field))
            yield from RULES[field](target, (*path, field, "target"))


def _source(type_: Any, present: list[str], path: Path) -> Iterator[Issue]:
    if type_ == "":
        yield missing((*path, "type"), "must specify a metric source type")
    elif isinstance(type_, str) and type_ not in SOURCES:
        yield unsupported((*path, "type"), type_, SOURCES)
    elif isinstance(type_, str):
        if SOURCES[type_] not in present:
            yield missing((*path, SOURCES[type_]), "must populate information for the given metric source")
        yield from (forbidden((*path, field), "must populate the given metric source only") for field in present if field != SOURCES[type_])


def _target(target: Fields, path: Path) -> Iterator[Issue]:
    type_ = target.get("type")
    if type_ == "":
        yield missing((*path, "type"), "must specify a metric target type")
    elif isinstance(type_, str) and type_ not in TARGETS:
        yield invalid((*path, "type"), type_, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        amount = amount_of(target.get(field))
        if amount is not None and amount <= 0:
            yield invalid((*path, field), target[field], "must be positive")
    utilization = whole(target, "averageUtilization")
    if utilization is not None and utilization < 1:
        yield invalid((*path, "averageUtilization"), utilization, "must be greater than 0")


def _named(source: Fields, path: Path) -> Iterator[Issue]:
    """The names that a source must have; absent ones are faults of its type."""
    for keys in (("name",), ("container",), ("metric", "name"), ("describedObject", "kind"), ("describedObject", "name")):
        value = part(source, *keys[:-1]).get(keys[-1])
        if value == "":
            yield missing((*path, *keys))
        elif len(keys) > 1 and isinstance(value, str):
            yield from (invalid((*path, *keys), value, message) for message in _segment_faults(value))


def _segment_faults(name: str) -> Iterator[str]:
    """Why a name cannot be part of a path of an API server."""
    if name in (".", ".."):
        yield f"may not be '{name}'"
    yield from (f"may not contain '{sign}'" for sign in "/%" if sign in name)


def _per_pod(target: Fields, path: Path) -> Iterator[Issue]:
    if target.get("averageValue") is None:
        yield missing((*path, "averageValue"), "must specify a positive target averageValue")


def _one_of(field: str, none: str, both: str = "") -> Rule:
    """A target needs this field or `averageValue`. Both are allowed if nothing is said of `both`."""

    def check(target: Fields, path: Path) -> Iterator[Issue]:
        given = [each for each in (field, "averageValue") if target.get(each) is not None]
        if not given:
            yield missing((*path, field if field != "value" else "averageValue"), none)
        elif both and len(given) > 1:
            yield forbidden((*path, "averageValue" if field != "value" else "value"), both)

    return check


_RESOURCE: Final = _one_of(
    "averageUtilization",
    "must set either a target raw value or a target utilization",
    "may not set both a target raw value and a target utilization",
)
RULES: Final[Mapping[str, Rule]] = {
    "containerResource": _RESOURCE,
    "external": _one_of(
        "value",
        "must set either a target value for metric or a per-pod target",
        "may not set both a target value for metric and a per-pod target",
    ),
    "object": _one_of("value", "must set either a target value or averageValue"),
    "pods": _per_pod,
    "resource": _RESOURCE,
}
"""Field of a metric -> the rule for its target."""
