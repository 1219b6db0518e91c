"""Groups: the annotation `grove.io/mnnvl-group` of current Grove, which gives each group of cliques in a replica a domain (N26)."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from engine.paths import get, merge_patch
from engine.resource import Body
from providers.fabrics.nvidia.names import AUTO, DISABLED, ENABLED, GROUP, NAMED, NO_GROUP, SWITCHED_OFF
from resources.admission.annotations import AFTER_CREATION, immutable, immutable_on_cliques, immutable_on_groups
from resources.base.fields import CLIQUES, GROUPS, annotations_of, cliques_of, mapping, mappings, members_of
from resources.ports.fabric import GROUP_INDEX, INDEX, DomainRequest, SpecifiedClique, SpecifiedSet
from resources.schema.formats import label_faults, subdomain_faults
from resources.schema.issues import Child, ErrorType, Issue, Path

OFF: Final = SWITCHED_OFF.format(annotation=GROUP)
EMPTY: Final = "mnnvl-group value must not be empty"
NO_LABEL: Final = 'mnnvl-group value "{group}" is not a valid DNS-1123 label: {faults}'
CONTRADICTORY: Final = "contradictory MNNVL annotations: "
ENABLED_AND_GROUP: Final = (
    f"{CONTRADICTORY}{AUTO}: {ENABLED} gives each replica one domain, and {GROUP} decides for each clique; "
    "remove one of the two annotations"
)
DISABLED_AND_GROUP: Final = (
    f'{CONTRADICTORY}{AUTO}: {DISABLED} excludes the set from MNNVL, and {GROUP}: "{{group}}" includes it; '
    "remove one of the two annotations"
)
NAME_IN_GROUP: Final = (
    f'{CONTRADICTORY}the clique is in the group "{{group}}" of {GROUP}, and a node has one channel: '
    f'remove the name, or set {GROUP}: "{NO_GROUP}" on the clique'
)
AUTO_PATH: Final[Path] = ("metadata", "annotations", Child(AUTO))
ABSENT = None
"""The value of an annotation that is not there."""


def uses_groups(specified: SpecifiedSet) -> bool:
    """Whether the annotation is anywhere on a set, whatever its value: then the set gets no automatic domains."""
    return any(True for _ in _annotations(specified))


def group_of(annotations: Mapping[str, Any]) -> str:
    """The group of a clique with these annotations, own or inherited; empty if it has none, `none`, or an invalid one."""
    group = annotations.get(GROUP, NO_GROUP)
    return group if group != NO_GROUP and isinstance(group, str) and not label_faults(group) else ""


def request(root: str, group: str, cliques: Iterable[str]) -> DomainRequest:
    """The request for the domains of a group of these cliques, one in each replica of the set `root`."""
    return DomainRequest(f"{root}-{INDEX}-{group}", frozenset(cliques), shared=False, labels=((GROUP, group),))


def creation_issues(new: SpecifiedSet, cliques: Sequence[SpecifiedClique], *, enabled: bool) -> Iterator[Issue]:
    """Invalid groups of a new set, and annotations that contradict groups.

    `cliques` have their inherited annotations; `enabled` says whether MNNVL is enabled in the configuration.
    """
    for path, group in _annotations(new):
        yield from (Issue(path, ErrorType.INVALID, fault, group) for fault in _faults(group, new.name, enabled=enabled))
    yield from _contradictions_of_mode(new)
    grouped = sorted({group_of(clique.annotations) for clique in cliques} - {""})
    domains = [request(new.name, group, ()).name for group in grouped] if new.name else []
    for number, clique in enumerate(cliques):
        yield from _contradictions_of_name((*CLIQUES, number, "annotations", NAMED), clique, domains)


def update_issues(old: SpecifiedSet, new: SpecifiedSet) -> Iterator[Issue]:
    """An issue for each place in which an update adds, removes or changes the annotation."""
    yield from immutable(GROUP, old, new, after=AFTER_CREATION)
    yield from immutable_on_cliques(Child(GROUP), old, new, after=AFTER_CREATION)
    yield from immutable_on_groups(Child(GROUP), old, new, after=AFTER_CREATION)


def _annotations(specified: SpecifiedSet) -> Iterator[tuple[Path, str]]:
    """Each place of the annotation on a set, its cliques and its scaling groups, with the value."""
    places: list[tuple[Path, Mapping[str, str]]] = [(("metadata", "annotations"), specified.annotations)]
    places += [((*CLIQUES, number, "annotations"), clique.annotations) for number, clique in enumerate(specified.cliques)]
    places += [((*GROUPS, number, "annotations"), group.annotations) for number, group in enumerate(specified.groups)]
    return (((*path, Child(GROUP)), annotations[GROUP]) for path, annotations in places if GROUP in annotations)


def _faults(group: str, root: str, *, enabled: bool) -> Iterator[str]:
    """What is wrong with one value."""
    if not group:
        yield EMPTY
    elif faults := label_faults(group):
        yield NO_LABEL.format(group=group, faults="; ".join(faults))
    elif group != NO_GROUP and not enabled:
        yield OFF
    elif group != NO_GROUP and root and (faults := subdomain_faults(request(root, group, ()).name.replace(INDEX, "0"))):
        yield f"the ComputeDomain of the group would have an invalid name: {'; '.join(faults)}"


def _contradictions_of_mode(new: SpecifiedSet) -> Iterator[Issue]:
    """`auto-mnnvl: enabled` with any group annotation, and `disabled` with one other than `none`."""
    mode = new.annotations.get(AUTO)
    groups = [group for _, group in _annotations(new)]
    if mode == ENABLED and groups:
        yield Issue(AUTO_PATH, ErrorType.FORBIDDEN, ENABLED_AND_GROUP)
    elif mode == DISABLED and (group := next((group for group in groups if group != NO_GROUP), None)) is not None:
        yield Issue(AUTO_PATH, ErrorType.FORBIDDEN, DISABLED_AND_GROUP.format(group=group))


def _contradictions_of_name(path: Path, clique: SpecifiedClique, domains: Iterable[str]) -> Iterator[Issue]:
    """A named domain for a clique that is in a group, or one with the name of a group's domain. `domains` are the names of these."""
    name = clique.annotations.get(NAMED)
    if name is None:
        return
    if group := group_of(clique.annotations):
        yield Issue(path, ErrorType.INVALID, NAME_IN_GROUP.format(group=group), name)
    elif any(_can_be_equal(name, domain) for domain in domains):
        yield Issue(path, ErrorType.INVALID, f"a ComputeDomain of this name belongs to a group of {GROUP} in this set", name)


def _can_be_equal(name: str, domain: str) -> bool:
    """Whether a name is, in some replica, that of a group's domain."""
    pattern = re.escape(domain).replace(re.escape(INDEX), "[0-9]+")
    return re.fullmatch(pattern, name.replace(INDEX, "0").replace(GROUP_INDEX, "0")) is not None


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
    return group_of({GROUP: value}) if value is not ABSENT else ""


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
