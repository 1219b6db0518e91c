"""Create rules: the admission rules for one version of a PodCliqueSet. Except those for new sets, they apply to updates as well."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from engine.duration import nanoseconds
from engine.paths import get
from resources.admission import computable_rules, dependency_rules, metadata_rules
from resources.admission.cel import (
    HOLDERS,
    MINIMUM,
    REPEATED,
    ROLE,
    for_each_clique,
    for_each_group,
    for_template,
    general,
    is_repeated,
    matches,
    no_subdomain,
    on_create,
    replicas_of,
    rule,
)
from resources.base import kinds
from resources.base.fields import CLIQUES, GROUPS, TEMPLATE, mappings
from resources.model.environment import OF_EVERY_POD, OF_MEMBERS
from resources.ports.fabric import PolicyRule
from resources.ports.references import References
from resources.schema.child_kinds import AutoScaling
from resources.schema.formats import VARIABLE, subdomain_faults, variable_faults
from resources.schema.issues import ErrorType, Issue, Located, Path, duplicates, spelled
from resources.schema.meta import ObjectMeta
from resources.schema.podcliqueset import (
    CREATE_RULES,
    ON_DELETE,
    CliqueTemplate,
    PodCliqueSet,
    ResourceSharing,
    ScalingGroupConfig,
    SetTemplate,
)
from resources.schema.topology import TopologyConstraint
from resources.schema.unknown_fields import Suggestions

NEGATIVE: Final = "must be greater than or equal to 0"
NO_NAME: Final = "field cannot be empty"
INVALID_CLIQUE_NAME: Final = "invalid PodCliqueTemplateSpec name, must be a valid DNS subdomain"
INVALID_GROUP_NAME: Final = "invalid PodCliqueScalingGroupConfig name, must be a valid DNS subdomain"
INVALID_VARIABLE: Final = "is no valid name of an environment variable"
"""The reason of policies, for every fault of a name."""
MUST_NOT_BE_SET: Final = "must not be set"
NO_DELAY: Final = "terminationDelay must be greater than 0"
MEMBER_UPDATED: Final = "must not be set for a PodClique of a scaling group: its group is updated as a whole, by rollingUpdate of the group"
NOT_ROLLING: Final = "must not be set with the update strategy OnDelete"
POSITIVE: Final = computable_rules.POSITIVE
SCALED_BY_GROUP: Final = "AutoScalingConfig is not allowed to be defined for PodClique that is part of scaling group"
LEAST_BELOW_MINIMUM: Final = "must be greater than or equal to podCliqueSpec.minAvailable"
COMPLETES: Final = "restartPolicy: {policy} is kept: a pod that fails is replaced, one that succeeds is not"
MOST_BELOW_LEAST: Final = "must be greater than or equal to podCliqueSpec.minReplicas"
MOST_BELOW_REPLICAS: Final = "must be greater than or equal to replicas"
GROUP_LEAST_BELOW_MINIMUM: Final = "scaleConfig.minReplicas must be greater than or equal to minAvailable"
GROUP_MOST_BELOW_LEAST: Final = "scaleConfig.maxReplicas must be greater than or equal to scaleConfig.minReplicas"
GROUP_MOST_BELOW_REPLICAS: Final = "scaleConfig.maxReplicas must be greater than or equal to replicas"
ROLE_MISSING: Final = (
    "roleName is missing, and only one clique of a set may be without one: write a unique name, e.g. the name of the clique"
)
NO_OWN_TEMPLATE: Final = "the set has no claim template of this name"
NAME: Final[Path] = ("metadata", "name")
MAX_COMBINED_NAME: Final = 45
"""The largest total length of the names that a pod name is composed of."""
TOO_LONG: Final = (
    f"combined resource name length {{length}} exceeds {MAX_COMBINED_NAME}-character limit required for pod naming. "
    "Consider shortening: {names}"
)
NAMES: Final = "PodCliqueSet '{root}' or PodClique '{clique}'"
NAMES_IN_GROUP: Final = "PodCliqueSet '{root}', PodCliqueScalingGroup '{group}', or PodClique '{clique}'"


def metadata_issues(model: PodCliqueSet) -> Iterator[Issue]:
    """The issues of a set that has the right shape, besides those of its template."""
    yield from metadata_rules.issues(model.metadata, namespaced=True)
    if model.spec.replicas < 0:
        yield Issue(("spec", "replicas"), ErrorType.INVALID, NEGATIVE, model.spec.replicas)


def template_issues(template: SetTemplate) -> Iterator[Issue]:
    """The issues of a template that has the right shape and its defaults, on create and on update, besides those of `computable_rules`."""
    yield from _roles(template)
    for number, clique in enumerate(template.cliques):
        yield from _clique((*CLIQUES, number), clique)
    for number, group in enumerate(template.pod_clique_scaling_groups):
        yield from _group((*GROUPS, number), group)
    yield from _member_scaling(template)


def _rolling_updates(model: PodCliqueSet) -> Iterator[Issue]:
    """The issues of `rollingUpdate` of cliques and groups, on create and on update."""
    template, strategy = model.spec.template, model.spec.update_strategy
    is_manual = strategy is not None and strategy.type == ON_DELETE
    members = {name for _, name in computable_rules.members(template.pod_clique_scaling_groups)}
    cliques = (((*CLIQUES, number), clique.rolling_update, clique.name in members) for number, clique in enumerate(template.cliques))
    groups = (((*GROUPS, number), group.rolling_update, False) for number, group in enumerate(template.pod_clique_scaling_groups))
    for holder, rolling, is_member in (*cliques, *groups):
        path = (*holder, "rollingUpdate")
        if rolling is None:
            continue
        if is_member:
            yield Issue(path, ErrorType.FORBIDDEN, MEMBER_UPDATED)
        if is_manual:
            yield Issue(path, ErrorType.FORBIDDEN, NOT_ROLLING)
        if rolling.max_unavailable is not None and rolling.max_unavailable <= 0:
            yield Issue((*path, "maxUnavailable"), ErrorType.INVALID, POSITIVE, rolling.max_unavailable)
        if rolling.progress_deadline and nanoseconds(rolling.progress_deadline) <= 0:
            yield Issue((*path, "progressDeadline"), ErrorType.INVALID, POSITIVE, rolling.progress_deadline)


def length_issues(model: PodCliqueSet) -> Iterator[Issue]:
    """The issues of names that are too long together, of times that are too short, and of how the set is updated."""
    template = model.spec.template
    yield from _rolling_updates(model)
    yield from _lengths(model.metadata, template)
    if template.termination_delay is not None and nanoseconds(template.termination_delay) <= 0:
        yield Issue((*TEMPLATE, "terminationDelay"), ErrorType.INVALID, NO_DELAY, template.termination_delay)


def _roles(template: SetTemplate) -> Iterator[Issue]:
    """An issue for each role that repeats an earlier one. The empty role, of a clique without `roleName`, counts as a role."""
    roles = (((*CLIQUES, number, "spec", "roleName"), clique.spec.role_name) for number, clique in enumerate(template.cliques))
    for issue in duplicates(roles):
        yield issue if issue.value else replace(issue, message=ROLE_MISSING)


def new_set_issues(template: SetTemplate) -> Iterator[Issue]:
    """The issues of a new set alone: deprecated and forbidden fields, which a set that was admitted with them may keep."""
    yield from _pack_domain(TEMPLATE, template.topology_constraint)
    for number, clique in enumerate(template.cliques):
        yield from _pack_domain((*CLIQUES, number), clique.topology_constraint)
        for field in ("topologySpreadConstraints", "nodeName"):
            value = clique.spec.pod_spec.get(field)
            if value is not None and value != "":
                yield Issue((*CLIQUES, number, "spec", "podSpec", field), ErrorType.INVALID, MUST_NOT_BE_SET, value)
    for number, group in enumerate(template.pod_clique_scaling_groups):
        yield from _pack_domain((*GROUPS, number), group.topology_constraint)


def warnings(template: SetTemplate) -> Iterator[Located]:
    """Warnings about settings that are admitted but have no effect, or that let pods complete (Q6)."""
    yield from dependency_rules.warnings(template)
    members = {name for _, name in computable_rules.members(template.pod_clique_scaling_groups)}
    for number, clique in enumerate(template.cliques):
        replaced = OF_EVERY_POD | OF_MEMBERS if clique.name in members else OF_EVERY_POD
        yield from _replaced_variables((*CLIQUES, number, "spec", "podSpec"), clique.spec.pod_spec, replaced)
        if (policy := clique.spec.pod_spec.get("restartPolicy")) not in (None, "", "Always"):
            path = (*CLIQUES, number, "spec", "podSpec", "restartPolicy")
            yield Located(COMPLETES.format(policy=policy), path)


def _replaced_variables(path: Path, spec: dict[str, Any], replaced: frozenset[str]) -> Iterator[Located]:
    """A warning for each variable of a container that the engine sets itself."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(mappings(spec.get(field))):
            for place, variable in enumerate(mappings(container.get("env"))):
                if (name := variable.get("name")) in replaced:
                    at = (*path, field, index, "env", place, "name")
                    yield Located(f"{spelled(at)}: the given value of {name} is not used: the engine sets it", at)


