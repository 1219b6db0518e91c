"""Limit defaults: what the LimitRanges of a namespace say about containers that do not say how much they ask for."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.observed import Live
from resources.base.fields import mapping, mappings
from resources.placement.cluster_room import Defaults, LimitDefaults


def defaults_of(ranges: Iterable[Live]) -> Defaults:
    """What these LimitRanges say. Of several in a namespace, the first one that names a resource decides."""
    by_namespace: dict[str, LimitDefaults] = {}
    for namespace, limit in ((each.id.namespace, limit) for each in ranges for limit in _of_containers(each)):
        known = by_namespace.get(namespace, LimitDefaults())
        limits, requests = mapping(limit.get("default")), mapping(limit.get("defaultRequest"))
        by_namespace[namespace] = LimitDefaults({**limits, **known.limits}, {**requests, **known.requests})
    return {namespace: each for namespace, each in by_namespace.items() if each.limits or each.requests}


def _of_containers(live: Live) -> Iterator[Mapping[str, Any]]:
    return (each for each in mappings(mapping(live.body.get("spec")).get("limits")) if each.get("type") == "Container")
