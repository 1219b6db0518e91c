"""Computable rules: what a PodCliqueSet must satisfy for its objects to be computed.

A set that was admitted before is judged by these rules only, so anything that would make the computation fail is a rule here.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import combinations_with_replacement
from typing import Final

from msgspec import Struct

from engine.paths import get
from resources.admission import dependency_rules
from resources.admission.cel import (
    HOLDERS,
    MINIMUM,
    REPEATED,
    ForEach,
    for_each_clique,
    for_each_group,
    for_template,
    is_repeated,
    replicas_of,
    rule,
    text,
)
from resources.base.fields import CLIQUES, GROUPS, TEMPLATE
from resources.ports.configuration import Configuration
from resources.ports.fabric import PolicyRule
from resources.schema.issues import ErrorType, Issue, Path, duplicates
from resources.schema.podcliqueset import (
    CliqueFilter,
    CliqueTemplate,
    Filter,
    GroupResourceSharing,
    ResourceClaimTemplate,
    ResourceSharing,
    ScalingGroupConfig,
    SetResourceSharing,
    SetTemplate,
)
from resources.schema.unknown_fields import Suggestions, instead

NO_CLIQUE: Final = "at least one PodClique must be defined"
NO_CONTAINER: Final = "at least one container must be defined"
NO_MEMBER: Final = "at least one PodClique must be named"
UNKNOWN_MEMBER: Final = "unidentified PodClique names found"
POSITIVE: Final = "must be greater than 0"
NOT_ENABLED: Final = "schedulerName must be an enabled scheduler backend; this scheduler is not enabled in OperatorConfiguration"
MINIMUM_TOO_LARGE: Final = "minAvailable must not be greater than replicas"
DIFFERENT_SCHEDULERS: Final = "the schedulerName for all pods have to be the same"
NO_DEFAULT_SCHEDULER: Final = "default scheduler backend is not configured"
BY_CLIQUE: Final = "childCliqueNames"
BY_GROUP: Final = "childScalingGroupNames"
NO_TEMPLATE_NAME: Final = "template name is required"
NO_REQUEST: Final = "at least one device request is required"
NO_SHARE_NAME: Final = "reference name is required"
OWN_NAMESPACE: Final = "namespace must be empty when name matches an internal resourceClaimTemplate"
INDEX: Final = "#"
"""Stands for any index in a name."""
ONE_NAME: Final = "its {kind} would have the name of that of {holder}, e.g. {name}: rename one of them"
EMPTY_FILTER: Final = "filter must specify at least one {fields} entry"
NONE_OF_THIS_NAME: Final = {BY_CLIQUE: "no clique here has this name", BY_GROUP: "no scaling group has this name"}

Filtered = SetResourceSharing | GroupResourceSharing
KnownNames = Mapping[str, Collection[str]]
"""Field of a filter -> the names that it may contain."""


def issues(template: SetTemplate) -> Iterator[Issue]:
    """The issues of a template that has the right shape and its defaults, besides those of its schedulers."""
    if not template.cliques:
        yield Issue(CLIQUES, ErrorType.REQUIRED, NO_CLIQUE)
    for number, clique in enumerate(template.cliques):
        yield from _clique((*CLIQUES, number), clique)
    yield from duplicates(((*CLIQUES, number, "name"), clique.name) for number, clique in enumerate(template.cliques))
    yield from dependency_rules.issues(template)
    yield from _groups(template)
    yield from _sharing_issues(template)


def _clique(path: Path, clique: CliqueTemplate) -> Iterator[Issue]:
    if not clique.spec.pod_spec["containers"]:
        yield Issue((*path, "spec", "podSpec", "containers"), ErrorType.REQUIRED, NO_CONTAINER)
    minimum = clique.spec.replicas if clique.spec.min_available is None else clique.spec.min_available
    yield from _replica_issues((*path, "spec"), clique.spec.replicas, minimum)


def _replica_issues(path: Path, replicas: int, minimum: int) -> Iterator[Issue]:
    """The issues of a clique or group. A minimum of as many pods is the default: what is wrong with both is told of `replicas` only."""
    fields = (("replicas", replicas), ("minAvailable", minimum))
    for field, number in fields[: 1 if minimum == replicas else 2]:
        if number <= 0:
            yield Issue((*path, field), ErrorType.INVALID, POSITIVE, number)
    if minimum > replicas:
        yield Issue((*path, "minAvailable"), ErrorType.INVALID, MINIMUM_TOO_LARGE, minimum)


def _groups(template: SetTemplate) -> Iterator[Issue]:
    groups = template.pod_clique_scaling_groups
    names = [clique.name for clique in template.cliques if clique.name]
    known, suggestions = dict.fromkeys(names), Suggestions()
    for number, group in enumerate(groups):
        path = (*GROUPS, number)
        if not group.clique_names:
            yield Issue((*path, "cliqueNames"), ErrorType.REQUIRED, NO_MEMBER)
        if unknown := [name for name in dict.fromkeys(group.clique_names) if name not in known]:
            message = f"{UNKNOWN_MEMBER}{suggestions.instead(unknown, known)}"
            yield Issue((*path, "cliqueNames"), ErrorType.INVALID, message, ",".join(unknown))
        yield from _replica_issues(path, group.replicas, group.min_available)
    yield from duplicates(((*GROUPS, number, "name"), group.name) for number, group in enumerate(groups))
    yield from duplicates(members(groups))


def members(groups: Sequence[ScalingGroupConfig]) -> Iterator[tuple[Path, str]]:
    """The path and the value of every entry of a scaling group's `cliqueNames`."""
    for number, group in enumerate(groups):
        for index, name in enumerate(group.clique_names):
            yield (*GROUPS, number, "cliqueNames", index), name