def zero_warnings(body: Any) -> Iterator[Located]:
    """A warning for each clique of a manifest, without defaults, that has 0 pods: as in Grove, it gets one."""
    for number, clique in enumerate(mappings(get(body, CLIQUES) if isinstance(body, Mapping) else ())):
        count = get(clique, ("spec", "replicas"))
        if count == 0 and not isinstance(count, bool):
            at = (*CLIQUES, number, "spec", "replicas")
            yield Located(f"{spelled(at)}: 0 counts as 1: a clique has a pod at least; leave it out, or give the set 0 replicas", at)


def sharing_warnings(template: SetTemplate, namespace: str, references: References) -> Iterator[Located]:
    """A warning for each entry of `resourceSharing` that names no template of the set, and none of its namespace that is known.

    Such an entry may refer to a ResourceClaimTemplate that exists where nothing was looked up, so that it is no fault.
    """
    own = dict.fromkeys(entry.name for entry in template.resource_claim_templates if entry.name)
    suggestions = Suggestions()
    for path, entries in _sharing_of(template):
        for number, entry in enumerate(entries):
            if not own or not entry.name or entry.namespace or entry.name in own:
                continue
            if references.find(kinds.RESOURCE_CLAIM_TEMPLATE.id(namespace, entry.name)) is None:
                at = (*path, "resourceSharing", number, "name")
                yield Located(f"{spelled(at)}: {NO_OWN_TEMPLATE}{suggestions.instead([entry.name], own)}", at)


