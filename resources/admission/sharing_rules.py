"""Sharing rules: the rules for `resourceClaimTemplates` and `resourceSharing`."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Final

from engine.paths import get
from resources.base.fields import CLIQUES, GROUPS, TEMPLATE
from resources.schema.issues import ErrorType, Issue, Path, duplicates
from resources.schema.podcliqueset import (
    CliqueFilter,
    Filter,
    GroupResourceSharing,
    ResourceClaimTemplate,
    ResourceSharing,
    SetResourceSharing,
    SetTemplate,
)
from resources.schema.unknown_fields import instead

BY_CLIQUE: Final = "childCliqueNames"
BY_GROUP: Final = "childScalingGroupNames"
NONE_OF_THIS_NAME: Final = {BY_CLIQUE: "no clique here has this name", BY_GROUP: "no scaling group has this name"}

Filtered = SetResourceSharing | GroupResourceSharing
KnownNames = Mapping[str, Collection[str]]
"""Field of a filter -> the names that it may contain."""


def issues(template: SetTemplate) -> Iterator[Issue]:
    """The issues of `resourceClaimTemplates` and of `resourceSharing` of the set, its groups and its cliques."""
    own = frozenset(entry.name for entry in template.resource_claim_templates)
    cliques = dict.fromkeys(clique.name for clique in template.cliques)
    groups = dict.fromkeys(group.name for group in template.pod_clique_scaling_groups)
    yield from _templates(template.resource_claim_templates, (*TEMPLATE, "resourceClaimTemplates"))
    yield from _shares(template.resource_sharing, own, TEMPLATE)
    yield from _filters(template.resource_sharing, TEMPLATE, {BY_CLIQUE: cliques, BY_GROUP: groups})
    for number, group in enumerate(template.pod_clique_scaling_groups):
        path = (*GROUPS, number)
        yield from _shares(group.resource_sharing, own, path)
        yield from _filters(group.resource_sharing, path, {BY_CLIQUE: dict.fromkeys(group.clique_names)})
    for number, clique in enumerate(template.cliques):
        yield from _shares(clique.resource_sharing, own, (*CLIQUES, number))


def _templates(templates: Sequence[ResourceClaimTemplate], path: Path) -> Iterator[Issue]:
    for number, template in enumerate(templates):
        if not template.name:
            yield Issue((*path, number, "name"), ErrorType.REQUIRED, "template name is required")
        requests = get(template.template_spec.spec, ("devices", "requests"))
        if not isinstance(requests, list | tuple) or not requests:
            requests_path = (*path, number, "templateSpec", "spec", "devices", "requests")
            yield Issue(requests_path, ErrorType.REQUIRED, "at least one device request is required")
    yield from duplicates(((*path, number, "name"), entry.name) for number, entry in enumerate(templates) if entry.name)


def _shares(entries: Sequence[ResourceSharing], own: Set[str], holder: Path) -> Iterator[Issue]:
    path = (*holder, "resourceSharing")
    for number, entry in enumerate(entries):
        if not entry.name:
            yield Issue((*path, number, "name"), ErrorType.REQUIRED, "reference name is required")
        if entry.namespace and entry.name in own:
            message = "namespace must be empty when name matches an internal resourceClaimTemplate"
            yield Issue((*path, number, "namespace"), ErrorType.INVALID, message, entry.namespace)
    yield from duplicates(((*path, number, "name"), entry.name) for number, entry in enumerate(entries) if entry.name)


def _filters(entries: Sequence[Filtered], holder: Path, known: KnownNames) -> Iterator[Issue]:
    """A filter must name at least one clique or group, and only existing ones."""
    for number, entry in enumerate(entries):
        path = (*holder, "resourceSharing", number, "filter")
        named = _named(entry.filter) if entry.filter is not None else {}
        if entry.filter is not None and not any(named.values()):
            yield Issue(path, ErrorType.REQUIRED, f"filter must specify at least one {' or '.join(known)} entry")
        for field, names in named.items():
            for index, name in enumerate(names):
                if name not in known[field]:
                    message = f"{NONE_OF_THIS_NAME[field]}{instead([name], known[field])}"
                    yield Issue((*path, field, index), ErrorType.NOT_FOUND, message, name)


def _named(filter: CliqueFilter) -> Mapping[str, Sequence[str]]:
    """Field of a filter -> the names that it contains."""
    by_clique = {BY_CLIQUE: filter.child_clique_names}
    return by_clique | {BY_GROUP: filter.child_scaling_group_names} if isinstance(filter, Filter) else by_clique