class _Named(Struct, frozen=True):
    """An object of a replica of the set, for any index, or that all replicas share."""

    kind: str
    holder: str
    """What it is made for, in words."""
    parts: tuple[str, ...]
    """Its name after that of the set, divided at its hyphens; `INDEX` stands for any index."""
    path: Path
    value: str
    """The field that it is named after."""

    @property
    def indices(self) -> frozenset[int]:
        """The places of its indices."""
        return frozenset(place for place, part in enumerate(self.parts) if part == INDEX)


def collision_issues(root: str, template: SetTemplate) -> Iterator[Issue]:
    """An issue for each object of the set `root` that has the name of another one of its kind, whatever the numbers of replicas are."""
    alike: dict[tuple[str, ...], dict[frozenset[int], list[_Named]]] = {}
    for named in _objects(template):
        form = (named.kind, *(INDEX if _is_index(part) else part for part in named.parts))
        alike.setdefault(form, {}).setdefault(named.indices, []).append(named)
    for by_indices in alike.values():
        for ones, others in combinations_with_replacement(by_indices.values(), 2):
            yield from _of_one_name(root, ones, others)


def _is_index(part: str) -> bool:
    """Whether a part of a name may be an index, or stands for any."""
    return part in (INDEX, "0") or (part.isdecimal() and part[0] != "0")


def _of_one_name(root: str, ones: Sequence[_Named], others: Sequence[_Named]) -> Iterator[Issue]:
    """An issue for each of the others that has the name of one of the first. What is given twice for one holder is reported elsewhere."""
    indices = ones[0].indices | others[0].indices

    def rest(named: _Named) -> tuple[str, ...]:
        return tuple(part for place, part in enumerate(named.parts) if place not in indices)

    known = {rest(named): named for named in reversed(ones)}
    for named in others:
        earlier = known.get(rest(named))
        if earlier is not None and earlier.holder != named.holder:
            parts = (next((part for part in pair if part != INDEX), "0") for pair in zip(earlier.parts, named.parts, strict=True))
            message = ONE_NAME.format(kind=named.kind, holder=earlier.holder, name="-".join((root, *parts)))
            yield Issue(named.path, ErrorType.DUPLICATE, message, named.value)