def _sharing_of(template: SetTemplate) -> Iterator[tuple[Path, Sequence[ResourceSharing]]]:
    """The path of each holder of `resourceSharing`, and its entries."""
    yield TEMPLATE, template.resource_sharing
    yield from (((*GROUPS, number), group.resource_sharing) for number, group in enumerate(template.pod_clique_scaling_groups))
    yield from (((*CLIQUES, number), clique.resource_sharing) for number, clique in enumerate(template.cliques))


def _clique(path: Path, clique: CliqueTemplate) -> Iterator[Issue]:
    if not clique.name:
        yield Issue((*path, "name"), ErrorType.REQUIRED, NO_NAME)
    elif subdomain_faults(clique.name):
        yield Issue((*path, "name"), ErrorType.INVALID, INVALID_CLIQUE_NAME, clique.name)
    yield from metadata_rules.labels(clique.labels, (*path, "labels"))
    yield from metadata_rules.annotations(clique.annotations, (*path, "annotations"))
    if clique.spec.auto_scaling_config is not None:
        yield from _clique_scaling((*path, "spec", "autoScalingConfig"), clique, clique.spec.auto_scaling_config)
    yield from _pod_spec((*path, "spec", "podSpec"), clique.spec.pod_spec)


def _clique_scaling(path: Path, clique: CliqueTemplate, scaling: AutoScaling) -> Iterator[Issue]:
    least, most = _min_replicas(scaling, clique.spec.replicas), scaling.max_replicas
    if clique.spec.min_available is not None and least < clique.spec.min_available:
        yield Issue((*path, "minReplicas"), ErrorType.INVALID, LEAST_BELOW_MINIMUM, least)
    if most < least != clique.spec.replicas:
        yield Issue((*path, "maxReplicas"), ErrorType.INVALID, MOST_BELOW_LEAST, most)
    if most < clique.spec.replicas:
        yield Issue((*path, "maxReplicas"), ErrorType.INVALID, MOST_BELOW_REPLICAS, most)


