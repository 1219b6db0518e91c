"""Groups: the annotation `grove.io/mnnvl-group` of current Grove, which gives each group of cliques in a replica a domain (N26)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from engine.paths import get
from engine.resource import Body
from providers.fabrics.nvidia.names import AUTO, DISABLED, ENABLED, GROUP, NAMED, NO_GROUP
from resources.admission.annotations import AFTER_CREATION, immutable, immutable_on_cliques, immutable_on_groups
from resources.base.fields import CLIQUES, GROUPS, annotations_of, cliques_of, mapping, mappings
from resources.ports.fabric import INDEX, DomainRequest
from resources.schema.formats import label_faults, subdomain_faults
from resources.schema.issues import Child, ErrorType, Issue, Path

OFF: Final = f"MNNVL is not enabled in the operator configuration. Either enable MNNVL globally or remove the {GROUP} annotation"
CONTRADICTORY: Final = "contradictory MNNVL annotations: "
AUTO_PATH: Final[Path] = ("metadata", "annotations", Child(AUTO))


def uses_groups(body: Body) -> bool:
    """Whether the annotation is anywhere on a set, whatever its value: then the set gets no automatic domains."""
    return any(True for _ in _annotations(body))


def group_of(clique: Body) -> str:
    """The group of a clique with its inherited annotations; empty if it has none, `none`, or an invalid one."""
    group = mapping(clique.get("annotations")).get(GROUP, NO_GROUP)
    return group if group != NO_GROUP and isinstance(group, str) and not label_faults(group) else ""


def request(root: str, group: str, cliques: Iterable[str]) -> DomainRequest:
    """The request for the domains of a group of these cliques, one in each replica of the set `root`."""
    return DomainRequest(f"{root}-{INDEX}-{group}", frozenset(cliques), shared=False, labels=((GROUP, group),))


def creation_issues(body: Body, cliques: list[Body], *, enabled: bool) -> Iterator[Issue]:
    """Invalid groups of a new set, and annotations that contradict groups.

    `cliques` have their inherited annotations; `enabled` says whether MNNVL is enabled in the configuration.
    """
    name = mapping(body.get("metadata")).get("name")
    for path, group in _annotations(body):
        yield from (Issue(path, ErrorType.INVALID, fault, group) for fault in _faults(group, name, enabled=enabled))
    yield from _contradictions_of_mode(body)
    domains = [request(name, group, ()).name for group in sorted({*map(group_of, cliques)} - {""})] if isinstance(name, str) else []
    for number, clique in enumerate(cliques):
        yield from _contradictions_of_name((*CLIQUES, number, "annotations", NAMED), clique, domains)


def update_issues(old: Body, new: Body) -> Iterator[Issue]:
    """An issue for each place in which an update adds, removes or changes the annotation."""
    yield from immutable(GROUP, old, new, after=AFTER_CREATION)
    yield from immutable_on_cliques(Child(GROUP), old, new, after=AFTER_CREATION)
    yield from immutable_on_groups(Child(GROUP), old, new, after=AFTER_CREATION)


def _annotations(body: Body) -> Iterator[tuple[Path, Any]]:
    """Each place of the annotation on a set, its cliques and its scaling groups, with the value."""
    places: list[tuple[Path, Mapping[str, Any]]] = [(("metadata", "annotations"), annotations_of(body))]
    for field, entries in ((CLIQUES, cliques_of(body)), (GROUPS, mappings(get(body, GROUPS, ())))):
        places += [((*field, number, "annotations"), mapping(entry.get("annotations"))) for number, entry in enumerate(entries)]
    return (((*path, Child(GROUP)), annotations[GROUP]) for path, annotations in places if GROUP in annotations)


def _faults(group: Any, root: Any, *, enabled: bool) -> Iterator[str]:
    """What is wrong with one value."""
    if not isinstance(group, str) or not group:
        yield "mnnvl-group value must not be empty"
    elif faults := label_faults(group):
        yield f'mnnvl-group value "{group}" is not a valid DNS-1123 label: {"; ".join(faults)}'
    elif group != NO_GROUP and not enabled:
        yield OFF
    elif group != NO_GROUP and isinstance(root, str) and (faults := subdomain_faults(request(root, group, ()).name.replace(INDEX, "0"))):
        yield f"the ComputeDomain of the group would have an invalid name: {'; '.join(faults)}"


def _contradictions_of_mode(body: Body) -> Iterator[Issue]:
    """`auto-mnnvl: enabled` with any group annotation, and `disabled` with one other than `none`."""
    mode = annotations_of(body).get(AUTO)
    groups = [group for _, group in _annotations(body)]
    if mode == ENABLED and groups:
        text = f"{AUTO}: {ENABLED} gives each replica one domain, and {GROUP} decides for each clique; remove one of the two annotations"
        yield Issue(AUTO_PATH, ErrorType.FORBIDDEN, CONTRADICTORY + text)
    elif mode == DISABLED and (group := next((group for group in groups if group != NO_GROUP), None)) is not None:
        text = f'{AUTO}: {DISABLED} excludes the set from MNNVL, and {GROUP}: "{group}" includes it; remove one of the two annotations'
        yield Issue(AUTO_PATH, ErrorType.FORBIDDEN, CONTRADICTORY + text)


def _contradictions_of_name(path: Path, clique: Body, domains: Iterable[str]) -> Iterator[Issue]:
    """A named domain for a clique that is in a group, or one with the name of a group's domain. `domains` are the names of these."""
    annotations = mapping(clique.get("annotations"))
    name = annotations.get(NAMED)
    if group := group_of(clique) if NAMED in annotations else "":
        text = (
            f'the clique is in the group "{group}" of {GROUP}, and a node has one channel: '
            f'remove the name, or set {GROUP}: "{NO_GROUP}" on the clique'
        )
        yield Issue(path, ErrorType.INVALID, CONTRADICTORY + text, name)
    elif isinstance(name, str) and any(_can_be_equal(name, domain) for domain in domains):
        yield Issue(path, ErrorType.INVALID, f"a ComputeDomain of this name belongs to a group of {GROUP} in this set", name)


def _can_be_equal(name: str, domain: str) -> bool:
    """Whether a name is, in some replica, that of a group's domain."""
    pattern = re.escape(domain).replace(re.escape(INDEX), "[0-9]+")
    return re.fullmatch(pattern, name.replace(INDEX, "0")) is not None