def _objects(template: SetTemplate) -> Iterator[_Named]:
    """The objects that are named after cliques, scaling groups and references to claims."""
    grouped = {name: group.name for group in template.pod_clique_scaling_groups for name in group.clique_names}
    yield from _claims("the set", (), template.resource_sharing, TEMPLATE)
    for number, clique in enumerate(template.cliques):
        group, path = grouped.get(clique.name), (*CLIQUES, number)
        parts = (INDEX, *(group.split("-") + [INDEX] if group else ()), *clique.name.split("-"))
        holder = f"clique '{clique.name}'" + (f" of scaling group '{group}'" if group else "")
        yield _Named("PodClique", holder, parts, (*path, "name"), clique.name)
        if clique.spec.auto_scaling_config is not None and not group:
            yield _Named("HorizontalPodAutoscaler", holder, parts, (*path, "name"), clique.name)
        yield from _claims(holder, parts, clique.resource_sharing, path)
    for number, config in enumerate(template.pod_clique_scaling_groups):
        holder, parts, path = f"scaling group '{config.name}'", (INDEX, *config.name.split("-")), (*GROUPS, number)
        if config.scale_config is not None:
            yield _Named("HorizontalPodAutoscaler", holder, parts, (*path, "name"), config.name)
        yield from _claims(holder, parts, config.resource_sharing, path)


def _claims(holder: str, parts: tuple[str, ...], shares: Sequence[ResourceSharing], path: Path) -> Iterator[_Named]:
    for number, share in enumerate(shares):
        of = (*parts, INDEX if share.scope == "PerReplica" else "all", *share.name.split("-"))
        yield _Named("ResourceClaim", holder, of, (*path, "resourceSharing", number, "name"), share.name)


def scheduler_issues(template: SetTemplate, configuration: Configuration) -> Iterator[Issue]:
    """All pods of a set must have the same scheduler, which must be enabled."""
    path = ("spec", "podSpec", "schedulerName")
    named = [((*CLIQUES, number, *path), _scheduler(clique)) for number, clique in enumerate(template.cliques)]
    # Scheduler -> the first clique that names it. Different schedulers are reported at the first clique that differs from those before it.
    first_paths = {name or configuration.default_scheduler: path for path, name in reversed(named)}
    if len(first_paths) > 1:
        yield Issue(sorted(first_paths.values())[1], ErrorType.INVALID, DIFFERENT_SCHEDULERS, ", ".join(sorted(first_paths)))
    for name in dict.fromkeys(name for _, name in named):
        if name and name not in configuration.schedulers:
            message = f"{NOT_ENABLED}{instead([name], sorted(configuration.schedulers))}"
            yield Issue(first_paths[name], ErrorType.INVALID, message, name)
        elif configuration.default_scheduler not in configuration.schedulers and not name:
            yield Issue(("spec",), ErrorType.INVALID, NO_DEFAULT_SCHEDULER)


def _scheduler(clique: CliqueTemplate) -> str:
    """The scheduler that a clique names; empty for the default."""
    return clique.spec.pod_spec.get("schedulerName") or ""