def _pod_spec(path: Path, spec: dict[str, Any]) -> Iterator[Issue]:
    """The issues of a pod spec besides wrong types: those of its environment variables."""
    for field in ("containers", "initContainers"):
        for number, container in enumerate(spec.get(field) or ()):
            yield from _environment((*path, field, number, "env"), container.get("env") or ())


def _environment(path: Path, variables: Any) -> Iterator[Issue]:
    for number, variable in enumerate(variables):
        if faults := variable_faults(variable["name"]):
            yield Issue((*path, number, "name"), ErrorType.INVALID, "; ".join(faults), variable["name"])
    yield from duplicates(((*path, number, "name"), variable["name"]) for number, variable in enumerate(variables))


def _group(path: Path, group: ScalingGroupConfig) -> Iterator[Issue]:
    if subdomain_faults(group.name):
        yield Issue((*path, "name"), ErrorType.INVALID, INVALID_GROUP_NAME, group.name)
    yield from metadata_rules.annotations(group.annotations, (*path, "annotations"))
    if group.scale_config is not None:
        yield from _group_scaling((*path, "scaleConfig"), group, group.scale_config)


def _group_scaling(path: Path, group: ScalingGroupConfig, scaling: AutoScaling) -> Iterator[Issue]:
    """The issues of a scaling group's autoscaler. Unlike Grove, maxReplicas is validated as well as minReplicas (Q23)."""
    least, most = _min_replicas(scaling, group.replicas), scaling.max_replicas
    if least < group.min_available:
        yield Issue((*path, "minReplicas"), ErrorType.INVALID, GROUP_LEAST_BELOW_MINIMUM, least)
    if most < least != group.replicas:
        yield Issue((*path, "maxReplicas"), ErrorType.INVALID, GROUP_MOST_BELOW_LEAST, most)
    if most < group.replicas:
        yield Issue((*path, "maxReplicas"), ErrorType.INVALID, GROUP_MOST_BELOW_REPLICAS, most)


def _min_replicas(scaling: AutoScaling, replicas: int) -> int:
    """The least number of replicas, by default all: `maxReplicas` below both is one fault."""
    return replicas if scaling.min_replicas is None else scaling.min_replicas


def _member_scaling(template: SetTemplate) -> Iterator[Issue]:
    """A clique in a scaling group must not have an autoscaler of its own."""
    scaled = frozenset(clique.name for clique in template.cliques if clique.spec.auto_scaling_config is not None)
    for path, name in computable_rules.members(template.pod_clique_scaling_groups):
        if name in scaled:
            yield Issue(path, ErrorType.INVALID, SCALED_BY_GROUP, name)


