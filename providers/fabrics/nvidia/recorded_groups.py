"""Recorded groups: the annotation `GROUP` of a live set, on three layers, with which each clique is in its recorded group (N24).

A clique inherits the annotation from its scaling group, and that from the set. A layer stays as it is unless the cliques that inherit from
it were in another group.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from engine.paths import get, merge_patch
from engine.resource import Body
from providers.fabrics.nvidia.groups import group_of
from providers.fabrics.nvidia.names import GROUP, NO_GROUP
from resources.base.fields import CLIQUES, GROUPS, annotations_of, cliques_of, mapping, mappings, members_of

ABSENT = None
"""The value of an annotation that is not there."""


class RecordedGroup(Struct, frozen=True):
    """The group of one clique, as its PodCliques record it."""

    group: str
    """The name of the group; empty if the pods are in no domain."""
    annotations: Collection[str]
    """The values of `GROUP` on its PodCliques."""
    effective: bool = True
    """Whether the annotation decides; otherwise the clique is in a named domain, or the set has automatic domains or has opted out."""


def with_groups(body: Body, recorded: Mapping[str, RecordedGroup], of_groups: Mapping[str, str]) -> Body:
    """The set with the recorded groups; the same object if nothing differs.

    `recorded` has the cliques with a record; `of_groups` maps scaling groups to the annotation of their PodCliqueScalingGroups.
    """
    inherited = _inherited(body)
    values = {name: _own_value(clique, recorded[name], inherited[name]) for name, clique in _named(body, CLIQUES) if name in recorded}
    body = _with_layer(body, CLIQUES, values)
    effective = {name: clique for name, clique in recorded.items() if clique.effective}
    inheriting = {name: effective[name].group for name, clique in _named(body, CLIQUES) if name in effective and not _has_value(clique)}
    members = {name: _members(group, inheriting) for name, group in _named(body, GROUPS)}
    body = _with_set_layer(body, inheriting, members)
    of_set = annotations_of(body).get(GROUP, ABSENT)
    values = {name: _group_value(group, of_set, members[name], of_groups.get(name)) for name, group in _named(body, GROUPS)}
    body = _with_layer(body, GROUPS, values)
    inherited = _inherited(body)
    # Where PodCliques that inherit from one place are in different groups, each clique says it itself.
    return _with_layer(body, CLIQUES, {name: group or NO_GROUP for name, group in inheriting.items() if _meaning(inherited[name]) != group})


def _inherited(body: Body) -> Mapping[str, Any]:
    """Clique -> the value that it inherits from its scaling group or the set."""
    of_set = annotations_of(body).get(GROUP, ABSENT)
    values = {name: of_set for name, _ in _named(body, CLIQUES)}
    for _, group in _named(body, GROUPS):
        if _has_value(group):
            values |= dict.fromkeys(members_of(group), mapping(group.get("annotations"))[GROUP])
    return values


def _own_value(clique: Body, recorded: RecordedGroup, inherited: Any) -> Any:
    """The recorded annotation of a clique itself. What makes no difference stays as it is requested."""
    requested = mapping(clique.get("annotations")).get(GROUP, ABSENT)
    previous = [value for value in sorted(recorded.annotations) if _meaning(value) == recorded.group]
    if not recorded.effective:
        return requested if requested is ABSENT or requested in tuple(recorded.annotations) else ABSENT
    if _meaning(inherited if requested is ABSENT else requested) == recorded.group:
        return requested
    return previous[0] if previous else ABSENT


def _has_value(entry: Body) -> bool:
    return GROUP in mapping(entry.get("annotations"))


def _with_set_layer(body: Body, inheriting: Mapping[str, str], members: Mapping[str, Iterable[str]]) -> Body:
    """The set with the annotation from which the cliques inherit that are in no scaling group with an annotation of its own."""
    own = {name for name, group in _named(body, GROUPS) if _has_value(group)}
    in_groups = {clique for listed in members.values() for clique in listed}
    standalone = [group for clique, group in inheriting.items() if clique not in in_groups]
    voters = standalone or [inheriting[clique] for name, listed in members.items() if name not in own for clique in listed]
    requested = annotations_of(body).get(GROUP, ABSENT)
    if not voters or _meaning(requested) == (group := _agreed(voters)):
        return body
    return merge_patch(body, {"metadata": {"annotations": {GROUP: group or None}}})


def _group_value(group: Body, of_set: Any, members: Mapping[str, str], recorded: str | None) -> Any:
    """The recorded annotation of a scaling group, whose cliques `members` inherit it."""
    requested = mapping(group.get("annotations")).get(GROUP, ABSENT)
    if not members:
        return requested
    agreed = _agreed(members.values())
    if _meaning(of_set if requested is ABSENT else requested) == agreed:
        return requested
    if _meaning(of_set) == agreed:
        return ABSENT
    return recorded if recorded is not None and _meaning(recorded) == agreed else agreed or NO_GROUP


def _members(group: Body, inheriting: Mapping[str, str]) -> Mapping[str, str]:
    return {name: inheriting[name] for name in members_of(group) if name in inheriting}


def _agreed(groups: Iterable[str]) -> str:
    """The group of most cliques; if any is in a group, cliques that are in none do not count."""
    counts = Counter(groups)
    return max(counts, key=lambda group: (bool(group), counts[group], group))


def _meaning(value: Any) -> str:
    return group_of({"annotations": {GROUP: value}}) if value is not ABSENT else ""


def _named(body: Body, field: tuple[str, ...]) -> list[tuple[str, Body]]:
    entries = cliques_of(body) if field == CLIQUES else mappings(get(body, field, ()))
    return [(name, entry) for entry in entries if isinstance(name := entry.get("name"), str)]


def _with_layer(body: Body, field: tuple[str, ...], values: Mapping[str, Any]) -> Body:
    """The body with these annotations, by the name of the entry, in a list of the template; the same object if nothing differs."""
    entries = get(body, field, ())
    if not isinstance(entries, list | tuple):
        return body
    changed = [_with_value(entry, values) for entry in entries]
    if all(new is old for new, old in zip(changed, entries, strict=True)):
        return body
    return merge_patch(body, {"spec": {"template": {field[-1]: changed}}})


def _with_value(entry: Any, values: Mapping[str, Any]) -> Any:
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if not isinstance(name, str) or name not in values:
        return entry
    annotations = mapping(entry.get("annotations"))
    if annotations.get(GROUP, ABSENT) == values[name]:
        return entry
    others = {key: value for key, value in annotations.items() if key != GROUP}
    return {**entry, "annotations": others if values[name] is ABSENT else {**others, GROUP: values[name]}}