def policy_rules(configuration: Configuration) -> Iterator[PolicyRule]:
    """The same as CEL, without circles of dependencies."""
    yield rule("variables.cliques.size() == 0", "spec.template.cliques", NO_CLIQUE)
    yield for_each_clique("c.spec.podSpec.?containers.orValue([]).size() == 0", "spec.podSpec.containers", NO_CONTAINER)
    yield for_each_clique(is_repeated("c.name", "variables.names"), "name", REPEATED)
    cliques = for_each_clique, "spec.", replicas_of("c"), MINIMUM
    groups = for_each_group, "", "g.replicas", "g.minAvailable"
    for each, path, replicas, minimum in (cliques, groups):
        yield each(f"{replicas} <= 0", f"{path}replicas", POSITIVE)
        yield each(f"{minimum} <= 0 && {minimum} != {replicas}", f"{path}minAvailable", POSITIVE)
        yield each(f"{minimum} > {replicas}", f"{path}minAvailable", MINIMUM_TOO_LARGE)
    yield from dependency_rules.policy_rules()
    yield for_each_group("g.cliqueNames.size() == 0", "cliqueNames", NO_MEMBER)
    yield for_each_group("g.cliqueNames.exists(n, n == '' || !(n in variables.names))", "cliqueNames", UNKNOWN_MEMBER)
    yield for_each_group(is_repeated("g.name", "variables.groupNames"), "name", REPEATED)
    twice = "g.cliqueNames.filter(m, m == n).size() > 1 || variables.groups.filter(o, n in o.cliqueNames).size() > 1"
    yield for_each_group(f"g.cliqueNames.exists(n, {twice})", "cliqueNames[]", REPEATED)
    yield from _sharing_rules()
    yield from _scheduler_rules(configuration)


def _scheduler_rules(configuration: Configuration) -> Iterator[PolicyRule]:
    path, named = "spec.podSpec.schedulerName", "c.spec.podSpec.?schedulerName.orValue('')"
    default = text(configuration.default_scheduler)
    schedulers = f"variables.cliques.map(c, {named} == '' ? {default} : {named})"
    different = f"[{schedulers}].exists(names, names.exists(n, n != names[0]))"
    yield rule(different, f"spec.template.cliques[].{path}", DIFFERENT_SCHEDULERS)
    enabled = ", ".join(map(text, sorted(configuration.schedulers)))
    yield for_each_clique(f"{named} != '' && !({named} in [{enabled}])", path, NOT_ENABLED)
    if configuration.default_scheduler not in configuration.schedulers:
        yield rule(f"variables.cliques.exists(c, {named} == '')", "spec", NO_DEFAULT_SCHEDULER)


def _sharing_issues(template: SetTemplate) -> Iterator[Issue]:
    """The issues of `resourceClaimTemplates` and of `resourceSharing` of the set, its groups and its cliques."""
    own = frozenset(entry.name for entry in template.resource_claim_templates)
    cliques = dict.fromkeys(clique.name for clique in template.cliques)
    groups = dict.fromkeys(group.name for group in template.pod_clique_scaling_groups)
    suggestions = Suggestions()
    yield from _templates(template.resource_claim_templates, (*TEMPLATE, "resourceClaimTemplates"))
    yield from _shares(template.resource_sharing, own, TEMPLATE)
    yield from _filters(template.resource_sharing, TEMPLATE, {BY_CLIQUE: cliques, BY_GROUP: groups}, suggestions)
    for number, group in enumerate(template.pod_clique_scaling_groups):
        path = (*GROUPS, number)
        yield from _shares(group.resource_sharing, own, path)
        yield from _filters(group.resource_sharing, path, {BY_CLIQUE: dict.fromkeys(group.clique_names)}, suggestions)
    for number, clique in enumerate(template.cliques):
        yield from _shares(clique.resource_sharing, own, (*CLIQUES, number))


def _templates(templates: Sequence[ResourceClaimTemplate], path: Path) -> Iterator[Issue]:
    for number, template in enumerate(templates):
        if not template.name:
            yield Issue((*path, number, "name"), ErrorType.REQUIRED, NO_TEMPLATE_NAME)
        requests = get(template.template_spec.spec, ("devices", "requests"))
        if not isinstance(requests, list | tuple) or not requests:
            requests_path = (*path, number, "templateSpec", "spec", "devices", "requests")
            yield Issue(requests_path, ErrorType.REQUIRED, NO_REQUEST)
    yield from duplicates(((*path, number, "name"), entry.name) for number, entry in enumerate(templates) if entry.name)