def _lengths(metadata: ObjectMeta, template: SetTemplate) -> Iterator[Issue]:
    """The combined names must fit a hostname; reported at each name that could be shortened."""
    root, length = metadata.name or metadata.generate_name or "", metadata_rules.name_length(metadata)
    grouped = {name for _, name in computable_rules.members(template.pod_clique_scaling_groups)}
    for number, clique in enumerate(template.cliques):
        if clique.name not in grouped and (total := length + len(clique.name)) > MAX_COMBINED_NAME:
            candidates = NAMES.format(root=root, clique=clique.name)
            yield from _too_long(total, candidates, {(*CLIQUES, number, "name"): clique.name, NAME: root})
    for number, group in enumerate(template.pod_clique_scaling_groups):
        for index, name in enumerate(group.clique_names):
            if (total := length + len(group.name) + len(name)) > MAX_COMBINED_NAME:
                candidates = NAMES_IN_GROUP.format(root=root, group=group.name, clique=name)
                path = (*GROUPS, number)
                names: dict[Path, str] = {(*path, "cliqueNames", index): name, (*path, "name"): group.name, NAME: root}
                yield from _too_long(total, candidates, names)


def _too_long(length: int, candidates: str, names: dict[Path, str]) -> Iterator[Issue]:
    message = TOO_LONG.format(length=length, names=candidates)
    return (Issue(path, ErrorType.INVALID, message, name) for path, name in names.items())


def _pack_domain(holder: Path, constraint: TopologyConstraint | None) -> Iterator[Issue]:
    """The CRD's rule against packDomain in new sets, reported at the exact field."""
    if constraint is not None and constraint.pack_domain is not None:
        yield Issue((*holder, "topologyConstraint", "packDomain"), ErrorType.FORBIDDEN, CREATE_RULES[0].message)


def policy_rules() -> Iterator[PolicyRule]:
    """The same as CEL, on create and on update, besides the metadata of the set, of which an API server has rules of its own."""
    yield rule("object.spec.?replicas.orValue(0) < 0", "spec.replicas", NEGATIVE)
    repeated = is_repeated(ROLE, "variables.roles")
    yield for_each_clique(f"{ROLE} != '' && {repeated}", "spec.roleName", REPEATED)
    yield for_each_clique(f"{ROLE} == '' && {repeated}", "spec.roleName", ROLE_MISSING)
    yield for_each_clique("c.name == ''", "name", NO_NAME)
    yield for_each_clique(f"c.name != '' && {no_subdomain('c.name')}", "name", INVALID_CLIQUE_NAME)
    yield for_each_group(no_subdomain("g.name"), "name", INVALID_GROUP_NAME)
    yield from metadata_rules.policy_rules()
    yield from _scaling_rules()
    yield from _environment_rules()
    yield from _length_rules()
    delay = "variables.template.terminationDelay"
    is_short = f"has({delay}) && {delay} != '' && duration({delay}) <= duration('0s')"
    yield for_template(is_short, "terminationDelay", NO_DELAY)
    yield from _rolling_update_rules()


def new_set_policy_rules() -> Iterator[PolicyRule]:
    """The rules for new sets alone as CEL."""
    for holder, each in HOLDERS:
        constraint = f"{holder}.topologyConstraint"
        bad = f"has({constraint}) && has({constraint}.packDomain)"
        yield on_create(each(bad, "topologyConstraint.packDomain", CREATE_RULES[0].message))
    spread = for_each_clique("has(c.spec.podSpec.topologySpreadConstraints)", "spec.podSpec.topologySpreadConstraints", MUST_NOT_BE_SET)
    yield on_create(spread)
    yield on_create(for_each_clique("c.spec.podSpec.?nodeName.orValue('') != ''", "spec.podSpec.nodeName", MUST_NOT_BE_SET))