def _shares(entries: Sequence[ResourceSharing], own: Set[str], holder: Path) -> Iterator[Issue]:
    path = (*holder, "resourceSharing")
    for number, entry in enumerate(entries):
        if not entry.name:
            yield Issue((*path, number, "name"), ErrorType.REQUIRED, NO_SHARE_NAME)
        if entry.namespace and entry.name in own:
            yield Issue((*path, number, "namespace"), ErrorType.INVALID, OWN_NAMESPACE, entry.namespace)
    yield from duplicates(((*path, number, "name"), entry.name) for number, entry in enumerate(entries) if entry.name)


def _filters(entries: Sequence[Filtered], holder: Path, known: KnownNames, suggestions: Suggestions) -> Iterator[Issue]:
    """A filter must name at least one clique or group, and only existing ones."""
    for number, entry in enumerate(entries):
        path = (*holder, "resourceSharing", number, "filter")
        named = _named(entry.filter) if entry.filter is not None else {}
        if entry.filter is not None and not any(named.values()):
            yield Issue(path, ErrorType.REQUIRED, EMPTY_FILTER.format(fields=" or ".join(known)))
        for field, names in named.items():
            for index, name in enumerate(names):
                if name not in known[field]:
                    message = f"{NONE_OF_THIS_NAME[field]}{suggestions.instead([name], known[field])}"
                    yield Issue((*path, field, index), ErrorType.NOT_FOUND, message, name)


def _named(filter: CliqueFilter) -> Mapping[str, Sequence[str]]:
    """Field of a filter -> the names that it contains."""
    by_clique = {BY_CLIQUE: filter.child_clique_names}
    return by_clique | {BY_GROUP: filter.child_scaling_group_names} if isinstance(filter, Filter) else by_clique


def _sharing_rules() -> Iterator[PolicyRule]:
    own, path = "variables.ownTemplates", "resourceClaimTemplates[]"
    requests = "t.?templateSpec.?spec.?devices.?requests.orValue([])"
    yield for_template(f"{own}.exists(t, t.name == '')", f"{path}.name", NO_TEMPLATE_NAME)
    yield for_template(f"{own}.exists(t, t.name != '' && {own}.filter(o, o.name == t.name).size() > 1)", f"{path}.name", REPEATED)
    yield for_template(f"{own}.exists(t, {requests}.size() == 0)", f"{path}.templateSpec.spec.devices.requests", NO_REQUEST)
    for holder, each in HOLDERS:
        yield from _share_rules(f"{holder}.?resourceSharing.orValue([])", each)
    yield from _filter_rules("variables.template", for_template, {BY_CLIQUE: "variables.names", BY_GROUP: "variables.groupNames"})
    yield from _filter_rules("g", for_each_group, {BY_CLIQUE: "g.cliqueNames"})


def _share_rules(shares: str, each: ForEach) -> Iterator[PolicyRule]:
    path = "resourceSharing[]"
    internal = "variables.ownTemplates.exists(t, t.name == s.name)"
    yield each(f"{shares}.exists(s, s.name == '')", f"{path}.name", NO_SHARE_NAME)
    yield each(f"{shares}.exists(s, s.?namespace.orValue('') != '' && {internal})", f"{path}.namespace", OWN_NAMESPACE)
    yield each(f"{shares}.exists(s, s.name != '' && {shares}.filter(o, o.name == s.name).size() > 1)", f"{path}.name", REPEATED)


def _filter_rules(holder: str, each: ForEach, known: Mapping[str, str]) -> Iterator[PolicyRule]:
    """`known`: field of a filter -> the names that it may contain, as CEL."""
    path, is_bad = "resourceSharing[].filter", f"{holder}.?resourceSharing.orValue([]).exists(s, has(s.filter) && {{}})"
    named = {field: f"s.filter.?{field}.orValue([])" for field in known}
    is_empty = " && ".join(f"{names}.size() == 0" for names in named.values())
    yield each(is_bad.format(is_empty), path, EMPTY_FILTER.format(fields=" or ".join(known)))
    for field, names in named.items():
        yield each(is_bad.format(f"{names}.exists(n, !(n in {known[field]}))"), f"{path}.{field}[]", NONE_OF_THIS_NAME[field])