def _scaling_rules() -> Iterator[PolicyRule]:
    scaling, path, replicas = "c.spec.autoScalingConfig", "spec.autoScalingConfig", replicas_of("c")
    least, most = f"{scaling}.?minReplicas.orValue({replicas})", f"{scaling}.maxReplicas"
    yield for_each_clique(f"has({scaling}) && {least} < {MINIMUM}", f"{path}.minReplicas", LEAST_BELOW_MINIMUM)
    yield for_each_clique(f"has({scaling}) && {most} < {least} && {least} != {replicas}", f"{path}.maxReplicas", MOST_BELOW_LEAST)
    yield for_each_clique(f"has({scaling}) && {most} < {replicas}", f"{path}.maxReplicas", MOST_BELOW_REPLICAS)
    scaling, path = "g.scaleConfig", "scaleConfig"
    least, most = f"{scaling}.?minReplicas.orValue(g.replicas)", f"{scaling}.maxReplicas"
    yield for_each_group(f"has({scaling}) && {least} < g.minAvailable", f"{path}.minReplicas", GROUP_LEAST_BELOW_MINIMUM)
    is_below_least = f"has({scaling}) && {most} < {least} && {least} != g.replicas"
    yield for_each_group(is_below_least, f"{path}.maxReplicas", GROUP_MOST_BELOW_LEAST)
    yield for_each_group(f"has({scaling}) && {most} < g.replicas", f"{path}.maxReplicas", GROUP_MOST_BELOW_REPLICAS)
    scaled = "g.cliqueNames.exists(n, variables.cliques.exists(c, c.name == n && has(c.spec.autoScalingConfig)))"
    yield for_each_group(scaled, "cliqueNames[]", SCALED_BY_GROUP)


def _environment_rules() -> Iterator[PolicyRule]:
    is_name = f"{matches('v.name', VARIABLE)} && v.name != '.' && !v.name.startsWith('..')"
    for field in ("containers", "initContainers"):
        containers, path = f"c.spec.podSpec.?{field}.orValue([])", f"spec.podSpec.{field}[].env[].name"
        yield for_each_clique(f"{containers}.exists(k, k.?env.orValue([]).exists(v, !({is_name})))", path, INVALID_VARIABLE)
        twice = f"[k.env.map(v, v.name)].exists(names, names.exists(n, {is_repeated('n', 'names')}))"
        yield for_each_clique(f"{containers}.exists(k, has(k.env) && {twice})", path, REPEATED)


def _rolling_update_rules() -> Iterator[PolicyRule]:
    is_manual = f"object.spec.?updateStrategy.?type.orValue('') == '{ON_DELETE}'"
    is_member = "variables.groups.exists(g, c.name in g.cliqueNames)"
    yield for_each_clique(f"has(c.rollingUpdate) && {is_member}", "rollingUpdate", MEMBER_UPDATED)
    for item, each in (("c", for_each_clique), ("g", for_each_group)):
        rolling = f"{item}.rollingUpdate"
        yield each(f"has({rolling}) && {is_manual}", "rollingUpdate", NOT_ROLLING)
        yield each(f"has({rolling}) && {rolling}.?maxUnavailable.orValue(1) <= 0", "rollingUpdate.maxUnavailable", POSITIVE)
        deadline = f"{rolling}.?progressDeadline.orValue('')"
        is_short = f"has({rolling}) && {deadline} != '' && duration({deadline}) <= duration('0s')"
        yield each(is_short, "rollingUpdate.progressDeadline", POSITIVE)


def _length_rules() -> Iterator[PolicyRule]:
    is_alone = "!variables.groups.exists(g, c.name in g.cliqueNames)"
    too_long = f"variables.nameLength + c.name.size() > {MAX_COMBINED_NAME}"
    yield for_each_clique(f"{is_alone} && {too_long}", "name", general(TOO_LONG.replace("{names}", NAMES)))
    too_long = f"g.cliqueNames.exists(n, variables.nameLength + g.name.size() + n.size() > {MAX_COMBINED_NAME})"
    yield for_each_group(too_long, "name", general(TOO_LONG.replace("{names}", NAMES_IN_GROUP)))
